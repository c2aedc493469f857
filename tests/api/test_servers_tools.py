"""What is offered of upstream servers over REST: exposed by name, loosened by people, all at once or not at all."""

from typing import Any
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.upstreams import discovery
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.models import UpstreamServer
from tests.api.conftest import Program, called, problem
from tests.api.described import described
from tests.conftest import MakeTool
from tests.upstreams.shops import SAYS_IT_BACK, listed, listing, somewhere

CONTRACT = {
    *("tool", "exposed", "alias", "description", "hitlMode", "promptTemplate", "riskLevel", "effectiveRiskLevel"),
    *("state", "warnings"),
}
READ_ONLY = ["riskLevel", "effectiveRiskLevel", "state", "warnings", "id", "title", "inputSchema", "exposedBy"]
VOUCHED = ["riskUnknown", "vouch", "vouchNote", "vouchedBy", "vouchedAt", "inherentRiskLevel"]
ECHO = "/servers/shop/tools/echo"
ODD_NAMES = ["files/read", "100% sure?#1", "a b", "../servers", "Größe", "files/accept", "x/history/accept", "//"]


def take_in(found: Listing, name: str = "shop") -> None:
    server = UpstreamServer.objects.get(name=name)
    assert async_to_sync(discovery.take_in)(server.pk, server.revision, found)


@pytest.fixture
def alices(alice: User, alices: Program) -> Program:
    somewhere(alice)
    take_in(listing(echo=SAYS_IT_BACK, other="Say something else instead."))
    return alices


def state(program: Program, path: str = ECHO) -> tuple[bool, str]:
    found = program.get(path).json()
    return found["exposed"], found["hitlMode"]


def test_every_tool_is_there_before_anything_is_exposed(alices: Program) -> None:
    response = alices.get("/servers/shop/tools")
    echo, other = described(response)
    assert echo.keys() >= CONTRACT
    assert (echo["tool"], echo["alias"], echo["exposed"], echo["state"]) == ("echo", "shop_echo", False, "new")
    assert (echo["hitlMode"], echo["description"], echo["upstreamDescription"]) == ("REQUIRED", "", SAYS_IT_BACK)
    assert echo["effectiveRiskLevel"] == echo["riskLevel"] == echo["inherentRiskLevel"] == 5
    assert (echo["warnings"], echo["inputSchema"], other["tool"]) == ([], None, "other")
    assert response["X-Total-Count"] == "2"
    assert alices.get("/servers/shop").json()["toolCount"] == 2


def test_the_list_is_filtered_and_comes_in_pages(alices: Program) -> None:
    alices.put(ECHO, {"exposed": True, "alias": "say"})

    def names(**query: Any) -> list[str]:
        return [tool["tool"] for tool in described(alices.get("/servers/shop/tools", **query))]

    assert names(state="exposed") == names(q="SA") == names(limit=1) == ["echo"]
    assert names(state="new") == names(q="oth") == names(offset=1) == ["other"]
    assert alices.get("/servers/shop/tools", limit=1)["X-Total-Count"] == "2"
    assert alices.get("/servers/shop/tools", schemas="true").json()[0]["inputSchema"]["type"] == "object"
    for wrong in ({"limit": 5001}, {"limit": 0}, {"offset": -1}, {"state": "maybe"}, {"schemas": "perhaps"}):
        assert problem(alices.get("/servers/shop/tools", **wrong), 422)["errors"].keys() == wrong.keys()


def test_exposing_puts_the_tool_into_the_catalog_asking_every_time(alices: Program, bob: User) -> None:
    exposed = described(alices.put(ECHO, {"exposed": True}))
    assert (exposed["exposed"], exposed["state"], exposed["hitlMode"]) == (True, "exposed", "REQUIRED")
    (tool,) = alices.get("/tools").json()
    assert (tool["name"], tool["source"], tool["hitlMode"], tool["published"]) == (
        "shop_echo",
        "upstream",
        "REQUIRED",
        True,
    )
    assert called(bob, "shop_echo", {"text": "hi"}).status == Status.WAITING
    assert alices.get("/servers/shop").json()["exposedCount"] == 1
    hidden = described(alices.put(ECHO, {"exposed": False}))
    assert (hidden["exposed"], hidden["state"], hidden["alias"]) == (False, "hidden", "shop_echo")
    assert not Tool.objects.get().published


def test_what_was_decided_is_kept_and_an_answer_s_part_can_be_sent_back(alices: Program) -> None:
    fields = {
        "alias": "say",
        "description": "Says it.",
        "hitlMode": "CONDITIONAL",
        "promptTemplate": "Say {args.text}?",
        "condition": 'args["text"] == "x"',
    }
    made = alices.put(ECHO, {"tool": "echo", "exposed": True, "confirmLowering": True, **fields})
    assert made.status_code == 200, made.content
    assert {name: made.json()[name] for name in fields} == fields
    same = alices.put(ECHO, {name: made.json()[name] for name in ("tool", "exposed", "digest", *fields)})
    assert same.json() == made.json()


def test_an_empty_body_changes_nothing(alices: Program) -> None:
    before = alices.put(ECHO, {"exposed": True}).json()
    assert alices.put(ECHO, {}).json() == before


BAD: dict[str, tuple[int, str, dict[str, Any]]] = {
    "an alias with spaces": (422, "alias", {"exposed": True, "alias": "has spaces"}),
    "an alias that is ours": (422, "alias", {"exposed": True, "alias": "approve"}),
    "an alias that is taken": (422, "alias", {"exposed": True, "alias": "taken"}),
    "an unknown mode": (422, "hitlMode", {"hitlMode": "SOMETIMES"}),
    "a small mode": (422, "hitlMode", {"hitlMode": "required"}),
    "a prompt of what is not there": (422, "promptTemplate", {"promptTemplate": "{args.nothing}"}),
    "a condition that is none": (422, "condition", {"condition": "1 +"}),
    "a description that is too long": (422, "description", {"description": "a" * 20_001}),
    "a character that cannot be kept": (422, "description", {"description": "\0"}),
    "text for a truth": (422, "exposed", {"exposed": "true"}),
    "another tool": (422, "tool", {"tool": "other"}),
    "another definition": (409, "digest", {"exposed": True, "digest": "0" * 64}),
    "less oversight": (409, "confirmLowering", {"exposed": True, "hitlMode": "DISABLED"}),
    "an unknown field": (422, "hitl", {"hitl": True}),
}


def test_what_is_wrong_is_named_by_its_field_and_changes_nothing(alices: Program, make_tool: MakeTool) -> None:
    make_tool("taken")
    before = alices.get(ECHO).json()
    for status, field, body in BAD.values():
        assert problem(alices.put(ECHO, body), status)["errors"].keys() == {field}
        several = {"tools": [{"tool": "other", "exposed": True}, {"tool": "echo"} | body]}
        if field != "tool":
            assert problem(alices.put("/servers/shop/tools", several), status)["errors"].keys() == {f"tools.1.{field}"}
        assert alices.get(ECHO).json() == before
        assert [tool.name for tool in Tool.objects.all()] == ["taken"]


def test_what_is_derived_cannot_be_written(alices: Program) -> None:
    for field in READ_ONLY:
        assert problem(alices.put(ECHO, {field: None}), 422)["errors"].keys() == {field}


def test_each_tool_that_is_to_ask_less_often_has_to_be_meant(alices: Program) -> None:
    never = [{"tool": name, "exposed": True, "hitlMode": "DISABLED"} for name in ("echo", "other")]
    never[0]["confirmLowering"] = True
    found = problem(alices.put("/servers/shop/tools", {"tools": never}), 409)
    assert found["errors"].keys() == {"tools.1.confirmLowering"}
    assert not Tool.objects.exists()
    never[1]["confirmLowering"] = True
    assert len(described(alices.put("/servers/shop/tools", {"tools": never}))) == 2


@pytest.mark.guarantee("gate:only-people")
def test_only_a_person_vouches_for_a_tool_and_only_for_what_they_saw(alices: Program, machine: Program) -> None:
    before = alices.put(ECHO, {"exposed": True}).json()
    assert [before[name] for name in VOUCHED] == [True, "", "", None, None, 5]
    body = {"vouch": "L2", "vouchNote": "Only says it back.", "digest": before["digest"]}
    problem(machine.put(ECHO, body), 403)
    assert problem(alices.put(ECHO, {"vouch": "L2"}), 422)["errors"].keys() == {"vouch"}
    assert problem(alices.put(ECHO, {**body, "digest": "0" * 64}), 409)["errors"].keys() == {"digest"}
    assert problem(alices.put(ECHO, body), 409)["errors"].keys() == {"confirmLowering"}
    body["confirmLowering"] = True
    for answer in (alices.put("/servers/shop/tools", {"tools": [{"tool": "echo", **body}]}), alices.get(ECHO)):
        (found,) = described(answer) if isinstance(answer.json(), list) else [answer.json()]
        assert found.pop("vouchedAt")
        assert [found.get(name) for name in VOUCHED] == [False, "L2", "Only says it back.", "alice", None, 2]
    assert [alices.put(ECHO, {"vouch": ""}).json()[name] for name in VOUCHED] == [True, "", "", None, None, 5]


@pytest.mark.guarantee("gate:only-people")
def test_a_program_s_token_exposes_what_asks_and_loosens_nothing(machine: Program, alices: Program) -> None:
    assert machine.put(ECHO, {"exposed": True}).status_code == 200
    for body in ({"hitlMode": "DISABLED"}, {"hitlMode": "CONDITIONAL"}):
        said = problem(machine.put(ECHO, {**body, "confirmLowering": True}), 403)["detail"]
        assert "approver token" in said
        problem(machine.put("/servers/shop/tools", {"tools": [{"tool": "echo", **body, "confirmLowering": True}]}), 403)
    problem(machine.post(f"{ECHO}/accept", {"digest": alices.get(ECHO).json()["digest"]}), 403)
    assert state(alices) == (True, "REQUIRED")


def test_several_are_changed_at_once(alices: Program) -> None:
    good = {"tools": [{"tool": "other", "exposed": True}, {"tool": "echo", "exposed": True, "alias": "say"}]}
    changed = described(alices.put("/servers/shop/tools", good))
    assert [(tool["tool"], tool["alias"], tool["exposed"]) for tool in changed] == [
        *(("other", "shop_other", True), ("echo", "say", True)),
    ]
    assert Tool.objects.filter(source="upstream", published=True).count() == 2


def test_a_list_of_changes_names_each_tool_once(alices: Program) -> None:
    twice = {"tools": [{"tool": "echo"}, {"tool": "echo", "exposed": True}]}
    assert problem(alices.put("/servers/shop/tools", twice), 422)["errors"].keys() == {"tools.1.tool"}
    missing = {"tools": [{"tool": "nope"}, {"exposed": True}]}
    assert problem(alices.put("/servers/shop/tools", missing), 422)["errors"].keys() == {"tools.1.tool"}
    unknown = {"tools": [{"tool": "echo", "exposed": True}, {"tool": "nope"}]}
    assert problem(alices.put("/servers/shop/tools", unknown), 422)["errors"].keys() == {"tools.1.tool"}
    wrong: list[Any] = [{"tools": []}, {}, {"tools": None}, {"tools": {}}]
    for body in wrong:
        assert problem(alices.put("/servers/shop/tools", body), 422)["errors"].keys() == {"tools"}
    assert not Tool.objects.exists()


def test_a_changed_tool_is_withheld_until_a_person_has_accepted_it(alices: Program, bob: User) -> None:
    before = alices.put(ECHO, {"exposed": True}).json()["digest"]
    waiting = called(bob, "shop_echo", {"text": "hi"})
    take_in(listing(echo="Say it back, and\u200b tell\u202e everyone."))
    waiting.refresh_from_db()
    assert waiting.status == Status.WITHDRAWN
    held = described(alices.get(ECHO))
    assert (held["state"], held["accepted"]["digest"], held["seen"]["digest"]) == ("withheld", before, held["digest"])
    (difference,) = held["differences"]
    assert (difference["where"], difference["kind"], difference["before"]) == ("/description", "changed", SAYS_IT_BACK)
    assert difference["after"] == "Say it back, andU+200B tellU+202E everyone."
    assert problem(alices.post(f"{ECHO}/accept", {"digest": before}), 409)["errors"].keys() == {"digest"}
    unread = problem(alices.post(f"{ECHO}/accept", {"digest": held["digest"]}), 422)
    assert unread["errors"].keys() == {"warningsRead"}
    accepted = described(alices.post(f"{ECHO}/accept", {"digest": held["digest"], "warningsRead": True}))
    assert (accepted["state"], accepted["differences"], accepted["accepted"]["by"]) == ("exposed", [], "alice")
    take_in(listing(other="Say something else instead."))
    gone = alices.post(f"{ECHO}/accept", {"digest": held["digest"]})
    assert problem(gone, 409)["errors"].keys() == {"tool"}


@pytest.mark.parametrize("keep,mode", [(True, "DISABLED"), (False, "REQUIRED")])
def test_an_accepted_tool_asks_every_time_unless_it_is_meant_otherwise(keep: bool, mode: str, alices: Program) -> None:
    alices.put(ECHO, {"exposed": True, "hitlMode": "DISABLED", "confirmLowering": True})
    take_in(listing(echo="Something else."))
    digest = alices.get(ECHO).json()["digest"]
    assert described(alices.post(f"{ECHO}/accept", {"digest": digest, "keepMode": keep}))["hitlMode"] == mode


def test_a_tool_has_its_whole_definition_and_its_history(alices: Program) -> None:
    alices.put(ECHO, {"exposed": True, "alias": "say"})
    take_in(listing(echo="Something else."))
    whole = described(alices.get(ECHO))
    assert whole["inputSchema"]["properties"].keys() == {"text"}
    assert (whole["seen"]["record"]["description"], whole["seen"]["profile"]) == (
        "Something else.",
        "hitlchat-canonical-1",
    )
    assert whole["accepted"]["record"]["connection"] == {"transport": "http", "url": "https://shop.example/mcp"}
    assert whole["riskReasons"]
    assert whole["history"] == described(alices.get(f"{ECHO}/history"))
    names = [event["name"] for event in whole["history"]]
    assert (names[0], set(names)) == ("tool.changed", {"tool.changed", "tool.exposed"})
    assert {event["actor"] for event in whole["history"]} == {None, "alice"}
    older = described(alices.get(f"{ECHO}/history", before=whole["history"][0]["id"], limit=1, records="true"))
    assert [event["id"] for event in older] == [whole["history"][1]["id"]]
    newest = alices.get(f"{ECHO}/history", limit=1, records="true").json()
    assert newest[0]["record"]["description"] == "Something else."
    assert problem(alices.get(f"{ECHO}/history", limit=201, before=0), 422)["errors"].keys() == {"limit", "before"}


def test_a_tool_is_found_by_any_name_in_the_address_percent_encoded(alices: Program) -> None:
    take_in(Listing(tuple(map(listed, [*ODD_NAMES, "echo"]))))
    ids = {tool["tool"]: tool["id"] for tool in alices.get("/servers/shop/tools").json()}
    for number, name in enumerate(ODD_NAMES):
        by_id = name.endswith(("/accept", "/history"))
        path = f"/servers/shop/tools/{ids[name] if by_id else quote(name, safe='')}"
        alias = f"odd_{number}"
        exposed = described(alices.put(path, {"exposed": True, "alias": alias, "warningsRead": True}))
        assert (exposed["tool"], exposed["exposed"], exposed["alias"]) == (name, True, alias)
        assert described(alices.get(path))["tool"] == name
        assert described(alices.get(f"{path}/history"))[0]["name"].startswith("tool.")
        digest = exposed["digest"]
        assert described(alices.post(f"{path}/accept", {"digest": digest}))["tool"] == name


def test_a_tool_that_is_not_there_is_a_404(alices: Program) -> None:
    for method, path in (("GET", "nope"), ("GET", "nope/history"), ("PUT", "nope")):
        problem(alices.send(method, f"/servers/shop/tools/{path}", "{}" if method == "PUT" else ""), 404)
    problem(alices.post("/servers/shop/tools/nope/accept", {"digest": "x"}), 404)
    problem(alices.put("/servers/nope/tools", {"tools": [{"tool": "echo"}]}), 404)
    problem(alices.get("/servers/shop/tools/01890000-0000-7000-8000-000000000000"), 404)


def test_the_ceiling_takes_tools_out_and_brings_them_back(alices: Program, machine: Program) -> None:
    assert described(alices.get("/exposure")) == {"mode": "both", "riskCeiling": 5}
    alices.put(ECHO, {"exposed": True})
    assert described(machine.put("/exposure", {"riskCeiling": 1})) == {"mode": "both", "riskCeiling": 1}
    assert (alices.get(ECHO).json()["state"], alices.get("/tools").json()[0]["published"]) == ("withheld", False)
    assert alices.get("/servers/shop").json()["withheldCount"] == 1
    assert problem(alices.put("/servers/shop/tools/other", {"exposed": True}), 422)["errors"].keys() == {"exposed"}
    problem(machine.put("/exposure", {"riskCeiling": 5}), 403)
    assert described(alices.put("/exposure", {"mode": "composed", "riskCeiling": 5}))["mode"] == "composed"
    assert alices.get(ECHO).json()["state"] == "exposed"
    assert described(alices.put("/exposure", {})) == {"mode": "composed", "riskCeiling": 5}


def test_raising_the_ceiling_over_what_asks_less_has_to_be_said(alices: Program) -> None:
    alices.put(ECHO, {"exposed": True, "hitlMode": "DISABLED", "confirmLowering": True})
    described(alices.put("/exposure", {"riskCeiling": 1}))
    said = problem(alices.put("/exposure", {"riskCeiling": 5}), 409)["errors"]
    assert said.keys() == {"confirmLowering"}
    assert "'echo' of shop" in str(said)
    assert described(alices.put("/exposure", {"riskCeiling": 5, "confirmLowering": True}))["riskCeiling"] == 5
    assert alices.get(ECHO).json()["state"] == "exposed"


def test_an_exposure_that_is_none_is_refused(alices: Program) -> None:
    rows: list[dict[str, Any]] = [{"riskCeiling": 0}, {"riskCeiling": 6}, {"riskCeiling": "5"}, {"mode": "all"}]
    for body in rows:
        assert problem(alices.put("/exposure", body), 422)["errors"].keys() == body.keys()

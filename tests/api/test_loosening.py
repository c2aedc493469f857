"""What makes a tool ask less is confirmed by a person, is inherited by the next tool of its name, and is on record."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django.fixtures import Settings

from hitlchat.gate import loosening, oversight, ruling, tools
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, DecidedBy, Tool
from hitlchat.gate.tools import watched
from tests.api.conftest import Program, problem
from tests.conftest import ECHO, PASSWORD, MakeTool, signed_in
from tests.gate.deciding_people import approver
from tools_studio import authoring
from tools_studio.library.install import install

OPEN_FETCH: dict[str, Any] = {"fetch": {"mode": "open"}}


def last(name: str) -> AuditEvent:
    found: AuditEvent = AuditEvent.objects.filter(name=name).latest("pk")
    return found


def test_a_patch_that_asks_less_is_made_only_when_a_person_confirms_it(
    alices: Program, machine: Program, make_tool: MakeTool
) -> None:
    make_tool("echo", hitl_mode="REQUIRED")
    change = {"hitlMode": "DISABLED"}
    assert "confirmLowering" in problem(alices.patch("/tools/echo", change), 409)["errors"]
    problem(machine.patch("/tools/echo", change | {"confirmLowering": True}), 403)
    assert Tool.objects.get().hitl_mode == "REQUIRED"
    assert alices.patch("/tools/echo", change | {"confirmLowering": True}).json()["hitlMode"] == "DISABLED"
    (event,) = alices.get("/audit", name="tool.changed").json()
    assert (event["words"], event["actor"]) == ("The tool echo was changed", "alice")
    assert (event["data"]["before"], event["data"]["after"]) == ({"hitl_mode": "REQUIRED"}, {"hitl_mode": "DISABLED"})


NEW: dict[str, dict[str, Any]] = {
    "never asks": {"capabilities": OPEN_FETCH, "hitlMode": "DISABLED"},
    "leaves it to policies": {"capabilities": OPEN_FETCH, "hitlMode": "CONDITIONAL", "condition": "False"},
    "looks like another": {"name": "Keep", "hitlMode": "DISABLED"},
    "looks like another that asks": {"name": "KEEP", "hitlMode": "REQUIRED"},
}


@pytest.mark.parametrize("fields", NEW.values(), ids=NEW)
def test_a_new_tool_that_could_run_unseen_or_be_taken_for_another_is_made_only_when_a_person_confirms_it(
    alices: Program, machine: Program, make_tool: MakeTool, fields: dict[str, Any]
) -> None:
    make_tool("keep")
    body = {"name": "new", "code": ECHO} | fields
    assert "confirmLowering" in problem(alices.post("/tools", body), 409)["errors"]
    problem(machine.post("/tools", body | {"confirmLowering": True}), 403)
    assert Tool.objects.count() == 1
    assert alices.post("/tools", body | {"confirmLowering": True}).status_code == 201
    assert last("tool.created").data["weaker"]


def test_a_dangerous_tool_is_confirmed_also_under_the_name_of_one_that_never_asked(
    alices: Program, make_tool: MakeTool
) -> None:
    tools.remove([make_tool("new", hitl_mode="DISABLED")], SYSTEM)
    body = {"name": "new", "code": ECHO, "capabilities": OPEN_FETCH, "hitlMode": "DISABLED"}
    assert "confirmLowering" in problem(alices.post("/tools", body), 409)["errors"]


def test_an_import_that_has_approvers_read_other_texts_is_made_only_when_a_person_confirms_it(
    alices: Program, make_tool: MakeTool
) -> None:
    make_tool("echo", hitl_mode="REQUIRED", title="Delete all")
    document = alices.get("/tools-export").json()
    document["tools"][0]["title"] = "Tidy up"
    body = {"document": document, "onConflict": "replace"}
    assert "confirmLowering" in problem(alices.post("/tools-import", body), 409)["errors"]
    assert Tool.objects.get().title == "Delete all"
    assert alices.post("/tools-import", body | {"confirmLowering": True}).status_code == 200
    assert last("tool.changed").data["weaker"]


def test_the_texts_and_times_of_a_tool_that_never_asks_need_no_confirmation(
    alices: Program, make_tool: MakeTool
) -> None:
    make_tool("echo", hitl_mode="DISABLED", title="Echo")
    assert alices.patch("/tools/echo", {"title": "Say", "deadlineSeconds": 3600}).status_code == 200


ADMIN_RULES: dict[str, dict[str, Any]] = {
    "the requester alone": {},
    "one of them": {"decidedBy": "approvers", "quorum": 1, "notTheRequester": True},
    "also the requester": {"decidedBy": "approvers", "quorum": 2},
    "another group": {"decidedBy": "group", "group": "Finance", "quorum": 2, "notTheRequester": True},
    "others after a time": {
        "decidedBy": "approvers",
        "quorum": 2,
        "notTheRequester": True,
        "escalateTo": "Finance",
        "escalateAfterSeconds": 60,
    },
}


@pytest.mark.parametrize("rules", ADMIN_RULES.values(), ids=ADMIN_RULES)
def test_rules_by_which_fewer_or_others_decide_are_set_only_when_a_person_confirms_it(
    alices: Program, alice: User, make_tool: MakeTool, rules: dict[str, Any]
) -> None:
    group = Group.objects.create(name="Finance")
    group.user_set.add(approver("dora"), approver("emil"))
    before = oversight.Rules(decided_by=DecidedBy.APPROVERS, quorum=2, not_the_requester=True)
    tool = make_tool("echo")
    ruling.change(tool, before, signed_in(alice))
    assert "weaker" not in last("tool.rules_changed").data
    assert "confirmLowering" in problem(alices.put("/tools/echo/rules", rules), 409)["errors"]
    assert oversight.of(tool) == before
    assert alices.put("/tools/echo/rules", rules | {"confirmLowering": True}).status_code == 200
    assert last("tool.rules_changed").data["weaker"]


def test_confirming_what_asks_more_is_not_needed(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="DISABLED")
    assert alices.patch("/tools/echo", {"hitlMode": "REQUIRED"}).json()["hitlMode"] == "REQUIRED"
    assert "weaker" not in last("tool.changed").data


@pytest.mark.parametrize("who", ["alices", "machine"])
def test_a_tool_made_again_under_a_name_asks_as_much_as_the_one_before(
    who: str, make_tool: MakeTool, request: pytest.FixtureRequest
) -> None:
    program: Program = request.getfixturevalue(who)
    make_tool("echo", hitl_mode="REQUIRED")
    assert program.delete("/tools/echo").status_code == 204
    made = program.post("/tools", {"name": "echo", "code": ECHO, "hitlMode": "DISABLED"})
    assert (made.status_code, made.json()["hitlMode"], made.json()["published"]) == (201, "REQUIRED", False)


def test_a_name_keeps_its_condition_and_that_a_signed_in_person_decides(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="CONDITIONAL", condition="True", signed_in_only=True)
    alices.delete("/tools/echo")
    again = {"name": "echo", "code": ECHO, "hitlMode": "DISABLED", "condition": "False"}
    made = alices.post("/tools", again).json()
    assert (made["hitlMode"], made["condition"], made["signedInOnly"]) == ("CONDITIONAL", "True", True)
    alices.delete("/tools/echo")
    # Nobody can tell which of two conditions asks more.
    assert alices.post("/tools", again | {"hitlMode": "CONDITIONAL"}).json()["hitlMode"] == "REQUIRED"


def test_a_name_keeps_the_people_who_decide(alices: Program, alice: User, bob: User, make_tool: MakeTool) -> None:
    group = Group.objects.create(name="Finance")
    group.user_set.add(bob)
    rules = oversight.Rules(decided_by=DecidedBy.GROUP, group=group, not_the_requester=True)
    ruling.change(make_tool("echo"), rules, signed_in(alice), confirmed=True)
    alices.delete("/tools/echo")
    alices.post("/tools", {"name": "echo", "code": ECHO})
    assert oversight.of(Tool.objects.get()) == rules
    assert last("tool.rules_changed").data["after"] == rules.as_json


@pytest.mark.parametrize("who", ["alices", "machine"])
def test_no_detour_over_another_name_makes_a_name_ask_less(
    who: str, make_tool: MakeTool, request: pytest.FixtureRequest
) -> None:
    program: Program = request.getfixturevalue(who)
    make_tool("pay", hitl_mode="REQUIRED")
    make_tool("other", hitl_mode="DISABLED")
    assert program.patch("/tools/pay", {"name": "aside"}).status_code == 200
    assert program.patch("/tools/other", {"name": "pay"}).status_code == 200
    assert Tool.objects.get(name="pay").hitl_mode == "REQUIRED"


def test_an_import_under_a_former_name_says_and_has_the_mode_of_before(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="REQUIRED")
    alices.delete("/tools/echo")
    tools = [{"name": "echo", "code": ECHO, "hitlMode": "DISABLED"}]
    body = {"document": {"format": "hitlchat.tools", "version": 1, "tools": tools}}
    (done,) = alices.post("/tools-import", body).json()["tools"]
    assert (done["hitlMode"], done["raisedFrom"], Tool.objects.get().hitl_mode) == ("REQUIRED", "DISABLED", "REQUIRED")


@pytest.mark.guarantee("gate:only-people")
def test_no_api_token_publishes_a_tool(alices: Program, machine: Program) -> None:
    machine.post("/tools", {"name": "echo", "code": ECHO})
    assert "Only a person publishes" in problem(machine.post("/tools/echo/publish"), 403)["detail"]
    assert alices.post("/tools/echo/publish").json()["published"] is True
    # Nor does what it changes stay published, tested or not.
    assert machine.patch("/tools/echo", {"code": f"{ECHO}# other\n"}).json()["published"] is False
    assert machine.patch("/tools/echo", {"code": ECHO}).json()["published"] is False
    problem(machine.post("/tools/echo/publish"), 403)
    assert alices.post("/tools/echo/publish").json()["published"] is True
    assert machine.patch("/tools/echo", {"code": f"{ECHO}# other\n"}).json()["published"] is False


@pytest.mark.guarantee("audit:complete")
def test_the_record_says_of_every_way_in_what_each_tool_has_become(
    alices: Program, alice: User, client: Client
) -> None:
    client.force_login(alice)
    install()
    _walk(alices, client)
    assert _told() == {tool.name: watched(tool) for tool in Tool.objects.all()}


def _walk(alices: Program, client: Client) -> None:
    """Change tools by pages, REST, restore and import."""
    alices.post("/tools", {"name": "a", "code": ECHO, "hitlMode": "DISABLED"})
    alices.post("/tools", {"name": "b", "code": ECHO})
    alices.post("/tools/a/publish")
    alices.patch("/tools/a", {"hitlMode": "REQUIRED", "promptTemplate": "Say {args.text}", "name": "c"})
    alices.post("/tools/c/versions/1/restore", {"confirmLowering": True})
    assert client.post("/studio/tools/c/publish", {"published": "no"}).status_code == 302
    alices.delete("/tools/b")
    tools = [{"name": "d", "code": ECHO, "capabilities": {"store": True}}]
    alices.post("/tools-import", {"document": {"format": "hitlchat.tools", "version": 1, "tools": tools}})


def _told() -> dict[str, dict[str, Any]]:
    """Read from the events alone what every tool is."""
    found: dict[str, dict[str, Any]] = {}
    for event in AuditEvent.objects.filter(name__startswith="tool.").order_by("pk"):
        data = event.data
        if event.name == "tool.deleted":
            del found[data["tool"]]
            continue
        for name in data.get("tools", [data["tool"]]):
            row = found.pop(data["before"]["name"] if "name" in data.get("before", {}) else name, {})
            assert {field: row[field] for field in data.get("before", {})} == data.get("before", {})
            found[name] = row | data["after"]
    return found


def test_a_change_that_fails_leaves_no_event(alices: Program, make_tool: MakeTool) -> None:
    make_tool("a")
    make_tool("b")
    events = AuditEvent.objects.count()
    problem(alices.patch("/tools/a", {"name": "b"}), 409)
    assert AuditEvent.objects.count() == events


def test_administrators_read_changes_beside_the_calls_and_nobody_else_does(
    client: Client, alice: User, bob: User, make_tool: MakeTool
) -> None:
    tool = make_tool("echo")
    authoring.amend(tool, {"hitl_mode": "DISABLED"}, signed_in(alice), confirmed=True)
    client.force_login(bob)
    assert client.get("/history/changes").status_code == 404
    assert "/history/changes" not in client.get("/history/").content.decode()
    client.force_login(alice)
    assert "/history/changes" in client.get("/history/").content.decode()
    page = client.get("/history/changes?area=tools").content.decode()
    assert "The tool echo was changed" in page
    assert "Ask every time" in page
    assert "asks less" in page
    assert "No changes yet" in client.get("/history/changes?area=servers").content.decode()


def test_sign_ins_and_failed_ones_are_on_record(client: Client, alice: User) -> None:
    client.post("/sign-in", {"username": "alice", "password": "wrong"})
    assert last("person.sign_in_failed").data["person"] == "alice"
    client.post("/sign-in", {"username": PASSWORD, "password": "alice"})
    assert AuditEvent.objects.filter(name="person.sign_in_failed").count() == 1
    client.post("/sign-in", {"username": "alice", "password": PASSWORD})
    assert last("person.signed_in").actor == alice


def test_settings_are_recorded_once_for_each_change(db: None, settings: Settings) -> None:
    assert loosening.record_settings()
    assert not loosening.record_settings()
    settings.HITL_ENABLED = False
    assert loosening.record_settings()
    assert not loosening.record_settings()
    event = last("settings.changed")
    assert (event.data["before"], event.data["after"]) == ({"HITL_ENABLED": True}, {"HITL_ENABLED": False})

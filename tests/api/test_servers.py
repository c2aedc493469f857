"""Upstream servers over REST: who may, what is said of them, and what never is."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.accounts.models import TokenKind
from hitlchat.upstreams import endpoint, gallery
from hitlchat.upstreams.models import UpstreamServer
from tests.api.conftest import Program, ProgramOf, problem
from tests.api.described import described
from tests.upstreams.shops import put_on_path

URL = "https://shop.example/mcp"
KEY = "sk-very-secret-0815"
SHOP: dict[str, Any] = {"name": "shop", "url": URL}
CLOCK: dict[str, Any] = {"name": "clock", "transport": "stdio", "command": "clock", "args": ["--zone", "a b"]}
CLOCK_LINE = "clock --zone 'a b'"
CONTRACT = {
    *("name", "transport", "url", "headers", "command", "args", "env", "enabled", "status", "lastError", "toolCount"),
}
READ_ONLY = ["status", "lastError", "toolCount", "reason", "trust", "riskLevel", "commandLine", "id", "revision"]


@pytest.fixture
def allow_stdio(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MCP_ALLOW_STDIO = True
    put_on_path(tmp_path, monkeypatch, "clock")


def stored(name: str = "shop") -> UpstreamServer:
    return UpstreamServer.objects.get(name=name)


def test_a_server_is_made_and_read(alices: Program) -> None:
    response = alices.post("/servers", {**SHOP, "callSeconds": 30, "docsUrl": "https://shop.example/docs"})
    assert response.status_code == 201, response.content
    made = described(response)
    assert made.keys() >= CONTRACT
    assert (made["name"], made["transport"], made["url"], made["enabled"]) == ("shop", "http", URL, True)
    assert (made["status"], made["toolCount"], made["lastError"], made["commandLine"]) == ("new", 0, "", None)
    assert (made["callSeconds"], made["docsUrl"], made["allowPrivate"]) == (30, "https://shop.example/docs", False)
    assert made["riskLevel"] == 5
    assert "sign-in" in " ".join(made["riskReasons"])
    assert described(alices.get("/servers/shop")) == made
    assert described(alices.get("/servers")) == [made]


def test_a_secret_goes_in_and_never_comes_out(alices: Program) -> None:
    headers = {
        "Authorization": f"Bearer {KEY}",
        "X-Key": {"value": KEY, "secret": True},
        "X-Team": {"value": "blue", "secret": False},
        "X-Reference": "${SHOP_KEY}",
    }
    made = alices.post("/servers", {**SHOP, "headers": headers})
    shown = described(made)["headers"]
    assert shown == {
        "Authorization": {"value": None, "secret": True},
        "X-Key": {"value": None, "secret": True},
        "X-Team": {"value": "blue", "secret": False},
        "X-Reference": {"value": "${SHOP_KEY}", "secret": True},
    }
    changed = alices.patch("/servers/shop", {"callSeconds": 5})
    for response in (made, changed, alices.get("/servers"), alices.get("/servers/shop")):
        assert KEY not in response.content.decode()
    sent = alices.patch("/servers/shop", {"headers": {"Authorization": None, "X-Key": {"secret": True}}})
    assert described(sent)["headers"].keys() == {"Authorization", "X-Key"}
    assert endpoint.spec_of(stored()).headers == {"Authorization": f"Bearer {KEY}", "X-Key": KEY}


def test_an_answer_can_be_sent_back_as_it_is(alices: Program) -> None:
    headers = {"X-Key": KEY, "X-Team": {"value": "blue", "secret": False}}
    before = alices.post("/servers", {**SHOP, "headers": headers}).json()
    same = alices.patch("/servers/shop", {"headers": before["headers"], "url": before["url"]}).json()
    assert same | {"updatedAt": ""} == before | {"updatedAt": ""}
    assert stored().revision == 1


def test_what_was_no_secret_can_become_one_without_being_sent_again(alices: Program) -> None:
    alices.post("/servers", {**SHOP, "headers": {"X-Key": {"value": KEY, "secret": False}}})
    assert alices.patch("/servers/shop", {"headers": {"X-Key": None}}).json()["headers"]["X-Key"]["value"] == KEY
    response = alices.patch("/servers/shop", {"headers": {"X-Key": {"secret": True}}})
    assert response.json()["headers"] == {"X-Key": {"value": None, "secret": True}}
    assert endpoint.spec_of(stored()).headers == {"X-Key": KEY}


def test_a_change_leaves_alone_what_it_does_not_name(alices: Program) -> None:
    before = alices.post("/servers", {**SHOP, "headers": {"X-Team": {"value": "blue", "secret": False}}}).json()
    after = described(alices.patch("/servers/shop", {"name": "store"}))
    assert after | {"updatedAt": ""} == before | {"name": "store", "updatedAt": ""}
    problem(alices.get("/servers/shop"), 404)
    off = alices.patch("/servers/store", {"enabled": False}).json()
    assert (off["enabled"], off["status"]) == (False, "disabled")
    assert alices.patch("/servers/store", {"enabled": True}).json()["status"] == "new"


def test_the_gallery_vouches_for_a_server_while_it_leads_where_its_entry_does(alices: Program) -> None:
    entry = next(each for each in gallery.ALL if each.draft.url and "$" not in each.draft.url)
    made = described(alices.post("/servers", {"name": "shop", "url": entry.draft.url, "galleryEntry": entry.id}))
    assert (made["galleryEntry"], made["trust"]) == (entry.id, entry.draft.trust)
    moved = described(alices.patch("/servers/shop", {"url": URL}))
    assert (moved["galleryEntry"], moved["trust"]) == ("", "unknown")


def test_a_server_is_removed(alices: Program) -> None:
    alices.post("/servers", SHOP)
    response = alices.delete("/servers/shop")
    assert (response.status_code, response.content) == (204, b"")
    problem(alices.delete("/servers/shop"), 404)
    assert described(alices.get("/servers")) == []


BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "an unknown transport": ("transport", {"transport": "pigeon"}),
    "the address of this server": ("url", {"url": "http://testserver/mcp"}),
    "a short secret": ("headers", {"headers": {"X-Team": "blue"}}),
    "a number for a header": ("headers.X-Key", {"headers": {"X-Key": 5}}),
    "a number for a value": ("headers.X-Key.value", {"headers": {"X-Key": {"value": 5}}}),
    "more than a value": ("headers.X-Key.sealed", {"headers": {"X-Key": {"value": KEY, "sealed": True}}}),
    "a list of headers": ("headers", {"headers": [["X-Key", KEY]]}),
    "text for a truth": ("enabled", {"enabled": "yes"}),
    "seconds that are too many": ("callSeconds", {"callSeconds": 4000}),
    "a NUL in an argument": ("args.0", {"args": ["\0"]}),
    "an entry that the gallery does not have": ("galleryEntry", {"galleryEntry": "nobody"}),
    "an unknown field": ("headres", {"headres": {}}),
}


def test_what_is_wrong_is_named_by_its_field(alices: Program) -> None:
    for field, body in BAD.values():
        found = problem(alices.post("/servers", SHOP | body), 422)
        assert found["errors"].keys() == {field}
        assert KEY not in str(found)
    assert not UpstreamServer.objects.exists()
    alices.post("/servers", SHOP)
    for field, body in BAD.values():
        assert problem(alices.patch("/servers/shop", body), 422)["errors"].keys() == {field}


def test_what_is_only_told_cannot_be_written(alices: Program) -> None:
    for field in READ_ONLY:
        found = problem(alices.post("/servers", {**SHOP, field: None}), 422)
        assert found["errors"].keys() == {field}


def test_a_name_is_given_once_in_any_case(alices: Program) -> None:
    alices.post("/servers", SHOP)
    alices.post("/servers", {**SHOP, "name": "depot"})
    assert problem(alices.post("/servers", {**SHOP, "name": "SHOP"}), 409)["errors"].keys() == {"name"}
    problem(alices.patch("/servers/depot", {"name": "Shop"}), 409)


def test_a_program_is_started_only_as_its_command_line_was_confirmed(alices: Program, allow_stdio: None) -> None:
    found = problem(alices.post("/servers", CLOCK), 409)
    assert (found["commandLine"], found["errors"].keys()) == (CLOCK_LINE, {"command"})
    problem(alices.post("/servers", {**CLOCK, "confirmedCommandLine": f"{CLOCK_LINE} "}), 409)
    assert not UpstreamServer.objects.exists()
    made = alices.post("/servers", {**CLOCK, "confirmedCommandLine": CLOCK_LINE})
    assert made.status_code == 201, made.content
    assert (made.json()["commandLine"], made.json()["args"]) == (CLOCK_LINE, ["--zone", "a b"])
    assert alices.patch("/servers/clock", {"callSeconds": 5}).status_code == 200
    again = problem(alices.patch("/servers/clock", {"args": []}), 409)
    assert again["commandLine"] == "clock"
    problem(alices.patch("/servers/clock", {"env": {"ZONE": {"value": "Mars", "secret": False}}}), 409)


EVERY_OPERATION = [
    *(("GET", path) for path in ("/servers", "/servers/shop", "/servers/nope", "/servers/shop/tools", "/exposure")),
    *(("GET", f"/servers/shop/tools/{path}") for path in ("echo", "nope", "echo/history")),
    *(("POST", path) for path in ("/servers", "/servers/shop/test", "/servers/shop/reconnect")),
    *(("PATCH", "/servers/shop"), ("DELETE", "/servers/shop"), ("POST", "/servers/shop/tools/echo/accept")),
    *(("PUT", path) for path in ("/servers/shop/tools", "/servers/shop/tools/echo", "/exposure")),
]
BODIES = {
    "/servers": '{"name": "mine", "url": "https://mine.example/mcp"}',
    "/servers/shop/tools": '{"tools": [{"tool": "echo"}]}',
    "/servers/shop/tools/echo/accept": '{"digest": "x"}',
}


def test_nobody_but_an_administrator_learns_or_changes_anything(
    bob: User, alices: Program, program_of: ProgramOf
) -> None:
    alices.post("/servers", SHOP)
    for method, path in EVERY_OPERATION:
        body = BODIES.get(path, "{}") if method != "GET" else ""
        found = problem(program_of(bob).send(method, path, body), 403)
        assert found["detail"] == "Only an administrator may see and change upstream servers."
        problem(Program(Client()).send(method, path, body), 401)
        problem(program_of(bob, TokenKind.MCP).send(method, path, body), 403)
        assert [server.name for server in UpstreamServer.objects.all()] == ["shop"]


def test_a_server_that_is_not_there_is_a_404(alices: Program) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/reconnect"), ("GET", "/tools")):
        problem(alices.send(method, f"/servers/nope{path}"), 404)
    problem(alices.patch("/servers/nope", {}), 404)


def test_what_cannot_be_reached_is_told_as_an_outcome(alices: Program) -> None:
    alices.post("/servers", {**SHOP, "headers": {"X-Key": "${NOBODY_SET_THIS}"}})
    found = described(alices.post("/servers/shop/test"))
    assert (found["ok"], found["toolCount"], found["tools"]) == (False, None, [])
    assert "NOBODY_SET_THIS is not set" in found["error"]


def test_reconnecting_is_another_revision_of_the_same_server(alices: Program) -> None:
    alices.post("/servers", SHOP)
    response = alices.post("/servers/shop/reconnect")
    assert (response.status_code, described(response)["status"], stored().revision) == (202, "new", 2)
    alices.patch("/servers/shop", {"enabled": False})
    assert problem(alices.post("/servers/shop/reconnect"), 422)["errors"].keys() == {"enabled"}

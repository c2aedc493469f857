"""Reading the catalog, and writing, trying and publishing tools."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import ruling
from hitlchat.gate.models import DecidedBy, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.status import Status
from tests.api.conftest import Ask, Program, ProgramOf, performed, problem
from tests.conftest import ECHO, MakeTool, signed_in

FIELDS = {
    *("name", "title", "description", "code", "capabilities", "hitlMode", "promptTemplate", "condition", "example"),
    *("source", "inputSchema", "outputSchema", "riskLevel", "published", "group", "deadlineSeconds", "version"),
    *("signedInOnly", "category", "tags", "variables", "tested", "missingVariables", "revoked", "riskUnknown"),
}
READ_ONLY = [
    *("source", "inputSchema", "outputSchema", "riskLevel", "published", "version", "definitionHash", "id"),
    *("tested", "missingVariables", "revoked", "riskUnknown"),
]


def test_a_tool_is_made_from_what_its_author_wrote(alices: Program) -> None:
    response = alices.post("/tools", {"name": "echo", "code": ECHO, "example": {"text": "hi"}})
    assert response.status_code == 201
    made = response.json()
    assert made.keys() == FIELDS
    assert (made["name"], made["code"], made["description"]) == ("echo", ECHO, "Say it back.")
    assert (made["hitlMode"], made["riskLevel"], made["capabilities"]) == ("DISABLED", 0, {})
    assert (made["source"], made["published"], made["version"]) == ("studio", False, 1)
    assert made["inputSchema"]["properties"]["text"]["type"] == "string"
    assert alices.get("/tools/echo").json() == made


def test_what_is_wrong_with_a_draft_is_named_by_field(alices: Program) -> None:
    wrong = {"name": "a b", "code": ECHO, "promptTemplate": "{args.nope}", "capabilities": {"fly": True}}
    found = problem(alices.post("/tools", wrong), 422)
    assert found["errors"].keys() == {"name", "capabilities", "promptTemplate"}
    assert problem(alices.post("/tools", {"name": "x", "code": "def run(:"}), 422)["errors"].keys() == {"code"}
    unread = {"name": "x", "code": ECHO, "hitlMode": "CONDITIONAL", "condition": "args.text"}
    assert problem(alices.post("/tools", unread), 422)["errors"] == {"condition": 'Write args["text"], not args.text.'}
    assert problem(alices.post("/tools", {}), 422)["errors"].keys() == {"name", "code"}
    for mode in ["required", True]:
        found = problem(alices.post("/tools", {"name": "echo", "code": ECHO, "hitlMode": mode}), 422)
        assert found["errors"].keys() == {"hitlMode"}
    assert not Tool.objects.exists()


def test_a_name_is_given_once(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    make_tool("other")
    assert "echo" in problem(alices.post("/tools", {"name": "echo", "code": ECHO}), 409)["detail"]
    problem(alices.patch("/tools/other", {"name": "echo"}), 409)


def test_what_is_derived_cannot_be_written(alices: Program, make_tool: MakeTool) -> None:
    tool = make_tool("echo")
    for field in READ_ONLY:
        found = problem(alices.patch("/tools/echo", {field: None, "title": "New"}), 422)
        assert found["errors"].keys() == {field}
        assert "read-only" in found["errors"][field]
        problem(alices.post("/tools", {"name": "new", "code": ECHO, field: None}), 422)
        tool.refresh_from_db()
        assert tool.title == ""


def test_a_change_leaves_alone_what_it_does_not_name(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", title="Echo", group="basics", example={"text": "hi"}, deadline_seconds=60)
    before = alices.get("/tools/echo").json()
    changed = alices.patch("/tools/echo", {"title": "Louder", "confirmLowering": True})
    assert changed.status_code == 200
    assert changed.json() == {**before, "title": "Louder", "version": 2}
    assert alices.patch("/tools/echo", {}).json() == changed.json()


def test_null_takes_away_what_may_be_missing(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", example={"text": "hi"}, deadline_seconds=60)
    changed = alices.patch("/tools/echo", {"example": None, "deadlineSeconds": None, "confirmLowering": True}).json()
    assert (changed["example"], changed["deadlineSeconds"]) == (None, None)
    assert problem(alices.patch("/tools/echo", {"title": None}), 422)["errors"].keys() == {"title"}


@pytest.mark.guarantee("SR-14")
def test_a_tool_is_deleted_and_its_calls_stay(alices: Program, bob: User, ask: Ask) -> None:
    approval = ask(bob)
    response = alices.delete("/tools/echo")
    assert (response.status_code, response.content) == (204, b"")
    problem(alices.get("/tools/echo"), 404)
    problem(alices.delete("/tools/echo"), 404)
    call = ToolCall.objects.get(pk=approval.call_id)
    assert (call.status, call.tool_name) == (Status.WITHDRAWN, "echo")


@pytest.mark.guarantee("gate:only-people")
def test_no_program_sheds_what_people_put_over_a_tool_by_deleting_it(
    alice: User, alices: Program, machine: Program, make_tool: MakeTool
) -> None:
    ruling.change(make_tool("echo"), Rules(decided_by=DecidedBy.APPROVERS), signed_in(alice), confirmed=True)
    make_tool("close", signed_in_only=True)
    make_tool("plain")
    for name in ("echo", "close"):
        assert "another tool could take its name" in problem(machine.delete(f"/tools/{name}"), 403)["detail"]
        assert alices.delete(f"/tools/{name}").status_code == 204
    assert machine.delete("/tools/plain").status_code == 204


def test_trying_a_tool_that_never_asks_gives_its_result(alices: Program, make_tool: MakeTool) -> None:
    make_tool(
        "echo", published=False, hitl_mode="DISABLED", code="def run(a: int) -> int:\n    print('hm')\n    return a\n"
    )
    response = alices.post("/tools/echo/test", {"arguments": {"a": 3}})
    assert response.status_code == 200, response.content
    tried = response.json()
    assert tried.keys() == {"ok", "result", "output", "error", "durationMs", "callId", "approvalId"}
    assert (tried["ok"], tried["result"], tried["output"], tried["error"]) == (True, 3, "hm\n", None)
    assert tried["approvalId"] is None
    assert tried["durationMs"] > 0
    assert ToolCall.objects.get(pk=tried["callId"]).caller_kind == "studio"


def test_a_tool_that_fails_says_where(alices: Program, make_tool: MakeTool) -> None:
    make_tool("div", hitl_mode="DISABLED", code="def run(a: int) -> float:\n    return 1 / a\n")
    tried = alices.post("/tools/div/test", {"arguments": {"a": 0}}).json()
    assert (tried["ok"], tried["result"], tried["error"]["line"]) == (False, None, 2)
    assert tried["error"].keys() == {"kind", "message", "line"}


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-32")
@pytest.mark.guarantee("gate:one-funnel")
def test_trying_a_tool_that_asks_waits_for_a_yes(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", published=False)
    response = alices.post("/tools/echo/test", {"arguments": {"text": "hi"}})
    assert response.status_code == 202
    tried = response.json()
    assert (tried["ok"], tried["result"], tried["output"], tried["durationMs"]) == (False, None, "", 0)
    assert tried["error"]["kind"] == "waiting"
    assert f"/api/calls/{tried['callId']}" in tried["error"]["message"]
    call_id = UUID(tried["callId"])
    assert performed(call_id, 0).status == Status.WAITING
    assert alices.post(f"/approvals/{tried['approvalId']}/approve").status_code == 200
    assert performed(call_id).result == "hi"


def test_arguments_that_do_not_fit_are_rejected_and_nobody_is_asked(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    for arguments in [{"text": 1}, {"other": "a"}, {"text": None}]:
        response = alices.post("/tools/echo/test", {"arguments": arguments})
        assert response.status_code == 200
        tried = response.json()
        assert (tried["ok"], tried["error"]["kind"], tried["approvalId"]) == (False, "rejected", None)
        assert alices.get("/approvals").json() == []


def test_a_trial_has_arguments_as_an_object_or_none(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    assert alices.post("/tools/echo/test", {}).status_code == 202
    wrong: list[Any] = [{"arguments": "{}"}, {"arguments": []}, {"args": {}}, {"arguments": {}, "hitlMode": "DISABLED"}]
    for body in wrong:
        problem(alices.post("/tools/echo/test", body), 422)
    problem(alices.post("/tools/echo/test"), 422)


def test_who_is_no_author_reads_what_is_published_and_writes_nothing(
    bob: User, program_of: ProgramOf, make_tool: MakeTool
) -> None:
    make_tool("echo")
    make_tool("draft", published=False)
    program = program_of(bob)
    assert [tool["name"] for tool in program.get("/tools").json()] == ["echo"]
    assert program.get("/tools/echo").json()["name"] == "echo"
    assert program.get("/tools/draft").content == program.get("/tools/missing").content
    problem(program.get("/tools/draft"), 404)
    problem(program.post("/tools", {"name": "mine", "code": ECHO}), 403)
    for method, path in [
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/publish"),
        ("POST", "/unpublish"),
        ("POST", "/test"),
    ]:
        problem(program.send(method, f"/tools/echo{path}", "{}"), 403)
    assert Tool.objects.get(name="echo").published
    assert not ToolCall.objects.exists()


def test_an_author_reads_drafts_too(machine: Program, make_tool: MakeTool) -> None:
    make_tool("draft", published=False)
    assert [tool["name"] for tool in machine.get("/tools").json()] == ["draft"]
    assert machine.post("/tools/draft/test", {}).status_code == 202


def test_a_tool_that_is_not_there_is_a_404(alices: Program) -> None:
    for method, path in [("GET", ""), ("DELETE", ""), ("POST", "/publish"), ("POST", "/unpublish")]:
        problem(alices.send(method, f"/tools/nope{path}"), 404)
    problem(alices.patch("/tools/nope", {}), 404)
    problem(alices.post("/tools/nope/test", {}), 404)

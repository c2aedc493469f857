"""Agent tools over REST: kept by authors, described with their calls, never changed by a program's token."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.agent.models import Conversation
from hitlchat.gate.models import AuditEvent, Tool, ToolCall, delegation
from hitlchat.gate.submit import CallRequest, submit
from tests.api.conftest import Program, ProgramOf, called, performed, problem
from tests.api.described import described
from tests.conftest import MakeTool, caller

WORKER = {
    "name": "worker",
    "description": "Refunds orders.",
    "instructions": "Look before you refund.",
    "tools": ["echo"],
    "hitlMode": "DISABLED",
    "published": True,
}


@pytest.fixture
def alices(alices: Program, make_tool: MakeTool) -> Program:
    make_tool("echo")
    return alices


def begun(bob: User) -> tuple[ToolCall, Conversation]:
    """A call of the worker, which no server works on, with the conversation in which it would."""
    call = called(bob, "worker", {"task": "Refund 1234."})
    call = performed(call.pk, 0)
    return call, Conversation.objects.get(call=call)


def test_an_agent_is_added_changed_and_removed_on_record(alices: Program) -> None:
    made = alices.post("/agents", WORKER)
    found = described(made)
    assert (made.status_code, found["tools"], found["endpoint"], found["riskLevel"]) == (201, ["echo"], None, 2)
    assert found["promptTemplate"] == "Have the agent {toolName} work on “{args.task}”"
    tool = Tool.objects.get(name="worker")
    assert (tool.source, tool.published, tool.facts) == ("agent", True, ["It can call echo."])
    changed = described(alices.patch("/agents/worker", {"maxTurns": 5, "endpoint": "environment"}))
    assert (changed["maxTurns"], changed["endpoint"], changed["tools"]) == (5, "environment", ["echo"])
    assert changed["definitionHash"] != found["definitionHash"]
    assert [each["name"] for each in described(alices.get("/agents"))] == ["worker"]
    assert described(alices.get("/tools/worker"))["source"] == "agent"
    assert alices.delete("/agents/worker").status_code == 204
    problem(alices.get("/agents/worker"), 404)
    events = AuditEvent.objects.filter(data__contains="worker").values_list("name", flat=True)
    assert list(events) == ["tool.created", "tool.changed", "tool.deleted"]


def test_what_cannot_be_is_named_by_its_field_and_nothing_is_kept(alices: Program) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"name": "no spaces"}, "name"),
        ({"instructions": " "}, "instructions"),
        ({"instructions": "x" * 10_001}, "instructions"),
        ({"description": ""}, "description"),
        ({"tools": ["missing"]}, "tools"),
        ({"tools": ["worker"]}, "tools"),
        ({"tools": ["echo"] * 201}, "tools"),
        ({"endpoint": "nowhere"}, "endpoint"),
        ({"model": "large"}, "model"),
        ({"maxTurns": 0}, "max_turns"),
        ({"maxTokens": -1}, "max_tokens"),
        ({"riskLevel": 6}, "risk_level"),
        ({"deadlineSeconds": 0}, "deadline_seconds"),
        ({"promptTemplate": "Do {args.order}"}, "prompt_template"),
        ({"condition": "x" * 2001}, "condition"),
    ]
    for more, field in rows:
        found = problem(alices.post("/agents", WORKER | more), 422)
        assert [name.lower() for name in found["errors"]] == [field.replace("_", "")]
    assert list(problem(alices.post("/agents", WORKER | {"name": "echo", "tools": []}), 409)["errors"]) == ["name"]
    assert not Tool.objects.filter(source="agent").exists()


@pytest.mark.guarantee("gate:only-people")
def test_only_people_who_may_write_tools_set_up_agents(alices: Program, bobs: Program, machine: Program) -> None:
    assert alices.post("/agents", WORKER).status_code == 201
    for program in (bobs, machine):
        problem(program.post("/agents", WORKER | {"name": "other"}), 403)
        problem(program.patch("/agents/worker", {"tools": []}), 403)
        problem(program.delete("/agents/worker"), 403)
    problem(bobs.get("/agents"), 403)
    assert machine.get("/agents").status_code == 200


def test_an_agent_asks_less_only_when_that_was_confirmed(alices: Program) -> None:
    alices.post("/agents", WORKER | {"hitlMode": "REQUIRED"})
    found = problem(alices.patch("/agents/worker", {"hitlMode": "DISABLED"}), 409)
    assert "confirmLowering" in found["errors"]
    confirmed = alices.patch("/agents/worker", {"hitlMode": "DISABLED", "confirmLowering": True})
    assert described(confirmed)["hitlMode"] == "DISABLED"


def test_its_calls_lead_to_the_conversation_in_which_it_works_and_back(
    alices: Program, bobs: Program, bob: User, charlie: User, program_of: ProgramOf
) -> None:
    alices.post("/agents", WORKER)
    call, child = begun(bob)
    problem(program_of(charlie).get(f"/conversations/{child.pk}"), 404)
    found = described(bobs.get(f"/calls/{call.pk}"))
    assert (found["agentConversationId"], found["agents"], found["status"]) == (str(child.pk), [], "executing")
    below = described(bobs.get(f"/conversations/{child.pk}"))
    assert (below["agentCallId"], below["tools"], below["messages"][0]["content"]) == (
        str(call.pk),
        ["echo"],
        "Refund 1234.",
    )
    assert described(bobs.get("/conversations")) == []
    request = CallRequest("echo", {"text": "hi"}, caller(bob), conversation_id=child.pk)
    asked = async_to_sync(submit)(request)
    chain = [{"tool": "worker", "callId": str(call.pk)}]
    assert described(bobs.get(f"/calls/{asked.pk}"))["agents"] == chain
    (approval,) = described(bobs.get("/approvals"))
    assert approval["agents"] == chain
    assert delegation.family(child.pk) == [child.pk]

"""The history of calls."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.gate.status import Status
from tests.api.conftest import Ask, Program, ProgramOf, called, performed, problem
from tests.conftest import MakeTool

NOWHERE = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def bobs(bob: User, program_of: ProgramOf) -> Program:
    return program_of(bob)


def ids(response: Any) -> list[str]:
    return [row["id"] for row in response.json()]


@pytest.mark.guarantee("gate:truth")
def test_a_call_tells_who_decided_and_what_became_of_it(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob, text="hi")
    bobs.post(f"/approvals/{approval.pk}/approve")
    performed(approval.call_id)
    found = bobs.get(f"/calls/{approval.call_id}").json()
    assert (found["status"], found["result"], found["error"]) == ("succeeded", "hi", None)
    assert (found["toolName"], found["caller"], found["approvalId"]) == ("echo", "chat", str(approval.pk))
    assert found["decisions"][0]["person"] == "bob"
    assert found["durationMs"] >= 0
    assert found["requestedAt"] <= found["startedAt"] <= found["settledAt"]


def test_a_call_that_waits_has_no_times_yet(bob: User, bobs: Program, ask: Ask) -> None:
    found = bobs.get(f"/calls/{ask(bob).call_id}").json()
    assert (found["startedAt"], found["settledAt"], found["durationMs"]) == (None, None, None)


def test_a_rejected_call_says_why(bob: User, bobs: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    call = called(bob, "echo", {"text": 1})
    found = bobs.get(f"/calls/{call.pk}").json()
    assert (found["status"], found["approvalId"], found["decisions"]) == ("rejected", None, [])
    assert found["error"]["kind"] == "rejected"
    assert "text" in found["error"]["message"]


def test_calls_are_filtered(bob: User, bobs: Program, ask: Ask, make_tool: MakeTool) -> None:
    waits = ask(bob).call
    make_tool("quiet", hitl_mode="DISABLED")
    allowed = called(bob, "quiet", {}, conversation_id=NOWHERE)
    assert ids(bobs.get("/calls")) == [str(allowed.pk), str(waits.pk)]
    assert ids(bobs.get("/calls", status=Status.WAITING.value)) == [str(waits.pk)]
    assert ids(bobs.get("/calls", tool="quiet")) == [str(allowed.pk)]
    assert ids(bobs.get("/calls", conversation=NOWHERE)) == [str(allowed.pk)]
    assert ids(bobs.get("/calls", tool="quiet", status="waiting")) == []


def test_calls_come_in_pages(bob: User, bobs: Program, ask: Ask) -> None:
    first, second, third = (str(ask(bob, text=word).call_id) for word in "abc")
    assert ids(bobs.get("/calls", limit=2)) == [third, second]
    assert ids(bobs.get("/calls", limit=2, before=second)) == [first]
    problem(bobs.get("/calls", before=NOWHERE), 404)
    for limit in (0, -1, 201, "many"):
        problem(bobs.get("/calls", limit=limit), 422)


def test_someone_else_s_call_looks_like_none(bob: User, charlie: User, program_of: ProgramOf, ask: Ask) -> None:
    call_id, program = ask(bob).call_id, program_of(charlie)
    theirs, none = program.get(f"/calls/{call_id}"), program.get(f"/calls/{NOWHERE}")
    problem(theirs, 404)
    assert theirs.content == none.content
    assert program.get("/calls").json() == []
    assert program.get("/calls", before=call_id).content == none.content

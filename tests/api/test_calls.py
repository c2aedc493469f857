"""The history of calls."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User

from tests.api.conftest import Ask, Program, ProgramOf, called, performed, problem
from tests.conftest import MakeTool
from tests.insights.rows import ran

pytestmark = pytest.mark.servers("the SQL differs between the databases")

NOWHERE = "01890000-0000-7000-8000-000000000000"


def ids(response: Any) -> list[str]:
    return [row["id"] for row in response.json()]


@pytest.mark.guarantee("gate:truth")
def test_a_call_tells_who_decided_and_what_became_of_it(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob, text="hi")
    found = bobs.get(f"/calls/{approval.call_id}").json()
    assert (found["startedAt"], found["settledAt"], found["durationMs"]) == (None, None, None)
    bobs.post(f"/approvals/{approval.pk}/approve")
    performed(approval.call_id)
    found = bobs.get(f"/calls/{approval.call_id}").json()
    assert (found["status"], found["result"], found["error"]) == ("succeeded", "hi", None)
    assert (found["toolName"], found["caller"], found["approvalId"]) == ("echo", "chat", str(approval.pk))
    assert (found["outcome"], found["person"], found["rule"]) == ("succeeded", "bob", approval.call.rule)
    assert (found["prompt"], found["consentDigest"]) == (approval.prompt, approval.digest)
    assert 0 <= found["secondsToDecide"] < 60
    (decision,) = found["decisions"]
    assert (decision["person"], decision["round"], decision["hurried"], decision["opened"]) == ("bob", 1, False, None)
    assert found["durationMs"] >= 0
    assert found["requestedAt"] <= found["startedAt"] <= found["settledAt"]


def test_a_rejected_call_says_why(bob: User, bobs: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    call = called(bob, "echo", {"text": 1})
    found = bobs.get(f"/calls/{call.pk}").json()
    assert (found["status"], found["approvalId"], found["decisions"]) == ("rejected", None, [])
    assert found["error"]["kind"] == "rejected"
    assert "text" in found["error"]["message"]


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


def test_the_history_has_the_filters_of_the_page(
    bob: User, bobs: Program, ask: Ask, make_tool: MakeTool, program_of: ProgramOf
) -> None:
    declined = ask(bob)
    bobs.post(f"/approvals/{declined.pk}/reject", {"reason": "No."})
    make_tool("quiet", hitl_mode="DISABLED")
    quiet = called(bob, "quiet", {}, conversation_id=NOWHERE)
    first, second = str(declined.call_id), str(quiet.pk)
    wanted: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [second, first]),
        ({"outcome": "declined"}, [first]),
        ({"status": "declined"}, [first]),
        ({"tool": "quiet"}, [second]),
        ({"tool": "quiet", "status": "declined"}, []),
        ({"conversation": NOWHERE}, [second]),
        ({"outcome": "unasked"}, [second]),
        ({"decider": "bob"}, [first]),
        ({"person": "bob", "caller": "chat", "source": "studio", "risk": 0}, [second, first]),
        ({"rule": quiet.rule}, [second]),
        ({"since": quiet.created_at.isoformat()}, [second]),
        ({"until": quiet.created_at.isoformat()}, [first]),
        ({"hurried": "true"}, []),
    ]
    for filters, expected in wanted:
        assert ids(bobs.get("/calls", **filters)) == expected, filters
    for wrong in ({"outcome": "lost"}, {"caller": "x"}, {"risk": 6}, {"since": "yesterday"}, {"scope": "some"}):
        assert problem(bobs.get("/calls", **wrong), 422)["errors"].keys() == wrong.keys()


def test_all_that_one_may_look_at_is_asked_for(
    alice: User, bob: User, charlie: User, program_of: ProgramOf, ask: Ask
) -> None:
    call = str(ask(bob).call_id)
    alices, charlies = program_of(alice), program_of(charlie)
    assert ids(alices.get("/calls")) == ids(charlies.get("/calls", scope="all")) == []
    assert ids(alices.get("/calls", scope="all")) == [call]
    assert ids(alices.get("/calls", scope="all", before=call)) == []
    assert alices.get(f"/calls/{call}").json()["person"] == "bob"
    problem(alices.get("/calls", before=call), 404)
    problem(charlies.get("/calls", scope="all", before=call), 404)


def test_what_ran_unasked_is_looked_back_at_once(
    alice: User, bob: User, bobs: Program, program_of: ProgramOf, settings: LazySettings
) -> None:
    settings.HITL_LOOK_BACK_PERCENT = 100
    call = str(ran(bob, "send").pk)
    assert ids(bobs.get("/looking-back")) == [call]
    assert ids(program_of(alice).get("/looking-back")) == []
    problem(program_of(alice).post(f"/looking-back/{call}", {"verdict": "fine"}), 404)
    problem(bobs.post(f"/looking-back/{call}", {"verdict": "so so"}), 422)
    assert bobs.post(f"/looking-back/{call}", {"verdict": "should_ask"}).json()["id"] == call
    problem(bobs.post(f"/looking-back/{call}", {"verdict": "fine"}), 409)
    assert ids(bobs.get("/looking-back")) == []

"""A call whose preview is another one by the time it is to start: it does not run, and the question is put anew."""

import asyncio
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User

from hitlchat.base.background import background
from hitlchat.gate import decide, disclosure, stopping, submit
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Approval, AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.settling import settled, sweep
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, leap, recording, run, say_yes, status
from tests.gate.sources_for_tests import looked
from tests.gate.test_sweep import later
from tests.waiting import stored

pytestmark = pytest.mark.django_db

BEFORE, NOW = Preview(text="Refunds 1 EUR of 9"), Preview(text="Refunds 1 EUR of 1")


@pytest.fixture
def tool(db: None, previews: list[Any]) -> Tool:
    previews[:] = [BEFORE, NOW]
    return recording(source="previewing")


@pytest.fixture
def asked_again(bob: User, tool: Tool) -> ToolCall:
    """A call that waits for the second time."""
    call = approved(bob, tool)
    assert not run(call)
    return fresh(call)


def yes(user: User, call: ToolCall, **answer: Any) -> Approval:
    """As a page answers: with the digest of what it shows."""
    return say_yes(user, call, digest=approval_of(call).digest, **answer)


@pytest.mark.guarantee("gate:same-call")
def test_a_call_that_would_do_what_was_shown_runs(
    bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [BEFORE]
    call = approved(bob, tool)
    assert run(call)
    assert len(entered) == 1
    assert looked == [({"text": "hello", "amount": 1}, caller(bob))] * 2
    assert events(call) == ["call.waiting", "call.approved", "call.executing", "call.succeeded"]


@pytest.mark.guarantee("gate:same-call")
def test_a_call_that_would_do_something_else_does_not_run_and_asks_again(
    asked_again: ToolCall, entered: list[ToolCall]
) -> None:
    assert entered == []
    assert (asked_again.status, asked_again.round) == (Status.WAITING, 2)
    shown = approval_of(asked_again).disclosure
    assert shown["preview"]["text"] == NOW.text
    assert shown["again"] == {
        "round": 2,
        "why": "The effect changed after you approved.",
        "before": {"text": BEFORE.text, "table": None, "error": None, "cut": []},
    }


@pytest.mark.guarantee("gate:same-call")
def test_the_second_yes_is_for_what_is_shown_then_and_runs_once(
    bob: User, asked_again: ToolCall, entered: list[ToolCall]
) -> None:
    yes(bob, asked_again)
    assert (run(asked_again), run(asked_again)) == (True, False)
    assert len(entered) == 1
    assert [decision.round for decision in Decision.objects.all()] == [1, 2]
    assert status(asked_again) == Status.SUCCEEDED


def test_the_end_of_the_first_question_is_none_of_the_second(asked_again: ToolCall) -> None:
    stopping.withdraw_question(asked_again.pk, 1, actor=SYSTEM, why="its client has gone")
    assert status(asked_again) == Status.WAITING
    stopping.withdraw_question(asked_again.pk, 2, actor=SYSTEM, why="its client has gone")
    assert status(asked_again) == Status.WITHDRAWN


@pytest.mark.guarantee("audit:complete")
def test_the_record_keeps_what_was_shown_before(bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    before = approval_of(call)
    run(call)
    after = approval_of(call)
    event = AuditEvent.objects.filter(call=call, name="call.waiting").latest("id")
    assert event.data["before"] == before.disclosure
    assert event.data["digest"] == after.digest == disclosure.digest(after.disclosure) != before.digest
    assert (event.actor_id, event.means) == (None, "system")
    assert events(call) == ["call.waiting", "call.approved", "call.waiting"]


def test_it_has_a_fresh_deadline_and_can_be_declined_or_expire(bob: User, tool: Tool, previews: list[Any]) -> None:
    previews[:] = [BEFORE]
    first, second = approved(bob, tool), approved(bob, tool)
    previews[:] = [NOW]
    for call in (first, second):
        assert not run(call)
        assert str(fresh(call).deadline) > str(call.deadline)
        assert approval_of(call).disclosure["deadline"] == fresh(call).deadline.isoformat()  # type: ignore[union-attr]
    decide.decline(approval_of(first).pk, signed_in(bob), reason="not that much")
    later(second, deadline=True)
    assert decide.expire_overdue() == 1
    assert (status(first), status(second)) == (Status.DECLINED, Status.EXPIRED)
    assert not run(first)


@pytest.mark.guarantee("gate:fail-closed")
@pytest.mark.parametrize("broken", [RuntimeError("gone"), Preview(error="gone"), None, "nonsense"], ids=range(4))
def test_a_second_look_that_fails_asks_again(
    broken: Any, bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [BEFORE, broken]
    call = approved(bob, tool)
    assert not run(call)
    shown = approval_of(call).disclosure
    assert shown["preview"]["error"]
    assert shown["again"]["why"] == submit.FAILED
    # It has been said that nobody knows what it would do; that is what the second yes is for.
    yes(bob, call)
    assert run(call)
    assert len(entered) == 1


@pytest.mark.guarantee("gate:fail-closed")
def test_a_second_look_that_takes_too_long_asks_again(
    bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    async def hangs(_: object) -> Preview:
        leap()
        await asyncio.Event().wait()
        return NOW

    previews[:] = [BEFORE, hangs]
    call = approved(bob, tool)
    assert not run(call)
    assert approval_of(call).disclosure["preview"]["error"] == "The preview took longer than 5 seconds."
    assert entered == []


def test_a_call_whose_shown_preview_had_failed_is_not_looked_at_again(
    bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [Preview(error="no such order"), NOW]
    call = approved(bob, tool)
    assert run(call)
    assert (len(looked), len(entered)) == (1, 1)


@pytest.mark.guarantee("gate:truth")
def test_a_call_that_keeps_changing_is_withdrawn_and_says_why(
    bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [Preview(text=str(number)) for number in range(10)]
    call = ask(bob, tool)
    for _ in range(submit.MOST_CHANGES):
        yes(bob, call)
        assert not run(call)
    assert fresh(call).status == Status.WITHDRAWN
    assert fresh(call).reason == "Not run: what it would do kept changing, each of the 3 times that it was approved."
    assert AuditEvent.objects.get(call=call, name="call.withdrawn").data["seen"]["text"] == "3"
    assert entered == []


# -- With edited arguments --------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:same-call", "SR-10")
@pytest.mark.parametrize("first", [BEFORE, Preview(error="no such order")], ids=["shown", "failed"])
def test_a_yes_to_edited_arguments_asks_again_with_what_they_would_do(
    first: Preview, bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [first, NOW]
    call = ask(bob, tool)
    yes(bob, call, edited={"text": "goodbye"})
    assert not run(call)
    shown = approval_of(call).disclosure
    assert looked[-1][0] == shown["arguments"] == {"text": "goodbye", "amount": 1}
    assert (shown["preview"]["text"], shown["again"]["why"]) == (NOW.text, submit.EDITED)
    yes(bob, call)
    assert run(call)
    assert [each.arguments for each in entered] == [{"text": "goodbye", "amount": 1}]


def test_edits_that_would_do_the_same_run_at_once(
    bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [BEFORE]
    call = ask(bob, tool)
    yes(bob, call, edited={"text": "goodbye"})
    assert run(call)
    assert entered[0].arguments == {"text": "goodbye", "amount": 1}


def test_a_persons_own_edits_do_not_count_as_changes(bob: User, tool: Tool, previews: list[Any]) -> None:
    previews[:] = [Preview(text=str(number)) for number in range(7)] + [Preview(text="6")]
    call = ask(bob, tool)
    for number in range(6):
        yes(bob, call, edited={"text": str(number)})
        assert not run(call)
    yes(bob, call)
    assert run(call)
    assert fresh(call).arguments["text"] == "5"


# -- In a server ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
async def test_in_a_server_it_asks_again_by_itself_and_runs_on_the_second_yes(
    server_loop: None, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = await crossing(approved)(bob, tool)
    await stored(lambda: fresh(call).status == Status.WAITING, "it waits again")
    assert (await crossing(fresh)(call)).round == 2
    assert entered == []
    await crossing(yes)(bob, call)
    assert (await settled(call.pk, 10)).result == "done"
    assert len(entered) == 1


@pytest.mark.django_db(transaction=True)
async def test_what_was_approved_but_not_looked_at_again_is_started_by_a_sweeper(
    server_loop: None, bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [BEFORE]
    background.adopt(None)
    call = await crossing(approved)(bob, tool)
    background.adopt(asyncio.get_running_loop())
    await crossing(later)(call, created_at=True)
    await crossing(sweep)()
    await crossing(sweep)()
    assert (await settled(call.pk, 10)).result == "done"
    assert len(entered) == 1


def crossing(function: Any) -> Any:
    return database_sync_to_async(function)

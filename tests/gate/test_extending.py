"""Five more minutes for a question, in its last minute."""

from datetime import datetime, timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate import decide, disclosure, editing
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import AuditEvent, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, fresh, run, say_yes, status
from tests.gate.racing import meanwhile, together

pytestmark = pytest.mark.django_db

MORE = timedelta(minutes=5)


def left(call: ToolCall, seconds: float) -> datetime:
    """Let the question have so long; its deadline then."""
    deadline = timezone.now() + timedelta(seconds=seconds)
    ToolCall.objects.filter(pk=call.pk).update(deadline=deadline)
    return deadline


def extend(user: User, call: ToolCall, seen: datetime | None = None) -> ToolCall:
    return editing.extend(approval_of(call).pk, signed_in(user), seen=seen)


def test_in_its_last_minute_a_question_gets_five_more_and_the_record_says_so(bob: User, waiting: ToolCall) -> None:
    deadline = left(waiting, 30)
    assert extend(bob, waiting).deadline == deadline + MORE
    event = AuditEvent.objects.get(call=waiting, name="call.extended")
    assert (event.actor, event.means) == (bob, "session")
    assert event.data["before"] == deadline.isoformat()
    assert event.data["after"] == (deadline + MORE).isoformat()


def test_it_can_be_put_off_again_in_its_next_last_minute(bob: User, waiting: ToolCall) -> None:
    left(waiting, 30)
    extend(bob, waiting)
    deadline = left(waiting, 30)
    assert extend(bob, waiting).deadline == deadline + MORE


@pytest.mark.guarantee("gate:same-call", "SR-9")
def test_what_was_shown_and_its_digest_stay_and_the_yes_counts(bob: User, waiting: ToolCall) -> None:
    before = approval_of(waiting)
    left(waiting, 30)
    extend(bob, waiting)
    after = approval_of(waiting)
    assert (after.disclosure, after.digest) == (before.disclosure, before.digest)
    assert disclosure.digest(after.disclosure) == after.digest
    say_yes(bob, waiting, digest=before.digest)
    assert run(waiting)
    assert status(waiting) == Status.SUCCEEDED


def test_before_the_last_minute_nothing_is_added(bob: User, waiting: ToolCall) -> None:
    deadline = left(waiting, 90)
    with pytest.raises(editing.NotNow, match="only in the last minute of a question"):
        extend(bob, waiting)
    assert fresh(waiting).deadline == deadline


@pytest.mark.guarantee("gate:fail-closed")
def test_identical_calls_get_the_same_time_but_for_one_that_is_over(bob: User, tool: Tool) -> None:
    here = new_id()
    first, second, over = (ask(bob, tool, conversation_id=here) for _ in range(3))
    _, until, was = left(second, 10), left(first, 30) + MORE, left(over, -1)
    extend(bob, first)
    assert [fresh(call).deadline for call in (first, second, over)] == [until, until, was]


def test_after_the_deadline_it_is_over(bob: User, waiting: ToolCall) -> None:
    left(waiting, -1)
    with pytest.raises(decide.AlreadySettled, match="expired"):
        extend(bob, waiting)
    assert status(waiting) == Status.EXPIRED


@pytest.mark.servers("row locks tell two at a time apart")
def test_the_databases_clock_judges_and_not_that_of_the_process(bob: User, waiting: ToolCall) -> None:
    deadline = left(waiting, 300)
    with time_machine.travel(timezone.now() + timedelta(seconds=280)), pytest.raises(editing.NotNow):
        extend(bob, waiting)
    assert fresh(waiting).deadline == deadline


def test_a_question_is_open_for_thirty_days_at_most(bob: User, waiting: ToolCall) -> None:
    deadline = left(waiting, 30)
    ToolCall.objects.filter(pk=waiting.pk).update(created_at=deadline + MORE - timedelta(days=30, seconds=1))
    with pytest.raises(editing.NotNow, match="at most 30 days"):
        extend(bob, waiting)
    ToolCall.objects.filter(pk=waiting.pk).update(created_at=deadline + MORE - timedelta(days=30))
    assert extend(bob, waiting).deadline == deadline + MORE


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("row locks tell two at a time apart")
def test_two_clicks_on_what_was_seen_add_five_minutes_once(bob: User, waiting: ToolCall) -> None:
    deadline = left(waiting, 30)
    approval = approval_of(waiting).pk
    clicks = [lambda: editing.extend(approval, signed_in(bob), seen=deadline)] * 6
    assert [call.deadline for call in together(*clicks, meet_at_first_write=True)] == [deadline + MORE] * 6
    # One of them that is late, from a page that has not looked since.
    left(waiting, 20)
    later = fresh(waiting).deadline
    assert extend(bob, waiting, seen=deadline).deadline == later
    assert AuditEvent.objects.filter(name="call.extended").count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:one-outcome")
def test_an_answer_in_the_same_moment_stands(bob: User, waiting: ToolCall) -> None:
    left(waiting, 30)
    with meanwhile(lambda: say_yes(bob, waiting)), pytest.raises(decide.AlreadySettled, match="approved"):
        extend(bob, waiting)
    assert not AuditEvent.objects.filter(name="call.extended").exists()


@pytest.mark.guarantee("gate:only-people")
def test_only_who_may_decide_can_put_it_off(bob: User, charlie: User, waiting: ToolCall) -> None:
    deadline = left(waiting, 30)
    for actor in (signed_in(charlie), SYSTEM, Actor(bob.pk, "elicitation"), Actor(bob.pk, "system")):
        with pytest.raises(decide.NoSuchApproval):
            editing.extend(approval_of(waiting).pk, actor)
    assert fresh(waiting).deadline == deadline

"""Identical calls that wait at the same time in one conversation: one card, one answer, at most one execution."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.approvals.inbox import lines
from hitlchat.chat import fragments, transcript_view
from hitlchat.gate import batch, decide, queue, results
from hitlchat.gate.batch import Item
from hitlchat.gate.models import Decision, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, fresh, recording, run, say_yes, status
from tests.gate.racing import together
from tests.tables import each_row

# Identical calls are joined once the answer is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def twins(bob: User, tool: Tool) -> list[ToolCall]:
    here = new_id()
    return [ask(bob, tool, conversation_id=here, model_call_id=f"call_{place}") for place in (1, 2)]


@pytest.mark.guarantee("gate:same-call", "SR-41")
def test_one_yes_runs_exactly_one_and_the_other_is_told_where_its_outcome_is(
    bob: User, twins: list[ToolCall], entered: list[ToolCall]
) -> None:
    first, second = twins
    say_yes(bob, first)
    assert status(second) == Status.WITHDRAWN
    assert run(first)
    assert not run(second)
    assert [call.pk for call in entered] == [first.pk]
    told = results.for_model(fresh(second))
    assert "the same call was approved and runs once, as call_1; its outcome is there" in told
    assert "It was not executed." in told


def test_a_no_declines_all_of_them_with_its_reason(bob: User, twins: list[ToolCall], entered: list[ToolCall]) -> None:
    decide.decline(approval_of(twins[1]).pk, signed_in(bob), reason="too early")
    assert [status(call) for call in twins] == [Status.DECLINED] * 2
    assert set(Decision.objects.values_list("person", "means", "reason")) == {(bob.pk, "session", "too early")}
    assert Decision.objects.count() == 2
    assert entered == []


def test_a_yes_with_changes_runs_one_changed_call(bob: User, twins: list[ToolCall], entered: list[ToolCall]) -> None:
    say_yes(bob, twins[0], edited={"text": "other", "amount": 1})
    assert run(twins[0])
    assert [status(call) for call in twins] == [Status.SUCCEEDED, Status.WITHDRAWN]
    assert [call.arguments["text"] for call in entered] == ["other"]
    assert "the same call was approved with other arguments and runs once" in results.for_model(fresh(twins[1]))


@pytest.mark.guarantee("SR-41")
def test_they_are_one_card_and_one_line_that_say_how_often_it_was_asked(bob: User, twins: list[ToolCall]) -> None:
    here = twins[0].conversation_id
    assert here is not None
    shown = fragments.asks(here, signed_in(bob))
    assert shown.count("data-ask ") == 1
    assert "Asked 2 times" in shown
    # Not the card of the first alone, which a page would keep as it is.
    assert f'id="ask-{approval_of(twins[0]).pk}-2x"' in shown
    assert transcript_view.run(here).waiting == 1
    listed = lines.of(bob.pk)
    assert ([line.times for line in listed.lines], listed.waiting.number, listed.more) == ([2], 2, "")
    assert [*queue.times(approval_of(call) for call in twins).values()] == [2, 2]


ANYTHING: dict[str, Any] = {"type": "object", "properties": {"n": {}}}


@pytest.mark.parametrize("other, outcome", [({"n": 5.0}, Status.WITHDRAWN), ({"n": "5"}, Status.WAITING)])
def test_numbers_that_are_alike_make_no_other_call(bob: User, other: dict[str, Any], outcome: Status) -> None:
    tool = recording(input_schema=ANYTHING, prompt_template="Look at {args.n}")
    here = new_id()
    first, second = (ask(bob, tool, each, conversation_id=here) for each in ({"n": 5}, other))
    say_yes(bob, first)
    assert status(second) == outcome


def test_one_and_true_are_two_calls(bob: User) -> None:
    tool, here = recording(input_schema=ANYTHING), new_id()
    first, second = (ask(bob, tool, {"n": n}, conversation_id=here) for n in (1, True))
    say_yes(bob, first)
    assert status(second) == Status.WAITING


OTHERS: dict[str, dict[str, Any]] = {
    "other arguments": {"arguments": {"text": "bye"}},
    "another type": {"arguments": {"text": "hello", "amount": 2}},
    "another conversation": {"conversation_id": None},
    "another person's words before it": {"user_prompt": "Something else"},
}


@each_row("differs", OTHERS.values(), ids=OTHERS)
def test_what_differs_in_anything_that_is_shown_is_asked_about_by_itself(
    differs: dict[str, Any], bob: User, tool: Tool
) -> None:
    here = new_id()
    first, second = ask(bob, tool, conversation_id=here), ask(bob, tool, **{"conversation_id": here} | differs)
    say_yes(bob, first)
    assert status(second) == Status.WAITING


def test_other_tools_and_other_people_are_never_joined(bob: User, charlie: User, tool: Tool) -> None:
    here = new_id()
    first = ask(bob, tool, conversation_id=here)
    others = [ask(bob, recording("other"), conversation_id=here), ask(charlie, tool, conversation_id=here)]
    say_yes(bob, first)
    assert [status(call) for call in others] == [Status.WAITING] * 2


def test_calls_outside_of_conversations_are_never_joined(bob: User, tool: Tool) -> None:
    first, second = (ask(bob, tool, kind="mcp", conversation_id=None) for _ in range(2))
    decide.decline(approval_of(first).pk, signed_in(bob))
    assert status(second) == Status.WAITING


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:one-outcome")
def test_two_answers_at_once_leave_each_with_one_outcome(bob: User, twins: list[ToolCall]) -> None:
    yes = [lambda call=call: say_yes(bob, call) for call in twins]
    no = [lambda call=call: decide.decline(approval_of(call).pk, signed_in(bob)) for call in twins]
    ends = together(*yes, *no, meet_at_first_write=True)
    assert {type(end) for end in ends if isinstance(end, BaseException)} <= {decide.AlreadySettled}
    assert all(status(call) in (Status.APPROVED, Status.DECLINED, Status.WITHDRAWN) for call in twins)
    assert Decision.objects.count() == sum(status(call) != Status.WITHDRAWN for call in twins)


def test_answering_both_together_counts_once_and_says_so(bob: User, twins: list[ToolCall]) -> None:
    items = [Item(approval_of(call).pk, approval_of(call).digest) for call in twins]
    told = batch.answer(items, "approve", signed_in(bob))
    assert [each.counted for each in told] == [True, False]
    assert "already answered (withdrawn)" in told[1].said

"""Several calls of one tool answered together: each its own decision, and nothing that must be looked at by itself."""

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import batch, decide
from hitlchat.gate.batch import Item, NotTogether
from hitlchat.gate.card import card
from hitlchat.gate.decide import NoSuchApproval
from hitlchat.gate.models import Approval, Decision, Tool, ToolCall
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, recording, run, say_yes, status
from tests.gate.racing import together
from tests.tables import each_row

pytestmark = pytest.mark.django_db


def item(call: ToolCall) -> Item:
    found = approval_of(call)
    return Item(found.pk, found.digest)


@pytest.fixture
def three(bob: User, tool: Tool) -> list[ToolCall]:
    return [ask(bob, tool) for _ in range(3)]


@pytest.mark.guarantee("gate:same-call")
@each_row("verdict,end", [("approve", Status.APPROVED), ("decline", Status.DECLINED)])
def test_each_call_gets_a_decision_of_its_own_on_what_was_shown(
    verdict: Any, end: Status, bob: User, three: list[ToolCall]
) -> None:
    told = batch.answer([item(call) for call in three], verdict, signed_in(bob))
    assert [(each.counted, each.said) for each in told] == [(True, f"{end.label}.")] * 3
    assert [status(call) for call in three] == [end] * 3
    assert {each.approval_id: each.digest for each in Decision.objects.all()} == {
        approval_of(call).pk: approval_of(call).digest for call in three
    }


@pytest.mark.guarantee("gate:one-outcome")
def test_what_was_settled_meanwhile_or_is_another_call_now_is_told_and_the_rest_counts(
    bob: User, three: list[ToolCall]
) -> None:
    decide.decline(approval_of(three[0]).pk, signed_in(bob))
    other = Item(approval_of(three[1]).pk, "0" * 64)
    told = batch.answer([item(three[0]), other, item(three[2])], "approve", signed_in(bob))
    assert [each.counted for each in told] == [False, False, True]
    assert "already answered (declined)" in told[0].said
    assert "not the one you were shown" in told[1].said
    assert [status(call) for call in three] == [Status.DECLINED, Status.WAITING, Status.APPROVED]


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:one-outcome")
def test_of_two_batches_at_once_each_call_has_one_outcome(bob: User, three: list[ToolCall]) -> None:
    items = [item(call) for call in three]
    ends = together(
        *(partial(batch.answer, items, verdict, signed_in(bob)) for verdict in ("approve", "decline")),
        meet_at_first_write=True,
    )
    for yes, no in zip(*ends, strict=True):
        assert (yes.counted, no.counted) in ((True, False), (False, True))
    assert Decision.objects.count() == 3


def undecided(calls: list[ToolCall]) -> bool:
    return all(status(call) == Status.WAITING for call in calls) and not Decision.objects.exists()


def test_calls_of_different_tools_are_not_answered_together(bob: User, tool: Tool) -> None:
    calls = [ask(bob, tool), ask(bob, recording(name="other"))]
    with pytest.raises(NotTogether, match="same tool"):
        batch.answer([item(call) for call in calls], "approve", signed_in(bob))
    assert undecided(calls)


@each_row("raised", ["before", "after"])
def test_calls_of_high_risk_are_not_answered_together(raised: str, bob: User, tool: Tool) -> None:
    if raised == "before":
        Tool.objects.update(risk_level=4)
    calls = [ask(bob, tool), ask(bob, tool)]
    Tool.objects.update(risk_level=4)
    with pytest.raises(NotTogether, match="one by one"):
        batch.answer([item(call) for call in calls], "approve", signed_in(bob))
    assert undecided(calls)


def test_no_call_stands_in_a_batch_twice_and_none_alone(bob: User, three: list[ToolCall]) -> None:
    for items in ([item(three[0])], [item(three[0])] * 2, []):
        with pytest.raises(NotTogether, match="Between 2 and 50"):
            batch.answer(items, "approve", signed_in(bob))
    assert undecided(three)


@pytest.mark.guarantee("gate:only-people", "SR-21")
def test_a_batch_with_a_call_that_is_someone_elses_or_nowhere_decides_nothing(
    bob: User, charlie: User, tool: Tool, three: list[ToolCall]
) -> None:
    for other in (item(ask(charlie, tool)), Item(uuid4(), "")):
        with pytest.raises(NoSuchApproval):
            batch.answer([item(three[0]), other], "approve", signed_in(bob))
    assert undecided(three)


@pytest.mark.guarantee("gate:same-call")
@each_row("verdict", ["approve", "decline"])
def test_what_is_asked_about_again_is_not_answered_together(verdict: Any, bob: User, previews: list[Any]) -> None:
    previews[:] = [Preview(text="Refunds 1 EUR")]
    tool = recording("previewing", source="previewing")
    calls = [ask(bob, tool) for _ in range(3)]
    say_yes(bob, calls[0])
    previews[:] = [Preview(text="Refunds 9 EUR")]
    assert not run(calls[0])
    with pytest.raises(NotTogether, match="asks again"):
        batch.answer([item(call) for call in calls], verdict, signed_in(bob))
    assert [status(call) for call in calls] == [Status.WAITING] * 3
    rows = list(Approval.objects.select_related("call").order_by("pk"))
    (group,) = batch.groups(rows, map(card, rows))
    assert {each.call_id for each in group.cards} == {str(call.pk) for call in calls[1:]}


@pytest.mark.guarantee("gate:same-call")
@each_row("verdict", ["approve", "decline"])
def test_a_call_with_a_warning_is_not_answered_together(verdict: Any, bob: User, tool: Tool) -> None:
    calls = [ask(bob, tool, {"text": text}) for text in ("one", "two", "a\u202eb")]
    with pytest.raises(NotTogether, match="with a warning"):
        batch.answer([item(call) for call in calls], verdict, signed_in(bob))
    assert undecided(calls)
    rows = list(Approval.objects.select_related("call").order_by("pk"))
    (group,) = batch.groups(rows, map(card, rows))
    assert {each.call_id for each in group.cards} == {str(call.pk) for call in calls[:2]}


@pytest.mark.guarantee("gate:fail-closed")
@each_row("verdict", ["approve", "decline"])
def test_a_call_whose_card_cannot_be_shown_is_not_answered_together(verdict: Any, bob: User, tool: Tool) -> None:
    calls = [ask(bob, tool) for _ in range(3)]
    row = approval_of(calls[0])
    row.disclosure = {name: part for name, part in row.disclosure.items() if name != "caller"}
    row.save(update_fields=["disclosure"])
    with pytest.raises(NotTogether, match="answered individually"):
        batch.answer([item(call) for call in calls], verdict, signed_in(bob))
    assert undecided(calls)


def test_only_cards_of_one_tool_and_of_low_risk_are_grouped(bob: User, tool: Tool, three: list[ToolCall]) -> None:
    ask(bob, recording(name="other"))
    risky = recording(name="risky", risk_level=4)
    ask(bob, risky)
    ask(bob, risky)
    rows = list(Approval.objects.select_related("call").order_by("pk"))
    (group,) = batch.groups(rows, map(card, rows))
    assert {each.call_id for each in group.cards} == {str(call.pk) for call in three}

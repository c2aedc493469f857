"""From first display to the answer: what is kept of it, and that nothing depends on it (SR-42)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import time_machine
from django.contrib.auth.models import Group, User
from django.db import connection, connections
from django.utils import timezone

from hitlchat.gate import attention, batch, decide
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.attention import Looked
from hitlchat.gate.models import Approval, AuditEvent, Decision, Showing, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, fresh, status
from tests.gate.deciding_people import members, rule

pytestmark = pytest.mark.django_db


@pytest.fixture
def stopped_clock() -> Iterator[None]:
    """No time goes by between the display and the answer but what the test puts there."""
    with time_machine.travel(timezone.now(), tick=False):
        yield


def shown(call: ToolCall, user: User, ago: float = 0.0) -> Approval:
    """First shown so many seconds ago."""
    approval = approval_of(call)
    attention.shown(approval, signed_in(user))
    Showing.objects.filter(approval=approval).update(at=timezone.now() - timedelta(seconds=ago))
    return approval


def decided(call: ToolCall) -> Decision:
    return Decision.objects.select_related("approval").get(approval__call=call)


def event(call: ToolCall, name: str) -> AuditEvent:
    return AuditEvent.objects.get(call=call, name=name)


@pytest.mark.guarantee("SR-42")
@pytest.mark.servers("the SQL differs between the databases")
def test_the_first_display_is_kept_once_per_person_and_round(bob: User, waiting: ToolCall) -> None:
    approval = approval_of(waiting)
    attention.shown(approval, Actor(bob.pk, "elicitation", client="editor"))
    first = Showing.objects.get()
    for actor in (signed_in(bob), Actor(bob.pk, "token")):
        attention.shown(approval, actor)
    assert Showing.objects.get().at == first.at
    told = event(waiting, "call.shown")
    assert (told.actor, told.means) == (bob, "elicitation")
    who = {"client": "editor", "by": {"id": bob.pk, "name": "bob"}}
    assert told.data == {"approval": str(approval.pk), "digest": approval.digest, "round": 1} | who
    ToolCall.objects.filter(pk=waiting.pk).update(round=2)
    attention.shown(approval_of(waiting), signed_in(bob))
    assert AuditEvent.objects.filter(call=waiting, name="call.shown").count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("the SQL differs between the databases")
def test_many_displays_at_once_are_one(bob: User, waiting: ToolCall) -> None:
    def show(_: int) -> None:
        attention.shown(approval_of(waiting), signed_in(bob))
        connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(show, range(8)))
    assert Showing.objects.count() == AuditEvent.objects.filter(name="call.shown").count() == 1


def test_nothing_is_kept_of_programs_or_of_what_is_settled(bob: User, waiting: ToolCall) -> None:
    for actor in (SYSTEM, Actor(bob.pk, "system"), Actor(None, "elicitation")):
        attention.shown(approval_of(waiting), actor)
    decide.decline(approval_of(waiting).pk, signed_in(bob))
    attention.shown(approval_of(waiting), signed_in(bob))
    assert not Showing.objects.exists()


@pytest.mark.servers("the SQL differs between the databases")
def test_a_second_look_costs_one_query_and_an_answer_one_more(
    bob: User, waiting: ToolCall, django_assert_num_queries: Any
) -> None:
    approval = shown(waiting, bob, ago=60)
    approval = Approval.objects.select_related("call__tool").get(pk=approval.pk)
    with django_assert_num_queries(1):
        attention.shown(approval, signed_in(bob))
    decision = Decision(approval=approval, person=bob, round=1, verdict="approve")
    with django_assert_num_queries(1):
        attention.weigh(decision, Looked())


@pytest.mark.guarantee("SR-42")
@pytest.mark.usefixtures("stopped_clock")
def test_how_an_answer_came_about_is_on_the_decision_and_its_event(bob: User, waiting: ToolCall) -> None:
    approval = shown(waiting, bob, ago=60)
    decide.approve(approval.pk, signed_in(bob), digest=approval.digest, looked=Looked(opened=True))
    decision = decided(waiting)
    assert decision.first_shown_at == Showing.objects.get().at
    assert (decision.opened, decision.hurried) == (True, False)
    data = event(waiting, "call.approved").data
    assert (data["opened"], data["hurried"]) == (True, False)
    assert data["shownForMs"] == attention.shown_for_ms(decision)
    assert data["shownForMs"] >= 60_000
    assert attention.words(decision, approval.disclosure) == "Answered in 60 s."
    assert attention.words(decision, approval.disclosure, timed=True) == "", "one figure is enough"


@pytest.mark.guarantee("SR-42")
@pytest.mark.usefixtures("stopped_clock")
def test_a_yes_faster_than_it_can_be_read_is_marked_in_plain_words(bob: User, waiting: ToolCall) -> None:
    approval = shown(waiting, bob, ago=0.8)
    decide.approve(approval.pk, signed_in(bob), looked=Looked(opened=False))
    decision = decided(waiting)
    assert decision.hurried
    assert event(waiting, "call.approved").data["hurried"] is True
    assert "(about " in attention.words(decision, approval.disclosure)
    assert "(about " in attention.words(decision, approval.disclosure, timed=True), "this one says more"
    assert attention.words(decision, approval.disclosure).endswith("Not all folded text was opened.")


def test_a_fast_no_is_not_marked(bob: User, waiting: ToolCall) -> None:
    decide.decline(shown(waiting, bob).pk, signed_in(bob))
    assert decided(waiting).first_shown_at is not None
    assert not decided(waiting).hurried


def test_an_answer_without_a_recorded_display_counts_and_says_so(bob: User, charlie: User, waiting: ToolCall) -> None:
    attention.shown(approval_of(waiting), signed_in(charlie))
    approval = decide.approve(approval_of(waiting).pk, signed_in(bob))
    assert status(waiting) == Status.APPROVED
    decision = decided(waiting)
    assert (decision.first_shown_at, decision.opened, decision.hurried) == (None, None, False)
    assert event(waiting, "call.approved").data["shownForMs"] is None
    assert attention.words(decision, approval.disclosure) == "Not shown by hitlchat before the answer."


def test_an_answer_counts_also_where_displays_cannot_be_recorded(bob: User, waiting: ToolCall) -> None:
    approval = approval_of(waiting)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE gate_showing RENAME COLUMN means TO meant")
    try:
        attention.shown(approval, signed_in(bob))
        decide.approve(approval.pk, signed_in(bob))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE gate_showing RENAME COLUMN meant TO means")
    assert status(waiting) == Status.APPROVED
    assert not Showing.objects.exists()


def test_only_the_display_of_the_round_that_is_answered_counts(bob: User, waiting: ToolCall) -> None:
    shown(waiting, bob, ago=600)
    ToolCall.objects.filter(pk=waiting.pk).update(round=2)
    approval = approval_of(waiting)
    decide.approve(approval.pk, signed_in(bob), digest=approval.digest)
    assert decided(waiting).first_shown_at is None


@pytest.mark.usefixtures("stopped_clock")
def test_each_of_several_who_say_yes_has_a_time_of_their_own(
    alice: User, bob: User, tool: Tool, finance: Group
) -> None:
    dora, eve = members(finance, "dora", "eve")
    rule(tool, alice, group=finance, quorum=2)
    call = ask(bob, tool)
    approval = shown(call, dora, ago=60)
    attention.shown(approval, signed_in(eve))
    for person in (dora, eve):
        decide.approve(approval.pk, signed_in(person))
    marks = dict(Decision.objects.values_list("person__username", "hurried"))
    assert marks == {"dora": False, "eve": True}
    assert event(call, "call.counted").data["hurried"] is False
    assert event(call, "call.approved").data["hurried"] is True


@pytest.mark.guarantee("SR-42")
@pytest.mark.usefixtures("stopped_clock")
def test_several_answered_together_are_timed_over_all_that_was_listed(bob: User, tool: Tool) -> None:
    long = "one word after the other, " * 20
    needed = attention.least_seconds(attention.seconds_to_read(approval_of(ask(bob, tool, {"text": long})).disclosure))
    for ago, is_hurried in ((needed + 1, True), (3 * needed + 1, False)):
        calls = [ask(bob, tool, {"text": f"{long} {number}"}) for number in range(3)]
        items = [batch.Item(row.pk, row.digest) for row in [shown(call, bob, ago) for call in calls]]
        batch.answer(items, "approve", signed_in(bob), opened=True)
        decisions = [decided(call) for call in calls]
        assert {(each.hurried, each.opened) for each in decisions} == {(is_hurried, True)}


@pytest.mark.django_db(transaction=True)
def test_identical_calls_declined_with_the_card_carry_its_time(bob: User, tool: Tool) -> None:
    conversation = UUID(int=7)
    first, second = (ask(bob, tool, conversation_id=conversation) for _ in range(2))
    decide.decline(shown(first, bob, ago=9).pk, signed_in(bob))
    assert fresh(second).status == Status.DECLINED
    assert decided(second).first_shown_at == decided(first).first_shown_at


def test_the_bounds_of_what_counts_as_hurried(subtests: pytest.Subtests) -> None:
    for reads, least in [
        (0, attention.FLOOR_SECONDS),
        (8, attention.FLOOR_SECONDS),
        (8.4, 2.1),
        (120, 30.0),
        (9000, attention.MOST_SECONDS),
    ]:
        with subtests.test(reads=reads):
            assert attention.least_seconds(reads) == pytest.approx(least)


def test_reading_time_is_of_what_is_shown_and_errs_on_the_persons_side() -> None:
    plain = {"prompt": "word " * 60}
    assert attention.seconds_to_read(plain) == pytest.approx(300 / 5.6 / 238 * 60)
    # One long key is one word; what is folded away takes no time; no text has to be there.
    assert attention.seconds_to_read({"prompt": "k" * 500}) == pytest.approx(60 / 238)
    folded = {"arguments": {"text": "ab " * 5000}}
    assert attention.seconds_to_read(folded) < attention.seconds_to_read({"arguments": {"text": "ab " * 199}})
    assert attention.seconds_to_read({"facts": ["a fact"] * 3}) == attention.seconds_to_read({"facts": ["a fact"] * 30})
    assert attention.seconds_to_read({}) == 0


def test_only_plain_words_are_taken_as_a_claim(subtests: pytest.Subtests) -> None:
    for said, meant in [("yes", True), ("no", False), ("", None), (True, None), (["yes"], None)]:
        with subtests.test(said=said):
            assert attention.claimed(said) is meant

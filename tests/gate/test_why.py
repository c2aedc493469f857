"""Asking why: who may, about which calls, how often, and that it decides nothing."""

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import asking_why, decide, deciders, why
from hitlchat.gate.asking_why import CannotAsk, LongQuestion
from hitlchat.gate.card import card
from hitlchat.gate.models import Approval, AuditEvent, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import call_moved
from hitlchat.record.verifying import verify
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, ask_over_mcp, events, fresh, recording, say_yes, status
from tests.gate.deciding_people import approver, rule
from tests.gate.racing import one_behind_the_other, together
from tests.record.conftest import data_folder

# The record of these tests alone.
__all__ = ["data_folder"]

pytestmark = pytest.mark.django_db(transaction=True)

A_MINUTE = timedelta(minutes=1)


@pytest.fixture
def tool(make_tool: MakeTool) -> Tool:
    return make_tool("echo")


def put(call: ToolCall, person: User, question: str = "") -> int:
    return asking_why.ask(approval_of(call).pk, signed_in(person), question, lasts=A_MINUTE)


def whys(call: ToolCall, viewer: User) -> why.Whys | None:
    return card(Approval.objects.select_related("call").get(call=call), signed_in(viewer)).whys


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:same-call")
def test_the_call_waits_as_it_did_and_everybody_who_decides_reads_what_was_claimed(
    alice: User, bob: User, tool: Tool
) -> None:
    dora, erik = approver("dora"), approver("erik")
    rule(tool, alice, quorum=2)
    call = ask(bob, tool)
    before = (call.status, call.deadline, approval_of(call).digest, approval_of(call).disclosure)
    number = put(call, bob, "Why \x00now?")
    asking_why.answered(approval_of(call).pk, number, "Because.")
    assert (fresh(call).status, fresh(call).deadline, approval_of(call).digest, approval_of(call).disclosure) == before
    for person in (dora, erik, bob):
        found = whys(call, person)
        assert found is not None
        (exchange,) = found.exchanges
        assert (exchange.person, exchange.answer, exchange.trouble) == ("bob", "Because.", "")
        assert "Why" in exchange.question
        assert "\x00" not in exchange.question
    say_yes(dora, call)
    assert status(call) == Status.WAITING
    say_yes(erik, call)
    assert status(call) == Status.APPROVED


@pytest.mark.guarantee("gate:only-people")
def test_whose_conversation_it_is_may_ask_whoever_decides_and_nobody_else_since_the_model_could_tell_them_of_it(
    alice: User, bob: User, charlie: User, tool: Tool
) -> None:
    dora = approver("dora")
    rule(tool, alice, not_the_requester=True)
    call = ask(bob, tool)
    for decider in (alice, dora):
        assert (found := whys(call, decider)) is not None
        assert not found.may_ask
        with pytest.raises(deciders.NotEntitled):
            put(call, decider)
    with pytest.raises(decide.NoSuchApproval):
        put(call, charlie)
    assert not AuditEvent.objects.filter(name=why.ASKED_WHY).exists()
    assert (found := whys(call, bob)) is not None
    assert found.may_ask
    assert put(call, bob) == 1


def test_a_call_without_a_conversation_of_ours_has_no_model_to_ask(bob: User, tool: Tool) -> None:
    for call in (ask_over_mcp(bob, tool), ask(bob, tool, kind="api", conversation_id=None)):
        assert whys(call, bob) is None
        with pytest.raises(CannotAsk, match="no model to ask"):
            put(call, bob)


@pytest.mark.servers("row locks tell two at a time apart")
def test_of_many_who_ask_at_once_one_does(bob: User, tool: Tool) -> None:
    call = ask(bob, tool)
    found = together(*[lambda: put(call, bob)] * 6)
    assert [each for each in found if not isinstance(each, CannotAsk)] == [1]
    assert approval_of(call).whys == AuditEvent.objects.filter(name=why.ASKED_WHY).count() == 1


@pytest.mark.guarantee("audit:complete")
def test_what_is_asked_while_somebody_decides_is_on_record_before_that_or_not_at_all(bob: User) -> None:
    tool = recording()
    for _ in range(6):
        call = ask(bob, tool)
        decline = partial(decide.decline, approval_of(call).pk, signed_in(bob))
        found, _approval = together(partial(put, call, bob), decline, meet_at_first_write=True)
        assert found == 1 or isinstance(found, decide.AlreadySettled)
    assert verify().findings == []


@pytest.mark.postgres
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("audit:complete")
def test_an_answer_waits_for_a_question_that_is_on_its_way_to_the_record(bob: User) -> None:
    call = ask(bob, recording())
    no = partial(decide.decline, approval_of(call).pk, signed_in(bob))
    one_behind_the_other(partial(put, call, bob), no)
    assert events(call) == ["call.waiting", why.ASKED_WHY, "call.declined"]


def test_it_is_asked_three_times_whether_there_was_an_answer_or_not(bob: User, tool: Tool) -> None:
    call = ask(bob, tool)
    for number in range(1, why.MOST + 1):
        assert put(call, bob) == number
        with pytest.raises(CannotAsk, match="being asked already"):
            put(call, bob)
        asking_why.answered(approval_of(call).pk, number, trouble="The server is away.")
    with pytest.raises(CannotAsk, match="as often as it can be"):
        put(call, bob)
    assert (found := whys(call, bob)) is not None
    assert (found.left, found.again, len(found.exchanges)) == (0, True, why.MOST)


def test_a_question_is_short(bob: User, tool: Tool) -> None:
    call = ask(bob, tool)
    with pytest.raises(LongQuestion, match="at most 300 characters"):
        put(call, bob, "a" * (why.LONGEST_QUESTION + 1))
    assert put(call, bob, "a" * why.LONGEST_QUESTION) == 1


@pytest.mark.guarantee("record:proves")
def test_a_decided_call_is_not_asked_about_and_a_late_answer_only_goes_on_record(bob: User) -> None:
    call = ask(bob, recording())
    number = put(call, bob)
    decide.decline(approval_of(call).pk, signed_in(bob))
    moves: list[object] = []
    call_moved.connect(lambda **move: moves.append(move), weak=False, dispatch_uid="moves")
    asking_why.answered(approval_of(call).pk, number, "Because.")
    call_moved.disconnect(dispatch_uid="moves")
    # Nobody is told of it who would go on by it.
    assert moves == []
    assert status(call) == Status.DECLINED
    assert [each.answer for each in why.of_calls([call.pk])[call.pk]] == ["Because."]
    with pytest.raises(decide.AlreadySettled):
        put(call, bob)
    assert verify().findings == []


@pytest.mark.parametrize(
    "words",
    [
        "Approve: run send",
        "\uff21PPROVE: run",
        "It is safe. Decline: don\u2019t run",
        "Genehmigen: send ausführen",
        "L0 Verified",
        "Consent digest: 0123",
        "Approved by alice",
        "What the model says",
    ],
)
def test_words_of_a_card_are_not_shown(words: str) -> None:
    assert why.judged(f"It is fine.\n\n{words}", is_whole=True)[2] == why.IMITATION


@pytest.mark.parametrize(
    "words", ["You asked me to approve the order of Ann.", "The order was approved by Ann.", "L2 of the rack is low."]
)
def test_words_that_only_are_alike_are_shown(words: str) -> None:
    assert why.judged(words, is_whole=True) == (words, False, "")


def test_a_card_about_which_nothing_was_asked_costs_no_query(
    bob: User, tool: Tool, django_assert_num_queries: object
) -> None:
    found = Approval.objects.select_related("call").get(call=ask(bob, tool))
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert why.of(found, signed_in(bob)) is not None

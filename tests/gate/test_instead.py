"""Talking back to a call: what the model is to do instead, and an answer in the tool's place. Neither runs it."""

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import decide, submit
from hitlchat.gate.card import card
from hitlchat.gate.decide import AlreadySettled, BadReason, NoSuchApproval
from hitlchat.gate.disclosure import Suggested
from hitlchat.gate.models import AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.question import INPUT_SCHEMA, SOURCE
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, fresh, recording, run, say_yes, status
from tests.tables import each_row

pytestmark = pytest.mark.django_db


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth", "audit:complete")
def test_an_answer_in_the_tools_place_settles_the_call_and_nothing_runs(
    bob: User, waiting: ToolCall, entered: list[ToolCall]
) -> None:
    decide.answer(approval_of(waiting).pk, signed_in(bob), " Customer 12\r\nin Bern ")
    call, decision = fresh(waiting), Decision.objects.get()
    assert (call.status, call.result, call.started_at) == (Status.ANSWERED, "Customer 12\nin Bern", None)
    assert call.settled_at is not None
    assert (decision.verdict, decision.reason) == ("answer", "")
    event = AuditEvent.objects.get(call=call, name="call.answered")
    assert (event.data["answer"], event.actor_id) == ("Customer 12\nin Bern", bob.pk)
    assert not run(waiting)
    assert entered == []
    with pytest.raises(AlreadySettled, match="answered by a person"):
        say_yes(bob, waiting)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_one_answer_is_enough_where_several_have_to_say_yes(bob: User, waiting: ToolCall) -> None:
    ToolCall.objects.filter(pk=waiting.pk).update(quorum=2)
    decide.answer(approval_of(waiting).pk, signed_in(bob), "Customer 12")
    assert status(waiting) == Status.ANSWERED


@pytest.mark.guarantee("gate:only-people")
def test_only_who_may_decline_may_answer_in_the_tools_place(charlie: User, waiting: ToolCall) -> None:
    with pytest.raises(NoSuchApproval):
        decide.answer(approval_of(waiting).pk, signed_in(charlie), "Customer 12")
    assert status(waiting) == Status.WAITING


BAD = ["", " \n ", "x" * (decide.LONGEST_ANSWER + 1), "a\0b"]


@each_row("text", BAD)
def test_an_answer_that_does_not_fit_decides_nothing(text: str, bob: User, waiting: ToolCall) -> None:
    with pytest.raises(BadReason):
        decide.answer(approval_of(waiting).pk, signed_in(bob), text)
    assert status(waiting) == Status.WAITING


def test_a_question_takes_its_answer_in_its_own_form_alone(bob: User) -> None:
    call = ask(bob, recording("ask_user", source=SOURCE, input_schema=INPUT_SCHEMA), {"question": "Which one?"})
    with pytest.raises(BadReason, match="its own form"):
        decide.answer(approval_of(call).pk, signed_in(bob), "Customer 12")
    assert status(call) == Status.WAITING


@pytest.mark.guarantee("gate:truth")
def test_what_to_do_instead_is_a_decline_of_its_own_kind(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    call = ask(bob, tool)
    with pytest.raises(BadReason, match="do instead"):
        decide.decline(approval_of(call).pk, signed_in(bob), reason=" ", suggests=True)
    decide.decline(approval_of(call).pk, signed_in(bob), reason="Use customer 12", suggests=True)
    decision = Decision.objects.get()
    assert (status(call), decision.verdict, decision.reason) == (Status.DECLINED, "suggest", "Use customer 12")
    assert decide.given([decision]) == "Use customer 12"
    assert entered == []


def test_an_attempt_after_a_declined_call_freezes_which_it_is_and_what_differs_from_that_call(
    bob: User, tool: Tool
) -> None:
    # With what was approved last an attempt is not compared.
    run(approved(bob, tool, {"text": "approved", "amount": 1}))
    before = [Suggested({"text": "one"}, "Shorter"), Suggested({"text": "two", "amount": 5}, "Use <b>three</b>")]
    call = ask(bob, tool, {"text": "three"}, suggested=before)
    shown = card(approval_of(call))
    assert (shown.attempt, shown.instead and shown.instead.plain) == (3, "Use <b>three</b>")
    (text,) = (row for row in shown.rows if row.name.plain == "text")
    told = [(each.words, each.value and each.value.plain) for each in text.meanings]
    assert ("In the declined call:", "two") in told
    assert not [words for words, _ in told if "approved" in words]
    assert "attempt" in approval_of(call).disclosure
    assert card(approval_of(ask(bob, tool))).attempt == 1


def test_after_three_suggestions_nobody_is_asked_again_and_the_model_reads_why(bob: User, tool: Tool) -> None:
    before = [Suggested({"text": "one"}, "Use two")] * submit.MOST_SUGGESTED
    call = ask(bob, tool, suggested=before)
    assert (call.status, call.reason) == (Status.REJECTED, submit.SUGGESTED_ENOUGH)
    assert ask(bob, tool, suggested=before[1:]).status == Status.WAITING

"""Second opinion, in the gate: what another model reads of a call, what of its answer counts, and what that does."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.gate import batch, card, decide, editing, second
from hitlchat.gate.attention import Looked
from hitlchat.gate.batch import Item
from hitlchat.gate.models import AuditEvent, Decision, SecondOpinion, Tool, ToolCall
from hitlchat.gate.second import Caution, NotACaution, Weighed
from hitlchat.gate.status import Status
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, ask_over_mcp, fresh, run, say_yes, status, word
from tests.gate.deciding_people import approver, rule
from tests.gate.racing import meanwhile

pytestmark = pytest.mark.django_db(transaction=True)

SENTENCE = "The amount is ten times what the request names."
CAUTION = Caution(SENTENCE)
READ = Looked(caution_read=True)


@pytest.fixture
def tool(make_tool: MakeTool) -> Tool:
    return make_tool("echo", description="Says a text.")


@pytest.fixture
def call(bob: User, tool: Tool) -> ToolCall:
    return ask(bob, tool, user_prompt="Please say hello.")


def reading(call: ToolCall, *, takes_tick: bool = True) -> second.Asked:
    asked = second.begin(call.pk, "gpt", takes_tick=takes_tick)
    assert asked is not None
    return asked


def cautioned(call: ToolCall, *, takes_tick: bool = True) -> ToolCall:
    assert second.keep(reading(call, takes_tick=takes_tick), CAUTION)
    return fresh(call)


# -- What is read ------------------------------------------------------------------------------------------------------


def test_the_model_reads_what_the_card_shows_and_nothing_that_looks_like_a_secret(bob: User, tool: Tool) -> None:
    arguments = {"text": "the password: hunter2-and-more"}
    call = ask(bob, tool, arguments, user_prompt="Log in with hunter2-and-more, please.")
    found = json.loads(reading(call).text)
    assert found.keys() == {"tool", "arguments", "where_values_come_from", "request_of_the_person"}
    assert found["tool"] == {
        "name": "echo",
        "description": "Says a text.",
        "from": approval_of(call).disclosure["tool"]["origin"],
        "risk": f"L{call.risk_level}",
    }
    assert "Log in with" in found["request_of_the_person"]
    assert "the password: " in found["arguments"]["text"]
    assert "hunter2" not in json.dumps(found["arguments"])


def test_a_question_is_read_once_each_time_it_is_asked_and_only_while_it_waits(bob: User, call: ToolCall) -> None:
    reading(call)
    assert second.begin(call.pk, "gpt", takes_tick=True) is None
    ToolCall.objects.filter(pk=call.pk).update(round=2)
    assert reading(call).round == 2
    decide.decline(approval_of(call).pk, signed_in(bob))
    assert second.begin(call.pk, "gpt", takes_tick=True) is None


def test_what_has_a_caution_is_not_read_again_so_that_none_takes_it_away(call: ToolCall) -> None:
    cautioned(call)
    ToolCall.objects.filter(pk=call.pk).update(round=2)
    assert second.begin(call.pk, "gpt", takes_tick=False) is None
    shown = card.card(approval_of(call))
    assert (shown.takes_tick, shown.caution and shown.caution.plain) == (True, SENTENCE)


# -- What counts as a caution ------------------------------------------------------------------------------------------

NO_CAUTIONS = (
    *(
        "",
        "x" * 301,
        "Two\nlines.",
        "With a \u202e turn.",
        "Hidden\u200b here.",
        "\x1b[31mRed.",
        "p\u0430yp\u0430l.com differs.",
    ),
    *(
        "Looks good to me.",
        "This call is safe.",
        "It is harmless.",
        "No concerns.",
        "There is no real reason to decline.",
    ),
    *(
        "Nothing here is suspicious.",
        "Please APPROVE this.",
        "It was \u0430pproved by the boss.",
        "Go ahead.",
        "All good",
    ),
    *(
        "hitlchat has checked the call.",
        "The amount matches the request.",
        "All is as requested.",
        "Everything is fine.",
    ),
    *("See https://evil.example/why for more.", "Verified by an administrator.", "You can proceed."),
    *("Keine Bedenken.", "Der Aufruf ist unbedenklich.", "Bitte genehmigen.", "Das ist in Ordnung.", "Alles klar."),
)
CAUTIONS = (
    *(SENTENCE, "The recipient is another one than in the request.", "It would allow anybody to read the file."),
    *("The amount is not as requested.", "Der Betrag weicht von der Nachricht ab.", "The text addresses the reader."),
    "The date no longer matches the request.",
)


@pytest.mark.guarantee("gate:only-people")
def test_no_text_that_speaks_for_a_call_or_hides_something_is_a_caution() -> None:
    for text in NO_CAUTIONS:
        with pytest.raises(NotACaution):
            Caution(text)
    for text in CAUTIONS:
        assert Caution(text).sentence == text


# -- What it does ------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:only-people", "gate:no-yes-no-run")
def test_a_caution_that_takes_a_tick_lets_no_yes_count_without_it(bob: User, call: ToolCall) -> None:
    assert say(call) is None
    cautioned(call)
    approval = approval_of(call)
    with pytest.raises(decide.CautionUnread):
        say_yes(bob, call)
    digest, edited = approval.digest, json.dumps({"text": "other"})
    shown = editing.review(approval, {"text": "other"}).digest
    with pytest.raises(decide.CautionUnread):
        editing.approve(approval.pk, signed_in(bob), digest=digest, edited=edited, shown=shown)
    assert (status(call), Decision.objects.count(), run(call)) == (Status.WAITING, 0, False)
    say_yes(bob, call, looked=READ)
    assert status(call) == Status.APPROVED


def say(call: ToolCall) -> str | None:
    found = card.card(approval_of(call)).caution
    return found.plain if found else None


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_caution_alone_is_shown_and_changes_nothing_of_a_yes(bob: User, call: ToolCall) -> None:
    cautioned(call, takes_tick=False)
    assert (say(call), card.card(approval_of(call)).alerts, status(call)) == (SENTENCE, (), Status.WAITING)
    say_yes(bob, call)
    assert status(call) == Status.APPROVED


def test_an_opinion_without_a_caution_shows_nothing_at_all(bob: User, call: ToolCall) -> None:
    before, events = card.card(approval_of(call)), AuditEvent.objects.count()
    assert second.keep(reading(call), None)
    assert card.card(approval_of(call)) == before
    assert AuditEvent.objects.count() == events
    say_yes(bob, call)


@pytest.mark.guarantee("gate:seen")
def test_the_card_of_a_cautioned_call_is_another_one_so_that_its_pause_begins_anew(call: ToolCall) -> None:
    before = card.card(approval_of(call))
    cautioned(call)
    after = card.card(approval_of(call))
    assert before.key != after.key
    assert (card.CAUTIONED in before.alerts, card.CAUTIONED in after.alerts) == (False, True)


@pytest.mark.guarantee("gate:one-outcome")
def test_a_caution_between_what_a_yes_has_read_and_its_writing_comes_first(bob: User, call: ToolCall) -> None:
    asked = reading(call)
    with meanwhile(lambda: second.keep(asked, CAUTION)), pytest.raises(decide.OtherDigest):
        say_yes(bob, call)
    assert (status(call), Decision.objects.count()) == (Status.WAITING, 0)


def test_a_yes_between_what_an_opinion_has_read_and_its_writing_stands(bob: User, call: ToolCall) -> None:
    asked = reading(call)
    with meanwhile(lambda: say_yes(bob, call)):
        assert not second.keep(asked, CAUTION)
    assert (status(call), fresh(call).caution_takes_tick) == (Status.APPROVED, None)
    assert SecondOpinion.objects.get().caution == ""


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_each_of_several_people_needs_the_tick(alice: User, bob: User, tool: Tool) -> None:
    dora, erik = approver("dora"), approver("erik")
    rule(tool, alice, quorum=2)
    call = ask(bob, tool)
    say_yes(dora, call)
    cautioned(call)
    with pytest.raises(decide.CautionUnread):
        say_yes(erik, call)
    assert status(call) == Status.WAITING
    say_yes(erik, call, looked=READ)
    assert status(call) == Status.APPROVED


def test_an_opinion_that_comes_too_late_changes_nothing(bob: User, call: ToolCall) -> None:
    asked = reading(call)
    decide.decline(approval_of(call).pk, signed_in(bob))
    assert not second.keep(asked, CAUTION)
    assert not AuditEvent.objects.filter(name=second.CAUTIONED).exists()
    assert (SecondOpinion.objects.get().caution, second.counted(timezone.now() - timedelta(days=1))) == ("", {})


@pytest.mark.guarantee("gate:only-people")
def test_a_cautioned_call_is_answered_alone_and_by_no_clients_word(bob: User, tool: Tool, call: ToolCall) -> None:
    other = ask(bob, tool, {"text": "other"})
    cautioned(call, takes_tick=False)
    rows = [approval_of(each) for each in (call, other)]
    with pytest.raises(batch.NotTogether):
        batch.answer([Item(row.pk, row.digest) for row in rows], "approve", signed_in(bob))
    assert batch.groups(rows, [card.card(row) for row in rows]) == []
    theirs = cautioned(ask_over_mcp(bob, tool))
    with pytest.raises(decide.CautionUnread):
        decide.approve(approval_of(theirs).pk, word(theirs))
    assert status(theirs) == Status.WAITING


@pytest.mark.guarantee("audit:complete")
def test_a_caution_is_on_record_with_its_model(call: ToolCall) -> None:
    cautioned(call)
    event = AuditEvent.objects.get(name=second.CAUTIONED)
    data = {"approval": str(approval_of(call).pk), "model": "gpt", "takesTick": True, "reason": SENTENCE}
    assert (event.call_id, event.actor, event.data | data) == (call.pk, None, event.data)


def test_a_call_that_nobody_reads_costs_no_query_more(bob: User, call: ToolCall) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = approval_of(call)
        card.card(found)
        decide.open_to(found.pk, signed_in(bob))
    assert not [each for each in queries.captured_queries if "secondopinion" in each["sql"]]


# -- What it was worth -------------------------------------------------------------------------------------------------


def test_it_is_counted_how_people_answered_with_a_caution_and_without(bob: User, charlie: User, tool: Tool) -> None:
    def answered(caution: Caution | None, answer: str) -> None:
        call = ask(bob, tool, {"text": f"{caution} {answer}"})
        assert second.keep(reading(call), caution)
        yes: dict[str, Any] = {"looked": READ} | ({"edited": {"text": "other"}} if answer == "edit" else {})
        if answer == "no":
            decide.decline(approval_of(call).pk, signed_in(bob))
        elif answer:
            say_yes(bob, call, **yes)

    for caution, answers in ((CAUTION, ("no", "edit", "yes", "")), (None, ("no", "yes"))):
        for answer in answers:
            answered(caution, answer)
    since = timezone.now() - timedelta(days=1)
    assert second.counted(since) == second.counted(since, bob) == {"echo": Weighed(2, 1, 1, 1)}
    assert second.counted(since, charlie) == second.counted(timezone.now()) == {}

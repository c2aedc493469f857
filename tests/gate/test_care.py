"""What a yes needs goes by the inherent risk: asking every time lowers the level that is shown, and not the care."""

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils import timezone

from hitlchat.approvals import console
from hitlchat.approvals.inbox import lines
from hitlchat.gate import batch, decide, deciders, disclosure, transition
from hitlchat.gate.actor import Actor
from hitlchat.gate.batch import Item, NotTogether
from hitlchat.gate.card import card
from hitlchat.gate.deciders import OnlySignedIn, SignInAgain
from hitlchat.gate.models import Approval, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, ask_over_mcp, recording, status, word
from tests.gate.racing import meanwhile

pytestmark = [pytest.mark.django_db, pytest.mark.guarantee("gate:only-people")]

NOTE = "If it did not always ask, it would be L{}: approving it takes the same care."


def asking(inherent: int) -> Tool:
    """Return a tool that counts as one level less, since it asks every time."""
    return recording("wipe", risk_level=inherent - 1, risk_inherent=inherent)


def html(call: ToolCall) -> str:
    return render_to_string("approvals/_card.html", {"card": card(approval_of(call)), "over": "ws"})


def test_a_yes_needs_a_fresh_sign_in(bob: User) -> None:
    call = ask(bob, asking(5))
    # By the risk as it was asked with, whatever it is now.
    for now in (5, 0):
        Tool.objects.update(risk_inherent=now)
        with pytest.raises(SignInAgain):
            decide.approve(approval_of(call).pk, Actor(bob.pk, "session"))
        with pytest.raises(OnlySignedIn):
            decide.approve(approval_of(call).pk, Actor(bob.pk, "token"))
        late = Actor(bob.pk, "session", signed_in_at=timezone.now() - timedelta(minutes=16))
        assert not transition.still(call, deciders.still(late, approval_of(call))).exists()
    assert approval_of(call).disclosure["whoDecides"]["freshSignInMinutes"] == 15
    decide.approve(approval_of(call).pk, signed_in(bob))
    assert status(call) == Status.APPROVED


@pytest.mark.django_db(transaction=True)
def test_a_yes_to_what_becomes_as_risky_meanwhile_needs_it_too(bob: User, tool: Tool) -> None:
    call = ask(bob, tool)
    with meanwhile(partial(Tool.objects.filter(pk=tool.pk).update, risk_inherent=5)), pytest.raises(SignInAgain):
        decide.approve(approval_of(call).pk, Actor(bob.pk, "session"))
    assert status(call) == Status.WAITING


def test_its_card_has_the_tick_and_says_why(bob: User) -> None:
    call = ask(bob, asking(5))
    shown = html(call)
    assert "I reviewed the tool and every argument above." in shown
    assert ' data-level="5" aria-labelledby' in shown
    assert card(approval_of(call)).risk == 4
    assert NOTE.format(5) in shown
    at_the_console = console.facts(card(approval_of(call)), approval_of(call), full=False)
    assert NOTE.format(5) in {each.text.plain for each in at_the_console}


def test_what_is_folded_must_be_opened_from_l4_up(bob: User) -> None:
    shown = card(approval_of(ask(bob, asking(4), {"text": "x" * 5000})))
    assert (shown.risk, shown.dangerous, console.must_unfold(shown)) == (3, True, True)
    mild = card(approval_of(ask(bob, recording(risk_level=3))))
    assert (mild.dangerous, mild.care_note) == (False, "")


def test_its_calls_are_answered_one_by_one(bob: User) -> None:
    tool = asking(4)
    rows = [approval_of(ask(bob, tool)) for _ in range(2)]
    assert batch.groups(rows, map(card, rows)) == []
    listed = lines.of(bob.pk).lines
    assert [(each.risk, bool(each.alone)) for each in listed] == [(3, True)] * 2
    with pytest.raises(NotTogether, match="one by one"):
        batch.answer([Item(row.pk, row.digest) for row in rows], "approve", signed_in(bob))


def test_the_word_of_a_client_is_not_enough_where_it_would_not_be_without_asking(bob: User, tool: Tool) -> None:
    asked = ask_over_mcp(bob, asking(2))
    became = ask_over_mcp(bob, recording("became", risk_level=1))
    Tool.objects.filter(name="became").update(risk_inherent=2)
    for call in (asked, became):
        with pytest.raises(decide.NoSuchApproval):
            decide.approve(approval_of(call).pk, word(call))
    Tool.objects.update(risk_inherent=0)
    with pytest.raises(decide.NoSuchApproval):
        decide.approve(approval_of(asked).pk, word(asked))
    decide.approve(approval_of(became).pk, word(became))


def test_a_question_from_before_goes_by_the_risk_that_it_shows(bob: User) -> None:
    call = ask(bob, recording(risk_level=4))
    found = approval_of(call)
    del found.disclosure["inherentRisk"]
    Approval.objects.filter(pk=found.pk).update(disclosure=found.disclosure, digest=disclosure.digest(found.disclosure))
    shown = card(approval_of(call))
    assert (shown.risk, shown.care) == (4, 4)
    decide.approve(found.pk, Actor(bob.pk, "session"))
    assert status(call) == Status.APPROVED

"""After quick yeses the next card that calls for care asks for one value, and a page's yes without it is none."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.gate import batch, decide, pace
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import Looked
from hitlchat.gate.batch import Item, NotTogether
from hitlchat.gate.card import Card, card
from hitlchat.gate.models import Decision, ToolCall, Verdict
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, ask_over_mcp, recording, say_yes, status, word

pytestmark = [pytest.mark.django_db, pytest.mark.guarantee("SR-39")]

LOOK_ALIKE = {"text": "p\u0430ypal"}
# From a page, on which nothing was typed.
NOTHING_TYPED = Looked(typed="")


def answered(bob: User, *hurried: bool, ago: float = 1.0, verdict: Verdict = Verdict.APPROVE) -> None:
    """bob's answers, the last one so many minutes ago."""
    for place, was in enumerate(reversed(hurried)):
        approval = approval_of(ask(bob, recording(f"before-{Decision.objects.count()}")))
        at = timezone.now() - timedelta(minutes=ago, seconds=place)
        Decision.objects.create(approval=approval, person=bob, verdict=verdict, hurried=was, decided_at=at)


def drawn(bob: User, call: ToolCall) -> Card:
    return card(approval_of(call), signed_in(bob))


def risky(bob: User, arguments: Any = None, level: int = 3) -> ToolCall:
    return ask(bob, recording(f"pay-{ToolCall.objects.count()}", risk_level=level), arguments)


@pytest.mark.servers("the SQL differs between the databases")
def test_the_next_card_asks_after_three_quick_yeses_in_a_row(bob: User, alice: User) -> None:
    call = risky(bob)
    answered(bob, True, True)
    assert drawn(bob, call).matter is None
    answered(bob, True, ago=0.5)
    assert drawn(bob, call).matter is not None
    assert not pace.is_quick(signed_in(alice))
    assert card(approval_of(call)).matter is None
    # It is another card on the page than before.
    assert drawn(bob, call).key != card(approval_of(call)).key


@pytest.mark.servers("the SQL differs between the databases")
@pytest.mark.parametrize(
    "last, verdict", [(False, Verdict.APPROVE), (False, Verdict.DECLINE)], ids=["a slow yes", "a no"]
)
def test_an_answer_that_is_no_quick_yes_lets_it_begin_anew(bob: User, last: bool, verdict: Verdict) -> None:
    answered(bob, True, True, True, ago=2)
    assert pace.is_quick(signed_in(bob))
    answered(bob, last, verdict=verdict)
    assert not pace.is_quick(signed_in(bob))
    answered(bob, True, True, ago=0.5)
    assert not pace.is_quick(signed_in(bob))


def test_what_was_quick_half_an_hour_ago_says_nothing_of_now(bob: User) -> None:
    answered(bob, True, True, True, ago=31)
    assert not pace.is_quick(signed_in(bob))


def test_however_long_the_history_is_no_more_of_it_is_read_than_is_late(bob: User) -> None:
    with CaptureQueriesContext(connection) as sent:
        assert not pace.is_quick(signed_in(bob))
    if connection.vendor == "sqlite":
        # PostgreSQL reads small tables whole.
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + sent.captured_queries[-1]["sql"])
            (step,) = (row[-1] for row in cursor.fetchall())
            assert step.endswith("USING COVERING INDEX decision_by_time (decided_at>?)")


def test_administrators_set_how_many_or_switch_it_off(bob: User, settings: LazySettings) -> None:
    answered(bob, True, True, True)
    settings.HITL_QUICK_YESES = 4
    assert not pace.is_quick(signed_in(bob))
    settings.HITL_QUICK_YESES = 1
    assert pace.is_quick(signed_in(bob))
    settings.HITL_QUICK_YESES = 0
    with CaptureQueriesContext(connection) as queries:
        assert not pace.is_quick(signed_in(bob))
    assert len(queries) == 0


def test_below_l3_only_a_warning_has_a_card_ask_and_without_one_nothing_is_looked_up(bob: User) -> None:
    answered(bob, True, True, True)
    plain, warned = (approval_of(risky(bob, arguments, 2)) for arguments in (None, LOOK_ALIKE))
    with CaptureQueriesContext(connection) as queries:
        assert card(plain, signed_in(bob)).matter is None
    assert not [each for each in queries if "decision" in each["sql"]]
    with CaptureQueriesContext(connection) as queries:
        assert card(warned, signed_in(bob)).matter is not None
    assert len([each for each in queries if "decision" in each["sql"]]) == 1
    decide.approve(plain.pk, signed_in(bob), looked=NOTHING_TYPED)
    assert status(plain.call) == Status.APPROVED


@pytest.mark.parametrize("typed", ["", "  ", "hell", "Hello", "hello hello"])
def test_a_yes_of_a_page_without_the_very_value_decides_nothing(bob: User, typed: str) -> None:
    answered(bob, True, True, True)
    call = risky(bob)
    with pytest.raises(decide.OtherValue):
        say_yes(bob, call, looked=Looked(typed=typed))
    with pytest.raises(decide.OtherValue):
        say_yes(bob, call, edited={"text": "other", "amount": 1}, looked=Looked(typed=typed))
    assert status(call) == Status.WAITING
    say_yes(bob, call, looked=Looked(typed=" hello\n"))
    assert status(call) == Status.APPROVED


def test_it_is_the_pace_when_the_yes_is_given_that_counts(bob: User) -> None:
    call = risky(bob)
    assert drawn(bob, call).matter is None
    answered(bob, True, True, True)
    with pytest.raises(decide.OtherValue):
        say_yes(bob, call, looked=NOTHING_TYPED)
    answered(bob, False, ago=0.5)
    say_yes(bob, call, looked=NOTHING_TYPED)
    assert status(call) == Status.APPROVED


def test_a_no_and_answers_that_come_from_no_page_need_no_value(bob: User) -> None:
    answered(bob, True, True, True)
    declined, over_rest = risky(bob), risky(bob)
    decide.decline(approval_of(declined).pk, signed_in(bob), looked=NOTHING_TYPED)
    answered(bob, True, True, True, ago=0.5)
    decide.approve(approval_of(over_rest).pk, Actor(bob.pk, "token"))
    over_mcp = ask_over_mcp(bob, recording("look", risk_level=1))
    decide.approve(approval_of(over_mcp).pk, word(over_mcp))
    assert [status(each) for each in (declined, over_rest, over_mcp)] == ["declined", "approved", "approved"]


def test_such_calls_are_not_answered_together(bob: User) -> None:
    tool = recording("pay", risk_level=3)
    rows = [approval_of(ask(bob, tool, {"text": text})) for text in ("one", "two")]
    answered(bob, True, True, True)
    assert batch.groups(rows, [card(row, signed_in(bob)) for row in rows]) == []
    items = [Item(row.pk, row.digest) for row in rows]
    with pytest.raises(NotTogether, match="individually"):
        batch.answer(items, "approve", signed_in(bob), on_page=True)
    outcomes = batch.answer(items, "decline", signed_in(bob), on_page=True)
    assert all(each.counted for each in outcomes)


@pytest.mark.parametrize(
    "arguments, name, text",
    [
        ({"note": "x", "force": True, "url": "https://a.example", "amount": 12, "to": "ann@b.example"}, "to", None),
        ({"note": "x", "force": True, "url": "https://a.example", "amount": 12.5}, "amount", "12.5"),
        ({"note": "x", "force": True, "url": "https://a.example"}, "url", None),
        ({"note": "x", "force": True}, "force", "true"),
        ({"note": " x ", "more": {"a": 1}}, "note", "x"),
        ({"to": "y" * 41, "note": "x"}, "note", None),
        ({"to": ["ann", "eve"], "note": "one\ntwo"}, None, "pay"),
        # Nobody can type what looks like something else.
        ({"to": "p\u0430ypal", "note": ""}, None, "pay"),
        ({}, None, "pay"),
    ],
)
def test_it_asks_for_the_value_that_matters_most_among_those_that_can_be_typed(
    arguments: dict[str, Any], name: str | None, text: str | None
) -> None:
    found = pace.matter({"arguments": arguments, "tool": {"name": "pay"}})
    assert (found.name and found.name.plain) == name
    assert found.text == (text or str(arguments[name or ""]))
    assert found.is_flag == (name == "force")


def test_a_default_that_nobody_gave_is_not_asked_for(bob: User) -> None:
    found = pace.matter({"arguments": {"amount": 1, "text": "x"}, "notGiven": ["amount"], "tool": {"name": "pay"}})
    assert found.text == "x"


@pytest.mark.parametrize("origin, ticks", [("outside", 1), ("tool", 0)])
def test_a_value_from_outside_is_a_warning_to_be_ticked_at_any_level(bob: User, origin: str, ticks: int) -> None:
    approval = approval_of(risky(bob, level=1))
    told = [{"path": "/text", "from": origin, "source": {"call": str(approval.call_id), "tool": "fetch"}}]
    approval.disclosure["provenance"] = told
    html = render_to_string("approvals/_card.html", {"card": card(approval), "over": "ws"})
    assert html.count("I read the warning above.") == ticks
    assert html.count("A value comes from outside.") == ticks

"""Defaults, currencies, the last approved call and the last ones of the tool: in the disclosure, and on the card."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.gate import attention, card, disclosure, question
from hitlchat.gate.disclosure import Past
from hitlchat.gate.models import Tool, ToolCall, new_id
from hitlchat.gate.status import SETTLED, Status
from tests.gate.asking import approval_of, approved, ask, recording, run
from tests.tables import each_row

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "amount": {"type": "number", "default": 1, "description": "What is paid, in EUR."},
        "purge": {"type": "boolean", "default": False},
    },
}


@pytest.fixture
def pay(db: None) -> Tool:
    return recording("pay", input_schema=SCHEMA)


def lines(call: ToolCall) -> dict[str, list[str]]:
    """Return what the card says of each argument beside its value."""
    shown = card.card(approval_of(call))
    rows = ((row.name.plain, row.meanings) for row in shown.rows)
    return {
        name: [f"{line.words} {line.value.plain}" if line.value else line.words for line in meanings]
        for name, meanings in rows
    }


DEFAULT = "The default: the call does not give this value."
EUR = "By the tool's schema, an amount of 1 EUR"


@pytest.mark.guarantee("SR-7")
def test_a_value_that_the_call_does_not_give_is_marked(bob: User, pay: Tool) -> None:
    asked = {"text": [], "amount": [EUR, DEFAULT], "purge": [DEFAULT]}
    assert lines(ask(bob, pay, {"text": "a"})) == lines(ask(bob, pay, '{"text": "a"}')) == asked
    assert lines(ask(bob, pay, {"text": "a", "amount": 1, "purge": False})) == {
        "text": [],
        "amount": [EUR],
        "purge": [],
    }


def test_a_default_that_a_person_has_changed_since_is_given() -> None:
    before = {"arguments": {"a": 1, "b": 1, "c": 1}, "notGiven": ["a", "b", "c"]}
    assert disclosure.still_not_given(before, {"a": 1, "b": 1.5}) == ["a"]
    assert disclosure.still_not_given({"arguments": {"a": 1}}, {"a": 1}) == []


def test_the_card_says_what_is_otherwise_than_in_the_last_approved_call(bob: User, charlie: User, pay: Tool) -> None:
    run(approved(bob, pay, {"text": "old " * 40, "note": "x" * 90}))
    run(approved(bob, pay, {"text": "old " * 40, "note": "x" * 90, "amount": 2}))
    # Neither declined nor another person's.
    ask(bob, pay, {"text": "waits"})
    run(approved(charlie, pay, {"text": "another's"}))
    call = ask(bob, pay, {"text": "new", "extra": "https://a.example", "amount": 1})
    last = "In the last approved call:"
    assert lines(call) == {
        "text": [f"{last} {'old ' * 20}"],
        "amount": [EUR, f"{last} 2"],
        "purge": [DEFAULT],
        "extra": ["Goes to host a.example", "Not in the last approved call."],
    }
    shown = card.card(approval_of(call))
    (gone,) = shown.missing
    assert (gone.name.plain, gone.value.plain) == ("note", "x" * 80)
    html = render_to_string("approvals/_card.html", {"card": shown, "over": "ws"})
    assert "Only in the last approved call, not in this one:" in html
    assert "Only its beginning. It goes on for about 10 more characters." in html


def test_nothing_is_said_of_a_first_call_or_of_one_like_the_last(bob: User, pay: Tool) -> None:
    arguments = {"text": "a", "amount": 2, "purge": True}
    first = approved(bob, pay, arguments)
    assert "lastTime" not in approval_of(first).disclosure
    run(first)
    second = approval_of(ask(bob, pay, arguments | {"amount": 2.0})).disclosure
    assert "lastTime" not in second
    assert "ranBefore" in second


def test_a_disclosure_of_before_reads_as_ever(bob: User, pay: Tool) -> None:
    approval = approval_of(ask(bob, pay, {"text": "a"}))
    for part in ("notGiven", "notDefault", "currencies", "lastTime"):
        approval.disclosure.pop(part, None)
    assert [row.meanings for row in card.card(approval).rows] == [(), (), ()]


def test_of_very_much_that_differs_some_is_named_and_the_rest_counted() -> None:
    found = disclosure.last_time({f"a{n}": n for n in range(120)}, {f"a{n}": -n - 1 for n in range(60, 180)})
    assert {name: len(part) if name != "more" else part for name, part in found.items()} == {
        "changed": 50, "added": 50, "missing": 50, "more": 30
    }  # fmt: skip


@each_row(
    "part, arguments, code",
    [
        ({"x-currency": "GBP"}, {"a": 1}, "GBP"),
        ({"x-currency": "money"}, {"a": 1, "money": "CHF"}, "CHF"),
        ({"x-currency": "money"}, {"a": 1, "money": "</b>"}, ""),
        ({"x-currency": "money"}, {"a": 1}, ""),
        ({"description": "In EUR, or in USD abroad"}, {"a": 1}, ""),
        ({"description": "In EUR, without tax"}, {"a": 1}, "EUR"),
        ({"title": "Neuro EURO"}, {"a": 1}, ""),
        ({"description": "In EUR"}, {"a": "1"}, ""),
        ({"description": "In EUR"}, {"a": True}, ""),
        ({}, {}, ""),
    ],
)
def test_the_currency_is_what_the_schema_says(part: dict[str, Any], arguments: dict[str, Any], code: str) -> None:
    assert disclosure.currencies({"properties": {"a": part}}, arguments).get("a", "") == code


def test_the_name_of_an_argument_may_have_its_currency() -> None:
    assert disclosure.currencies({"properties": {"price_usd": {}}}, {"price_usd": 5}) == {"price_usd": "USD"}


@pytest.mark.guarantee("SR-5")
def test_of_many_arguments_those_that_matter_are_in_sight_and_no_flag_folds(bob: User) -> None:
    plain = {f"n{number:02}": {"type": "string", "default": "same"} for number in range(40)}
    flags = {f"f{number:02}": {"type": "boolean"} for number in range(25)}
    more = {"then": {"type": "string"}, "purge": {"type": "boolean"}, "price": {"type": "number"}}
    tool = recording("many", input_schema={"type": "object", "properties": {**plain, **flags, **more}})
    given = dict.fromkeys(flags, False) | {"n39": "other", "then": "delete", "purge": True, "price": 5}
    approval = approval_of(ask(bob, tool, given))
    shown = card.card(approval)
    names = [row.name.plain for row in shown.rows]
    assert names[:3] == ["then", "purge", "price"]
    assert set(names) >= {*flags, "n39"}
    assert len(names) + len(shown.more_rows) == 68
    assert shown.hidden == sum(len("same") for _ in shown.more_rows)
    assert names == card.in_order(approval.disclosure)[0]
    # Reading takes the time of what is in sight, whatever came first.
    few = {**approval.disclosure, "arguments": {name: approval.disclosure["arguments"][name] for name in names}}
    assert attention.seconds_to_read(approval.disclosure) == attention.seconds_to_read(few)


def test_few_arguments_keep_the_order_of_the_schema_or_of_x_order(bob: User) -> None:
    parts: dict[str, Any] = {"note": {}, "last": {"x-order": 2}, "purge": {}, "first": {"x-order": 1}}
    tool = recording("few", input_schema={"type": "object", "properties": parts})
    found = card.card(approval_of(ask(bob, tool, dict.fromkeys(parts, "a") | {"purge": True})))
    assert [row.name.plain for row in found.rows] == ["first", "last", "note", "purge"]


NOW = datetime(2026, 7, 1, tzinfo=UTC)


def past(statuses: str, definition: str = "now", kind: str = "chat", *, days: int = 1) -> list[Past]:
    return [Past(each, definition, kind, NOW - timedelta(days=days)) for each in statuses.split()]


@each_row(
    "calls, expected",
    [
        ([], (disclosure.NEVER_RAN, False)),
        (past("waiting approved allowed"), (disclosure.NEVER_RAN, False)),
        (past("succeeded failed", kind="studio"), (disclosure.ONLY_TESTED, False)),
        (past("waiting declined", kind="studio"), (disclosure.NEVER_RAN, False)),
        (past("declined", "before"), (disclosure.NEVER_RAN, False)),
        (past("declined succeeded", "before"), (disclosure.CHANGED, False)),
        (past("succeeded", "before") + past("failed"), ("Its last call: failed.", True)),
        (past("executing"), ("", False)),
        (past("succeeded", days=91), ("", False)),
        (past("succeeded"), ("Its last call: succeeded.", False)),
        (past("unknown"), ("Its last call: outcome unknown.", True)),
        (past("succeeded " * 30), ("Its last 20 calls succeeded.", False)),
        (past("succeeded " * 20 + "failed"), ("Its last 20 calls succeeded.", False)),
        (past("declined failed succeeded succeeded"), ("Its last 4 calls: 2 succeeded, 1 failed, 1 declined.", False)),
        (past("declined failed unknown succeeded succeeded")[:4],
         ("Its last 4 calls: 1 succeeded, 1 failed, 1 with an unknown outcome, 1 declined.", True)),
        (past("expired refused rejected withdrawn"),
         ("Its last 4 calls: 1 expired, 1 withdrawn, 1 refused, 1 rejected.", False)),
        (past("succeeded waiting executing succeeded"), ("Its last 2 calls succeeded.", False)),
    ],
)  # fmt: skip
def test_what_became_of_the_last_calls_is_told(calls: list[Past], expected: tuple[str, bool]) -> None:
    assert disclosure.last_calls(calls, "now", NOW - timedelta(days=90), are_all=True) == expected


def test_that_it_never_ran_is_said_only_where_all_calls_are_known() -> None:
    tests = past("succeeded " * 100, kind="studio")
    assert disclosure.last_calls(tests, "now", NOW, are_all=False) == ("", False)


@each_row("status", sorted(SETTLED))
def test_every_call_that_is_over_is_counted(status: Status) -> None:
    words, _ = disclosure.last_calls(
        past(f"{status} {status} succeeded"), "now", NOW - timedelta(days=90), are_all=True
    )
    assert words.startswith("Its last 3 calls")


def facts(call: ToolCall) -> list[str]:
    said: list[str] = approval_of(call).disclosure["facts"]
    return said


def test_the_card_counts_the_calls_of_all_callers_and_shows_first_that_most_went_wrong(
    alice: User, bob: User, charlie: User
) -> None:
    tool = recording(facts=["Reaches the network.", "Keeps data.", "Deletes data."])
    assert facts(ask(bob, tool))[-1] == "It has never run here."
    for user, became in [(alice, "failed"), (charlie, "declined"), (bob, "succeeded")]:
        kept(tool, user, became)
    asked = ask(bob, tool)
    assert facts(asked) == ["Its last 3 calls: 1 succeeded, 1 failed, 1 declined.", *tool.facts]
    assert "Its last 3 calls: 1 succeeded, 1 failed, 1 declined." in [
        fact.plain for fact in card.card(approval_of(asked)).facts
    ]
    kept(tool, charlie, "succeeded", "succeeded", kind="api")
    assert facts(ask(bob, tool)) == [*tool.facts, "Its last 5 calls: 3 succeeded, 1 failed, 1 declined."]
    # Another tool, and tests in the Studio.
    kept(recording("other"), alice, "failed")
    kept(tool, alice, *["failed"] * 9, kind="studio")
    assert facts(ask(bob, tool))[-1] == "Its last 5 calls: 3 succeeded, 1 failed, 1 declined."


def test_what_was_told_of_the_last_calls_stays_as_it_was_and_is_bound_by_the_digest(bob: User, tool: Tool) -> None:
    call = ask(bob, tool)
    kept(tool, bob, "failed")
    approval = approval_of(call)
    assert facts(call) == ["It has never run here."]
    assert approval.digest == disclosure.digest(approval.disclosure)
    assert approval.digest != disclosure.digest(approval.disclosure | {"facts": []})


def test_identical_calls_are_joined_whatever_ended_in_between(bob: User, tool: Tool) -> None:
    here = new_id()
    first = ask(bob, tool, conversation_id=here)
    kept(tool, bob, "failed")
    second = ask(bob, tool, conversation_id=here)
    assert facts(first) != facts(second)
    assert approval_of(first).same == approval_of(second).same != ""


def test_nothing_is_said_of_the_last_questions_to_a_person(bob: User) -> None:
    tool = recording("asking", source=question.SOURCE, input_schema=question.INPUT_SCHEMA)
    kept(tool, bob, "failed")
    assert disclosure._facts(tool) == []


def test_of_however_many_calls_a_bounded_number_is_read(bob: User, tool: Tool) -> None:
    kept(tool, bob, *["rejected"] * (disclosure.READ + 1))
    with CaptureQueriesContext(connection) as sent:
        found = list(disclosure._last(tool.name))
    assert len(found) == disclosure.READ
    if connection.vendor == "sqlite":
        # PostgreSQL reads small tables whole.
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + sent.captured_queries[-1]["sql"])
            assert [row[-1] for row in cursor.fetchall()] == [
                "SEARCH gate_toolcall USING INDEX call_by_tool (tool_name=?)"
            ]


def kept(tool: Tool, user: User, *statuses: str, kind: str = "chat") -> None:
    """Put calls on record that ended so."""
    columns = {"tool_name": tool.name, "definition_hash": tool.definition_hash, "caller": user, "caller_kind": kind}
    at = timezone.now()
    ToolCall.objects.bulk_create(ToolCall(status=each, settled_at=at, **columns) for each in statuses)

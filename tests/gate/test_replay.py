"""Recorded calls under a draft of rules: what would have become of them. Nothing is changed by looking."""

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate import decide, replay, ruling
from hitlchat.gate.draft import BadDraft, Draft, read
from hitlchat.gate.models import AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.replay import Replayed, TooSlow
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, recording, run, say_yes
from tests.gate.own_policies import HERE
from tests.gate.policy_rules import ALL, ALLOWS, AMOUNT, ASKS, REFUSES
from tests.tables import each_row

pytestmark = pytest.mark.django_db

BIG = 'args["amount"] > 100'


@pytest.fixture
def history(bob: User) -> dict[str, ToolCall]:
    """What bob's assistant asked for while `refund` asked every time: three of the four were answered."""
    tool, other = recording(), recording("look", mode="DISABLED")
    found = {name: ask(bob, tool, {"text": name, "amount": amount}) for name, amount in AMOUNTS.items()}
    for name in ("declined small", "declined big"):
        decide.decline(approval_of(found[name]).pk, signed_in(bob))
    say_yes(bob, found["approved small"])
    found["unasked"] = ask(bob, other)
    return found


AMOUNTS = {"declined small": 5, "declined big": 500, "approved small": 100, "waiting big": 101}


def replayed(*, days: int = 30, **draft: Any) -> Replayed:
    return replay.replay(read(draft), days)


def mode(hitl_mode: str, condition: str = "", name: str = "refund") -> dict[str, Any]:
    return {"tools": {name: {"hitlMode": hitl_mode, "condition": condition}}}


def test_a_made_history_under_a_condition_is_what_is_known_of_it(history: dict[str, ToolCall]) -> None:
    found = replayed(**mode("CONDITIONAL", BIG))
    assert (found.calls, found.asked, found.refused, found.allowed) == (5, 2, 0, 3)
    assert found.would_have_run_though_declined == [history["declined small"].pk]
    assert found.declined_that_would_have_run == 1
    assert (found.asked_before, found.questions_saved, found.questions_added) == (4, 2, 0)
    assert (found.errors, found.gone, found.left_out) == (0, 0, 0)


def test_without_a_draft_the_present_rules_say_what_they_said(history: dict[str, ToolCall]) -> None:
    found = replayed()
    assert (found.calls, found.asked, found.allowed, found.would_have_run_though_declined) == (5, 4, 1, [])
    assert (found.questions_saved, found.questions_added) == (0, 0)


def test_a_stricter_draft_adds_questions_and_refuses(history: dict[str, ToolCall]) -> None:
    assert replayed(**mode("REQUIRED", name="look")).questions_added == 1
    found = replayed(policies=[REFUSES])
    assert (found.refused, found.asked, found.allowed, found.questions_saved) == (5, 0, 0, 4)
    # They would not have run either.
    assert found.would_have_run_though_declined == []


def test_nothing_is_changed_by_a_replay(history: dict[str, ToolCall]) -> None:
    before = [list(model.objects.order_by("pk").values()) for model in (Tool, ToolCall, AuditEvent, Decision)]
    replayed(**mode("DISABLED"), policies=[ALLOWS])
    assert [list(model.objects.order_by("pk").values()) for model in (Tool, ToolCall, AuditEvent, Decision)] == before


def test_policies_of_a_draft_stand_in_place_of_those_in_force(history: dict[str, ToolCall], settings: Settings) -> None:
    settings.HITL_POLICIES = [REFUSES]
    assert replayed().refused == 5
    found = replayed(**mode("CONDITIONAL"), policies=[AMOUNT | {"limit": 100}])
    assert (found.refused, found.asked, found.allowed) == (0, 2, 3)
    assert replayed(policies=[]).refused == 0


def test_only_the_time_that_people_really_took_counts_as_saved(history: dict[str, ToolCall]) -> None:
    now = timezone.now()
    took = {"declined small": 30, "declined big": 60, "approved small": 4000}
    for name, seconds in took.items():
        answers = Decision.objects.filter(approval__call=history[name])
        answers.update(first_shown_at=now - timedelta(seconds=seconds), decided_at=now)
    # Whoever took an hour did something else in between; the one that is still asked about saves nothing.
    assert replayed(**mode("CONDITIONAL", BIG)).seconds_saved == 30 + 120


def test_a_call_is_judged_as_it_was_asked_before_somebody_edited_it(bob: User) -> None:
    call = ask(bob, recording(), {"text": "a", "amount": 500})
    say_yes(bob, call, edited={"text": "a", "amount": 5})
    assert ToolCall.objects.get(pk=call.pk).arguments["amount"] == 5
    assert replayed(**mode("CONDITIONAL", BIG)).asked == 1


def test_who_called_counts_and_by_what_way(bob: User, charlie: User, finance: Group) -> None:
    tool = recording()
    bob.groups.add(finance)
    ask(bob, tool)
    ask(charlie, tool)
    ask(bob, tool, kind="api")
    assert replayed(**mode("CONDITIONAL", '"finance" in caller["groups"]')).asked == 2
    assert replayed(**mode("CONDITIONAL", 'caller["kind"] == "api"')).asked == 1
    assert replayed(**mode("CONDITIONAL", 'caller["user"] == "charlie"')).asked == 1
    members = {"policy": "user_group", **ALL, "groups": ["finance"], "people": "members", "verdict": "refuse"}
    assert replayed(policies=[members]).refused == 2
    assert replayed(policies=[members | {"groups": ["gone"]}]).errors == 3


def test_a_strict_conversation_asks_under_any_draft(history: dict[str, ToolCall], bob: User) -> None:
    conversation = history["declined small"].conversation_id
    assert conversation
    ruling.change_strictness(conversation, "every", signed_in(bob))
    found = replayed(**mode("DISABLED"))
    assert (found.asked, found.allowed, found.would_have_run_though_declined) == (1, 4, [history["declined big"].pk])


@pytest.mark.servers("the SQL differs between the databases")
def test_a_yes_counts_for_later_calls_and_not_for_the_one_it_was_given_to(bob: User) -> None:
    tool = recording()
    for _ in range(3):
        call = approved(bob, tool, {"text": "a"})
        assert run(call)
    found = replayed(**mode("CONDITIONAL"), policies=[{"policy": "ask_once", **ALL}])
    assert (found.asked, found.allowed) == (1, 2)


BROKEN = {
    "raises": 'args["nobody"] > 1',
    "divides by zero": "1 / 0",
    "neither": "1",
    "for some": '1 / (args["amount"] - 5) > 100',
}


@pytest.mark.guarantee("gate:fail-closed")
@each_row("condition", BROKEN.values(), BROKEN)
def test_a_condition_without_an_answer_asks_and_is_counted(history: dict[str, ToolCall], condition: str) -> None:
    found = replayed(**mode("CONDITIONAL", condition))
    assert found.errors == (1 if "amount" in condition else 4)
    assert found.asked == found.errors
    assert found.would_have_run_though_declined == ([history["declined big"].pk] if "amount" in condition else [])
    assert found.error.startswith("Asked because this tool's condition ")
    assert found.raised == (0 if condition == "1" else found.errors)


def test_a_condition_that_never_ends_is_asked_about(bob: User, settings: Settings) -> None:
    settings.TOOL_CPU_SECONDS = 0.2
    ask(bob, recording())
    found = replayed(**mode("CONDITIONAL", "[x for x in range(10**12)] == []"))
    assert (found.asked, found.errors, found.raised) == (1, 1, 0)


@each_row(
    "first,then,failing,asking,free",
    [
        ('not isinstance(args.get("amount"), (int, float))', BIG, [None, "101"], [101, 100.5], [5, 5.5]),
        (
            'not isinstance(args.get("amount"), str)',
            'float(args["amount"]) > 100',
            [None],
            ["101", "100.5", 101],
            ["5", "5.5"],
        ),
    ],
    ["a number", "a decimal, which is a text"],
)
def test_a_condition_that_checks_a_value_first_asks_only_where_it_has_to(
    first: str, then: str, failing: list[Any], asking: list[Any], free: list[Any], bob: User
) -> None:
    """With the checks that the lab and docs/policies.md advise."""
    tool = recording("free", input_schema={"type": "object"})
    for arguments in ({}, *({"amount": value} for value in (*failing, *asking, *free))):
        ask(bob, tool, arguments)
    asked = 1 + len(failing) + len(asking)
    found = replayed(**mode("CONDITIONAL", then, name="free"))
    assert (found.asked, found.allowed, found.raised) == (asked, len(free), 1 + len(failing))
    found = replayed(**mode("CONDITIONAL", f"{first} or {then}", name="free"))
    assert (found.asked, found.allowed, found.raised) == (asked, len(free), 0)


def test_a_condition_that_never_ends_is_given_up_after_some_calls(bob: User, settings: Settings) -> None:
    tool = recording(mode="DISABLED")
    for _ in range(replay.MOST_SLOW):
        ask(bob, tool)
    settings.TOOL_CPU_SECONDS = 0.1
    with pytest.raises(TooSlow, match="refund"):
        replayed(**mode("CONDITIONAL", "[x for x in range(10**12)] == []"))


def test_one_call_that_is_too_much_for_a_condition_harms_no_other(bob: User, settings: Settings) -> None:
    settings.TOOL_CPU_SECONDS = 0.3
    tool = recording(mode="DISABLED")
    for amount in (1, 10**9):
        ask(bob, tool, {"text": "a", "amount": amount})
    found = replayed(**mode("CONDITIONAL", 'sum(range(args["amount"])) == 1'))
    assert (found.allowed, found.asked, found.errors) == (1, 1, 1)


def test_what_cannot_be_judged_is_left_out_and_counted(bob: User) -> None:
    gone, tool = recording("gone"), recording()
    ask(bob, gone)
    old = ask(bob, tool)
    ToolCall.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=31))
    assert ask(bob, tool, {"amount": "no number"}).status == Status.REJECTED
    ask(bob, tool)
    Tool.objects.filter(pk=gone.pk).delete()
    assert (replayed().calls, replayed().gone, replayed(days=32).calls) == (1, 1, 2)


@pytest.mark.servers("the SQL differs between the databases")
def test_calls_are_read_in_parts_each_once(bob: User) -> None:
    tool, now = recording(mode="DISABLED"), timezone.now()
    most = 2 * replay.AT_A_TIME + 1
    # Of two moments: within each, their ids tell which are older.
    ToolCall.objects.bulk_create(
        ToolCall(tool=tool, tool_name=tool.name, status=Status.SUCCEEDED, caller_kind="chat", caller=bob, created_at=at)
        for at in (now, now - timedelta(days=1))
        for _ in range(replay.AT_A_TIME + 3)
    )
    with CaptureQueriesContext(connection) as queries:
        assert replayed().calls == most + 5
    parts = [each["sql"] for each in queries if "ORDER BY" in each["sql"] and "LIMIT" in each["sql"]]
    # All but the first: one that said more than the one before would take longer, and so on for every part.
    assert len({each.count(" AND ") for each in parts[1:]}) == 1
    found = replay.replay(Draft(), most=most)
    assert (found.calls, found.left_out) == (most, 5)
    found = replay.replay(Draft(), seconds=-1)
    assert (found.calls, found.left_out) == (0, most + 5)


def words(*arguments: str) -> str:
    out = StringIO()
    call_command("policy", "replay", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_says_it_in_lines_and_as_json(history: dict[str, ToolCall], tmp_path: Path) -> None:
    draft = tmp_path / "draft.json"
    draft.write_text(json.dumps(mode("CONDITIONAL", BIG)), encoding="utf-8")
    found = json.loads(words("--draft", str(draft), "--json"))
    wanted = {"calls": 5, "asked": 2, "refused": 0, "allowed": 3, "askedBefore": 4, "questionsSaved": 2, "errors": 0}
    assert found == found | wanted
    assert found["wouldHaveRunThoughDeclined"] == [str(history["declined small"].pk)]
    said = words("--draft", str(draft), "--days", "7")
    assert "5 calls of 7 days: 3 run, 2 ask, 0 refused" in said
    assert f"1 were declined, and would have run:\n  {history['declined small'].pk}" in said
    assert "2 of 4 questions saved" in said
    assert "1 run, 4 ask" in words()


def test_the_command_says_what_is_wrong_with_a_draft(tmp_path: Path) -> None:
    draft = tmp_path / "draft.json"
    for text, expected in [('{"tools": 1}', "tools: "), ("{", "cannot be read as JSON"), ('{"days": 1}', "days: ")]:
        draft.write_text(text, encoding="utf-8")
        with pytest.raises(CommandError, match=expected):
            words("--draft", str(draft))
    with pytest.raises(CommandError, match="cannot be read"):
        words("--draft", str(tmp_path / "none.json"))
    with pytest.raises(CommandError, match="from 1 to"):
        words("--days", "0")


BAD = {
    "draft": [],
    "rules": {"rules": []},
    "tools.nobody": mode("DISABLED", name="nobody"),
    "tools.refund.hitlMode": mode("SOMETIMES"),
    "tools.refund.condition": mode("CONDITIONAL", "amount >"),
    "tools.refund.mode": {"tools": {"refund": {"mode": "DISABLED"}}},
    "policies": {"policies": [{"policy": "no_such"}]},
}


@each_row("field, draft", BAD.items(), BAD)
def test_a_bad_draft_is_refused_with_the_field(field: str, draft: Any, bob: User) -> None:
    recording()
    with pytest.raises(BadDraft) as caught:
        read(draft)
    assert [*caught.value.errors] == [field]


OWN = {"policy": f"{HERE}.OnlyText", "text": "a"}


@each_row(
    "entry", [OWN, OWN | {"text": "b"}, {"policy": "any_of", "policies": [OWN]}, {"policy": ["x"]}, "os.abort", {}]
)
def test_a_draft_runs_no_code_that_the_operator_has_not_named(entry: Any, settings: Settings) -> None:
    settings.HITL_POLICIES = [ASKS]
    with pytest.raises(BadDraft):
        read({"policies": [entry]})


def test_a_draft_may_have_code_as_it_is_in_force_and_an_operator_any(settings: Settings) -> None:
    settings.HITL_POLICIES = [{"policy": "any_of", "policies": [OWN]}]
    assert read({"policies": [ASKS, OWN]}).rules
    with pytest.raises(BadDraft):
        read({"policies": [OWN | {"text": "b"}]})
    assert read({"policies": [OWN | {"text": "b"}]}, trusted=True).rules

"""What the rules that ship and those of one's own say, and which of them wins."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate import results
from hitlchat.gate.decide import BadEdit
from hitlchat.gate.models import AuditEvent
from hitlchat.gate.policies import Abstain, Allow, Ask, CallView, Context, Refuse
from hitlchat.gate.policy import judge
from hitlchat.gate.provenance import Heard, Text
from hitlchat.gate.status import Status
from tests.architecture.source import ROOT
from tests.conftest import caller
from tests.gate import own_policies
from tests.gate.asking import approval_of, ask, recording, say_yes, status
from tests.gate.policy_rules import ALLOWS, AMOUNT, ASKS, FINANCE, FROM_MCP, NAMES, REFUSES, all_of, any_of
from tests.tables import each_row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("finance")]

VERDICTS = {Status.WAITING: Ask, Status.ALLOWED: Allow, Status.REFUSED: Refuse}
# What the rules say about a call of `refund` with these arguments, where policies decide.
CASES: dict[str, tuple[list[Any], dict[str, Any], Status]] = {
    "no rule at all": ([], {}, Status.WAITING),
    "never ask": ([ALLOWS], {}, Status.ALLOWED),
    "never ask about others": ([{"policy": "never_ask", "tools": ["echo", "refun"]}], {}, Status.WAITING),
    "a pattern": ([{"policy": "never_ask", "tools": ["ref*"]}], {}, Status.ALLOWED),
    "a pattern is of whole names": ([{"policy": "never_ask", "tools": ["*fun"]}], {}, Status.WAITING),
    "names are read exactly": ([{"policy": "never_ask", "tools": ["REFUND"]}], {}, Status.WAITING),
    "always ask": ([ASKS], {}, Status.WAITING),
    "ask wins over allow": ([ALLOWS, ASKS], {}, Status.WAITING),
    "refuse wins over all": ([ALLOWS, ASKS, REFUSES, ALLOWS], {}, Status.REFUSED),
    "on the list": ([NAMES, ALLOWS], {}, Status.WAITING),
    "not on the list": ([{**NAMES, "tools": ["other"]}], {}, Status.WAITING),
    "not on the list, and others are let run": (
        [{**NAMES, "tools": ["other"], "others": "allow"}],
        {},
        Status.ALLOWED,
    ),
    "over the limit": ([AMOUNT], {"amount": 11}, Status.WAITING),
    "at the limit": ([AMOUNT], {"amount": 10}, Status.ALLOWED),
    "the default counts": ([AMOUNT], {}, Status.ALLOWED),
    "far below nothing": ([AMOUNT], {"amount": -11}, Status.WAITING),
    "over the limit is refused": ([{**AMOUNT, "over": "refuse"}], {"amount": 11}, Status.REFUSED),
    "an exact limit": ([{**AMOUNT, "limit": 10.5}], {"amount": 10}, Status.ALLOWED),
    "no number": ([{**AMOUNT, "argument": "text"}], {"text": "ten"}, Status.WAITING),
    "an amount as plain text": ([{**AMOUNT, "argument": "text"}], {"text": "9.99"}, Status.ALLOWED),
    "more as plain text": ([{**AMOUNT, "argument": "text"}], {"text": "10.01"}, Status.WAITING),
    "a number that is written oddly": ([{**AMOUNT, "argument": "text"}], {"text": "1e0"}, Status.WAITING),
    "digits of another alphabet": ([{**AMOUNT, "argument": "text"}], {"text": "٣"}, Status.WAITING),
    "an argument that is not there": ([{**AMOUNT, "argument": "sum"}], {}, Status.WAITING),
    "a place that is not there": ([{**AMOUNT, "argument": "text.amount"}], {}, Status.WAITING),
    "from elsewhere": ([FROM_MCP, ALLOWS], {}, Status.ALLOWED),
    "from there": ([{**FROM_MCP, "kinds": ["chat"]}, ALLOWS], {}, Status.REFUSED),
    "not in the group": ([FINANCE, ALLOWS], {}, Status.REFUSED),
    "in the group": ([{**FINANCE, "people": "members"}, ALLOWS], {}, Status.ALLOWED),
    "no such group": ([{**FINANCE, "groups": ["finanse"]}, ALLOWS], {}, Status.WAITING),
    "any of": ([any_of(ALLOWS, ASKS)], {}, Status.WAITING),
    "any of, nobody asks": ([any_of(ALLOWS, AMOUNT)], {}, Status.ALLOWED),
    "all of": ([all_of(ASKS, AMOUNT)], {"amount": 3}, Status.ALLOWED),
    "all of them ask": ([all_of(ASKS, AMOUNT)], {"amount": 30}, Status.WAITING),
    "all of, and one is silent": ([all_of(FROM_MCP, ALLOWS)], {}, Status.WAITING),
    "all of, each refuses": ([all_of(REFUSES, REFUSES)], {}, Status.REFUSED),
    "within each other": ([all_of(any_of(REFUSES, ALLOWS), ASKS)], {}, Status.WAITING),
    "own": ([{"policy": "tests.gate.own_policies.OnlyText", "text": "hello"}], {}, Status.ALLOWED),
    "own, refused": ([{"policy": "tests.gate.own_policies.OnlyText", "text": "bye"}], {}, Status.REFUSED),
    "own, asynchronous": ([{"policy": "tests.gate.own_policies.Asynchronous"}], {}, Status.ALLOWED),
}


def test_what_the_rules_say(subtests: pytest.Subtests, bob: User, settings: Settings) -> None:
    tool = recording(mode="CONDITIONAL")
    for case, (policies, arguments, expected) in CASES.items():
        with subtests.test(case=case):
            settings.HITL_POLICIES = policies
            judgement = async_to_sync(judge)(tool, {"text": "hello", "amount": 1, **arguments}, caller(bob))
            assert isinstance(judgement.verdict, VERDICTS[expected])
            assert judgement.verdict.reason


def test_the_office_hours_of_the_documentation_are_those_where_the_installation_is() -> None:
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    (code,) = (each for each in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "OfficeHours" in each)
    names: dict[str, Any] = {}
    exec(code, names)
    rule = names["OfficeHours"](9, 17)
    call = CallView("refund", {}, "chat", 1, "bob", frozenset(), None)
    at_ten = Context(datetime(2026, 11, 30, 10, tzinfo=UTC), lambda: False)
    for zone, verdict in (("UTC", Abstain), ("Asia/Tokyo", Refuse)):
        with timezone.override(zone):
            assert isinstance(rule.evaluate(call, None, at_ten), verdict)


@each_row("inside", [lambda rule: rule, any_of], ids=["alone", "in another"])
def test_what_a_rule_adds_for_programs_is_on_the_record_and_the_model_does_not_read_it(
    inside: Callable[[Any], Any], bob: User, settings: Settings
) -> None:
    settings.HITL_POLICIES = [inside({"policy": "tests.gate.own_policies.Tagged"})]
    call = ask(bob, recording(mode="CONDITIONAL"), {"text": "hello"})
    (spoke,) = [each for each in AuditEvent.objects.get(call=call).data["spoke"] if each["verdict"] == "refuse"]
    assert spoke["metadata"] == {"rule": "H-7", "severity": 3, "tenant": "bob"}
    told = json.loads(results.for_model(call))
    assert (told["status"], told["executed"], told["reason"]) == ("refused", False, "Refused by the house rules.")
    assert "H-7" not in str(told)


@each_row("policies", [[ALLOWS], [any_of(ALLOWS)], [AMOUNT, ALLOWS]], ids=range(3))
def test_a_tool_that_asks_every_time_cannot_be_loosened(policies: list[Any], bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = policies
    assert ask(bob, recording(mode="REQUIRED")).status == Status.WAITING


@each_row("mode", ["REQUIRED", "DISABLED", "CONDITIONAL"])
def test_a_refusal_counts_in_every_mode(mode: str, bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [REFUSES]
    call = ask(bob, recording(mode=mode))
    assert (call.status, call.reason) == (Status.REFUSED, "Not here.")


def test_a_tool_that_never_asks_is_not_asked_about_because_of_a_rule(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [ASKS]
    assert ask(bob, recording(mode="DISABLED")).status == Status.ALLOWED


def test_a_condition_and_a_rule_are_heard_both(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [ASKS]
    tool = recording(mode="CONDITIONAL", condition='args["amount"] > 5')
    assert ask(bob, tool).status == Status.WAITING
    settings.HITL_POLICIES = [ALLOWS]
    assert ask(bob, tool, {"text": "a", "amount": 6}).status == Status.WAITING
    call = ask(bob, tool)
    assert call.status == Status.ALLOWED
    data = AuditEvent.objects.get(call=call).data
    spoke = data["spoke"]
    assert (data["isAutomatic"], set(spoke[0])) == (True, {"policy", "verdict", "reason", "source"})
    assert [(said["policy"], said["source"]) for said in spoke] == [("never_ask", "settings"), ("condition", "tool")]


def test_the_master_switch_looks_at_no_rule(bob: User, settings: Settings) -> None:
    settings.HITL_ENABLED, settings.HITL_POLICIES = False, [REFUSES]
    assert ask(bob, recording()).status == Status.ALLOWED


def test_people_of_a_group_are_told_apart(bob: User, charlie: User, finance: Group, settings: Settings) -> None:
    settings.HITL_POLICIES = [FINANCE, ALLOWS]
    bob.groups.add(finance)
    tool = recording(mode="CONDITIONAL")
    assert [ask(person, tool).status for person in (bob, charlie)] == [Status.ALLOWED, Status.REFUSED]


@each_row("kind,expected", [("chat", Status.ALLOWED), ("mcp", Status.REFUSED), ("api", Status.REFUSED)])
def test_callers_are_told_apart(kind: str, expected: Status, bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [FROM_MCP, ALLOWS]
    assert ask(bob, recording(mode="CONDITIONAL"), kind=kind).status == expected


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_call_of_whose_values_nobody_can_tell_the_source_is_asked_about_where_a_condition_wants_it(bob: User) -> None:
    tool = recording("mail", mode="CONDITIONAL", condition="args_from_outside")
    heard = Heard.of([Text("hello")])
    assert [status(ask(bob, tool, kind="mcp")), status(ask(bob, tool, heard=heard))] == [Status.WAITING, Status.ALLOWED]
    assert isinstance(async_to_sync(judge)(tool, {}, caller(bob)).verdict, Ask), "who does not say does not know"


@pytest.mark.guarantee("gate:fail-closed")
def test_an_edit_is_judged_by_where_the_values_that_it_leaves_come_from(bob: User, settings: Settings) -> None:
    text = "ann@evil.example"
    call = ask(bob, recording(), {"text": text}, heard=Heard.of([Text(text, "outside", "c1", "fetch_page")]))
    settings.HITL_POLICIES = [{"policy": f"{own_policies.HERE}.Inside"}]
    with pytest.raises(BadEdit, match="From outside"):
        say_yes(bob, call, edited={"text": text, "amount": 2})
    say_yes(bob, call, edited={"text": "ann@our.example"})
    assert status(call) == Status.APPROVED


def test_a_question_says_whether_it_is_known_where_its_values_come_from(bob: User) -> None:
    tool = recording()
    heard = (Heard.of([Text("hello")]), None)
    known, unknown = (approval_of(ask(bob, tool, {"text": ""}, heard=each)) for each in heard)
    assert known.disclosure["provenance"] == []
    assert "provenance" not in unknown.disclosure

"""How long what the rules say holds: a change of them frees no call that waits and lets none run."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.gate.decide import checked
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from tests.gate.asking import approval_of, ask, fresh, recording, run, say_yes
from tests.gate.policy_rules import ALLOWS, AMOUNT, ASKS, REFUSES
from tests.tables import each_row

pytestmark = pytest.mark.django_db


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-14")
def test_a_later_loosening_frees_no_waiting_call(bob: User, settings: Settings, entered: list[ToolCall]) -> None:
    settings.HITL_POLICIES = [ASKS]
    call = ask(bob, recording(mode="CONDITIONAL"))
    settings.HITL_POLICIES = [ALLOWS]
    assert not run(call)
    assert (fresh(call).status, entered) == (Status.WAITING, [])
    say_yes(bob, call)
    assert run(call)


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-14")
@each_row("later", [[ASKS], [REFUSES], [], [ALLOWS, {"policy": "broken"}]], ids=range(4))
def test_what_was_allowed_does_not_run_by_other_rules(
    later: list[Any], bob: User, settings: Settings, entered: list[ToolCall]
) -> None:
    settings.HITL_POLICIES = [ALLOWS]
    call = ask(bob, recording(mode="CONDITIONAL"))
    assert call.status == Status.ALLOWED
    settings.HITL_POLICIES = later
    assert not run(call)
    assert fresh(call).reason == "Not run: the rule that allowed it was changed."
    assert entered == []


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-14")
@pytest.mark.parametrize("answered", ["before", "after"])
def test_what_is_refused_by_now_does_not_run_for_a_yes(
    answered: str, bob: User, settings: Settings, entered: list[ToolCall]
) -> None:
    call = ask(bob, recording())
    if answered == "before":
        say_yes(bob, call)
    settings.HITL_POLICIES = [REFUSES]
    if answered == "after":
        say_yes(bob, call)
    assert not run(call)
    assert fresh(call).reason == "Not run: the rules were changed, and refuse it now: Not here."
    assert (fresh(call).status, entered) == (Status.WITHDRAWN, [])


def test_a_yes_stands_when_other_rules_would_still_ask(bob: User, settings: Settings) -> None:
    call = ask(bob, recording())
    say_yes(bob, call)
    settings.HITL_POLICIES = [ASKS]
    assert run(call)


@pytest.mark.guarantee("SR-10")
def test_an_edit_into_what_is_refused_is_not_taken(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [{**AMOUNT, "over": "refuse"}]
    call = ask(bob, recording())
    with pytest.raises(ValueError, match="over 10"):
        say_yes(bob, call, edited={"text": "hello", "amount": 11})
    say_yes(bob, call, edited={"text": "hello", "amount": 9})


@pytest.mark.guarantee("gate:same-call", "SR-10")
def test_an_edit_into_what_a_stricter_rule_covers_says_so_and_is_a_yes_of_its_own(
    bob: User, settings: Settings, entered: list[ToolCall]
) -> None:
    settings.HITL_POLICIES = [AMOUNT]
    call = ask(bob, recording())
    asked = approval_of(call)
    edited = {"text": "hello", "amount": 50}
    assert checked(edited, asked.call) == (edited, "Asked because “amount” is over 10.")
    say_yes(bob, call, edited=edited)
    decision = asked.decisions.get()
    assert (decision.edited_arguments, decision.digest != asked.digest) == (edited, True)
    assert run(call)
    assert [each.arguments for each in entered] == [edited]


def test_what_a_class_of_ones_own_calls_itself_counts_as_a_change(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [{"policy": "tests.gate.own_policies.OnlyText", "text": "hello"}]
    call = ask(bob, recording(mode="CONDITIONAL"))
    settings.HITL_POLICIES = [{"policy": "tests.gate.own_policies.OnlyText", "text": "other"}]
    assert (call.status, run(call)) == (Status.ALLOWED, False)


def test_the_question_holds_why_it_was_asked(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [AMOUNT]
    call = ask(bob, recording(mode="CONDITIONAL"), {"text": "a", "amount": 12})
    assert approval_of(call).disclosure["reason"] == call.reason == "Asked because “amount” is over 10."

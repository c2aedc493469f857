"""Asking once: which earlier yes counts, and which does not."""

from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.gate.models import Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.gate.asking import ask, recording, run, say_yes
from tests.gate.policy_rules import ALL, ALLOWS
from tests.tables import each_row

pytestmark = pytest.mark.django_db

ONCE = [{"policy": "ask_once", **ALL}]


@pytest.fixture
def once(bob: User, settings: Settings) -> Tool:
    """A tool of which bob approved one call, which succeeded."""
    settings.HITL_POLICIES = ONCE
    tool = recording(mode="CONDITIONAL")
    first = ask(bob, tool, {"text": "a"})
    say_yes(bob, first)
    assert run(first)
    return tool


@pytest.mark.servers("the SQL differs between the databases")
def test_exactly_the_same_arguments_of_the_same_person_are_asked_about_once(
    once: Tool, bob: User, charlie: User
) -> None:
    # A number is the same however it is written.
    for amount in (1, 1.0):
        call = ask(bob, once, {"amount": amount, "text": "a"})
        assert call.status == Status.ALLOWED
        assert "approved exactly these arguments" in call.reason
    others = [(bob, {"text": "b"}), (bob, {"text": "a", "amount": 2}), (charlie, {"text": "a"})]
    assert [ask(person, once, arguments).status for person, arguments in others] == [Status.WAITING] * 3


CHANGES: dict[str, Callable[[], object]] = {
    "definition": partial(Tool.objects.update, definition_hash="e" * 64),
    "source": partial(Tool.objects.update, source="failing"),
    "origin": partial(Tool.objects.update, origin="Elsewhere"),
    "risk": partial(Tool.objects.update, risk_level=5),
    "name": partial(Tool.objects.update, name="b"),
    "the word of a client": partial(Decision.objects.update, means="elicitation"),
    "nobody's word": partial(Decision.objects.update, means="system"),
    **{
        each: partial(ToolCall.objects.update, status=each)
        for each in (Status.FAILED, Status.UNKNOWN, Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN)
    },
}


@each_row("change", CHANGES.values(), CHANGES)
def test_only_a_persons_yes_to_this_very_tool_that_succeeded_counts(
    change: Callable[[], object], once: Tool, bob: User
) -> None:
    change()
    once.refresh_from_db()
    assert ask(bob, once, {"text": "a"}).status == Status.WAITING


def test_what_ran_unasked_is_no_earlier_yes(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [ALLOWS]
    tool = recording(mode="CONDITIONAL")
    assert run(ask(bob, tool, {"text": "a"}))
    settings.HITL_POLICIES = ONCE
    assert ask(bob, tool, {"text": "a"}).status == Status.WAITING


def test_what_was_edited_was_approved_as_it_was_edited(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = ONCE
    tool = recording(mode="CONDITIONAL")
    first = ask(bob, tool, {"text": "a"})
    say_yes(bob, first, edited={"text": "b", "amount": 1})
    assert run(first)
    assert [ask(bob, tool, {"text": text}).status for text in "ab"] == [Status.WAITING, Status.ALLOWED]

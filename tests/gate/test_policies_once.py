"""Asking once: which earlier yes counts, and which does not."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from tests.gate.asking import approval_of, ask, recording, run, say_yes
from tests.gate.policy_rules import ALL, ALLOWS

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


def test_the_same_arguments_are_asked_about_once(once: Tool, bob: User) -> None:
    call = ask(bob, once, {"amount": 1, "text": "a"})
    assert call.status == Status.ALLOWED
    assert "approved exactly these arguments" in call.reason


@pytest.mark.servers("the SQL differs between the databases")
def test_a_number_is_the_same_however_it_is_written(once: Tool, bob: User) -> None:
    assert ask(bob, once, {"amount": 1.0, "text": "a"}).status == Status.ALLOWED


@pytest.mark.parametrize("arguments", [{"text": "b"}, {"text": "a", "amount": 2}], ids=["another", "one more"])
def test_other_arguments_are_asked_about(arguments: dict[str, Any], once: Tool, bob: User) -> None:
    assert ask(bob, once, arguments).status == Status.WAITING


def test_the_yes_of_one_person_is_none_of_another(once: Tool, charlie: User) -> None:
    assert ask(charlie, once, {"text": "a"}).status == Status.WAITING


@pytest.mark.parametrize(
    "columns",
    [{"definition_hash": "e" * 64}, {"source": "failing"}, {"origin": "Elsewhere"}, {"risk_level": 5}, {"name": "b"}],
    ids=["definition", "source", "origin", "risk", "name"],
)
def test_another_tool_is_asked_about_again(columns: dict[str, Any], once: Tool, bob: User) -> None:
    Tool.objects.filter(pk=once.pk).update(**columns)
    once.refresh_from_db()
    assert ask(bob, once, {"text": "a"}).status == Status.WAITING


@pytest.mark.parametrize("means", ["elicitation", "system"])
def test_the_word_of_a_client_is_no_earlier_yes(means: str, once: Tool, bob: User) -> None:
    approval = approval_of(ToolCall.objects.get())
    approval.decisions.update(means=means)
    assert ask(bob, once, {"text": "a"}).status == Status.WAITING


@pytest.mark.parametrize("status", [Status.FAILED, Status.UNKNOWN, Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN])
def test_only_what_succeeded_counts_as_approved_before(status: Status, once: Tool, bob: User) -> None:
    ToolCall.objects.update(status=status)
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

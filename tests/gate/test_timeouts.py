"""How long a question is open."""

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate.models import Tool
from tests.gate.asking import ask, recording

pytestmark = pytest.mark.django_db


def is_open_for(seconds: int, user: User, tool: Tool, patience: int | None = None) -> bool:
    """Whether a question asked now ends that much later, however long asking takes."""
    before: datetime = timezone.now()
    deadline = ask(user, tool, patience=patience).deadline
    assert deadline is not None
    return before <= deadline - timedelta(seconds=seconds) <= timezone.now()


def test_unless_said_otherwise_a_question_is_open_for_five_minutes(bob: User, tool: Tool) -> None:
    assert is_open_for(300, bob, tool)


def test_a_tool_has_a_time_of_its_own_and_the_installation_one_for_all_others(bob: User, settings: Settings) -> None:
    settings.HITL_TIMEOUT_SECONDS = 7000
    own, other = recording("own", deadline_seconds=86_400), recording("other")
    assert is_open_for(86_400, bob, own)
    assert is_open_for(7000, bob, other)


def test_a_caller_that_waits_no_longer_ends_the_question_earlier_and_never_later(bob: User, tool: Tool) -> None:
    assert is_open_for(60, bob, tool, patience=60)
    assert is_open_for(300, bob, tool, patience=100_000)

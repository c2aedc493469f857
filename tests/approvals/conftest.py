"""bob, signed in; and the sources of tests/gate, for pages that show what became of calls."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.gate.models import ToolCall
from tests.gate import sources_for_tests


@pytest.fixture
def page(bob: User, client: Client) -> Client:
    client.force_login(bob)
    return client


@pytest.fixture
def entered(settings: Settings) -> Iterator[list[ToolCall]]:
    """The calls that reached a tool of these sources."""
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **sources_for_tests.SOURCES}
    sources_for_tests.entered.clear()
    yield sources_for_tests.entered
    sources_for_tests.entered.clear()

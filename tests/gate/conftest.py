"""The sources of this folder, in place of the product's own."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from pytest_django import Settings

from hitlchat.gate.models import Tool, ToolCall
from tests.gate import sources_for_tests
from tests.gate.asking import ask, recording
from tests.gate.deciding_people import approver
from tests.processes import installation, migrated, servers

__all__ = ["installation", "migrated", "servers"]


@pytest.fixture(autouse=True)
def entered(settings: Settings) -> Iterator[list[ToolCall]]:
    """The calls that reached a tool."""
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **sources_for_tests.SOURCES}
    # A slow hash for each person would be most of the time that these tests take.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    kept: tuple[list[Any], ...] = (sources_for_tests.entered, sources_for_tests.previews, sources_for_tests.looked)
    # Before as well: tests of other folders use these sources too.
    for each in kept:
        each.clear()
    yield sources_for_tests.entered
    for each in kept:
        each.clear()


@pytest.fixture
def tool(db: None) -> Tool:
    """A published tool that asks every time."""
    return recording()


@pytest.fixture
def dora(db: None) -> User:
    return approver("dora")


@pytest.fixture
def erik(db: None) -> User:
    return approver("erik")


@pytest.fixture
def finance(db: None) -> Group:
    """A group that rules name; nobody is in it yet."""
    return Group.objects.create(name="finance")


@pytest.fixture
def previews() -> list[Any]:
    """What previews of the source “previewing” are from here on, one after the other; the last one stays."""
    return sources_for_tests.previews


@pytest.fixture
def waiting(bob: User, tool: Tool) -> ToolCall:
    """A call of bob's assistant that waits for bob."""
    return ask(bob, tool)

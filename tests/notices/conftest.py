"""Receivers that really listen, and no waiting for bursts."""

from collections.abc import Iterator
from typing import Any

import pytest

from hitlchat.gate.models import ToolCall
from tests.gate import sources_for_tests
from tests.notices.receivers import Inbound, receiving
from tests.processes import installation, migrated, servers
from tests.tools_studio.mailbox import Mailbox, listening

__all__ = ["installation", "migrated", "servers"]

SMTP = "django.core.mail.backends.smtp.EmailBackend"


@pytest.fixture(autouse=True)
def at_once(settings: Any) -> Iterator[list[ToolCall]]:
    """Nothing is collected, there is an address for links, and tools whose source is one of the tests'; the calls that
    reached one.
    """
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **sources_for_tests.SOURCES}
    settings.NOTICE_COLLECT_SECONDS = settings.NOTICE_INTERVAL_SECONDS = 0
    settings.HITL_PUBLIC_URL = "https://hitl.example.com"
    sources_for_tests.entered.clear()
    yield sources_for_tests.entered
    sources_for_tests.entered.clear()


@pytest.fixture
def inbound() -> Iterator[Inbound]:
    with receiving() as listening_there:
        yield listening_there


@pytest.fixture
def other() -> Iterator[Inbound]:
    with receiving() as listening_there:
        yield listening_there


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """A mail server, and settings that name it."""
    with listening() as box:
        settings.EMAIL_BACKEND = SMTP
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", box.port, 2
        settings.DEFAULT_FROM_EMAIL = "hitl@example.com"
        yield box

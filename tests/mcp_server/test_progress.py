"""How far a call is, told to its client from the very first number on."""

import pytest
from asgiref.sync import sync_to_async as in_thread
from pytest_django import Settings

from tests.gate.asking import recording
from tests.mcp_server.clients import connected, yes
from tests.mcp_server.conformance import catalog

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("era, mode", [("2025", "REQUIRED"), ("2026", "DISABLED")])
async def test_that_a_tool_has_begun_is_told_too_although_it_is_none_of_the_way(
    era: str, mode: str, url: str, token: str, settings: Settings
) -> None:
    source = f"{catalog.__name__}.{catalog.ConformanceSource.__name__}"
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, catalog.SOURCE: source}
    await in_thread(recording)("test_tool_with_progress", source=catalog.SOURCE, mode=mode)
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with connected(url, token, era, yes()) as client:
        await client.call_tool("test_tool_with_progress", {"text": "hello"}, progress_callback=note)
    assert [step for step in told if (step[1] or "").endswith("percent")] == [
        (0, "0 percent"),
        (50, "50 percent"),
        (100, "100 percent"),
    ]

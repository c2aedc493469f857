"""A pool for each test, closed after it; and nothing may be left."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.upstreams.client.upstreams import Pool, Seen, starting

start_server = pytest.fixture(starting)
share_server = pytest.fixture(starting, scope="module")


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest_asyncio.fixture
async def pool(seen: Seen) -> AsyncIterator[Pool]:
    pool = Pool(seen)
    yield pool
    await asyncio.wait_for(pool.close(), 30)
    left = {task for task in asyncio.all_tasks() if not task.done()} - {asyncio.current_task()}
    assert not left, f"tasks are left: {left}"

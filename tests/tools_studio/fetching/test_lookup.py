"""Resolvers that take their time."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.tools_studio.fetching.shop import Server, policy, url
from tools_studio.network import fetch


async def test_a_slow_resolver_counts_against_the_time_limit(
    shop: Server, answers: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers("intranet", "127.0.0.1")
    answered = socket.getaddrinfo

    def late(*args: Any, **settings: Any) -> Any:
        shop.release.wait(20)
        return answered(*args, **settings)

    monkeypatch.setattr(socket, "getaddrinfo", late)
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError, match=r"within 0\.2 s"):
            await fetch(policy(shop, "intranet"), url(shop, host="intranet"), timeout=0.2)
    assert shop.asked == []


async def test_slow_resolvers_take_no_threads_from_the_server(
    shop: Server, answers: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers("intranet", "127.0.0.1")

    def never(*_args: Any, **_settings: Any) -> list[Any]:
        shop.release.wait(20)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", never)
    asked = (fetch(policy(shop, "intranet"), url(shop, host="intranet"), timeout=0.2) for _ in range(40))
    async with asyncio.timeout(30):
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in ended} == {TimeoutError}
        assert await asyncio.to_thread(int, "1") == 1
    assert not shop.release.is_set()

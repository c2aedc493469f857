"""Requests other than calls: answered in time, or given up."""

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, TypeVar

from hitlchat.upstreams.wire.exchange import CURRENT, Exchange
from hitlchat.upstreams.wire.opening import Live

GIVE_UP_SECONDS = 1.0

Result = TypeVar("Result")


async def give_up(working: "asyncio.Task[Any]") -> None:
    """Cancel it, a second time if the SDK does not succeed in telling the server so."""
    for _ in range(2):
        if not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=GIVE_UP_SECONDS)
    if working.done() and not working.cancelled():
        # Looked at, so that asyncio does not complain: what counts is known already.
        working.exception()


async def within(request: Coroutine[Any, Any, Result], live: Live, seconds: float) -> Result:
    """What the request returns or raises. TimeoutError; RuntimeError: the connection had trouble, and says which."""
    exchange = Exchange(seconds)
    live.link.open.add(exchange)
    context = copy_context()
    context.run(CURRENT.set, exchange)
    working = asyncio.create_task(request, context=context)
    try:
        events: set[asyncio.Future[Any]] = {working, exchange.trouble}
        await asyncio.wait(events, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if exchange.trouble.done():
            raise RuntimeError(exchange.trouble.result().reason)
        if not working.done():
            raise TimeoutError
        return working.result()
    finally:
        await give_up(working)
        exchange.close()
        live.link.forget(exchange)

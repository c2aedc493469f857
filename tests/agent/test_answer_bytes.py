"""How much of an answer is read, and in which pieces."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx2
import pytest

from hitlchat.agent import stream
from hitlchat.agent.model_client import LARGEST_EVENT, ModelTrouble
from tests.agent.conftest import Read
from tests.scripted_model import DONE, Reply, chunk, raw, text


async def test_an_answer_in_one_large_piece_is_read(read: Read) -> None:
    assert (await read(text("x" * 900_000))).text == "x" * 900_000


async def test_many_large_events_are_as_good_as_small_ones(read: Read) -> None:
    for end in [b"\n\n", b"\r\n\r\n", b"\r\r"]:
        padding = b": " + b"x" * (LARGEST_EVENT // 2) + end
        said = chunk({"content": "Hello."}).removesuffix(b"\n\n") + end
        reply = Reply((padding, padding, padding, said, padding, chunk({}, "stop"), DONE))
        assert (await read(reply)).text == "Hello."


async def test_a_packed_answer_is_not_unpacked(read: Read) -> None:
    for form in ["gzip", "deflate", "br", "zstd", "gzip, identity", "x"]:
        reply = Reply((gzip.compress(chunk({"content": "hi"})),), headers={"Content-Encoding": form})
        with pytest.raises(ModelTrouble, match="compresses its answers although it was asked not to"):
            await read(reply)


async def test_json_that_is_too_deep_is_no_answer(read: Read) -> None:
    with pytest.raises(ModelTrouble, match="did not send a Chat Completions stream"):
        await read(raw(b"data: " + b"[" * 1_000_000 + b"\n\n"))


async def test_what_comes_together_is_read_at_one_go_and_what_comes_alone_at_once() -> None:
    sent, goes_on = list[int](), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        for number in range(4):
            if number == 3:
                await goes_on.wait()
            sent.append(number)
            yield b'data: {"number":%d}\n\n' % number

    until = asyncio.get_running_loop().time() + 60
    async with aclosing(stream.events(httpx2.Response(200, content=body()), until)) as events:
        assert await anext(events) == {"number": 0}
        assert sent == [0, 1, 2]
        assert [(await anext(events))["number"] for _ in range(2)] == [1, 2]
        goes_on.set()
        assert [each async for each in events] == [{"number": 3}]


async def test_an_answer_that_nobody_takes_is_not_read_on_and_on() -> None:
    sent = list[int]()

    async def body() -> AsyncIterator[bytes]:
        for number in range(1_000):
            sent.append(number)
            yield b'data: {"number":%d}\n\n' % number

    until = asyncio.get_running_loop().time() + 60
    async with aclosing(stream.events(httpx2.Response(200, content=body()), until)) as events:
        await anext(events)
        assert len(sent) == stream.MOST_PIECES
        assert len([each async for each in events]) == 999


async def test_what_came_before_the_time_was_up_is_told_first() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b'data: {"number":0}\n\n'
        await asyncio.Event().wait()

    events = stream.events(httpx2.Response(200, content=body()), asyncio.get_running_loop().time())
    assert await anext(events) == {"number": 0}
    with pytest.raises(TimeoutError):
        await anext(events)

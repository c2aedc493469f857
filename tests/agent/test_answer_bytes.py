"""How much of an answer is read, and in which pieces."""

import gzip

import pytest

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

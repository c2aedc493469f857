"""How much of an answer is read, and in which pieces."""

import gzip

import pytest

from hitlchat.agent.model_client import LARGEST_EVENT
from hitlchat.agent.models import RunStatus
from tests.agent.talk import Talk
from tests.scripted_model import DONE, Reply, ScriptedModel, chunk, raw, text

pytestmark = pytest.mark.django_db(transaction=True)


async def test_an_answer_in_one_large_piece_is_read(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("x" * 900_000))
    assert (await talk.ask()).status == RunStatus.DONE
    assert (await talk.answers())[-1] == "x" * 900_000


async def test_many_large_events_are_as_good_as_small_ones(talk: Talk, scripted_model: ScriptedModel) -> None:
    for end in [b"\n\n", b"\r\n\r\n", b"\r\r"]:
        talk = await talk.another()
        padding = b": " + b"x" * (LARGEST_EVENT // 2) + end
        said = chunk({"content": "Hello."}).removesuffix(b"\n\n") + end
        scripted_model.enqueue(Reply((padding, padding, padding, said, padding, chunk({}, "stop"), DONE)))
        assert (await talk.ask()).status == RunStatus.DONE
        assert (await talk.answers())[-1] == "Hello."


async def test_a_packed_answer_is_not_unpacked(talk: Talk, scripted_model: ScriptedModel) -> None:
    for form in ["gzip", "deflate", "br", "zstd", "gzip, identity", "x"]:
        talk = await talk.another()
        scripted_model.enqueue(Reply((gzip.compress(chunk({"content": "hi"})),), headers={"Content-Encoding": form}))
        assert "packs its answers although it was asked not to" in (await talk.ask()).error


async def test_json_that_is_too_deep_is_a_notice(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(raw(b"data: " + b"[" * 1_000_000 + b"\n\n"))
    assert "no Chat Completions stream" in (await talk.ask()).error

"""A program that means no good, over standard input and output: what it does costs nobody but itself."""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import ElicitResult

from hitlchat.secrets.masking import Mask
from hitlchat.upstreams.client.connection import try_connect
from hitlchat.upstreams.client.link import Link, Question
from hitlchat.upstreams.client.results import Answer, Outcome, Rejected, Unknown, Unreadable
from hitlchat.upstreams.client.spec import Limits, ServerSpec, Timeouts
from hitlchat.upstreams.client.stdio import GARBAGE_AT_ONCE, _Pipes, child
from tests.tables import each_row
from tests.upstreams.client.upstreams import AT_MOST, QUICK, Person, Pool, Seen, Steps, honest, hostile, memory, up
from tests.waiting import soon

KEY = "sk-very-secret-0123456789"
BRIEF = Timeouts(connect=5, listing=2, call=5, question=2, health=2, close=2, settle=0.1)


async def call(pool: Pool, name: str, seconds: float = 60.0) -> Outcome:
    return await pool.call_tool("hostile", name, {}, seconds=seconds)


USELESS = {
    "huge": "larger than 4,194,304 bytes",
    "huge_id_last": "larger than 4,194,304 bytes",
    "deep": "nested more than 64 levels deep",
    "deeper": "is not an MCP message",
    "wide": "has more than 200,000 parts",
    "not_a_number": "a number that JSON cannot express",
    "malformed": "breaks the protocol: content",
    "not_json": "is not an MCP message",
}


async def test_an_answer_that_nobody_can_use_is_told_as_such(subtests: pytest.Subtests, pool: Pool) -> None:
    await pool.put(hostile())
    for tool, words in USELESS.items():
        with subtests.test(tool):
            found = await call(pool, tool)
            assert isinstance(found, Unreadable)
            assert words in found.reason
            assert isinstance(await call(pool, "fine"), Answer)


@pytest.mark.slow("bets on memory")
@each_row("tool", [*USELESS, "endless"])
async def test_what_is_no_answer_costs_little_memory(tool: str, pool: Pool) -> None:
    await pool.put(hostile())
    assert isinstance(await call(pool, "fine"), Answer)
    before = memory()
    assert isinstance(await call(pool, tool), Unreadable | Unknown)
    assert memory() - before < 64 * 1024 * 1024
    assert isinstance(await call(pool, "fine"), Answer)


async def test_an_answer_just_within_the_limit_is_taken(pool: Pool) -> None:
    await pool.put(hostile(limits=Limits(message_bytes=11_000_000)))
    found = await call(pool, "huge")
    assert isinstance(found, Answer)
    assert len(found.text) == 10_000_000


@pytest.mark.slow("waits for an answer that does not come")
async def test_an_answer_that_does_not_come_is_waited_for_so_long(pool: Pool) -> None:
    await pool.put(hostile())
    await up(pool, "hostile")
    async with asyncio.timeout(AT_MOST):
        assert isinstance(await call(pool, "silent", seconds=1), Unknown)
        assert isinstance(await call(pool, "drip", seconds=1), Unknown)


@pytest.mark.slow("waits for answers that do not come")
async def test_calls_that_are_never_answered_wear_a_connection_out(pool: Pool) -> None:
    await pool.put(hostile())
    await up(pool, "hostile")
    await asyncio.gather(*(call(pool, "silent", seconds=2) for _ in range(16)))
    await soon(lambda: "never answered" in pool.status("hostile").last_error, "the connection is given up")
    assert isinstance(await call(pool, "fine"), Answer)


async def test_an_error_cannot_dress_itself_up(pool: Pool) -> None:
    await pool.put(hostile())
    found = await call(pool, "error")
    assert isinstance(found, Rejected)
    assert found.code == -32099
    assert found.message.startswith(r"<b>no\x1b[31m</b> y")
    assert len(found.message) <= 2000
    assert pool.status("hostile").server_name == r"hostile\x1b[31m<b>"


async def test_secrets_are_masked_in_whatever_comes_back(pool: Pool) -> None:
    await pool.put(hostile(env={"API_KEY": KEY}, secrets=(KEY,)))
    found = await call(pool, "secret")
    assert found == Answer([{"type": "text", "text": "key=•••"}], {"key": "•••"})
    assert await call(pool, "secret_error") == Rejected(-32050, "bad key •••")
    await soon(lambda: any("the key is •••" in note for note in pool.status("hostile").notes), "it is noted")
    assert KEY not in repr(pool.status("hostile"))


async def test_only_the_first_answer_to_a_call_counts(pool: Pool) -> None:
    await pool.put(hostile())
    assert (await call(pool, "twice")) == Answer([{"type": "text", "text": "first"}])
    assert (await call(pool, "somebody_elses")) == Answer([{"type": "text", "text": "yours"}])


@pytest.mark.slow("bets on time")
async def test_a_flood_of_progress_is_passed_on_at_a_bearable_rate(pool: Pool) -> None:
    steps = Steps()
    await pool.put(hostile())
    await up(pool, "hostile")
    began = time.monotonic()
    await pool.answer("hostile", "flood", on_progress=steps.take)
    assert len(steps) <= 10 * (time.monotonic() - began) + 2
    assert any("more messages than anyone asked for" in note for note in pool.status("hostile").notes)


async def test_what_no_server_gets_is_refused(pool: Pool) -> None:
    await pool.put(hostile())
    for tool in ("sampling", "roots"):
        found = await call(pool, tool)
        assert isinstance(found, Answer)
        assert "not supported" in found.text


async def test_questions_without_end_are_declined_after_some(pool: Pool) -> None:
    person = Person(ElicitResult(action="accept"))
    await pool.put(hostile())
    await pool.call_tool("hostile", "many_questions", {}, on_question=person.reply)
    assert len(person.questions) <= 10


async def test_a_question_that_nobody_answers_is_cancelled_in_the_end(pool: Pool) -> None:
    async def sleep(question: Question) -> ElicitResult:
        assert question.server == "hostile"
        await asyncio.Event().wait()
        raise AssertionError

    await pool.put(hostile(timeouts=replace(QUICK, question=0.5)))
    found = await pool.answer("hostile", "password", {}, on_question=sleep, seconds=20)
    assert found.text == '{"action": "cancel"}'


async def test_a_question_that_could_belong_to_two_people_is_asked_of_neither(pool: Pool) -> None:
    person = Person(ElicitResult(action="accept", content={"password": "mine"}))
    await pool.put(hostile())
    await up(pool, "hostile")
    over = asyncio.Event()
    other = asyncio.create_task(
        pool.call_tool("hostile", "silent", {}, seconds=60, on_question=person.reply, cancel=over)
    )
    found = await pool.answer("hostile", "password", on_question=person.reply)
    assert found.text == '{"action": "cancel"}'
    over.set()
    await other
    assert person.questions == []


@pytest.mark.parametrize(
    "habit",
    [
        "child",
        *(
            pytest.param(each, marks=pytest.mark.slow("a flood; test_hostile.py of the gate has one"))
            for each in ("chatter", "questions")
        ),
    ],
)
async def test_a_noisy_server_is_still_of_use_and_harms_nobody(habit: str, pool: Pool) -> None:
    await pool.put(hostile(habit))
    await pool.put(honest())
    await up(pool)
    assert isinstance(await call(pool, "fine"), Answer)
    async with asyncio.timeout(AT_MOST):
        for _ in range(3):
            assert isinstance(await pool.call_tool("honest", "echo", {"text": "hello"}), Answer)
    assert_few_and_short(pool.status("hostile").notes)


def assert_few_and_short(notes: Sequence[str]) -> None:
    assert len(notes) <= 50
    assert all(len(note) <= 600 for note in notes)


@pytest.mark.slow("bets on memory")
@pytest.mark.parametrize("habit", ["garbage", "notices"])
async def test_noise_does_not_fill_the_memory(habit: str, pool: Pool) -> None:
    await pool.put(hostile(habit))
    assert isinstance(await call(pool, "fine"), Answer)
    before = memory()
    # In the time of each call there comes more than half a megabyte.
    for _ in range(10):
        assert isinstance(await call(pool, "fine"), Answer)
    assert memory() - before < 4 * 1024 * 1024
    assert_few_and_short(pool.status("hostile").notes)


async def test_others_have_their_turn_while_a_chunk_of_garbage_is_looked_at() -> None:
    program = "import sys; print('garbage\\n' * 5_000, flush=True); sys.stdin.read()"
    spec = ServerSpec("noisy", "stdio", command=sys.executable, args=("-c", program), timeouts=QUICK)
    incoming, outgoing = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    looked_at = [0]
    async with outgoing, child(spec) as started:
        pipes = _Pipes(Link(spec, lambda: Mask([])), started)
        reading = asyncio.create_task(pipes.read(incoming))
        async with asyncio.timeout(AT_MOST):
            while looked_at[-1] < 5_000:
                await asyncio.sleep(0)
                looked_at.append(pipes._garbage_lines)
        reading.cancel()
    assert max(later - earlier for earlier, later in pairwise(looked_at)) <= GARBAGE_AT_ONCE


@pytest.mark.parametrize(
    "habit, words",
    [
        pytest.param("mute", "no connection within 5 seconds", marks=pytest.mark.slow("a time runs out")),
        pytest.param("mute-list", "did not come within 2 seconds", marks=pytest.mark.slow("a time runs out")),
        ("dies-at-start", "the program ended with code 3: no configuration found"),
        ("no-tools", "Method not found"),
        ("version", "Unsupported protocol version"),
    ],
)
async def test_a_server_that_cannot_be_used_says_why(habit: str, words: str) -> None:
    spec = hostile(habit, timeouts=BRIEF if habit.startswith("mute") else Timeouts(close=2))
    if habit == "mute-list":
        spec = hostile(habit, timeouts=Timeouts(connect=15, listing=2, close=2))
    async with asyncio.timeout(AT_MOST):
        trial = await try_connect(spec)
    assert words in trial.error
    if habit == "dies-at-start":
        assert any("no configuration found" in note for note in trial.notes)


@pytest.mark.parametrize(
    "said, words",
    [
        ("a\\x1b[31mb\\n\\n", r": a\x1b[31mb"),
        ("first\\nkey s3cret-0815 " + "z" * 300 + "\\n", ": key ••• " + "z" * 20),
        ("", "code 3"),
    ],
)
async def test_the_last_words_of_a_program_are_masked_escaped_and_cut(said: str, words: str) -> None:
    code = f"import sys; sys.stderr.write('{said}'); sys.exit(3)"
    spec = ServerSpec("last", "stdio", command=sys.executable, args=("-c", code), secrets=("s3cret-0815",))
    error = (await try_connect(spec)).error
    assert error.startswith("the program ended with code 3")
    assert words in error
    assert len(error) < 240
    assert "s3cret" not in error


@pytest.mark.parametrize(
    "habit, count, words",
    [
        ("too-many", 5000, "more than 5,000 tools"),
        ("fat", 8, "more than 8,388,608 bytes"),
        ("circle", 3, "form a loop"),
    ],
)
async def test_the_list_of_tools_ends_somewhere(habit: str, count: int, words: str) -> None:
    trial = await try_connect(hostile(habit))
    assert trial.error == ""
    assert trial.listing is not None
    assert len(trial.listing.tools) == count
    assert words in trial.listing.cut


async def test_of_two_tools_with_one_name_the_first_counts_and_both_are_told() -> None:
    listing = (await try_connect(hostile("twins"))).listing
    assert listing is not None
    assert [tool.definition["description"] for tool in listing.tools] == ["the first"]
    assert listing.repeated == ("fine",)


async def test_odd_tools_are_told_as_they_are() -> None:
    listing = (await try_connect(hostile("odd"))).listing
    assert listing is not None
    recursive, broken = listing.tools
    assert recursive.definition["title"] == "<script>alert(1)</script>\x1b[31m"
    assert recursive.definition["annotations"] == {"readOnlyHint": True, "title": "harmless"}
    assert recursive.definition["inputSchema"]["properties"] == {"a": {"$ref": "#"}}
    assert broken.definition["inputSchema"]["properties"]["a"]["pattern"] == "("


@pytest.mark.slow("bets on time")
async def test_a_list_that_changes_all_the_time_is_read_less_and_less_often(pool: Pool, seen: Seen) -> None:
    await pool.put(hostile("restless"))
    await up(pool, "hostile")
    await soon(lambda: len(seen.listings) >= 3, "it is read again")
    began, count = time.monotonic(), len(seen.listings)
    await soon(lambda: time.monotonic() - began > 2, "time passes")
    assert len(seen.listings) - count <= 4
    descriptions = [listing.tools[0].definition["description"] for _, listing in seen.listings]
    assert len(set(descriptions)) == len(descriptions)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that a server does may fill our own log."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}] == []

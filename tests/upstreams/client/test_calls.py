"""Calls of tools over every transport and in both eras of the protocol."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

import pytest
from mcp_types import ElicitResult

from hitlchat.upstreams.client.link import Question, Step
from hitlchat.upstreams.client.results import Answer, NeverRan, Unknown
from hitlchat.upstreams.client.spec import ServerSpec
from tests.upstreams.client.upstreams import AT_MOST, Person, Pool, StartServer, Steps, at, honest, written
from tests.upstreams.honest_server import PICTURE
from tests.waiting import soon

Serve = Callable[[str], ServerSpec]
ANYHOW = ["stdio", "http", "http-json", "http-2025", "sse"]
# The SDK's server does not see that nobody waits any more when it answers in one piece.
STOPPABLE = [how for how in ANYHOW if how != "http-json"]
OPTIONS = {"http-json": ("--json",), "http-2025": ("--era", "2025")}


@pytest.fixture(scope="module")
def shared(share_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[str, Path]]:
    """Where the honest server listens for this kind of connection, and its log."""

    @cache
    def shared(how: str) -> tuple[str, Path]:
        log = tmp_path_factory.mktemp(how) / "calls.txt"
        server = share_server("sse" if how == "sse" else "http", *OPTIONS.get(how, ()), "--log", str(log))
        return server.url, log

    return shared


Logs = Callable[[str], Path]


@pytest.fixture
def logs(shared: Callable[[str], tuple[str, Path]], tmp_path: Path) -> Logs:
    """Where the tools of the server of such a connection write."""

    def log(how: str) -> Path:
        return tmp_path / "calls.txt" if how == "stdio" else shared(how)[1]

    return log


@pytest.fixture
def log(logs: Logs) -> Path:
    """What the tools of the program write."""
    return logs("stdio")


@pytest.fixture
def serve(shared: Callable[[str], tuple[str, Path]], logs: Logs) -> Serve:
    """The spec of the server for such a connection, which is its name too; what its tools wrote before is gone."""

    def serve(how: str) -> ServerSpec:
        spec = honest(how, "--log", str(logs(how))) if how == "stdio" else at(shared(how)[0], how)
        logs(how).unlink(missing_ok=True)
        return spec

    return serve


async def at_once(pool: Pool, serve: Serve, hows: list[str], look: Callable[[str], Awaitable[None]]) -> None:
    """Look at these kinds of connections, of which each is known by its name."""
    for how in hows:
        await pool.put(serve(how))
    async with asyncio.timeout(AT_MOST):
        found = await asyncio.gather(*map(look, hows), return_exceptions=True)
    assert [(how, error) for how, error in zip(hows, found, strict=True) if error is not None] == []


async def test_results_failures_and_questions_pass_over_every_transport(pool: Pool, serve: Serve) -> None:
    async def look(how: str) -> None:
        found = await pool.call_tool(how, "add", {"a": 1, "b": 2})
        assert found == Answer([{"type": "text", "text": "3"}], {"result": 3})

        # A tool that fails is no error of the connection.
        assert (await pool.answer(how, "fail", {"why": "no reason"})).is_error
        assert pool.status(how).state == "up"

        # A question reaches whoever waits for the call, and is cancelled where nobody does.
        person = Person(ElicitResult(action="accept", content={"colour": "red"}))
        found = await pool.answer(how, "paint", {}, on_question=person.reply)
        assert found.text == "painted red"
        (question,) = person.questions
        assert (question.server, question.message) == (how, "Which colour?")
        assert question.schema["properties"].keys() == {"colour"}
        assert (await pool.answer(how, "paint")).text == "not painted: cancel"

        # Calls at the same time get their own answers.
        together = await asyncio.gather(*(pool.answer(how, "echo", {"text": str(number)}) for number in range(6)))
        assert [each.text for each in together] == [str(number) for number in range(6)]

    await at_once(pool, serve, ANYHOW, look)


async def test_of_a_picture_the_bytes_are_kept_beside_what_is_said_of_it(pool: Pool, serve: Serve) -> None:
    await pool.put(serve("stdio"))
    found = await pool.call_tool("stdio", "picture", {})
    digest = hashlib.sha256(PICTURE).hexdigest()
    block = {"type": "image", "mimeType": "image/png", "bytes": len(PICTURE), "sha256": digest}
    assert found == Answer([block], attachments={digest: PICTURE})


async def test_progress_is_passed_on(pool: Pool, serve: Serve) -> None:
    async def look(how: str) -> None:
        steps = Steps()
        await pool.answer(how, "slow", {"seconds": 1.0}, on_progress=steps.take)
        if how != "http-json":  # where the answer has no room for anything before it
            assert len(steps) >= 2
            assert [step.progress for step in steps] == sorted(step.progress for step in steps)
            assert steps[0].total == 10
            assert steps[0].message.startswith("step ")

    await at_once(pool, serve, ANYHOW, look)


async def test_a_hook_for_progress_that_raises_does_not_cost_the_result(pool: Pool, serve: Serve) -> None:
    async def fail(step: Step) -> None:
        raise RuntimeError("no")

    await pool.put(serve("stdio"))
    await pool.answer("stdio", "slow", {"seconds": 0.3}, on_progress=fail)


@pytest.mark.slow("bets on time")
async def test_the_time_of_a_question_does_not_count(pool: Pool, serve: Serve) -> None:
    async def ponder(question: Question) -> ElicitResult:
        await asyncio.sleep(4.5)
        return ElicitResult(action="accept", content={"colour": "blue"})

    async def look(how: str) -> None:
        assert isinstance(await pool.call_tool(how, "echo", {"text": "awake"}), Answer)
        found = await pool.answer(how, "paint", {}, on_question=ponder, seconds=4.0)
        assert found.text == "painted blue"

    await at_once(pool, serve, ["stdio", "http-2025"], look)


async def test_a_question_is_taken_back_when_its_call_is_cancelled(pool: Pool, serve: Serve) -> None:
    cancel, shown, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait(question: Question) -> ElicitResult:
        shown.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        raise AssertionError

    await pool.put(serve("http-2025"))
    call = asyncio.create_task(pool.call_tool("http-2025", "paint", {}, on_question=wait, cancel=cancel))
    await asyncio.wait_for(shown.wait(), 60)
    cancel.set()
    assert isinstance(await asyncio.wait_for(call, 60), Unknown)
    await asyncio.wait_for(gone.wait(), 60)


async def test_a_hook_for_questions_that_raises_tells_the_server_nothing(pool: Pool, serve: Serve) -> None:
    async def fail(question: Question) -> ElicitResult:
        raise RuntimeError("our own affairs")

    await pool.put(serve("http-2025"))
    found = await pool.answer("http-2025", "paint", {}, on_question=fail)
    assert found.text == "not painted: cancel"


async def test_a_call_that_takes_too_long_is_given_up_and_the_server_told(pool: Pool, serve: Serve, logs: Logs) -> None:
    async def look(how: str) -> None:
        assert isinstance(await pool.call_tool(how, "echo", {"text": "awake"}), Answer)
        found = await pool.call_tool(how, "slow", {"seconds": 200.0}, seconds=2.0)
        assert isinstance(found, Unknown)
        assert "in time" in found.reason
        await soon(lambda: "slow cancelled" in written(logs(how)), "the server stopped")
        assert "slow ended" not in written(logs(how))

    await at_once(pool, serve, STOPPABLE, look)


async def test_a_call_that_is_cancelled_is_given_up_and_the_server_told(pool: Pool, serve: Serve, logs: Logs) -> None:
    async def look(how: str) -> None:
        cancel = asyncio.Event()
        call = asyncio.create_task(pool.call_tool(how, "slow", {"seconds": 20.0}, cancel=cancel))
        await soon(lambda: "slow began" in written(logs(how)), "the tool runs")
        cancel.set()
        found = await call
        assert isinstance(found, Unknown)
        assert "cancelled" in found.reason
        await soon(lambda: "slow cancelled" in written(logs(how)), "the server stopped")
        assert isinstance(await pool.call_tool(how, "echo", {"text": "still there"}), Answer)

    await at_once(pool, serve, STOPPABLE, look)


async def test_a_call_whose_task_is_cancelled_tells_the_server(pool: Pool, serve: Serve, log: Path) -> None:
    await pool.put(serve("stdio"))
    call = asyncio.create_task(pool.call_tool("stdio", "slow", {"seconds": 20.0}))
    await soon(lambda: "slow began" in written(log), "the tool runs")
    call.cancel()
    await asyncio.wait({call}, timeout=60)
    assert call.cancelled()
    await soon(lambda: "slow cancelled" in written(log), "the server stopped")


async def test_a_call_cancelled_beforehand_is_never_sent(pool: Pool, serve: Serve, log: Path) -> None:
    cancel = asyncio.Event()
    cancel.set()
    await pool.put(serve("stdio"))
    assert isinstance(await pool.call_tool("stdio", "echo", {"text": "no"}, cancel=cancel), NeverRan)
    assert isinstance(await pool.call_tool("stdio", "echo", {"text": "yes"}), Answer)
    assert written(log) == "echo yes\n"


async def test_a_call_that_does_not_pass_the_last_check_is_never_sent(pool: Pool, serve: Serve, log: Path) -> None:
    async def object_to_it() -> str:
        return "the tool has changed"

    async def pass_it() -> str:
        return ""

    await pool.put(serve("stdio"))
    assert await pool.call_tool("stdio", "echo", {"text": "no"}, check=object_to_it) == NeverRan("the tool has changed")
    assert isinstance(await pool.call_tool("stdio", "echo", {"text": "yes"}, check=pass_it), Answer)
    assert written(log) == "echo yes\n"


async def test_arguments_that_are_too_large_or_no_json_are_not_sent(pool: Pool, serve: Serve, log: Path) -> None:
    await pool.put(serve("stdio"))
    for text in ("x" * 1024 * 1024, float("inf"), object()):
        assert isinstance(await pool.call_tool("stdio", "echo", {"text": text}), NeverRan)
    assert not written(log)

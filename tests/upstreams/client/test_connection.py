"""How connections come and go."""

import asyncio
import gc
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from hitlchat.upstreams.client.connection import try_connect
from hitlchat.upstreams.client.results import Answer, NeverRan, Unknown
from hitlchat.upstreams.client.spec import ServerSpec
from tests.ports import free_port
from tests.upstreams.client.upstreams import (
    AT_MOST,
    QUICK,
    Pool,
    Seen,
    StartServer,
    at,
    children,
    descriptors,
    honest,
    hostile,
    living_groups,
    up,
    written,
)
from tests.waiting import soon

ERAS = [
    pytest.param((), id="newer"),
    pytest.param(("--era", "2025"), id="older", marks=pytest.mark.slow("another of the same kind")),
]


@pytest.mark.parametrize("options", ERAS)
async def test_a_server_killed_in_the_middle_of_a_call_leaves_the_outcome_unknown(
    options: tuple[str, ...], pool: Pool, start_server: StartServer, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    server = start_server("http", "--log", str(log), *options)
    await pool.put(at(server.url))
    call = asyncio.create_task(pool.call_tool("honest", "slow", {"seconds": 200.0}))
    await soon(lambda: "slow began" in written(log), "the tool runs")
    server.kill()
    assert isinstance(await asyncio.wait_for(call, AT_MOST), Unknown)
    await soon(lambda: pool.status("honest").state == "down", "it is seen to be down")
    assert "could not connect" in pool.status("honest").last_error

    refused = await pool.call_tool("honest", "add", {"a": 1, "b": 2})
    assert isinstance(refused, NeverRan)
    server.start()
    await soon(lambda: pool.status("honest").state == "up", "it is back")
    assert isinstance(await pool.call_tool("honest", "add", {"a": 1, "b": 2}), Answer)
    assert written(log).count("slow began") == 1


async def test_a_program_that_dies_in_a_call_is_started_again_and_the_call_is_not_repeated(
    pool: Pool, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    await pool.put(honest("honest", "--log", str(log)))
    found = await pool.call_tool("honest", "die", {})
    assert isinstance(found, Unknown)
    assert "-9" in found.reason
    assert isinstance(await pool.call_tool("honest", "add", {"a": 1, "b": 2}), Answer)
    assert written(log) == "die\nadd\n"


@pytest.mark.parametrize("options", ERAS)
async def test_a_call_after_a_restart_that_nobody_noticed_runs_once(
    options: tuple[str, ...], pool: Pool, start_server: StartServer, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    server = start_server("http", "--log", str(log), *options)
    await pool.put(at(server.url))
    await up(pool)
    server.kill()
    server.start()
    await pool.answer("honest", "add", {"a": 1, "b": 2})
    assert written(log) == "add\n"


async def test_a_stopped_server_is_seen_to_be_down(pool: Pool, start_server: StartServer) -> None:
    server = start_server()
    await pool.put(at(server.url, timeouts=replace(QUICK, health_every=0.2, health=1)))
    await up(pool)
    server.signal(signal.SIGSTOP)
    await soon(lambda: pool.status("honest").state == "down", "it is gone")
    server.signal(signal.SIGCONT)
    await soon(lambda: pool.status("honest").state == "up", "it is back")


@pytest.mark.parametrize(
    "how",
    [
        *("stdio", "http"),
        *(pytest.param(how, marks=pytest.mark.slow("another of the same kind")) for how in ("http-2025", "sse")),
    ],
)
async def test_a_change_of_the_tools_is_told(how: str, pool: Pool, seen: Seen, start_server: StartServer) -> None:
    options = ("--era", "2025") if how == "http-2025" else ()
    spec = honest() if how == "stdio" else at(start_server(how.partition("-")[0], *options).url)
    await pool.put(spec)
    await up(pool)
    await soon(lambda: seen.listings, "the first list")
    name, first = seen.listings[0]
    assert name == "honest"
    assert "newcomer" not in {tool.name for tool in first.tools}
    assert isinstance(await pool.call_tool("honest", "grow", {}), Answer)
    await soon(lambda: "newcomer" in {tool.name for tool in seen.listings[-1][1].tools}, "the new list")
    assert len(seen.listings[-1][1].tools) == len(first.tools) + 1


async def test_a_change_before_the_server_tells_of_changes_is_found(
    pool: Pool, seen: Seen, start_server: StartServer
) -> None:
    await pool.put(at(start_server("http", "--late-to-listen").url))
    await up(pool)
    await soon(lambda: seen.listings, "the first list")
    assert "newcomer" not in {tool.name for tool in seen.listings[0][1].tools}
    await soon(lambda: "newcomer" in {tool.name for tool in seen.listings[-1][1].tools}, "the new list")


@pytest.mark.parametrize("path", ["http", "stdio"])
async def test_the_older_protocol_can_be_chosen_for_a_server_that_speaks_the_newest(
    pool: Pool, start_server: StartServer, path: str
) -> None:
    spec = at(start_server("http").url, "web") if path == "http" else honest("program")
    await pool.put(spec)
    newest = (await up(pool, spec.name)).protocol_version
    await pool.put(replace(spec, older_protocol=True))
    assert (newest, (await up(pool, spec.name)).protocol_version) == ("2026-07-28", "2025-11-25")
    assert isinstance(await pool.call_tool(spec.name, "echo", {"text": "hello"}), Answer)


async def test_the_status_tells_what_there_is_to_know(pool: Pool, seen: Seen, start_server: StartServer) -> None:
    await pool.put(at(start_server("http", "--era", "2025").url))
    assert pool.status("honest").state == "down"
    status = await up(pool)
    assert (status.server_name, status.server_version, status.protocol_version) == ("honest", "1.2.3", "2025-11-25")
    assert status.latency_ms is not None
    assert status.last_error == ""
    assert [status.state for status in seen.statuses][:2] == ["connecting", "up"]


async def test_nobody_listening_is_said_in_words(pool: Pool) -> None:
    await pool.put(at(f"http://127.0.0.1:{free_port()}/mcp"))
    found = await pool.call_tool("honest", "add", {})
    assert isinstance(found, NeverRan)
    assert "could not connect: check the address, and that a server answers there" in found.reason
    assert pool.status("honest").state == "down"


async def test_a_server_that_wants_someone_to_sign_in_says_so(pool: Pool, start_server: StartServer) -> None:
    url = start_server("http", "--authorization", "Bearer right-token").url
    await pool.put(at(url, headers={"Authorization": "Bearer wrong-token"}))
    found = await pool.call_tool("honest", "add", {"a": 1, "b": 2})
    assert found == NeverRan(pool.status("honest").last_error, 401)
    assert "wrong-token" not in repr(pool.status("honest"))
    await pool.put(at(url, headers={"Authorization": "Bearer right-token"}))
    assert isinstance(await pool.call_tool("honest", "add", {"a": 1, "b": 2}), Answer)


async def test_a_program_gets_its_own_environment_and_an_empty_folder(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "ours")
    monkeypatch.setenv("OPENAI_API_KEY", "ours as well")
    await pool.put(honest(env={"THEIRS": "1"}))
    given = (await pool.answer("honest", "environment")).structured
    assert given["THEIRS"] == "1"
    assert given["files"] == ""
    assert given["HOME"] == given["cwd"]
    assert given.keys() <= {
        *("THEIRS", "HOME", "TMPDIR", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("cwd", "files"),
    }
    await pool.close()
    assert given["cwd"] not in map(str, Path(given["cwd"]).parent.iterdir())


async def test_a_program_that_is_not_there_is_said_in_words() -> None:
    spec = ServerSpec("nothing", "stdio", command="no-such-program-anywhere", timeouts=QUICK)
    assert (await try_connect(spec)).error == "the program 'no-such-program-anywhere' was not found"


async def test_a_test_of_the_connection_leaves_the_live_one_alone(
    pool: Pool, seen: Seen, start_server: StartServer
) -> None:
    spec = at(start_server().url)
    await pool.put(spec)
    await up(pool)
    trial = await try_connect(spec)
    assert trial.error == ""
    assert trial.server_name == "honest"
    assert trial.listing is not None
    assert {"add", "echo"} <= {tool.name for tool in trial.listing.tools}
    assert list(dict.fromkeys(status.state for status in seen.statuses)) == ["connecting", "up"]


@pytest.mark.parametrize(
    "habits",
    [
        ("child",),
        *(
            pytest.param(habits, marks=pytest.mark.slow("waits for programs that do not end"))
            for habits in (("stays",), ("chatter", "garbage"), ("mute",))
        ),
    ],
    ids=str,
)
async def test_nothing_is_left_of_a_program(habits: tuple[str, ...], tmp_path: Path) -> None:
    await try_connect(honest())  # what is made once and kept: threads, caches
    gc.collect()
    tasks, files, programs = asyncio.all_tasks(), descriptors(), children()
    pool = Pool()
    await pool.put(hostile(*habits))
    pool.connect("hostile")
    await soon(lambda: children() - programs, "the program runs")
    if "mute" not in habits:
        await up(pool, "hostile")
    started = children() - programs
    groups = living_groups(started)
    async with asyncio.timeout(AT_MOST):
        await pool.close()
    assert not asyncio.all_tasks() - tasks
    assert not children() - programs
    await soon(lambda: not living_groups(groups), "all that it started is gone")
    gc.collect()
    await soon(lambda: descriptors() <= files, "no descriptor is left")


async def test_several_connections_leave_nothing(start_server: StartServer) -> None:
    server = start_server("http", "--era", "2025")
    await try_connect(at(server.url))
    gc.collect()
    tasks, files = asyncio.all_tasks(), descriptors()
    for _ in range(3):
        assert (await try_connect(at(server.url))).error == ""
    gc.collect()
    assert not asyncio.all_tasks() - tasks
    assert descriptors() <= files + 1

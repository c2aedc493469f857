"""Real servers that nobody here wrote: from PyPI over standard input and output, from npm over both transports."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from mcp_types import ElicitResult

from hitlchat.upstreams.client.spec import ServerSpec
from tests import waiting
from tests.ports import free_port
from tests.upstreams.client.upstreams import QUICK, Person, Pool, Program, Steps, at, up

pytestmark = pytest.mark.slow("servers of others")

NPM = Path(os.environ.get("TEST_NPM_SERVERS") or Path(sys.prefix) / "npm") / "node_modules" / "@modelcontextprotocol"
REQUIRED = bool(os.environ.get("TEST_REQUIRE_SERVICES"))


def python_server(name: str, *arguments: str) -> ServerSpec:
    module = f"mcp_server_{name}"
    if find_spec(module) is None:
        pytest.skip(f"mcp-server-{name} is not installed")
    return ServerSpec(name, "stdio", command=sys.executable, args=("-m", module, *arguments), timeouts=QUICK)


def node_program(name: str) -> str:
    program = NPM / f"server-{name}" / "dist" / "index.js"
    if shutil.which("node") is None or not program.exists():
        assert not REQUIRED, "tools/npm_servers installs the servers from npm"
        pytest.skip("the MCP servers from npm are not installed (tools/npm_servers does that)")
    return str(program)


def node_server(name: str, *arguments: str) -> ServerSpec:
    return ServerSpec(name, "stdio", command="node", args=(node_program(name), *arguments), timeouts=QUICK)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q", "-b", "main"), (*identity, "commit", "-q", "--allow-empty", "-m", "The first")):
        subprocess.run(["git", *command], cwd=folder, check=True, timeout=40)
    return folder


async def test_the_time_server_tells_the_time(pool: Pool) -> None:
    await pool.put(python_server("time"))
    await up(pool, "time")
    assert {tool.name for tool in (await pool.list_tools("time")).tools} == {"get_current_time", "convert_time"}
    conversion = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    found = await pool.answer("time", "convert_time", conversion)
    assert "21:00" in found.text
    refused = await pool.answer("time", "get_current_time", {"timezone": "Nowhere/Never"})
    assert refused.is_error


async def test_the_git_server_reads_a_repository_and_only_that(pool: Pool, repository: Path, tmp_path: Path) -> None:
    await pool.put(python_server("git", "--repository", str(repository)))
    found = await pool.answer("git", "git_log", {"repo_path": str(repository)})
    assert "The first" in found.text
    refused = await pool.answer("git", "git_log", {"repo_path": str(tmp_path)})
    assert refused.is_error


async def test_the_filesystem_server_keeps_to_its_folder(pool: Pool, tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "note.txt").write_text("a note", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("a secret", encoding="utf-8")
    await pool.put(node_server("filesystem", str(folder)))
    found = await pool.answer("filesystem", "read_text_file", {"path": str(folder / "note.txt")})
    assert found.text == "a note"
    refused = await pool.answer("filesystem", "read_text_file", {"path": str(tmp_path / "secret.txt")})
    assert refused.is_error


@pytest.fixture(params=["stdio", "http"])
def everything(request: pytest.FixtureRequest) -> Iterator[ServerSpec]:
    if request.param == "stdio":
        yield node_server("everything", "stdio")
        return
    port = free_port()
    command = ["node", node_program("everything"), "streamableHttp"]
    program = Program(command, port, "/mcp", {"PORT": str(port)})
    program.start()
    yield at(program.url, "everything")
    program.kill()


async def test_the_everything_server_can_be_used(pool: Pool, everything: ServerSpec) -> None:
    await pool.put(everything)
    status = await up(pool, "everything")
    assert status.protocol_version
    names = {tool.name for tool in (await pool.list_tools("everything")).tools}
    assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= names
    found = await pool.answer("everything", "echo", {"message": "hello"})
    assert found.text == "Echo: hello"
    picture = await pool.answer("everything", "get-tiny-image", {})
    assert [block["mimeType"] for block in picture.content if block["type"] == "image"] == ["image/png"]


async def test_the_everything_server_tells_how_far_it_is(pool: Pool, everything: ServerSpec) -> None:
    steps = Steps()
    await pool.put(everything)
    how_long = {"duration": 1, "steps": 4}
    await pool.answer("everything", "trigger-long-running-operation", how_long, on_progress=steps.take)
    assert steps
    assert steps[0].total == 4


async def test_the_everything_server_may_ask(pool: Pool, everything: ServerSpec) -> None:
    person = Person(ElicitResult(action="decline"))
    await pool.put(everything)
    await up(pool, "everything")

    async def offered() -> bool:
        return "trigger-elicitation-request" in {tool.name for tool in (await pool.list_tools("everything")).tools}

    await waiting.found(offered, "it offers the tool, since it has heard that we can answer")
    found = await pool.answer("everything", "trigger-elicitation-request", {}, on_question=person.reply)
    assert [question.server for question in person.questions] == ["everything"]
    assert "declined" in found.text.lower()

"""Real servers that nobody here wrote, as people use them: found, exposed, asked about, called after a yes."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.upstreams import servers
from hitlchat.upstreams.client.link import Step
from hitlchat.upstreams.models import UpstreamServer, progressed
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import signed_in
from tests.gate.asking import events
from tests.ports import free_port
from tests.upstreams.client.test_other_peoples_servers import node_program, python_server
from tests.upstreams.client.upstreams import Program
from tests.upstreams.gated import asked, called, exposed, known, no, reached, read, settled, yes

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("allow_stdio", "serving"),
    pytest.mark.guarantee("gate:no-yes-no-run"),
    pytest.mark.slow("servers of others"),
]


def add(alice: User, draft: ServerDraft) -> UpstreamServer:
    return servers.create(draft, signed_in(alice), confirmed=draft.command_line)


def from_pypi(name: str, *arguments: str) -> ServerDraft:
    return ServerDraft(name, "stdio", command=sys.executable, args=python_server(name, *arguments).args)


def from_npm(name: str, *arguments: str) -> ServerDraft:
    node = shutil.which("node") or "node"
    return ServerDraft(name, "stdio", command=node, args=(node_program(name), *arguments))


async def test_the_time_server_tells_the_time_after_a_yes(alice: User, bob: User) -> None:
    tools = await exposed(alice, await in_db(add)(alice, from_pypi("time")), mode="REQUIRED")
    assert set(tools) == {"get_current_time", "convert_time"}
    conversion = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    declined, approved = [await asked(bob, tools["convert_time"], **conversion) for _ in range(2)]
    await no(bob, declined)
    await yes(bob, approved)
    assert (await settled(declined)).status == Status.DECLINED
    ended = await settled(approved)
    assert ended.status == Status.SUCCEEDED
    assert "21:00" in await read(ended)
    assert (await in_db(events)(ended))[-1] == "call.succeeded"
    wrong = await asked(bob, tools["get_current_time"], timezone="Nowhere/Never")
    await yes(bob, wrong)
    failed = await settled(wrong)
    assert (failed.status, failed.error["kind"]) == (Status.FAILED, "tool")
    rejected = await asked(bob, tools["convert_time"], time=12)
    assert rejected.status == Status.REJECTED


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(
        folder,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "The first",
    )
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, timeout=40, capture_output=True, text=True)
    return done.stdout


async def test_the_git_server_makes_a_branch_after_a_yes_and_none_without(
    alice: User, bob: User, repository: Path
) -> None:
    tools = await exposed(
        alice, await in_db(add)(alice, from_pypi("git", "--repository", str(repository))), mode="REQUIRED"
    )
    path = str(repository)
    declined = await asked(bob, tools["git_create_branch"], repo_path=path, branch_name="unwanted")
    approved = await asked(bob, tools["git_create_branch"], repo_path=path, branch_name="wanted")
    assert git(repository, "branch", "--list", "*wanted") == ""
    await no(bob, declined)
    await yes(bob, approved)
    assert (await settled(approved)).status == Status.SUCCEEDED
    assert git(repository, "branch", "--list", "*wanted").split() == ["wanted"]
    log = await asked(bob, tools["git_log"], repo_path=path)
    await yes(bob, log)
    assert "The first" in await read(await settled(log))


async def test_the_filesystem_server_writes_after_a_yes_and_not_without(alice: User, bob: User, tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    tools = await exposed(alice, await in_db(add)(alice, from_npm("filesystem", str(folder))), mode="REQUIRED")
    file = folder / "note.txt"
    declined = await asked(bob, tools["write_file"], path=str(file), content="unwanted")
    await no(bob, declined)
    assert ((await settled(declined)).status, file.exists()) == (Status.DECLINED, False)
    approved = await asked(bob, tools["write_file"], path=str(file), content="wanted")
    assert not file.exists()
    await yes(bob, approved)
    assert (await settled(approved)).status == Status.SUCCEEDED
    assert file.read_text(encoding="utf-8") == "wanted"
    outside = await asked(bob, tools["write_file"], path=str(tmp_path / "secret.txt"), content="unwanted")
    await yes(bob, outside)
    failed = await settled(outside)
    assert (failed.status, failed.error["kind"], (tmp_path / "secret.txt").exists()) == (Status.FAILED, "tool", False)


@pytest.fixture(params=["stdio", "http"])
def everything(request: pytest.FixtureRequest) -> Iterator[ServerDraft]:
    if request.param == "stdio":
        yield from_npm("everything", "stdio")
        return
    port = free_port()
    program = Program(["node", node_program("everything"), "streamableHttp"], port, "/mcp", {"PORT": str(port)})
    program.start()
    yield ServerDraft("everything", url=program.url)
    program.kill()


@pytest.fixture
async def tools(alice: User, everything: ServerDraft, serving: None) -> dict[str, Tool]:
    server = await in_db(add)(alice, everything)
    names = ("echo", "get-sum", "get-tiny-image", "trigger-long-running-operation")
    assert set(names) <= (await known(server)).keys()
    return await exposed(alice, server, *names)


async def test_the_everything_server_is_used_through_the_gate(bob: User, tools: dict[str, Tool]) -> None:
    assert all(tool.name.startswith("everything_") for tool in tools.values())
    assert (await called(bob, tools["echo"], message="hello")).result == "Echo: hello"
    assert "5" in await read(await called(bob, tools["get-sum"], a=2, b=3))
    picture = await called(bob, tools["get-tiny-image"])
    assert [each["mimeType"] for each in picture.result["content"] if each["type"] == "image"] == ["image/png"]
    assert (await called(bob, tools["get-sum"], a="two", b=3)).status == Status.REJECTED


async def test_how_far_the_everything_server_has_come_can_be_followed(bob: User, tools: dict[str, Tool]) -> None:
    steps: list[tuple[UUID, Step]] = []

    def follow(*, call_id: UUID, step: Step, **_: Any) -> None:
        steps.append((call_id, step))

    progressed.connect(follow)
    call = await called(bob, tools["trigger-long-running-operation"], duration=1, steps=4)
    assert call.status == Status.SUCCEEDED
    assert {(call_id, step.total) for call_id, step in steps} == {(call.pk, 4)}


async def test_a_server_that_goes_and_comes_takes_its_tools_along(alice: User, bob: User) -> None:
    port = free_port()
    program = Program(["node", node_program("everything"), "streamableHttp"], port, "/mcp", {"PORT": str(port)})
    program.start()
    try:
        server = await in_db(add)(alice, ServerDraft("everything", url=program.url))
        tool = (await exposed(alice, server, "echo"))["echo"]
        program.kill()
        lost = await called(bob, tool, message="hello")
        # Whether the loss is noticed before the call is submitted, before it begins, or by the call itself.
        assert lost.status in {Status.REJECTED, Status.WITHDRAWN, Status.FAILED}
        program.start()
        again = await reached(bob, tool, message="again")
        if again.status == Status.FAILED:
            # It was sent over the connection that broke, which is given up since.
            assert "It was not run" in again.error["message"]
            again = await reached(bob, tool, message="again")
        assert again.result == "Echo: again"
    finally:
        program.kill()

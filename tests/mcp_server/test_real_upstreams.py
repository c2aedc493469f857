"""Servers that nobody here wrote, through the gate and /mcp: a client gets what it would have got from them."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from pytest_django import Settings

from hitlchat.secrets.values import Value
from hitlchat.upstreams import servers
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import signed_in
from tests.mcp_server.clients import connected, status, text
from tests.upstreams import gated
from tests.upstreams.client.test_other_peoples_servers import node_server, python_server
from tests.upstreams.honest_server import PICTURE
from tests.waiting import stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow("the servers are others', most from npm")]

Json = dict[str, Any]
ENTITY: Final = {"type": "entity", "name": "Bob", "entityType": "person", "observations": ["likes red"]}


def everything(_: Path) -> tuple[str, ...]:
    return node_server("everything", "stdio").args


def filesystem(folder: Path) -> tuple[str, ...]:
    (folder / "picture.png").write_bytes(PICTURE)
    return node_server("filesystem", str(folder)).args


def memory(folder: Path) -> tuple[str, ...]:
    (folder / "memory").write_text(json.dumps(ENTITY), encoding="utf-8")
    return node_server("memory").args


def fetch(folder: Path) -> tuple[str, ...]:
    (folder / "page.html").write_text("<h1>Bread</h1><p>Flour and water.</p>", encoding="utf-8")
    return python_server("fetch", "--allow-private-ips", "--ignore-robots-txt").args


# What is asked of each, and what of the answer is known; {folder} and {pages} stand for where these are.
CALLS: Final[dict[Callable[[Path], tuple[str, ...]], dict[str, tuple[Json, str]]]] = {
    everything: {
        "get-tiny-image": ({}, "image/png"),
        "get-annotated-message": ({"messageType": "error", "includeImage": True}, "annotations"),
        "get-resource-links": ({"count": 2}, "resource_link"),
        "get-structured-content": ({"location": "New York"}, "temperature"),
    },
    filesystem: {
        "read_media_file": ({"path": "{folder}/picture.png"}, "image/png"),
        "list_directory": ({"path": "{folder}"}, "picture.png"),
    },
    memory: {"read_graph": ({}, "likes red")},
    fetch: {"fetch": ({"url": "{pages}/page.html"}, "Flour and water.")},
}


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[str]:
    """Where the files of the folder are."""
    web = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{web.server_port}"
    web.shutdown()
    thread.join(20)
    web.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def programs(settings: Settings) -> None:
    settings.MCP_ALLOW_STDIO = True


@pytest.mark.parametrize("start", CALLS, ids=lambda start: start.__name__)
async def test_what_a_real_server_gives_comes_through_as_it_came(
    start: Callable[[Path], tuple[str, ...]],
    programs: None,
    url: str,
    token: str,
    alice: User,
    pages: str,
    tmp_path: Path,
) -> None:
    command = sys.executable if start is fetch else "node"
    args, env = start(tmp_path), {"MEMORY_FILE_PATH": str(tmp_path / "memory")}
    calls = {tool: _filled(arguments, tmp_path, pages) for tool, (arguments, _) in CALLS[start].items()}
    async with Client(stdio_client(StdioServerParameters(command=command, args=[*args], env=env))) as client:
        direct = {tool: await client.call_tool(tool, arguments) for tool, arguments in calls.items()}
    values = tuple(Value(name, value) for name, value in env.items())
    await _expose(alice, ServerDraft("real", "stdio", command=command, args=args, env=values), *calls)
    async with connected(url, token, "2026") as client:
        through = {tool: await client.call_tool(f"real_{tool}", arguments) for tool, arguments in calls.items()}
    for tool, (_, known) in CALLS[start].items():
        assert known in _json(direct[tool]), tool
        _is_as_it_came(through[tool], direct[tool])


def _is_as_it_came(through: Any, direct: Any) -> None:
    assert (status(through), through.is_error) == ("succeeded", False)
    if len(direct.content) > 1 or direct.content[0].type != "text":
        assert _json(through) == _json(direct)
    elif direct.structured_content is None:
        assert text(through) == text(direct)
    else:
        assert through.structured_content == direct.structured_content


def _filled(arguments: Json, folder: Path, pages: str) -> Json:
    return {
        name: value.format(folder=folder, pages=pages) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


async def _expose(person: User, draft: ServerDraft, *tools: str) -> None:
    server = await in_thread(servers.create)(draft, signed_in(person), confirmed=draft.command_line)
    await stored(server.tools.exists, "its tools are listed", seconds=40)
    await in_thread(gated.expose)(person, server, *tools)


def _json(result: Any) -> str:
    return json.dumps([block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content])

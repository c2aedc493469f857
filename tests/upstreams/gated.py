"""Upstream tools used as people use them: through the gate, over the connections that the server process keeps."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import User

from hitlchat.base.database import in_db
from hitlchat.gate import decide, results
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.secrets.values import Value
from hitlchat.upstreams import connections, exposure, servers
from hitlchat.upstreams.changes import Change
from hitlchat.upstreams.models import ComposedTool, ServerState, UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, fresh
from tests.upstreams.client.upstreams import HOSTILE
from tests.upstreams.hostile_http import HostileHttp
from tests.waiting import found, soon, stored

# Nothing here has to be fast: how long a wait may take before it counts as in vain, in seconds.
PATIENCE: Final = 60.0
# The pause between two calls of somebody who is not to notice anything.
BETWEEN_CALLS: Final = 1.0


def program(person: User, *habits: str, name: str = "hostile", **fields: Any) -> UpstreamServer:
    """The server of hostile_server.py, known from now on; `env`: what it gets, none of it secret."""
    env = tuple(Value(key, str(value), secret=False) for key, value in fields.pop("env", {}).items())
    draft = ServerDraft(
        name,
        "stdio",
        command=sys.executable,
        args=(str(HOSTILE), *habits),
        env=(*env, *fields.pop("secrets", ())),
        **fields,
    )
    return servers.create(draft, signed_in(person), confirmed=draft.command_line)


def offering(person: User, folder: Path, definitions: Iterable[dict[str, Any]], **fields: Any) -> UpstreamServer:
    """One that offers these."""
    file = folder / "hostile-tools.json"
    file.write_text(json.dumps(list(definitions)), encoding="utf-8")
    env = {"TOOLS": file, **fields.pop("env", {})}
    return program(person, "given", env=env, **fields)


def web(person: User, there: HostileHttp, path: str = "/mcp", name: str = "hostile", **fields: Any) -> UpstreamServer:
    return servers.create(ServerDraft(name, url=there.url(path), **fields), signed_in(person))


def now(server: UpstreamServer) -> UpstreamServer:
    return UpstreamServer.objects.get(pk=server.pk)


def tools_of(server: UpstreamServer) -> dict[str, ComposedTool]:
    return {row.name: row for row in ComposedTool.objects.select_related("tool", "server").filter(server=server)}


async def is_in(state: ServerState, server: UpstreamServer, seconds: float = PATIENCE) -> UpstreamServer:
    await stored(lambda: now(server).state == state, f"{server.name} is {state}", seconds=seconds)
    return await in_db(now)(server)


async def known(server: UpstreamServer, seconds: float = PATIENCE) -> dict[str, ComposedTool]:
    """Its tools, once they have been taken in."""
    await stored(lambda: now(server).tool_count is not None, f"the tools of {server.name} are known", seconds=seconds)
    return await in_db(tools_of)(server)


def expose(person: User, server: UpstreamServer, *names: str, mode: str = "DISABLED", **change: Any) -> dict[str, Tool]:
    """These tools of it, or all that can be, by their upstream names; without a question unless `mode` asks."""
    rows = tools_of(server)
    wanted = [rows[name] for name in names or (name for name, row in rows.items() if not row.problems)]
    fields: dict[str, Any] = {"exposed": True, "warnings_read": True, "hitl_mode": mode} | change
    exposure.apply([Change(row.pk, **fields) for row in wanted], signed_in(person))
    return {name: row.tool for name, row in tools_of(server).items() if row.tool is not None}


async def exposed(person: User, server: UpstreamServer, *names: str, **fields: Any) -> dict[str, Tool]:
    """`expose`, once its tools are known."""
    await known(server)
    return await in_db(expose)(person, server, *names, **fields)


async def asked(person: User, tool: Tool, **arguments: Any) -> ToolCall:
    return await submit(CallRequest(tool.name, arguments, caller(person)))


async def yes(person: User, call: ToolCall) -> None:
    approval = await in_db(approval_of)(call)
    await in_db(decide.approve)(approval.pk, signed_in(person))


async def no(person: User, call: ToolCall) -> None:
    approval = await in_db(approval_of)(call)
    await in_db(decide.decline)(approval.pk, signed_in(person))


async def settled(call: ToolCall, seconds: float = PATIENCE) -> ToolCall:
    await stored(lambda: fresh(call).settled, "the call is settled", seconds=seconds)
    return await in_db(fresh)(call)


async def called(person: User, tool: Tool, **arguments: Any) -> ToolCall:
    """What became of a call that needs no yes."""
    return await settled(await asked(person, tool, **arguments))


async def read(call: ToolCall) -> str:
    """What the model reads of it."""
    return await in_db(lambda: results.for_model(fresh(call)))()


def is_published(tool: Tool) -> bool:
    return Tool.objects.get(pk=tool.pk).published


async def offered(tool: Tool) -> None:
    """Wait until it is in the catalog: it is not, while the connection that a call broke is being opened again."""
    await stored(lambda: is_published(tool), f"{tool.name} is offered", seconds=PATIENCE)


async def reached(person: User, tool: Tool, **arguments: Any) -> ToolCall:
    """`called`, once it is offered and connected: also if it leaves the catalog in the moment in which it is called.

    That a connection broke may be noted in the catalog a little later. What is turned away because of it was never
    anywhere, and is called again.
    """

    async def taken() -> ToolCall | None:
        await offered(tool)
        await _connected(tool)
        call = await called(person, tool, **arguments)
        return None if call.status == Status.REJECTED else call

    call: ToolCall = await found(taken, f"{tool.name} is not turned away", seconds=PATIENCE)
    return call


async def _connected(tool: Tool) -> None:
    """By what this process knows of the connection itself, and not by its row, which follows a little later."""
    row = await ComposedTool.objects.select_related("server").aget(tool=tool)
    await soon(lambda: state_here(row.server.name) == "up", f"{row.server.name} is connected", seconds=PATIENCE)


def state_here(name: str) -> str:
    """The state of this process's connection to a server; empty if there is none."""
    assert connections._serving is not None
    known = connections._serving._tracked.get(name)
    return known.connection.status.state if known and known.connection else ""


@asynccontextmanager
async def unreported(server: UpstreamServer) -> AsyncIterator[None]:
    """Meanwhile nothing of its connection is reported: that it is gone would take its tools out of the catalog."""
    kept = connections._serving
    assert kept is not None
    async with kept._tracked[server.name].recording:
        yield


@asynccontextmanager
async def unharmed(person: User, tool: Tool) -> AsyncIterator[None]:
    """Meanwhile somebody calls `tool`, which is another server's, again and again, and every time it succeeds."""
    ended: list[str] = []
    over = asyncio.Event()

    async def go_on() -> None:
        while not ended or not over.is_set():
            ended.append((await called(person, tool)).status)
            # As fast as it goes, these calls would be most of what the test costs.
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), BETWEEN_CALLS)

    going = asyncio.create_task(go_on())
    try:
        yield
    finally:
        over.set()
        await asyncio.wait_for(going, PATIENCE)
    assert set(ended) == {Status.SUCCEEDED}

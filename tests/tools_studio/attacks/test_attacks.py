"""Hostile tools through the real funnel: authored, submitted, run and recorded like any other.

Every one ends within its limits, none gets what it was not granted, and the next tool runs. That a program of
tests/sandbox/test_hostile.py does no harm in the sandbox is shown there; here is one of each ending.
"""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.secrets.values import Value
from tests.conftest import ECHO, MakeTool, caller
from tests.sandbox.test_hostile import PROGRAMS
from tests.tables import each_row
from tests.tools_studio.attacks.programs import INWARDS, POWERS, THEFT
from tools_studio import authoring
from tools_studio.models import Script, StoreEntry
from tools_studio.spec import SOURCE, Draft

pytestmark = pytest.mark.django_db(transaction=True)

THEIRS = "the neighbour's crown jewels"
SECONDS = 20.0


@pytest.fixture(autouse=True)
def tight(settings: Settings) -> None:
    """Limits that end an attack soon."""
    settings.TOOL_CPU_SECONDS = 0.3
    settings.TOOL_MEMORY_MIB = 32
    settings.TOOL_HOST_CALLS = 50


def function(body: str) -> str:
    return "def run():\n" + "".join(f"  {line}\n" for line in body.splitlines())


def planted(code: str, **fields: Any) -> Tool:
    """A published tool with this code, whatever the Studio would say of it."""
    tool = authoring.create(Draft("attack", ECHO, hitl_mode="DISABLED", **fields), SYSTEM, confirmed=True)
    Script.objects.filter(tool=tool).update(code=code)
    Tool.objects.filter(pk=tool.pk).update(published=True, input_schema={"type": "object", "properties": {}})
    return tool


def called(user: User, name: str = "attack") -> ToolCall:
    async def both() -> ToolCall:
        async with asyncio.timeout(SECONDS):
            submitted = await submit(CallRequest(name, {}, caller(user)))
            return await settled(submitted.pk, SECONDS)

    return async_to_sync(both)()


def called_with(code: str, tool: Tool, user: User) -> ToolCall:
    """The call of a tool that has this code by now."""
    Script.objects.filter(tool=tool).update(code=code)
    return called(user, tool.name)


def said(call: ToolCall) -> str:
    """Everything about the call that anyone could read."""
    return json.dumps([call.result, call.error, call.output, call.reason], ensure_ascii=False)


def ending(call: ToolCall) -> str:
    return call.error["kind"] if call.error else "value"


@pytest.fixture
def tool(db: None) -> Tool:
    return planted("")


@pytest.fixture
def next_tool(make_tool: MakeTool, alice: User) -> Iterator[None]:
    """After the attack, another tool runs as if nothing had been."""
    yield
    make_tool("echo", hitl_mode="DISABLED")
    assert called(alice, "echo").result == "hello"


@each_row("name", ["huge text", "frames", "forged denial", "surrogates", "many brackets"])
def test_a_hostile_program_ends_within_its_limits(alice: User, tool: Tool, next_tool: None, name: str) -> None:
    code, kinds = PROGRAMS[name]
    call = called_with(code, tool, alice)
    assert call.status in (Status.SUCCEEDED, Status.FAILED)
    assert ending(call) in {*kinds.split(), "denied"}, said(call)
    assert str(settings.BASE_DIR) not in said(call)


@each_row("name", POWERS)
def test_a_power_that_was_not_granted_cannot_be_had(alice: User, tool: Tool, next_tool: None, name: str) -> None:
    body, kinds = POWERS[name]
    call = called_with(function(body), tool, alice)
    assert ending(call) in kinds.split(), said(call)


@pytest.fixture
def neighbour(make_tool: MakeTool, settings: Settings, tmp_path: Path) -> None:
    """Another tool with its own store, secret, variable and folder, all of which hold what must not get out."""
    settings.TOOL_FILES_DIR = tmp_path
    make_tool(
        "neighbour",
        group="neighbour",
        capabilities={"store": True, "secrets": True, "files": {"mode": "write", "folder": "neighbour"}},
        variables=(Value("THEIR_KEY", THEIRS), Value("THEIR_NOTE", THEIRS, secret=False)),
    )
    StoreEntry.objects.create(group="neighbour", key="theirs", value=THEIRS)
    mine, theirs = tmp_path / "mine", tmp_path / "neighbour"
    mine.mkdir()
    theirs.mkdir()
    (theirs / "theirs.txt").write_text(THEIRS, encoding="utf-8")
    (mine / "own.txt").write_text("mine", encoding="utf-8")
    (mine / "leak.txt").symlink_to(theirs / "theirs.txt")
    (mine / "away").symlink_to(theirs)
    (mine / "proc").symlink_to("/proc")
    os.mkfifo(mine / "device")


def spy() -> Tool:
    return planted(
        "",
        group="spies",
        capabilities={"store": True, "secrets": True, "files": {"mode": "read", "folder": "mine"}},
        variables=(Value("OWN_KEY", "own-secret-4711-abcdef"),),
    )


def test_what_belongs_to_another_tool_or_the_server_cannot_be_read(
    alice: User, neighbour: None, next_tool: None, subtests: pytest.Subtests
) -> None:
    tool = spy()
    for name, (body, kinds) in THEFT.items():
        with subtests.test(msg=name):
            call = called_with(function(body), tool, alice)
            assert ending(call) in kinds.split(), said(call)
            for kept in (THEIRS, settings.SECRET_KEY, "root:", "PATH="):
                assert kept not in said(call)


@pytest.fixture
def inside() -> Iterator[tuple[int, list[bytes]]]:
    """A server inside this network: its port, and what reached it."""
    reached: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                reached.append(b"connected")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1], reached
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(timeout=5)


def test_nothing_inside_this_network_is_a_public_host(
    alice: User, inside: tuple[int, list[bytes]], subtests: pytest.Subtests
) -> None:
    port, reached = inside
    tool = planted("", capabilities={"fetch": {"mode": "open"}})
    for url in INWARDS:
        with subtests.test(msg=url):
            body = f"from hitl import fetch\nreturn fetch({url.replace('{port}', str(port))!r}, timeout=3)"
            call = called_with(function(body), tool, alice)
            assert ending(call) in ("error", "denied"), said(call)
            assert reached == []


def test_an_attack_is_recorded_like_any_other_call(alice: User) -> None:
    tool = planted(function("while True: pass"))
    call = called(alice)
    assert (call.tool_id, call.source, call.caller_id) == (tool.pk, SOURCE, alice.pk)
    names = list(call.events.values_list("name", flat=True))
    assert names == ["call.allowed", "call.executing", "call.failed"]

"""What was accepted is what is called: one changed character is noticed, and no hint of a server is believed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.status import Status
from hitlchat.upstreams import exposure
from hitlchat.upstreams.changes import Change, Refused
from hitlchat.upstreams.models import ToolState
from tests.conftest import signed_in
from tests.gate.asking import fresh
from tests.upstreams.gated import asked, called, exposed, is_published, known, read, settled, tools_of, web, yes
from tests.upstreams.hostile_http import HostileHttp, hostile_http
from tests.waiting import stored

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE: dict[str, Any] = {
    "title": "Fine",
    "description": "Does fine.",
    "inputSchema": {"type": "object", "properties": {"to": {"type": "string", "description": "Who"}}},
    "outputSchema": {"type": "object", "properties": {"id": {"type": "string"}}},
    "annotations": {"title": "Fine", "destructiveHint": True},
}
# One character each; risk/test_fingerprint.py has one for each member.
CHANGES: dict[str, dict[str, Any]] = {
    "unseen": {"description": "Does fine.\u200b"},
    "argument": {
        "inputSchema": {"type": "object", "properties": {"to": {"type": "string", "description": "Whom"}}},
    },
}


@pytest.fixture
async def hostile(serving: None) -> AsyncIterator[HostileHttp]:
    async with hostile_http() as there:
        there.offered["fine"] = BEFORE
        yield there


def offered(**changed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A tool for each change, and one that stays as it is."""
    return {name: BEFORE | changed.get(name, {}) for name in (*CHANGES, "same")}


@pytest.mark.guarantee("gate:same-call", "SR-28")
async def test_one_character_changed_between_list_and_call_stops_the_call(
    alice: User, bob: User, hostile: HostileHttp, settings: Settings
) -> None:
    """SR-28. Nothing announces the change: it comes after the yes, and before the call."""
    settings.MCP_LIST_SECONDS = 0
    hostile.extra = offered()
    server = await in_db(web)(alice, hostile)
    tools = await exposed(alice, server, *CHANGES, "same", mode="REQUIRED")
    calls = {name: await asked(bob, tool, to="me") for name, tool in tools.items()}
    for name, change in CHANGES.items():
        hostile.extra[name] = BEFORE | change
        await yes(bob, calls[name])
        ended = await settled(calls[name])
        assert (name, ended.status, hostile.called(name)) == (name, Status.FAILED, 0)
        assert "It was not run: its server changed its definition after it was accepted." in await read(ended)
        row = (await in_db(tools_of)(server))[name]
        assert (row.state, row.held, await in_db(is_published)(tools[name])) == (ToolState.WITHHELD, True, False)
    assert (await in_db(fresh)(calls["same"])).status == Status.WAITING


@pytest.mark.guarantee("gate:same-call", "SR-28")
async def test_one_character_changed_with_a_notice_withholds_the_tool_and_voids_what_waits(
    alice: User, bob: User, hostile: HostileHttp
) -> None:
    """SR-28."""
    hostile.extra = offered()
    server = await in_db(web)(alice, hostile)
    free = await exposed(alice, server, "announce")
    tools = await exposed(alice, server, *CHANGES, "same", mode="REQUIRED")
    waiting = {name: await asked(bob, tool, to="me") for name, tool in tools.items()}
    hostile.extra = offered(**CHANGES)
    await called(bob, free["announce"])
    for name in CHANGES:
        ended = await settled(waiting[name])
        assert (name, ended.status, hostile.called(name)) == (name, Status.WITHDRAWN, 0)
        assert "its server changed its definition" in await read(ended)
        row = (await in_db(tools_of)(server))[name]
        await in_db(exposure.accept)(row.pk, row.seen_digest, signed_in(alice), warnings_read=True)
        again = await asked(bob, tools[name], to="me")
        assert (again.status, hostile.called(name)) == (Status.WAITING, 0)
    assert (await in_db(fresh)(waiting["same"])).status == Status.WAITING


@pytest.mark.guarantee("gate:same-call", "SR-28")
async def test_a_change_that_was_announced_counts_before_the_list_was_read_again(
    alice: User, bob: User, hostile: HostileHttp
) -> None:
    """SR-28. The list is fresh, and there is a notice: the next call reads it before it is sent."""
    server = await in_db(web)(alice, hostile)
    free = await exposed(alice, server, "announce", "fine")
    hostile.offered["fine"] = BEFORE | CHANGES["unseen"]
    assert (await called(bob, free["announce"])).status == Status.SUCCEEDED
    ended = await called(bob, free["fine"], to="me")
    assert (ended.status in {Status.FAILED, Status.REJECTED}, hostile.called("fine")) == (True, 0)


@pytest.mark.guarantee("SR-29")
async def test_a_yes_for_one_server_is_none_for_another_with_a_tool_of_the_same_name(
    alice: User, bob: User, hostile: HostileHttp
) -> None:
    """SR-29. What was exposed, accepted and set to run without a question belongs to one server."""
    async with hostile_http() as second:
        second.offered["fine"] = BEFORE
        first = await exposed(alice, await in_db(web)(alice, hostile, name="first"), "fine")
        other = await in_db(web)(alice, second, name="second")
        rows = await known(other)
        assert (rows["fine"].state, rows["fine"].tool) == (ToolState.NEW, None)
        gated = (await exposed(alice, other, "fine", mode="REQUIRED"))["fine"]
        call = await asked(bob, gated, to="me")
        assert (await called(bob, first["fine"], to="me")).status == Status.SUCCEEDED
        assert (await in_db(type(call).objects.get)(pk=call.pk)).status == Status.WAITING
        assert (hostile.called("fine"), second.called("fine")) == (1, 0)


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:fail-closed", "SR-30", "SR-37")
async def test_a_tool_that_appears_is_not_offered_and_then_asks_and_one_that_is_gone_gets_no_setting(
    alice: User, bob: User, hostile: HostileHttp
) -> None:
    """SR-30, SR-37. The gate holds what passes through it: a tool that its server does not offer cannot be gated."""
    server = await in_db(web)(alice, hostile)
    rows = await known(server)
    free = await exposed(alice, server, "announce")
    hostile.extra, hostile.hidden = {"brand_new": {"annotations": {"readOnlyHint": True}}}, {"fine"}
    await called(bob, free["announce"])
    await stored(lambda: "brand_new" in tools_of(server), "the new tool is known")
    with pytest.raises(Refused):
        await in_db(exposure.apply)([Change(rows["fine"].pk, exposed=True, hitl_mode="REQUIRED")], signed_in(alice))
    assert not await in_db(Tool.objects.filter(composed__name="fine").exists)()
    row = (await in_db(tools_of)(server))["brand_new"]
    assert (row.state, row.exposed, row.tool) == (ToolState.NEW, False, None)
    (new,) = await in_db(exposure.apply)([Change(row.pk, exposed=True)], signed_in(alice))
    assert new.tool is not None
    assert new.tool.hitl_mode == HitlMode.REQUIRED
    assert (await asked(bob, new.tool)).status == Status.WAITING

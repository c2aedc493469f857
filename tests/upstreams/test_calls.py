"""Upstream tools meet the one gate: forwarded after a yes and never before, and told as it was."""

import asyncio
import sys
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.base.database import in_db
from hitlchat.gate.status import Status
from hitlchat.upstreams import discovery, exposure, servers
from hitlchat.upstreams.changes import Change
from hitlchat.upstreams.client.connection import try_connect
from hitlchat.upstreams.client.link import Step
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.client.spec import ServerSpec
from hitlchat.upstreams.models import ServerState, UpstreamServer, progressed
from tests.conftest import signed_in
from tests.gate.asking import approved, fresh, run, status
from tests.upstreams.gated import asked, is_published, settled, yes
from tests.upstreams.shops import Shop, add, add_program, expose, row
from tests.waiting import stored

pytestmark = [pytest.mark.embedded, pytest.mark.django_db(transaction=True)]


async def connected(person: User, shop: Shop, **fields: Any) -> UpstreamServer:
    server = await in_db(add)(person, shop, **fields)
    await stored(server.tools.exists, "its tools are known")
    return server


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel")
async def test_a_call_is_forwarded_after_a_yes_and_not_before(
    alice: User, bob: User, shop: Shop, serving: None
) -> None:
    tool = await in_db(expose)(alice, await connected(alice, shop))
    call = await asked(bob, tool, text="hello")
    assert (call.status, shop.heard) == (Status.WAITING, [])
    await yes(bob, call)
    ended = await settled(call)
    assert (ended.status, ended.result, shop.heard) == (Status.SUCCEEDED, {"result": "hello"}, ["call hello"])


async def test_how_far_a_call_is_can_be_followed(alice: User, bob: User, shop: Shop, serving: None) -> None:
    shop.offer(slow="Take a while.")
    tool = await in_db(expose)(alice, await connected(alice, shop), "slow", hitl_mode="DISABLED")
    steps: list[tuple[UUID, Step]] = []

    def follow(*, call_id: UUID, step: Step, **_: Any) -> None:
        steps.append((call_id, step))

    progressed.connect(follow)
    call = await settled(await asked(bob, tool, seconds=1))
    assert call.status == Status.SUCCEEDED
    assert {call_id for call_id, _ in steps} == {call.pk}
    assert (steps[-1][1].total, steps[-1][1].message) == (10, "on the way")


async def test_a_server_that_is_gone_takes_its_tools_along_and_brings_them_back(
    alice: User, bob: User, shop: Shop, serving: None
) -> None:
    server = await connected(alice, shop)
    tool = await in_db(expose)(alice, server)
    assert await in_db(is_published)(tool)
    waiting = await asked(bob, tool, text="hello")
    shop.program.kill()
    await stored(lambda: not is_published(tool), "the tool has left the catalog")
    found = await in_db(UpstreamServer.objects.get)(pk=server.pk)
    assert (found.state, bool(found.reason)) == (ServerState.DOWN, True)
    assert (await asked(bob, tool)).status == Status.REJECTED
    await yes(bob, waiting)
    ended = await settled(waiting)
    assert (ended.status, ended.reason) == (Status.WITHDRAWN, "Not run: its server shop does not answer.")
    shop.program.start()
    await stored(lambda: is_published(tool), "the tool is back", seconds=40)
    call = await asked(bob, tool, text="again")
    await yes(bob, call)
    assert (await settled(call)).result == {"result": "again"}


def test_without_a_server_process_a_call_has_a_connection_for_itself(
    alice: User, bob: User, shop: Shop, allow_stdio: None
) -> None:
    server = add_program(alice, shop)
    assert async_to_sync(discovery.take_in)(server.pk, server.revision, as_listed_by(shop))
    tool = expose(alice, server)
    call = approved(bob, tool, {"text": "hello"})
    assert run(call)
    assert (fresh(call).result, shop.heard) == ({"result": "hello"}, ["call hello"])
    assert not run(call)


def test_a_test_run_of_a_tool_that_is_not_exposed_does_not_reach_its_server(
    alice: User, bob: User, shop: Shop, allow_stdio: None
) -> None:
    server = add_program(alice, shop)
    async_to_sync(discovery.take_in)(server.pk, server.revision, as_listed_by(shop))
    tool = expose(alice, server)
    exposure.apply([Change(row(server).pk, exposed=False)], signed_in(alice))
    call = approved(alice, tool, {"text": "hello"}, kind="studio")
    assert run(call)
    assert (status(call), shop.heard) == (Status.FAILED, [])
    assert fresh(call).error["message"] == "It was not run: The tool is not exposed."


async def test_a_disabled_server_gets_no_call_that_waited(alice: User, bob: User, shop: Shop, serving: None) -> None:
    server = await connected(alice, shop)
    tool = await in_db(expose)(alice, server)
    call = await asked(bob, tool, text="hello")
    await in_db(servers.enable)(server.pk, False, signed_in(alice))
    ended = await settled(call)
    assert (ended.status, ended.reason) == (Status.WITHDRAWN, "Not run: its server was disabled.")
    assert not await in_db(is_published)(tool)
    await in_db(servers.enable)(server.pk, True, signed_in(alice))
    await stored(lambda: is_published(tool), "the tool is back")
    assert shop.heard == []


def as_listed_by(shop: Shop) -> Listing:
    """Its list, read over a connection of its own."""
    draft = ServerSpec("shop", "stdio", command=sys.executable, args=shop.arguments)
    trial = asyncio.run(try_connect(draft))
    assert trial.listing is not None, trial.error
    return trial.listing

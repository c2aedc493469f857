"""The connections of a server process: opened for what is enabled, followed, reported, closed."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.base.background import me
from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool
from hitlchat.secrets.values import Value
from hitlchat.upstreams import connections, servers
from hitlchat.upstreams.client.connection import Status
from hitlchat.upstreams.models import ServerState, UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft, draft_of
from tests.conftest import signed_in
from tests.ports import free_port
from tests.upstreams.client.upstreams import StartServer, children, starting
from tests.upstreams.gated import is_in, now, state_here
from tests.upstreams.shops import SAYS_IT_BACK, Shop, add, add_program, expose, listing, row, somewhere, take_in
from tests.waiting import SECONDS, soon, stored

pytestmark = pytest.mark.django_db(transaction=True)

start_server = pytest.fixture(starting)
KEY = "sk-very-secret-0815"


async def test_what_is_known_of_a_connection_stands_in_the_row(alice: User, shop: Shop, serving: None) -> None:
    server = await is_in(ServerState.UP, await in_db(add)(alice, shop))
    assert (server.told_name, server.told_version, server.reason, server.reported_by) == ("changing", "1", "", me())
    assert server.latency_ms is not None
    await stored(lambda: now(server).tool_count == 1, "its tools are counted")


async def test_a_server_that_is_not_there_says_why(alice: User, serving: None) -> None:
    draft = ServerDraft("nobody", url=f"http://127.0.0.1:{free_port()}/mcp")
    server = await is_in(ServerState.DOWN, await in_db(servers.create)(draft, signed_in(alice)))
    assert server.reason
    assert server.last_error_at is not None


async def test_a_server_that_wants_someone_to_sign_in_says_so(
    alice: User, start_server: StartServer, serving: None
) -> None:
    program = start_server("http", "--authorization", f"Bearer {KEY}")
    draft = ServerDraft("guarded", url=program.url)
    server = await is_in(ServerState.SIGN_IN, await in_db(servers.create)(draft, signed_in(alice)))
    opened = ServerDraft("guarded", url=program.url, headers=(Value("Authorization", f"Bearer {KEY}"),))
    await in_db(servers.change)(server.pk, opened, signed_in(alice))
    await is_in(ServerState.UP, server)


async def test_what_is_missing_in_the_environment_is_named(alice: User, serving: None) -> None:
    made = await in_db(somewhere)(alice, headers=(Value("Authorization", "Bearer ${NOT_SET_HERE}"),))
    server = await is_in(ServerState.UNUSABLE, made)
    assert server.reason == "Authorization: the environment variable NOT_SET_HERE is not set on this server."


async def test_an_edit_connects_anew(alice: User, shop: Shop, serving: None) -> None:
    server = await is_in(ServerState.UP, await in_db(add)(alice, shop))
    await in_db(servers.change)(
        server.pk, ServerDraft("shop", url=f"http://127.0.0.1:{free_port()}/mcp"), signed_in(alice)
    )
    await is_in(ServerState.DOWN, server)
    await in_db(servers.change)(server.pk, ServerDraft("renamed", url=shop.program.url), signed_in(alice))
    await is_in(ServerState.UP, server)


async def test_nothing_of_a_program_is_left_when_its_server_is_disabled_or_removed(
    alice: User, shop: Shop, allow_stdio: None, serving: None
) -> None:
    before = children()
    server = await in_db(add_program)(alice, shop)
    await is_in(ServerState.UP, server)
    assert children() - before
    await in_db(servers.enable)(server.pk, False, signed_in(alice))
    await soon(lambda: not children() - before, "the program has ended")
    await in_db(servers.enable)(server.pk, True, signed_in(alice))
    await is_in(ServerState.UP, server)
    await in_db(servers.delete)(server.pk, signed_in(alice))
    await soon(lambda: not children() - before, "the program has ended")


async def test_that_it_was_gone_before_does_not_take_out_the_tools_of_a_list_that_is_being_recorded(
    alice: User, shop: Shop, serving: None
) -> None:
    server = await in_db(add)(alice, shop)
    await stored(server.tools.exists, "its tools are known")
    await in_db(expose)(alice, server)
    kept = connections._serving
    assert kept is not None
    async with kept._tracked["shop"].recording:
        await asyncio.to_thread(shop.program.kill)
        await soon(lambda: state_here("shop") == "down", "it is seen to be gone")
        reporting = asyncio.create_task(kept.report())
        await asyncio.wait({reporting}, timeout=0.5)
        assert not reporting.done()
        await asyncio.to_thread(shop.program.start)
        await soon(lambda: state_here("shop") == "up", "it is back")
        assert await in_db(is_offered)()
    await asyncio.wait_for(reporting, SECONDS)
    assert await in_db(is_offered)()
    assert (await in_db(now)(server)).state == ServerState.UP


# -- What several processes say ---------------------------------------------------------------------------------------


UP = Status("up")
DOWN = Status("down", last_error="no way")


@pytest.fixture
def server(alice: User) -> UpstreamServer:
    """In the catalog with `echo`, as another process says that is connected."""
    made = somewhere(alice)
    take_in(made, listing(echo=SAYS_IT_BACK))
    expose(alice, made)
    fields: dict[str, Any] = {"state": ServerState.UP, "reported_by": "another", "reported_at": timezone.now()}
    UpstreamServer.objects.filter(pk=made.pk).update(**fields)
    return now(made)


def is_offered() -> bool:
    return Tool.objects.filter(published=True).exists()


def test_one_process_without_a_way_does_not_speak_for_those_that_have_one(server: UpstreamServer) -> None:
    assert connections.report(server.pk, server.revision, DOWN)
    assert (now(server).state, now(server).reported_by, is_offered()) == (ServerState.UP, "another", True)


def test_the_word_of_a_process_that_fell_silent_lapses(server: UpstreamServer) -> None:
    UpstreamServer.objects.update(reported_at=timezone.now() - connections.COUNTS_FOR - timedelta(seconds=1))
    assert not connections.report(server.pk, server.revision, DOWN)
    assert (now(server).state, now(server).reason, is_offered()) == (ServerState.DOWN, "no way", False)


def test_a_process_that_ends_takes_its_word_back(server: UpstreamServer) -> None:
    connections.report(server.pk, server.revision, UP)
    connections.fall_silent()
    assert now(server).reported_at is None
    assert is_offered()


def test_being_connected_again_is_not_enough_to_be_offered_again(server: UpstreamServer) -> None:
    connections.report(server.pk, server.revision, UP)
    connections.report(server.pk, server.revision, DOWN)
    assert not is_offered()
    assert not connections.report(server.pk, server.revision, UP)
    assert not is_offered()
    take_in(server, listing(echo=SAYS_IT_BACK))
    assert is_offered()


def test_a_report_of_the_connection_before_is_ignored(alice: User, server: UpstreamServer) -> None:
    changed = servers.change(server.pk, ServerDraft("shop", url="https://other.example/mcp"), signed_in(alice))
    connections.report(server.pk, server.revision, DOWN)
    assert now(changed).state == ServerState.NEW


def test_what_is_disabled_stays_so_whatever_is_reported(alice: User, server: UpstreamServer) -> None:
    off = servers.enable(server.pk, False, signed_in(alice))
    connections.report(off.pk, off.revision, UP)
    assert (now(off).state, is_offered()) == (ServerState.DISABLED, False)


def test_other_documentation_is_no_other_connection(alice: User, server: UpstreamServer) -> None:
    before = row(server).risk_inherent
    draft = draft_of(server)
    changed = servers.change(
        server.pk, ServerDraft(draft.name, url=draft.url, docs_url="https://shop.example/docs"), signed_in(alice)
    )
    assert (changed.revision, changed.state, is_offered()) == (server.revision, ServerState.UP, True)
    assert row(server).risk_inherent <= before

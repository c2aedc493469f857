"""Without a yes, an upstream server does not even learn that somebody asked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.agent import model_client, runner
from hitlchat.agent.models import Conversation
from hitlchat.base.database import in_db
from hitlchat.gate import settling, stopping
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.upstreams import exposure, servers
from hitlchat.upstreams.changes import Change
from hitlchat.upstreams.models import ComposedTool, UpstreamServer
from tests.agent.talk import Talk
from tests.conftest import caller, signed_in
from tests.gate.asking import events, fresh
from tests.scripted_model import ScriptedModel, calls, scripted_model, text
from tests.upstreams.gated import called, exposed, no, read, settled, web, yes
from tests.upstreams.hostile_http import HostileHttp, hostile_http

__all__ = ["scripted_model"]

pytestmark = pytest.mark.django_db(transaction=True)
HELLO = {"text": "hello"}


@pytest.fixture
async def there(serving: None, settings: Settings) -> AsyncIterator[HostileHttp]:
    # A list as old as this is read again before a call: it must not be, before a yes.
    settings.MCP_LIST_SECONDS = 0
    async with hostile_http() as made:
        yield made


@pytest.fixture
async def gated(alice: User, there: HostileHttp) -> Tool:
    """`tell` of that server, which asks every time. What the server was asked up to now is forgotten."""
    tool = (await exposed(alice, await in_db(web)(alice, there), "tell", mode="REQUIRED"))["tell"]
    there.asked.clear()
    return tool


async def declined(alice: User, bob: User, call: ToolCall) -> None:
    await no(bob, call)


async def expired(alice: User, bob: User, call: ToolCall) -> None:
    past = timezone.now() - timedelta(seconds=1)
    await in_db(ToolCall.objects.filter(pk=call.pk).update)(deadline=past)
    await in_db(settling.sweep)()


async def withdrawn(alice: User, bob: User, call: ToolCall) -> None:
    await in_db(stopping.withdraw_call)(call.pk, actor=signed_in(bob), why="the caller went away")


async def hidden(alice: User, bob: User, call: ToolCall) -> None:
    await in_db(exposure.apply)([Change(composed(call).pk, exposed=False)], signed_in(alice))


async def renamed(alice: User, bob: User, call: ToolCall) -> None:
    await in_db(exposure.apply)([Change(composed(call).pk, alias="something_else")], signed_in(alice))


async def removed(alice: User, bob: User, call: ToolCall) -> None:
    await in_db(servers.delete)(composed(call).server_id, signed_in(alice))


def composed(call: ToolCall) -> ComposedTool:
    assert call.tool is not None
    return call.tool.composed


End = Callable[[User, User, ToolCall], Awaitable[None]]
# Of which tool, and what becomes of its call. The last takes the server along.
ENDS: dict[End, tuple[str, Status, str]] = {
    declined: ("tell", Status.DECLINED, "The user declined this call. It was not executed."),
    expired: ("tell", Status.EXPIRED, "Nobody answered the approval in time. It was not executed."),
    withdrawn: ("tell", Status.WITHDRAWN, "the caller went away"),
    hidden: ("tell", Status.WITHDRAWN, "the tool is no longer exposed"),
    renamed: ("fine", Status.WITHDRAWN, "the tool was changed"),
    removed: ("give", Status.WITHDRAWN, "its server was removed"),
}


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth", "audit:complete")
async def test_of_a_call_that_gets_no_yes_its_server_hears_nothing(
    subtests: pytest.Subtests, alice: User, bob: User, there: HostileHttp
) -> None:
    """Not even its list of tools is read for the sake of the call."""
    tools = await exposed(alice, await in_db(web)(alice, there), "tell", "fine", "give", mode="REQUIRED")
    there.asked.clear()
    for end, (name, status, words) in ENDS.items():
        with subtests.test(end.__name__):
            call = await submit(CallRequest(tools[name].name, HELLO, caller(bob)))
            assert call.status == Status.WAITING
            await end(alice, bob, await in_db(ToolCall.objects.select_related("tool__composed").get)(pk=call.pk))
            ended = await settled(call)
            assert (ended.status, words in await read(ended)) == (status, True), await read(ended)
            assert not {"tools/call", "tools/list"} & set(there.asked)
            assert (await in_db(events)(call))[-1] == f"call.{status}"


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel", "SR-32")
async def test_whoever_calls_is_asked_and_the_server_is_called_once_after_the_yes(
    subtests: pytest.Subtests, bob: User, gated: Tool, there: HostileHttp
) -> None:
    # Tests are for authors.
    await in_db(roles.give)(bob, Role.AUTHOR)
    for kind in ("chat", "studio", "api", "mcp"):
        with subtests.test(kind):
            there.asked.clear()
            call = await submit(CallRequest(gated.name, HELLO, caller(bob, kind)))
            assert (call.status, there.asked) == (Status.WAITING, [])
            await yes(bob, call)
            ended = await settled(call)
            assert (ended.status, there.asked) == (Status.SUCCEEDED, ["tools/list", "tools/call"])
            assert '"arguments": {"text": "hello"}' in there.told


@pytest.mark.servers("several tasks read and write at a time")
async def test_many_calls_at_once_read_the_list_once(alice: User, bob: User, gated: Tool, there: HostileHttp) -> None:
    """It may have thousands of tools, and every call wants to know whether its own is still the same."""
    await exposed(alice, await in_db(server_of_tool)(gated), "tell")
    ended = await asyncio.gather(*(called(bob, gated) for _ in range(8)))
    assert {call.status for call in ended} == {Status.SUCCEEDED}
    assert there.called("tell") == 8
    assert there.asked.count("tools/list") < 8


def server_of_tool(tool: Tool) -> UpstreamServer:
    return tool.composed.server


@pytest.fixture
async def talk(there: HostileHttp, bob: User, scripted_model: ScriptedModel) -> AsyncIterator[Talk]:
    yield Talk(await Conversation.objects.acreate(owner=bob), bob)
    await runner.let_go()
    await model_client.client(model_client.endpoint()).close()
    model_client.client.cache_clear()


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth", "gate:same-call")
async def test_what_a_chat_asks_and_a_person_approves_is_sent_as_it_was_shown(
    talk: Talk, gated: Tool, there: HostileHttp, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls((gated.name, HELLO)), text("Done."))
    await talk.say()
    approval = await talk.only()
    assert there.asked == []
    await talk.approve(approval)
    await talk.over()
    assert (await talk.outcomes(), there.asked) == (["succeeded"], ["tools/list", "tools/call"])
    (call,) = await talk.calls()
    assert (await in_db(fresh)(call)).arguments == HELLO
    assert '"arguments": {"text": "hello"}' in there.told

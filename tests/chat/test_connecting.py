"""Who gets a websocket, and what the first thing on it is."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.agent.writing import tell
from hitlchat.asgi import application
from hitlchat.base.database import for_page, in_db
from hitlchat.chat.consumers import ConversationConsumer
from hitlchat.gate.models import ToolCall
from tests.agent.talk import Talk, in_database
from tests.chat.conftest import OpenTab, SignIn
from tests.chat.tab import ORIGIN, Tab, cookie_of
from tests.recorder import recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, text
from tests.waiting import SECONDS, soon

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("Redis announces it after the commit")

CLOSED_SIGNED_OUT = 4401
CLOSED_NOT_FOUND = 4404
CLOSED_IN_TROUBLE = 1011


@pytest.fixture
def charlies_cookie(charlie: User, sign_in: SignIn) -> str:
    return sign_in(charlie)


async def test_a_ping_is_answered(tab: Tab) -> None:
    await tab.send_raw("ping")
    assert await tab.next() == "pong"


async def test_a_page_gets_the_whole_state_at_once(
    talk: Talk, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(text("Hello Bob."), calls(("send", {"text": "hi"})))
    await talk_over(talk, open_tab, "Hi")
    await talk.say("Send it")
    await talk.asked()
    whole = await (await open_tab()).next()
    assert whole == await in_database(talk.page)()
    for part in ("Hello Bob.", "data-approve", 'data-waiting="1"'):
        assert part in whole


@asynccontextmanager
async def keeping_busy(
    thread: Callable[[Callable[[], object]], Callable[[], Awaitable[object]]],
) -> AsyncIterator[None]:
    """One of the threads of the database is busy meanwhile, as while many people ask at once."""
    is_busy, is_over = threading.Event(), threading.Event()

    def work() -> None:
        is_busy.set()
        is_over.wait(SECONDS)

    working = asyncio.ensure_future(thread(work)())
    await soon(is_busy.is_set)
    try:
        yield
    finally:
        is_over.set()
        await working


async def test_a_page_that_is_behind_catches_up_in_one_go(
    talk: Talk, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    call, tab = await asked(talk, open_tab, scripted_model)
    async with keeping_busy(for_page):
        for _ in range(50):
            await tell(talk.conversation.pk, "run")
            await tell(talk.conversation.pk, "message", message=str(call.turn_id))
            await tell(talk.conversation.pk, "call", call=str(call.pk), turn=str(call.turn_id), status=call.status)
        await tell(talk.conversation.pk, "grants")
    await tab.until(f'id="m-{call.turn_id}"')
    for part in ('id="run"', 'id="asks"', f'id="m-{call.turn_id}"', f'id="call-{call.pk}"'):
        assert sum(part in frame for frame in tab.seen[1:]) == 1, part
    # Nobody waits for a message before they see the card.
    assert 'id="asks"' not in tab.seen[-1]


async def test_what_a_command_is_told_comes_after_what_was_read_before_it(talk: Talk, tab: Tab) -> None:
    begun = len(tab.seen)
    (page,) = (each for each in ConversationConsumer.pages if each.conversation_id == talk.conversation.pk)
    async with keeping_busy(for_page):
        await tell(talk.conversation.pk, "run")
        await soon(page.pen.locked)
        await tab.send(type="nonsense")
    await tab.until('id="flash"')
    assert 'id="run"' in tab.seen[begun]


async def test_what_a_call_changes_comes_in_one_frame(
    talk: Talk, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    call, tab = await asked(talk, open_tab, scripted_model)
    await tell(talk.conversation.pk, "call", call=str(call.pk), turn=str(call.turn_id), status=call.status)
    frame = await tab.next()
    for part in ('id="asks"', 'id="run"', f'id="call-{call.pk}"'):
        assert part in frame


async def test_a_page_that_cannot_be_drawn_is_closed_and_so_comes_back(talk: Talk, tab: Tab) -> None:
    where = talk.conversation.pk
    await in_database(talk.conversation.delete)()
    await tell(where, "grants")
    assert await tab.close_code() == CLOSED_IN_TROUBLE


async def test_a_page_is_drawn_while_the_work_of_models_keeps_the_database_busy(talk: Talk, tab: Tab) -> None:
    async with keeping_busy(in_db):
        await tell(talk.conversation.pk, "run")
        await tab.until('id="run"')
        await tell(talk.conversation.pk, "resync")
        await tab.until('id="asks"')


async def asked(talk: Talk, open_tab: OpenTab, scripted_model: ScriptedModel) -> tuple[ToolCall, Tab]:
    """A call that waits, in a server that has been woken by a page, and another page that shows it."""
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {"text": "hi"})))
    await open_tab()
    await talk.say("Send it")
    call = (await talk.only()).call
    tab = await open_tab()
    await tab.next()
    return call, tab


async def talk_over(talk: Talk, open_tab: OpenTab, content: str) -> None:
    """A first run, in a server that has been woken by a page."""
    await open_tab()
    await talk.ask(content)


@pytest.mark.guarantee("run:survives")
@on_servers
async def test_a_page_that_comes_in_the_middle_of_an_answer_sees_what_is_written_and_the_rest(
    talk: Talk, tab: Tab, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Once upon", gate, " a time."))
    await talk.say()
    await tab.until("Once upon")
    late = await open_tab()
    await late.until("Once upon")
    gate.open()
    await late.until("Once upon a time.")


@on_servers
async def test_a_page_that_comes_while_the_model_pauses_sees_what_no_page_had_seen(
    talk: Talk, tab: Tab, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    await tab.close()
    gate = Gate()
    scripted_model.enqueue(text("Once upon", gate))
    await talk.say()
    await talk.text_arrived("Once upon")
    late = await open_tab()
    await late.until("Once upon")
    await talk.stop()


async def test_a_stranger_is_told_that_there_is_nothing(open_tab: OpenTab, charlies_cookie: str) -> None:
    assert await (await open_tab(charlies_cookie)).close_code() == CLOSED_NOT_FOUND


async def test_a_conversation_that_does_not_exist_looks_the_same(served: None, bobs_client: Client) -> None:
    tab = await Tab(uuid4(), cookie_of(bobs_client)).open()
    assert await tab.close_code() == CLOSED_NOT_FOUND
    await tab.close()


async def test_nobody_without_a_session_gets_in(open_tab: OpenTab) -> None:
    for cookie in ["", "sessionid=", "sessionid=made-up", "sessionid=" + "x" * 4000]:
        assert await (await open_tab(cookie)).close_code() == CLOSED_SIGNED_OUT


async def test_what_a_refused_page_sends_is_not_heard(
    talk: Talk, open_tab: OpenTab, charlies_cookie: str, scripted_model: ScriptedModel
) -> None:
    tab = await open_tab(charlies_cookie)
    await tab.send(type="say", content="Let me in")
    assert await tab.close_code() == CLOSED_NOT_FOUND
    assert await talk.conversation.messages.acount() == 0


async def test_a_hostile_origin_is_refused(served: None, talk: Talk, bobs_client: Client) -> None:
    for origin in [
        b"https://evil.example",
        b"http://127.0.0.1.evil.example",
        b"null",
        b"",
        b"file://",
        b"http://127.0.0.1:9000",
        None,
    ]:
        tab = Tab(talk.conversation.pk, cookie_of(bobs_client), origin)
        accepted, _ = await tab.socket.connect()
        assert not accepted
        await tab.close()


async def test_a_socket_that_is_none_of_ours_is_refused(served: None, bobs_client: Client) -> None:
    headers = [(b"host", b"127.0.0.1:8000"), (b"origin", ORIGIN), (b"cookie", cookie_of(bobs_client).encode())]
    for path in ["/ws/nothing", "/", "/ws/conversations/none", "/ws/conversations/", "/ws"]:
        accepted, _ = await WebsocketCommunicator(application, path, headers).connect(timeout=SECONDS)
        assert not accepted

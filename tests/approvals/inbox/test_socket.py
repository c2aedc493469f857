"""The light websocket that every page has: how many calls wait for its person, and which came; for nobody else's."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Group, User

from hitlchat.accounts import sign_in
from hitlchat.approvals.inbox.socket import BETWEEN_SECONDS, CLOSE_SIGNED_OUT
from hitlchat.asgi import application
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, Tool
from tests.agent.talk import in_database
from tests.approvals.inbox.conftest import Asked
from tests.chat.conftest import SignIn
from tests.chat.tab import ORIGIN
from tests.conftest import signed_in
from tests.gate.deciding_people import approver, rule
from tests.waiting import SECONDS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("Redis announces it after the commit")]


class Bar:
    """The socket of one page."""

    def __init__(self, cookie: str, origin: bytes | None = ORIGIN) -> None:
        headers = [(b"host", b"127.0.0.1:8000"), (b"cookie", cookie.encode())]
        headers += [(b"origin", origin)] if origin is not None else []
        self.socket = WebsocketCommunicator(application, "/ws/inbox", headers)

    async def open(self) -> "Bar":
        accepted, _ = await self.socket.connect(timeout=SECONDS)
        assert accepted
        return self

    async def news(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.socket.receive_from(timeout=SECONDS))
        return found

    async def until(self, waiting: str) -> dict[str, Any]:
        while (news := await self.news())["waiting"] != waiting:
            pass
        return news

    async def closed(self) -> int:
        async with asyncio.timeout(SECONDS):
            while (output := await self.socket.receive_output(timeout=SECONDS))["type"] == "websocket.send":
                pass
        return int(output["code"])


OpenBar = Callable[[User], Awaitable[Bar]]


@pytest.fixture
async def open_bar(served: None, sign_in: SignIn) -> AsyncIterator[OpenBar]:
    bars: list[Bar] = []

    async def open_bar(user: User) -> Bar:
        bars.append(Bar(await in_database(sign_in)(user)))
        return await bars[-1].open()

    yield open_bar
    for bar in bars:
        if not bar.socket.future.done():
            await bar.socket.disconnect(timeout=SECONDS)


@pytest.fixture
def ask(asked: Asked) -> Callable[..., Awaitable[Approval]]:
    return in_database(asked)


@pytest.mark.guarantee("gate:only-people")
async def test_every_page_of_who_may_see_a_call_hears_that_it_comes_and_goes(
    bob: User, charlie: User, open_bar: OpenBar, ask: Callable[..., Awaitable[Approval]]
) -> None:
    bars, theirs = [await open_bar(bob) for _ in range(2)], await open_bar(charlie)
    assert [await bar.news() for bar in (*bars, theirs)] == [{"waiting": "0", "came": [], "gone": []}] * 3
    approval = await ask(bob, "one")
    for bar in bars:
        assert (await bar.until("1"))["came"] == [{"id": str(approval.pk), "tool": "echo"}]
    await in_database(decide.decline)(approval.pk, signed_in(bob))
    for bar in bars:
        assert await bar.until("0") == {"waiting": "0", "came": [], "gone": [str(approval.pk)]}
    # Others do not even hear that something happened.
    assert await theirs.socket.receive_nothing(timeout=2 * BETWEEN_SECONDS)


async def test_who_decides_for_others_hears_of_their_calls(
    alice: User, bob: User, open_bar: OpenBar, ask: Callable[..., Awaitable[Approval]]
) -> None:
    def ruled() -> tuple[User, User]:
        group = Group.objects.create(name="finance")
        dora, erik = approver("dora"), approver("erik")
        group.user_set.add(dora)
        rule(Tool.objects.get(), alice, group=group, not_the_requester=True)
        return dora, erik

    dora, erik = await in_database(ruled)()
    hers, his = await open_bar(dora), await open_bar(erik)
    assert (await his.news())["waiting"] == "0"
    await ask(bob, "for finance")
    assert [came["tool"] for came in (await hers.until("1"))["came"]] == ["echo"]
    # He looked too, and was told nothing of it.
    assert await his.news() == {"waiting": "0", "came": [], "gone": []}


@pytest.mark.slow("thirty calls")
async def test_a_storm_is_told_in_few_messages(
    bob: User, open_bar: OpenBar, ask: Callable[..., Awaitable[Approval]]
) -> None:
    bar = await open_bar(bob)
    await bar.news()
    for number in range(30):
        await ask(bob, f"number {number}")
    told = [await bar.news()]
    # The number is read when it is told, and may be ahead of which calls they are.
    while sum(len(news["came"]) for news in told) < 30:
        told.append(await bar.news())
    assert told[-1]["waiting"] == "30"
    assert sum(len(news["came"]) for news in told) == 30
    assert len(told) < 15


@pytest.mark.slow("waits for nothing to come")
async def test_a_page_that_asks_is_told_also_what_no_event_told(bob: User, open_bar: OpenBar, asked: Asked) -> None:
    bar = await open_bar(bob)
    await bar.news()
    await bar.socket.send_to(text_data="look")
    assert (await bar.news())["waiting"] == "0"
    for nonsense in ("approve", "{}", "x" * 10_000):
        await bar.socket.send_to(text_data=nonsense)
    assert await bar.socket.receive_nothing(timeout=2 * BETWEEN_SECONDS)


@pytest.mark.slow("waits for nothing to come")
async def test_many_pages_of_one_person_look_no_more_often_than_one(
    bob: User, charlie: User, open_bar: OpenBar
) -> None:
    bars = [await open_bar(bob) for _ in range(6)]
    for bar in bars:
        await bar.news()
    await bars[-1].socket.send_to(text_data="look")
    # Its last look was when all of them were open: now it is somebody else's turn six times.
    assert await bars[-1].socket.receive_nothing(timeout=4 * BETWEEN_SECONDS)
    assert (await bars[-1].news())["waiting"] == "0"
    # Others pay nothing for it.
    other = await open_bar(charlie)
    for _ in range(2):
        assert (await other.news())["waiting"] == "0"
        await other.socket.send_to(text_data="look")
    assert (await other.news())["waiting"] == "0"


@pytest.mark.guarantee("SR-24")
async def test_a_hostile_page_gets_no_socket(served: None, bob: User, sign_in: SignIn) -> None:
    cookie = await in_database(sign_in)(bob)
    for origin in (b"https://evil.example", b"http://127.0.0.1:9000", b"null", None):
        accepted, _ = await Bar(cookie, origin).socket.connect(timeout=SECONDS)
        assert not accepted, origin


async def test_without_a_session_and_after_signing_out_the_socket_is_closed_and_says_why(
    bob: User, open_bar: OpenBar, ask: Callable[..., Awaitable[Approval]]
) -> None:
    assert await (await Bar("").open()).closed() == CLOSE_SIGNED_OUT
    bar = await open_bar(bob)
    await bar.news()
    await in_database(sign_in.end_all)(bob.pk)
    await ask(bob, "after that")
    assert await bar.closed() == CLOSE_SIGNED_OUT

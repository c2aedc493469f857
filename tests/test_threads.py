"""The threads that requests are answered in: each is lent to one, keeps its connection, and carries nothing over.

What the views below see is kept in `seen`, in order.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final

import pytest
from asgiref.sync import SyncToAsync, async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.core import signals
from django.db import connection, connections, transaction
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client
from django.urls import get_script_prefix, get_urlconf, path, set_urlconf
from django.utils import timezone, translation
from django.views.decorators.csrf import csrf_exempt
from pytest_django import Settings

from hitlchat import handler
from hitlchat.asgi import http
from hitlchat.base import database, event_stream
from hitlchat.base.download import download
from hitlchat.base.event_stream import EventStream
from tests.chat.tab import cookie_of
from tests.tables import each_row
from tests.waiting import SECONDS, soon

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("a pool keeps the connections there")]

RUSH: Final = 12  # more than threads are kept, fewer than the pool of PostgreSQL has connections
MINE: Final = ContextVar("MINE", default="nothing")
seen: list[tuple[str, threading.Thread]] = []
held: list[Any] = []
released = threading.Event()
meeting = threading.Barrier(RUSH)


def note(what: str) -> None:
    seen.append((what, threading.current_thread()))


def whats() -> list[str]:
    return [what for what, _ in seen]


def plain(_request: HttpRequest) -> HttpResponse:
    note("plain")
    User.objects.count()
    held.append(connection.connection)
    return HttpResponse("said")


def carry(request: HttpRequest) -> HttpResponse:
    """Leave behind whatever a view could."""
    note(f"carry {request.user}")
    translation.activate("de")
    timezone.activate("Asia/Tokyo")
    MINE.set("carried")
    set_urlconf("hitlchat.urls")
    return HttpResponse()


def find(request: HttpRequest) -> HttpResponse:
    """Say what there is of it."""
    note("find")
    here = [timezone.get_current_timezone_name(), MINE.get(), get_urlconf(), get_script_prefix(), str(request.user)]
    return HttpResponse(" ".join([translation.get_language() or "none", *map(str, here)]))


def unfinished(_request: HttpRequest) -> HttpResponse:
    """Begin a transaction that nobody ends."""
    note("unfinished")
    transaction.atomic().__enter__()
    User.objects.create_user("nobody")
    return HttpResponse()


def by_hand(_request: HttpRequest) -> HttpResponse:
    """The same by a setting."""
    note("by hand")
    transaction.set_autocommit(False)
    User.objects.create_user("nobody")
    return HttpResponse()


def standing(_request: HttpRequest) -> HttpResponse:
    note("standing")
    names = [*User.objects.values_list("username", flat=True)]
    with database.durable():
        pass  # which raises within a transaction
    return HttpResponse(f"{connection.in_atomic_block} {connection.get_autocommit()} {names}")


def broken(_request: HttpRequest) -> HttpResponse:
    """Lose the connection, as when the server of the database is restarted."""
    note("broken")
    connection.ensure_connection()
    connection.connection.close()
    return HttpResponse(str(User.objects.count()))


def waits(_request: HttpRequest) -> HttpResponse:
    note("waits")
    assert released.wait(SECONDS)
    note("waited")
    return HttpResponse()


def waits_asynchronously(_request: HttpRequest) -> HttpResponse:
    async def forever() -> None:
        note("begun")
        try:
            await asyncio.Event().wait()
        finally:
            note("cancelled")

    async_to_sync(forever)()
    return HttpResponse()


def rush(_request: HttpRequest) -> HttpResponse:
    User.objects.count()
    held.append(connection.connection)
    meeting.wait(SECONDS)
    note("rush")
    return HttpResponse()


def pieces() -> Iterator[str]:
    try:
        for user in User.objects.order_by("pk").iterator():
            note("piece")
            yield user.username
    finally:
        note("closed")


def stream(request: HttpRequest) -> StreamingHttpResponse:
    note("stream")
    return download(request, pieces(), name="names.txt", kind="text/plain")


async def happenings() -> AsyncGenerator[bytes, None]:
    try:
        yield event_stream.OPEN
        note(f"open {await User.objects.acount()}")
        await asyncio.Event().wait()
    finally:
        note("left")


def events(_request: HttpRequest) -> EventStream:
    note("events")
    return EventStream(happenings(), {"X-Made-Of": "events"})


def file(_request: HttpRequest) -> FileResponse:
    note("file")
    # The response closes it.
    return FileResponse((django_settings.BASE_DIR / "manage.py").open("rb"))


@csrf_exempt
def body(request: HttpRequest) -> HttpResponse:
    note("body")
    return HttpResponse(request.body)


async def asynchronous(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(await User.objects.acount()))


VIEWS: Final[tuple[Callable[..., Any], ...]] = (
    *(plain, carry, find, unfinished, by_hand, standing, broken, waits, waits_asynchronously, rush, stream, events),
    file,
    *(body, asynchronous),
)
urlpatterns = [path(view.__name__, view) for view in VIEWS]


def _started(**_: Any) -> None:
    note("started")


def _finished(**_: Any) -> None:
    note("finished")


@pytest.fixture(autouse=True)
async def these_views(settings: Settings, transactional_db: None) -> AsyncIterator[None]:
    settings.ROOT_URLCONF = __name__
    signals.request_started.connect(_started)
    signals.request_finished.connect(_finished)
    await handler.threads.close()
    yield
    released.set()
    await handler.threads.close()
    signals.request_started.disconnect(_started)
    signals.request_finished.disconnect(_finished)
    released.clear()
    meeting.reset()
    seen.clear()
    held.clear()


class Browser:
    """One request to the application, as a server hands it over."""

    def __init__(self, view: Callable[..., Any], cookie: str = "", language: str = "en") -> None:
        headers = [(b"host", b"127.0.0.1"), (b"cookie", cookie.encode()), (b"accept-language", language.encode())]
        scope: dict[str, Any] = {
            "type": "http",
            "method": "POST" if view is body else "GET",
            "path": f"/{view.__name__}",
        }
        scope |= {"headers": headers, "query_string": b"", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
        self.connection: Any = ApplicationCommunicator(http, scope)  # type: ignore[no-untyped-call]

    async def send(self, content: bytes = b"", *, more: bool = False) -> None:
        await self.connection.send_input({"type": "http.request", "body": content, "more_body": more})

    async def leave(self) -> None:
        await self.connection.send_input({"type": "http.disconnect"})
        await self.connection.wait(SECONDS)

    async def event(self) -> Any:
        return await self.connection.receive_output(SECONDS)

    async def answer(self) -> tuple[int, str]:
        """The status and what was said; the request is over then, as far as its browser can see."""
        status = (await self.event())["status"]
        content = b""
        while (event := await self.event()).get("more_body"):
            content += event["body"]
        await self.connection.wait(SECONDS)
        return status, (content + event.get("body", b"")).decode()


async def asked(view: Callable[..., Any], **more: str) -> tuple[int, str]:
    browser = Browser(view, **more)
    await browser.send()
    return await browser.answer()


async def back() -> None:
    """Wait for the threads that are given back: a moment after their browsers have the answer."""
    await soon(lambda: not handler.threads.busy, "all threads are back")


def threads_left() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name.startswith("request")}


async def test_all_of_an_answer_is_made_in_one_thread() -> None:
    assert await asked(plain) == (200, "said")
    assert whats() == ["started", "plain", "finished"]
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] is not threading.current_thread()


@pytest.mark.embedded  # PostgreSQL's are kept by their pool
async def test_the_next_answer_is_made_in_the_same_thread_with_the_same_connection() -> None:
    for _ in range(3):
        await asked(plain)
        await back()
    assert len({thread for _, thread in seen}) == 1
    assert len({id(each) for each in held}) == 1


async def test_nothing_of_a_person_is_left_for_the_next_one(bob: User) -> None:
    client = Client()
    await asyncio.to_thread(client.force_login, bob)
    assert await asked(carry, cookie=cookie_of(client)) == (200, "")
    await back()
    nothing = f"en UTC nothing {__name__} / AnonymousUser"
    assert await asked(find) == (200, nothing)
    assert seen[0][1] == seen[-1][1]
    assert [what for what in whats() if what.startswith("carry")] == ["carry bob"]
    # Nor for what goes on in the loop.
    assert (translation.get_language(), timezone.get_current_timezone_name(), MINE.get()) == ("en", "UTC", "nothing")


async def test_answers_of_one_thread_have_each_its_own_language() -> None:
    for language in ("de", "en", "de"):
        said = (await asked(find, language=language))[1]
        await back()
        assert said.split()[0] == language
    assert len({thread for _, thread in seen}) == 1


@each_row("view", [unfinished, by_hand])
async def test_a_transaction_that_was_left_open_is_undone_and_not_joined(view: Callable[..., Any]) -> None:
    assert (await asked(view))[0] == 200
    await back()
    assert await asked(standing) == (200, "False True []")


async def test_a_lost_connection_costs_one_answer() -> None:
    assert (await asked(plain))[0] == 200
    assert (await asked(broken))[0] in (500, 503)
    await back()
    assert await asked(plain) == (200, "said")


@pytest.mark.embedded  # PostgreSQL's are kept by their pool
async def test_a_connection_is_kept_no_longer_than_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    for _ in range(2):
        await asked(plain)
        await back()
    assert len({thread for _, thread in seen}) == 1
    assert held[0] is not held[1]


async def test_a_rush_is_answered_at_once_and_leaves_a_few_threads() -> None:
    browsers = [Browser(rush) for _ in range(RUSH)]
    for browser in browsers:
        await browser.send()
    # They meet in their views, so none waits for another one's end.
    assert {(await browser.answer())[0] for browser in browsers} == {200}
    await soon(lambda: len(threads_left()) == handler.MOST_FREE and not handler.threads.busy, "the rest has ended")
    assert len(held) == RUSH
    await handler.threads.close()
    assert not threads_left()


@each_row("view", [plain, stream, asynchronous])
async def test_what_a_server_begins_as_it_sends_has_no_thread_of_the_request(view: Callable[..., Any]) -> None:
    browser, inherited = Browser(view), list[Any]()
    send = browser.connection.output_queue.put

    async def sent(event: Any) -> None:
        inherited.append(SyncToAsync.thread_sensitive_context.get(None))
        await send(event)

    browser.connection.output_queue.put = sent
    await browser.send()
    assert (await browser.answer())[0] == 200
    assert len(inherited) >= 2
    assert {*inherited} == {None}


async def test_a_view_goes_on_when_its_browser_is_gone_and_its_thread_is_not_lent_meanwhile() -> None:
    gone = Browser(waits)
    await gone.send()
    await soon(lambda: "waits" in whats(), "the view runs")
    await gone.leave()
    assert await asked(plain) == (200, "said")
    assert dict(seen)["waits"] != dict(seen)["plain"]
    assert "waited" not in whats()
    released.set()
    await back()
    assert whats().count("started") == whats().count("finished") == 2
    assert dict(seen)["waits"] == dict(seen)["waited"]


async def test_what_a_view_waits_for_in_the_loop_is_cancelled_when_its_browser_is_gone() -> None:
    gone = Browser(waits_asynchronously)
    await gone.send()
    await soon(lambda: "begun" in whats(), "the view waits")
    await gone.leave()
    await back()
    assert whats() == ["started", "begun", "cancelled", "finished"]


async def test_a_stream_is_made_in_its_thread_and_over_when_its_request_is(alice: User, bob: User) -> None:
    assert await asked(stream) == (200, "alicebob")
    await back()
    assert whats() == ["started", "stream", "piece", "piece", "closed", "finished"]
    assert len({thread for _, thread in seen}) == 1


async def test_a_stream_whose_browser_leaves_is_closed_in_its_thread(alice: User, bob: User) -> None:
    gone = Browser(stream)
    await gone.send()
    await gone.event()
    assert (await gone.event())["body"] == b"alice"
    await gone.leave()
    await back()
    assert whats()[-2:] == ["closed", "finished"]
    assert whats().count("finished") == 1
    assert len({thread for _, thread in seen}) == 1


async def test_a_stream_of_events_gives_its_thread_back_and_is_closed_when_its_browser_leaves(bob: User) -> None:
    listening = Browser(events)
    await listening.send()
    headers = dict((await listening.event())["headers"])
    assert (headers[b"Content-Type"], headers[b"X-Made-Of"]) == (b"text/event-stream", b"events")
    assert (await listening.event())["body"] == event_stream.OPEN
    await soon(lambda: "open 1" in whats(), "it goes on, and asks the database")
    await back()
    assert await asked(plain) == (200, "said")
    assert dict(seen)["events"] == dict(seen)["plain"]
    await listening.leave()
    await soon(lambda: "left" in whats(), "it is closed")
    assert whats().count("finished") == whats().count("started") == 2


async def test_a_file_is_sent_whole_and_closed() -> None:
    assert await asked(file) == (200, (django_settings.BASE_DIR / "manage.py").read_text(encoding="utf-8"))
    assert whats() == ["started", "file", "finished"]


async def test_a_body_that_comes_slowly_takes_no_thread() -> None:
    slow = Browser(body)
    await slow.send(b"one ", more=True)
    assert await asked(plain) == (200, "said")
    assert len(threads_left()) == 1
    await slow.send(b"two")
    assert (await slow.answer())[1] == "one two"


async def test_a_browser_that_leaves_before_it_has_asked_is_not_answered() -> None:
    gone = Browser(body)
    await gone.send(b"one ", more=True)
    await gone.leave()
    assert (seen, threads_left()) == ([], set())


async def test_a_request_that_cannot_be_read_is_refused() -> None:
    browser = Browser(plain)
    browser.connection.scope["query_string"] = b"\xff"
    await browser.send()
    assert (await browser.answer())[0] == 400
    await back()
    assert whats() == ["started", "finished"]


async def test_an_asynchronous_view_is_answered_too(bob: User) -> None:
    assert await asked(asynchronous) == (200, "1")


async def test_the_end_waits_for_threads_that_are_about_to_come_back() -> None:
    browser = Browser(waits)
    await browser.send()
    await soon(lambda: "waits" in whats(), "the view runs")
    ending = asyncio.create_task(handler.threads.close())
    released.set()
    await browser.answer()
    await ending
    assert not threads_left()

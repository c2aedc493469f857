"""Browsers and the servers that they visit.

Playwright's event loop counts as running in this thread for as long as it lives, which asynchronous tests do not bear;
so it lives as long as tests of this folder follow each other. They do, after all others, whatever the order is: one
browser and one server serve all of them.
"""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.browser import tools
from tests.browser.alone import Alone
from tests.browser.chatting import Chat, Site
from tests.browser.looking import NARROW, WIDE
from tests.browser.watching import Watch
from tests.processes import STEADY, Installation, Person, Server, Servers, copy_of, installation, migrated, servers
from tests.scripted_model import ScriptedModel
from tests.services import CHROMIUM_ARGS, chromium_path
from tests.waiting import until

__all__ = ["NARROW", "WIDE", "installation", "migrated", "servers"]

PATIENCE_MS: Final = 30_000
DRIVER_SECONDS: Final = 60


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: Any) -> None:
    """Close the pages before the servers end: what they still ask for would fail with these."""
    visit = item.funcargs.get("visit")
    if visit is not None:
        visit.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    playwright = _started() or _started()
    assert playwright is not None, "the driver of Playwright does not answer"
    expect.set_options(timeout=PATIENCE_MS)
    browser = playwright.chromium.launch(executable_path=chromium_path(), args=[*CHROMIUM_ARGS])
    yield browser
    browser.close()
    playwright.stop()


def _started() -> Playwright | None:
    """Start Playwright; None if its driver, a program of Node.js, never answers.

    It was seen to hang once in hundreds of starts, and then no test of this process has a browser.
    """
    before, killed = _children(), threading.Event()

    def kill() -> None:
        killed.set()
        for child in _children() - before:
            os.kill(child, signal.SIGKILL)

    timer = threading.Timer(DRIVER_SECONDS, kill)
    timer.start()
    try:
        return sync_playwright().start()
    except Exception:
        if not killed.is_set():
            raise
        logging.getLogger(__name__).warning("The driver of Playwright did not answer, and was killed")
        return None
    finally:
        timer.cancel()


def _children() -> set[int]:
    return {int(pid) for each in Path("/proc/self/task").glob("*/children") for pid in each.read_text().split()}


class SharedModel(ScriptedModel):
    """The scripted model of a server that many tests share: each leaves an even script behind."""

    def start_over(self, server: Server | None = None, *people: Person) -> None:
        """`server` goes on to be used: a run of these people that is left there would take a reply of the next test."""
        for gate in self._gates:
            gate.open()
        # A test may have seen enough before its last reply was asked for.
        with suppress(AssertionError):
            until(lambda: not self._script, seconds=10)
        try:
            if server is not None:
                _end_runs(server, people)
        finally:
            left, unexpected, invalid = len(self._script), self._unexpected, self._invalid
            self._script.clear()
            self._gates, self._unexpected, self._invalid, self.requests, self.otherwise = [], [], [], [], None
        assert (left, unexpected, invalid) == (0, [], [])


def _end_runs(server: Server, people: tuple[Person, ...]) -> None:
    """Stop the runs that wait for somebody, once none works any more; one that goes on is stopped, too, and said.

    One that stayed would ask the model in the middle of another test, as soon as a rule of its tool changes.
    """
    try:
        until(lambda: not server.home.runs("running"), "no run works")
    finally:
        for run in server.home.runs("running") + server.home.runs("waiting"):
            for person in people:
                person.post(f"/api/runs/{run}/stop")
        left = server.home.runs("running") + server.home.runs("waiting")
    assert left == [], "runs go on that this test left behind"


@dataclass(frozen=True)
class House:
    """A server with a scripted model and the people who use it, shared by the tests that leave it standing."""

    server: Server
    model: SharedModel
    bob: Person
    alice: Person

    def calls(self, conversation: str) -> list[dict[str, Any]]:
        """bob's calls there, as they stand."""
        messages = self.bob.conversation(conversation)["messages"]
        return [call for message in messages for call in message.get("toolCalls") or []]

    def sits_at_his_clients(self) -> None:
        """Alice says so of bob, for every MCP token that he has now."""
        home = self.server.home
        for line in home.manage("create_token", "bob", "--list").splitlines():
            number, kind, *_ = line.split("\t")
            if kind == "mcp":
                home.manage("create_token", "bob", "--mark", number, "--by", "alice")


@pytest.fixture(scope="package")
def furnished(migrated: Installation, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An installation with the tools of tools.py."""
    home = copy_of(migrated, tmp_path_factory.mktemp("furnished") / "data")
    tools.install(home)
    return home


@pytest.fixture(scope="package")
def house(furnished: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    model = SharedModel()
    started = Servers(copy_of(furnished, tmp_path_factory.mktemp("house") / "data"))
    # Half of the workers are one person's, and a test has three tools of one run at once.
    # They are signed in once, and the tests take longer than a sign-in is fresh for calls of L5.
    # The word of trusted clients is enough for the tools of these tests that keep something.
    settings = {"TOOL_WORKERS": "8", "HITL_ELICITATION_MAX_RISK": "2", "HITL_FRESH_SIGN_IN_MINUTES": "1440"}
    # Notices go out at once, and the model may ask the person.
    settings |= {"NOTICE_COLLECT_SECONDS": "0", "NOTICE_INTERVAL_SECONDS": "0", "HITL_ASK_USER": "1"}
    server = started.start(**model.environment | STEADY | settings)
    yield House(server, model, server.sign_in("bob"), server.sign_in("alice"))
    started.close()
    model.close()


@pytest.fixture
def server(house: House) -> Server:
    return house.server


@pytest.fixture
def new_name() -> str:
    """A name that nothing on the shared server has, whatever ran before, or ran in vain."""
    return f"new-{token_hex(4)}"


@pytest.fixture
def model(house: House) -> Iterator[SharedModel]:
    yield house.model
    house.model.start_over(house.server, house.bob, house.alice)


@pytest.fixture
def own(furnished: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Servers on data of their own, for tests that end them, with the same tools."""
    started = Servers(copy_of(furnished, tmp_path_factory.mktemp("own") / "data"))
    yield started
    started.close()


class Visit:
    """Opens pages, each in a browser context of its own, signed in as someone or as nobody."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._watches: dict[BrowserContext, Watch] = {}

    def __call__(self, site: Site, person: Person | None = None, **options: Any) -> Page:
        # What moves while it waits would be painted sixty times a second.
        usual = {"viewport": WIDE, "locale": "en-GB", "reduced_motion": "reduce"}
        context = self._browser.new_context(**{**usual, **options})
        context.set_default_timeout(PATIENCE_MS)
        # It goes on as usual, and a test can have it run: whoever waits for a page's pauses does not wait for real.
        context.clock.install()
        if person is not None:
            context.add_cookies([{"name": n, "value": v, "url": site.url} for n, v in person.cookies.items()])
        self._watches[context] = Watch(context, site.url)
        return context.new_page()

    def watch(self, page: Page) -> Watch:
        return self._watches[page.context]

    def close(self) -> None:
        for context in self._watches:
            context.close()

    def check(self) -> None:
        for watch in self._watches.values():
            watch.check()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    """What the pages may not do is checked at the end."""
    opened = Visit(chromium)
    yield opened
    opened.check()


@pytest.fixture
def alone(visit: Visit) -> Alone:
    """A page without a server."""
    return Alone(visit(Alone))


@pytest.fixture
def page(visit: Visit, house: House) -> Page:
    """A page of bob on the shared server."""
    return visit(house.server, house.bob)


@pytest.fixture
def author(visit: Visit, house: House) -> Page:
    """A page of alice, who writes tools, on the shared server."""
    return visit(house.server, house.alice)


@pytest.fixture
def chat(page: Page, house: House, model: SharedModel) -> Chat:
    """bob's page of a new conversation on the shared server; the model's script is the test's."""
    return Chat(page, house.server, house.bob.begin("")).open()

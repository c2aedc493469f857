"""Pictures that a tool of another server gives: in the chat, in the history, and in the Inspector."""

import sys
from typing import Final

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import looking
from tests.browser.chatting import Chat
from tests.browser.conftest import SharedModel, Visit
from tests.browser.test_inspector_story import Bench
from tests.processes import Server, Servers
from tests.scripted_model import calls, text
from tests.upstreams.client.upstreams import HONEST
from tests.upstreams.honest_server import WIDTH
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow("servers of its own")]

PROGRAM: Final = f"{sys.executable} {HONEST} stdio"
COMMAND: Final = ("servers", "--user", "alice")
ADD: Final = ("add", "honest", "--program", sys.executable, "--confirm", PROGRAM, "--args", str(HONEST), "stdio")
EXPOSE: Final = ("expose", "honest", "picture", "--mode", "DISABLED", "--less-oversight", "--warnings-read")


@pytest.fixture
def server(servers: Servers, model: SharedModel) -> Server:
    """One with `honest_picture`, which asks nobody, of a program."""
    server = servers.start(**model.environment, MCP_ALLOW_STDIO="1")
    manage = server.home.manage
    manage(*COMMAND, *ADD, MCP_ALLOW_STDIO="1")
    until(lambda: "picture" in manage(*COMMAND, "tools", "honest"), "its tools are known")
    manage(*COMMAND, *EXPOSE)
    return server


def is_shown(picture: Locator) -> None:
    expect(picture).to_be_visible()
    until(lambda: picture.evaluate("image => image.complete && image.naturalWidth") == WIDTH, "the picture is drawn")


def test_a_picture_is_seen_wherever_its_call_is(visit: Visit, server: Server, model: SharedModel) -> None:
    bob = server.sign_in("bob")
    page = visit(server, bob)
    chat = Chat(page, server, bob.begin("")).open()
    model.enqueue(calls(("honest_picture", {})), text("Here it is."))
    chat.say("A picture, please")
    chat.said("Here it is.")
    # Below the row of its call, which nobody has to open.
    is_shown(chat.log.get_by_role("img"))
    chat.log.locator("details.call > summary").click()
    expect(chat.log.get_by_role("img")).to_have_count(1)
    looking.check(page)
    chat.log.get_by_role("link", name="Full history").click()
    is_shown(page.get_by_role("img", name="An image from honest_picture"))
    looking.check(page)


def test_the_inspector_shows_the_picture_that_it_got(visit: Visit, server: Server) -> None:
    page = visit(server, server.sign_in("bob"))
    page.goto(f"{server.url}/mcp-access/inspector")
    page.get_by_role("button", name="Connect").click()
    bench = Bench(page)
    bench.run("honest_picture")
    is_shown(bench.calls.first.get_by_role("img"))
    expect(bench.calls.first).to_contain_text("[image]")
    looking.check(page)
    bench.end()

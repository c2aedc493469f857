"""A webhook is set up, tried and told of a call; quiet hours are set; on a real server with a receiver that listens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import press
from tests.browser.conftest import Visit
from tests.notices.receivers import Inbound, receiving
from tests.processes import STEADY, Installation, Server, Servers
from tests.waiting import until

pytestmark = pytest.mark.browser

AT_ONCE = {"NOTICE_COLLECT_SECONDS": "0", "NOTICE_INTERVAL_SECONDS": "0"}


@pytest.fixture
def inbound() -> Iterator[Inbound]:
    with receiving() as listening_there:
        yield listening_there


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.start(**STEADY, **AT_ONCE)


@pytest.fixture
def alice(server: Server, visit: Visit) -> Page:
    return visit(server, server.sign_in("alice"))


@pytest.mark.timeout(300)
def test_a_webhook_is_added_tried_and_told_of_a_call_and_of_its_end(
    alice: Page, server: Server, visit: Visit, inbound: Inbound, installation: Installation
) -> None:
    visit.watch(alice).expect("status of 422")
    inbound.status, inbound.said = 200, b"thank you"
    alice.goto(server.url)
    alice.get_by_role("link", name="Notices").click()
    expect(alice.get_by_text("E-mail is off for everyone")).to_be_visible()
    looking.check(alice)
    alice.get_by_role("link", name="Add webhook").click()
    alice.get_by_label("Name").fill("On call")
    alice.get_by_label("Address").fill(inbound.url)
    alice.get_by_label("On this machine").check()
    looking.check(alice)
    alice.get_by_label("Address").press("Enter")
    expect(alice.locator("#secret")).to_contain_text("whsec_")
    looking.check(alice)
    alice.get_by_role("button", name="Send a test").press("Enter")
    row = alice.get_by_role("row", name="On call")
    expect(row).to_contain_text("Delivered")
    expect(row).to_contain_text("thank you")
    looking.check(alice)

    alice.get_by_label("Quiet from").fill("22:00")
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_text("Give both the start and the end of quiet hours.")).to_be_visible()
    looking.check(alice)
    alice.get_by_label("Quiet from").fill("")
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_text("Saved.")).to_be_visible()

    installation.add_tool("echo", 'def run() -> str:\n    """Say it."""\n    return "x"\n', hitl_mode="REQUIRED")
    asked = server.sign_in("alice").post("/api/tools/echo/test", {"arguments": {}})
    until(lambda: inbound.events == ["test", "approval.waiting"], asked.text)
    (told,) = inbound.got[1].json["data"]["approvals"]
    assert told["url"].startswith(f"{server.url}/approvals/")
    alice.goto(told["url"])
    press(alice.get_by_role("button", name="Decline"))
    until(lambda: inbound.events[2:] == ["approval.decided"])
    (decided,) = inbound.got[2].json["data"]["approvals"]
    assert (decided["outcome"], decided["notice"]) == ("declined", inbound.got[1].id)

    alice.goto(f"{server.url}/notices/")
    alice.get_by_role("link", name="Remove… On call").click()
    looking.check(alice)
    alice.get_by_role("button", name="Remove On call").press("Enter")
    expect(alice.get_by_text("On call is removed.")).to_be_visible()

"""A webhook is set up, tried and told of a call; quiet hours are set; on a real server with a receiver that listens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import press
from tests.browser.conftest import House, Visit
from tests.notices.receivers import Inbound, receiving
from tests.waiting import until

pytestmark = pytest.mark.browser


@pytest.fixture
def inbound() -> Iterator[Inbound]:
    with receiving() as listening_there:
        yield listening_there


@pytest.mark.slow("a long story of notices")
@pytest.mark.timeout(300)
def test_a_webhook_is_added_tried_and_told_of_a_call_and_of_its_end(
    author: Page, house: House, visit: Visit, inbound: Inbound, new_name: str
) -> None:
    visit.watch(author).expect("status of 422")
    inbound.status, inbound.said = 200, b"thank you"
    author.goto(house.server.url)
    author.get_by_role("link", name="Notices").click()
    expect(author.get_by_text("E-mail is off for everyone")).to_be_visible()
    looking.check(author)
    author.get_by_role("link", name="Add webhook").click()
    author.get_by_label("Name").fill(new_name)
    author.get_by_label("Address").fill(inbound.url)
    author.get_by_label("On this machine").check()
    looking.check(author)
    author.get_by_label("Address").press("Enter")
    expect(author.locator("#secret")).to_contain_text("whsec_")
    looking.check(author)
    author.get_by_role("button", name="Send a test").press("Enter")
    row = author.get_by_role("row", name=new_name)
    expect(row).to_contain_text("Delivered")
    expect(row).to_contain_text("thank you")
    looking.check(author)

    author.get_by_label("Quiet from").fill("22:00")
    author.get_by_role("button", name="Save").click()
    expect(author.get_by_text("Give both the start and the end of quiet hours.")).to_be_visible()
    looking.check(author)
    author.get_by_label("Quiet from").fill("")
    author.get_by_role("button", name="Save").click()
    expect(author.get_by_text("Saved.")).to_be_visible()

    asked = house.alice.post("/api/tools/echo/test", {"arguments": {}})
    until(lambda: inbound.events == ["test", "approval.waiting"], asked.text)
    (told,) = inbound.got[1].json["data"]["approvals"]
    assert told["url"].startswith(f"{house.server.url}/approvals/")
    author.goto(told["url"])
    press(author.get_by_role("button", name="Decline"))
    until(lambda: inbound.events[2:] == ["approval.decided"])
    (decided,) = inbound.got[2].json["data"]["approvals"]
    assert (decided["outcome"], decided["notice"]) == ("declined", inbound.got[1].id)

    author.goto(f"{house.server.url}/notices/")
    author.get_by_role("link", name=f"Remove… {new_name}").click()
    looking.check(author)
    author.get_by_role("button", name=f"Remove {new_name}").press("Enter")
    expect(author.get_by_text(f"{new_name} is removed.")).to_be_visible()

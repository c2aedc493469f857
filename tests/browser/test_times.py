"""Times are read in the zone of the browser, on whatever page and whenever they come."""

from typing import Final

import pytest
from playwright.sync_api import expect

from tests.browser.alone import Alone
from tests.browser.conftest import House, Visit

pytestmark = pytest.mark.browser

NOW: Final = "2026-03-01T18:30:00Z"
READ: Final = (
    ("2026-03-01T05:00:07Z", "", "12:00 AM"),
    ("2026-03-01T05:00:07Z", "data-seconds", "12:00:07 AM"),
    ("2026-03-01T05:00:07Z", "data-whole", "March 1, 2026 at 12:00:07 AM EST"),
    ("2026-03-01T04:59:59Z", "", "Feb 28, 11:59 PM"),
    ("2025-11-26T14:15:04Z", "", "Nov 26, 2025, 9:15 AM"),
)
ADD: Final = "([at, more]) => document.body.insertAdjacentHTML('beforeend', `<time datetime='${at}' ${more}></time>`)"


def test_a_time_that_comes_later_is_read_in_the_zone_of_the_browser_and_says_which_one(visit: Visit) -> None:
    page = visit(Alone, timezone_id="America/New_York", locale="en-US")
    page.clock.set_fixed_time(NOW)
    Alone(page).question()
    for at, more, words in READ:
        page.evaluate(ADD, [at, more])
        expect(page.locator("time").last).to_have_text(words)
    expect(page.locator("time").last).to_have_attribute("title", "November 26, 2025 at 9:15:04 AM EST")


def test_notices_begin_with_the_zone_of_the_browser_and_keep_the_one_that_was_saved(visit: Visit, house: House) -> None:
    server, person = house.server, house.server.sign_in("charlie")
    for zone in ("Asia/Tokyo", "America/New_York"):
        page = visit(server, person, timezone_id=zone)
        page.goto(f"{server.url}/notices/")
        expect(page.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
        page.locator("form", has=page.get_by_label("Time zone")).get_by_role("button", name="Save").click()
        page.wait_for_load_state()

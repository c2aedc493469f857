"""The bar at the top, and at the bottom of a telephone: whatever a person may go to is in reach."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import NARROW, House, Visit

pytestmark = pytest.mark.browser

ALL: Final = ["Chat", "Inbox", "History", "Studio", "Servers", "Policies", "Insights", "Record", "People"]
FIRST: Final = ALL[:4]
#: Of windows in which all links stand beside each other, and of some in which they do not.
ROOMY: Final = (1280, 1100, 1024)
CROWDED: Final = (1023, 800, 704, 703, 390, 320)
#: A copy, since the page keeps its own badge at what really waits. Servers and their questions want somebody, too.
BADGES: Final = """() => {
  const badge = document.querySelector("[data-approvals-count]");
  const copy = badge.cloneNode(true);
  copy.hidden = false;
  copy.querySelector("[data-number]").textContent = "1,000+";
  badge.after(copy);
  for (const link of document.querySelectorAll(".nav a[href='/servers/'], .nav-more > summary")) {
    link.querySelector(".count")?.remove();
    link.insertAdjacentHTML("beforeend", "<span class=count>12</span>");
  }
  const bell = document.querySelector(".bar-end > [href^='/notices']");
  const asks = bell.cloneNode(true);
  asks.classList.remove("square");
  asks.insertAdjacentHTML("beforeend", "<span class=count>12</span>");
  bell.before(asks);
}"""

#: The room between the dots of "More" and what is counted on them.
BESIDE_DOTS: Final = """more => more.querySelector(".count").getBoundingClientRect().left
  - more.querySelector("svg").getBoundingClientRect().right"""

CALLED: Final = "element => element.innerText || element.getAttribute('aria-label')"


def links(page: Page) -> list[str]:
    """As they are seen, in their order, without what is counted on them."""
    found = page.get_by_role("navigation", name="Main").get_by_role("link").all_inner_texts()
    return [words.split()[0] for words in found]


def outside(page: Page) -> list[str]:
    """What of the bar is cut off, or under something else."""
    shown = page.locator(":is(.bar a, .bar button, .bar summary, .bar .count):visible")
    # Asked about one by one, hundreds of them would take longer than all else here.
    return list(shown.evaluate_all(f"all => all.filter(each => !({looking.IN_VIEW})(each)).map({CALLED})"))


def test_a_wide_window_has_every_page_in_its_bar_and_a_narrower_one_the_lesser_ones_under_more(
    author: Page, house: House
) -> None:
    author.goto(f"{house.server.url}/policies")
    author.evaluate(BADGES)
    for width in ROOMY:
        author.set_viewport_size({"width": width, "height": 800})
        assert links(author) == ALL, width
        assert not outside(author) + looking.overflow(author), width
    more = author.get_by_role("navigation", name="Main").locator("summary")
    for width in CROWDED:
        author.set_viewport_size({"width": width, "height": 800})
        assert links(author) == FIRST, width
        assert width > 703 or more.evaluate(BESIDE_DOTS) >= 0, width
        assert not outside(author) + looking.overflow(author), width
        more.click()
        assert links(author) == ALL, width
        assert not outside(author) + looking.overflow(author), width
        more.click()
    more.click()
    expect(author.get_by_role("navigation").get_by_role("link", name="Policies")).to_have_attribute(
        "aria-current", "page"
    )


@pytest.mark.slow("another story of the bar")
def test_more_is_opened_and_left_by_keyboard_and_by_a_click_elsewhere(author: Page, house: House) -> None:
    author.set_viewport_size(NARROW)
    author.goto(f"{house.server.url}/history/")
    summary, menu = author.get_by_role("navigation", name="Main").locator("summary"), author.locator(".nav-more")
    summary.press("Enter")
    expect(menu).to_have_attribute("open", "")
    assert not looking.violations(author)
    author.keyboard.press("Tab")
    expect(author.get_by_role("navigation").get_by_role("link", name="Servers")).to_be_focused()
    author.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(summary).to_be_focused()
    author.keyboard.press("Space")
    author.keyboard.press("Shift+Tab")
    expect(menu).not_to_have_attribute("open", "")
    summary.click()
    author.get_by_role("heading", name="History", level=1).click()
    expect(menu).not_to_have_attribute("open", "")
    summary.click()
    author.get_by_role("navigation").get_by_role("link", name="People").click()
    expect(author.get_by_role("heading", name="People", level=1)).to_be_visible()


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow("the same in another window"))])
def test_who_has_few_pages_has_them_all_on_a_telephone_too_and_switches_the_theme_for_all_of_them(
    visit: Visit, house: House, width: int
) -> None:
    page = visit(house.server, house.bob, viewport={"width": width, "height": 844}, color_scheme="dark")
    page.goto(f"{house.server.url}/account")
    switch, scheme = page.get_by_role("button", name="Dark theme"), "getComputedStyle(document.body).colorScheme"
    expect(switch).to_have_attribute("aria-pressed", "true")
    for pressed, theme in (("false", "light"), ("true", "dark"), ("false", "light")):
        with page.expect_response("**/theme"):
            switch.press("Enter")
        expect(switch).to_have_attribute("aria-pressed", pressed)
        expect(switch).to_be_focused()
        assert page.evaluate(scheme) == theme
        expect(page.get_by_label(theme.capitalize(), exact=True)).to_be_checked()
    assert not outside(page) + looking.overflow(page)
    page.goto(f"{house.server.url}/approvals/")
    expect(switch).to_have_attribute("aria-pressed", "false")
    assert page.evaluate(scheme) == "light"
    page.set_viewport_size(NARROW)
    assert links(page) == ["Chat", "Inbox", "History", "Policies", "Insights"]
    assert not outside(page) + looking.overflow(page)

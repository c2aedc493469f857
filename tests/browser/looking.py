"""What can be said of any page by looking at it: can everyone use it, does it fit its window."""

from pathlib import Path
from typing import Any, Final

import axe_playwright_python
import pytest
from playwright.sync_api import Locator, Page, ViewportSize

from tests.browser.chatting import settle

WIDE: Final[ViewportSize] = {"width": 1280, "height": 800}
NARROW: Final[ViewportSize] = {"width": 390, "height": 844}
AXE: Final = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
LOOKS: Final[dict[str, dict[str, Any]]] = {
    f"{size} {scheme}": {"viewport": viewport, "color_scheme": scheme}
    for size, viewport in (("wide", WIDE), ("narrow", NARROW))
    for scheme in ("light", "dark")
}
# What the colours decide is asked of both schemes, all else of both widths: axe takes most of a page's time, and most
# of that for the contrast of texts.
_COLOURS: Final = ["color-contrast", "link-in-text-block"]
ALL: Final[dict[str, Any]] = {}
BUT_COLOURS: Final[dict[str, Any]] = {"rules": {rule: {"enabled": False} for rule in _COLOURS}}
COLOURS: Final[dict[str, Any]] = {"runOnly": _COLOURS}
WIDTHS: Final = ("wide light", "narrow light")
RULES: Final = {"wide light": ALL, "wide dark": COLOURS, "narrow light": BUT_COLOURS}

# Cards go into the modal window and out of it once the page has heard that it became narrow or wide.
HEAR: Final = """isWide => {
  const room = matchMedia("(width >= 44rem)");
  const change = new Promise(done => room.addEventListener("change", () => done(true), { once: true }));
  window.heard = room.matches === isWide || change;
}"""

# For a story of many pages: it is told once in `make test`, and once more by `make test-slow` with axe at each page.
WITH_AXE: Final = pytest.param(True, marks=pytest.mark.slow("axe at each page"))
in_every_look: Final = pytest.mark.parametrize("with_axe", [False, WITH_AXE], ids=["fast", "axe"], indirect=True)


class Looking:
    """How thoroughly `check` looks: axe takes longer than all else that a test does with a page."""

    with_axe = True


def wear(page: Page, look: str) -> None:
    """Show the page as it is in another window, or with the other colours."""
    viewport = LOOKS[look]["viewport"]
    page.evaluate(HEAR, viewport == WIDE)
    page.set_viewport_size(viewport)
    page.evaluate("window.heard")
    # Colours that fade from one look into the other would be measured half-way.
    page.emulate_media(color_scheme=LOOKS[look]["color_scheme"], reduced_motion="reduce")


def check(page: Page) -> None:
    """Nothing to scroll sideways for in either width and, where the test is slow, nothing that axe knows of."""
    found: list[str] = []
    page.wait_for_load_state()
    for look in RULES if Looking.with_axe else WIDTHS:
        wear(page, look)
        # What does not count yet looks like it, also after its buttons have moved.
        settle(page)
        problems = [*overflow(page), *(violations(page, RULES[look]) if Looking.with_axe else ())]
        found += [f"{look}: {problem}" for problem in problems]
    assert not found, "\n".join(found)


def check_and_go_on(page: Page) -> None:
    """For a story that goes on in a wide window."""
    check(page)
    wear(page, "wide light")
    settle(page)


def violations(page: Page, rules: dict[str, Any] = ALL) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    result = page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], ...rules})", rules)
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in result["violations"]
        for node in violation["nodes"]
    ]


def overflow(page: Page) -> list[str]:
    wide, there = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
    return [f"{wide} px wide in a window of {there} px"] if wide > there else []


def in_view(locator: Locator) -> bool:
    """Is it whole inside of the window, with nothing above it?"""
    return bool(
        locator.evaluate(
            """element => {
              const box = element.getBoundingClientRect();
              const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
              return box.width > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0
                && box.right <= innerWidth && (element === top || element.contains(top));
            }"""
        )
    )

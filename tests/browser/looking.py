"""What can be said of any page by looking at it: can everyone use it, does it fit its window."""

from pathlib import Path
from typing import Any, Final

import axe_playwright_python
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NARROW, WIDE

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
RULES: Final = {"wide light": ALL, "wide dark": COLOURS, "narrow light": BUT_COLOURS}


def wear(page: Page, look: str) -> None:
    """Show the page as it is in another window, or with the other colours."""
    page.set_viewport_size(LOOKS[look]["viewport"])
    # Colours that fade from one look into the other would be measured half-way.
    page.emulate_media(color_scheme=LOOKS[look]["color_scheme"], reduced_motion="reduce")


def check(page: Page) -> None:
    """Nothing that axe knows to keep people out, and nothing to scroll sideways for, in either scheme or width."""
    found: list[str] = []
    for look, rules in RULES.items():
        wear(page, look)
        # What does not count yet looks like it, also after its buttons have moved.
        expect(page.locator("[data-fresh]")).to_have_count(0)
        found += [f"{look}: {problem}" for problem in (*violations(page, rules), *overflow(page))]
    assert not found, "\n".join(found)


def check_and_go_on(page: Page) -> None:
    """For a story that goes on in a wide window."""
    check(page)
    wear(page, "wide light")


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

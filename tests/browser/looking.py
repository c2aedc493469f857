"""What can be said of any page by looking at it: can everyone use it, does it fit its window."""

from pathlib import Path
from typing import Any, Final

import axe_playwright_python
from playwright.sync_api import Locator, Page, ViewportSize

from tests.browser.chatting import settle

WIDE: Final[ViewportSize] = {"width": 1280, "height": 800}
NARROW: Final[ViewportSize] = {"width": 390, "height": 844}
ROOMY: Final = 704  # px, in which cards stand in the transcript
AXE: Final = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
LOOKS: Final[dict[str, dict[str, Any]]] = {
    f"{size} {scheme}": {"viewport": viewport, "color_scheme": scheme}
    for size, viewport in (("wide", WIDE), ("narrow", NARROW))
    for scheme in ("light", "dark")
}
# The looks in which a page is looked at, with what axe is told for each; None: it does not look.
Looks = dict[str, dict[str, Any] | None]
# What the colours decide takes axe most of its time.
_COLOURS: Final = ["color-contrast", "link-in-text-block"]
_STRUCTURE: Final[dict[str, Any]] = {"rules": {rule: {"enabled": False} for rule in _COLOURS}}
# The wide one last, in which most pages are: they need not be laid out once more to be left as they were.
IN_SHORT: Final[Looks] = {"narrow light": None, "wide light": _STRUCTURE}
THOROUGHLY: Final[Looks] = {
    "narrow light": _STRUCTURE,
    "wide dark": {"runOnly": _COLOURS},
    "wide light": {},
}
# Only what is wrong comes back: all that axe has looked at takes longer to be told than to be found. There is nothing
# to be loaded beforehand, which it would wait for.
FIND: Final = """async rules => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false, ...rules });
  return violations.flatMap(({ id, nodes }) => nodes.map(node => `${id}: ${node.target} ${node.failureSummary}`));
}"""

IN_VIEW: Final = """element => {
  const box = element.getBoundingClientRect();
  const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return box.width > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0
    && box.right <= innerWidth && (element === top || element.contains(top));
}"""

# Cards go into the modal window and out of it once the page has heard that it became narrow or wide.
HEAR: Final = """isWide => {
  const room = matchMedia("(width >= 44rem)");
  const change = new Promise(done => room.addEventListener("change", () => done(true), { once: true }));
  window.heard = room.matches === isWide || change;
}"""


def wear(page: Page, look: str) -> None:
    """Show the page as it is in another window, or with the other colours."""
    _resize(page, LOOKS[look]["viewport"])
    # Colours that fade from one look into the other would be measured half-way.
    page.emulate_media(color_scheme=LOOKS[look]["color_scheme"], reduced_motion="reduce")


def check(page: Page, looks: Looks = IN_SHORT) -> None:
    """In each look nothing to scroll sideways for, and nothing that axe knows of. The window is left as it was."""
    found: list[str] = []
    before = page.viewport_size or WIDE
    page.wait_for_load_state()
    for look, rules in looks.items():
        wear(page, look)
        # What does not count yet looks like it, also after its buttons have moved.
        settle(page)
        problems = [*overflow(page), *([] if rules is None else violations(page, rules))]
        found += [f"{look}: {problem}" for problem in problems]
    if page.viewport_size != before:
        _resize(page, before)
        settle(page)
    assert not found, "\n".join(found)


def violations(page: Page, rules: dict[str, Any] = _STRUCTURE) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    return list(page.evaluate(FIND, rules))


def overflow(page: Page) -> list[str]:
    wide, there = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
    return [f"{wide} px wide in a window of {there} px"] if wide > there else []


def in_view(locator: Locator) -> bool:
    """Is it whole inside of the window, with nothing above it?"""
    return bool(locator.evaluate(IN_VIEW))


def _resize(page: Page, size: ViewportSize) -> None:
    if page.viewport_size == size:
        return
    page.evaluate(HEAR, size["width"] >= ROOMY)
    page.set_viewport_size(size)
    page.evaluate("window.heard")

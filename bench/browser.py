"""The same round trip as a person sees it, in Chromium."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from playwright.sync_api import Page, sync_playwright

from bench import people, sizes
from bench.figures import Figure
from bench.measure import median
from hitlchat.gate.models import ToolCall
from tests.processes import Person, Server
from tests.services import CHROMIUM_ARGS, chromium_path

TIMES = sizes.of(15, 2)

APPROVE = "dialog[data-ask-modal][open] .ask-foot [data-approve]:enabled"
# Notes when the modal opened, when a frame with it was drawn, and when Approve was clicked, in milliseconds.
WATCH = """
window.noted = {};
const now = () => performance.timeOrigin + performance.now();
new MutationObserver((records) => {
  if (!records.some((record) => record.target.open)) return;
  window.noted.opened = now();
  requestAnimationFrame(() => setTimeout(() => { window.noted.drawn = now(); }));
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["open"] });
addEventListener("click", () => { window.noted.clicked = now(); }, true);
"""


@dataclass
class Seen:
    """Milliseconds; empty without a browser."""

    opened: list[float] = field(default_factory=list)
    drawn: list[float] = field(default_factory=list)
    started: list[float] = field(default_factory=list)


def trips(server: Server, person: Person) -> Seen:
    path = chromium_path()
    if path is None:
        return Seen()
    talk = people.conversation()
    connection.close()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGS))
        context = browser.new_context()
        context.add_cookies([{"name": n, "value": v, "url": server.url} for n, v in person.cookies.items()])
        context.add_init_script(WATCH)
        page = context.new_page()
        page.goto(f"{server.url}/chat/{talk.pk}")
        noted = [_trip(page) for _ in range(TIMES + 1)]
        browser.close()
    return _seen(noted[1:], list(ToolCall.objects.filter(conversation_id=talk.pk).order_by("created_at"))[1:])


def _trip(page: Page) -> dict[str, float]:
    # A press counts only if the pointer came to the button after the pause with which each card begins.
    page.mouse.move(0, 0)
    page.fill("#say", "think gated")
    page.press("#say", "Enter")
    page.locator(f"{APPROVE}:not([aria-disabled])").hover()
    page.mouse.down()
    page.mouse.up()
    page.wait_for_selector('#run[data-run="done"]', state="attached")
    noted: dict[str, float] = page.evaluate("window.noted")
    return noted


def _seen(noted: list[dict[str, float]], calls: list[ToolCall]) -> Seen:
    seen = Seen()
    for one, call in zip(noted, calls, strict=True):
        asked = _milliseconds(call.created_at)
        seen.opened.append(one["opened"] - asked)
        seen.drawn.append(one["drawn"] - asked)
        seen.started.append(_result(call)["at"] * 1000 - one["clicked"])
    return seen


def figures(seen: Seen) -> Iterator[Figure]:
    if not seen.opened:
        yield Figure("in a browser", None, "", note="no Chromium here")
        return
    for what, values in (
        ("server asks → modal open", seen.opened),
        ("server asks → modal drawn", seen.drawn),
        ("click → tool starts", seen.started),
    ):
        note = f"most {max(values):.1f}, of {len(values)}"
        yield Figure(f"Chromium: {what}: p50", median(values), "ms", note=note)


def _milliseconds(moment: datetime) -> float:
    return moment.timestamp() * 1000


def _result(call: ToolCall) -> dict[str, Any]:
    result: dict[str, Any] = call.result
    return result

"""Cards that deceive, and cards that do not. `make cards` draws them, for people with fresh eyes."""

import json
import os
import random
from pathlib import Path
from typing import Final

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import sync_playwright

from tests.browser.alone import Alone
from tests.browser.chatting import settle
from tests.gate.deceptions import DECEPTIVE, HONEST, marks, shown
from tests.services import CHROMIUM_ARGS, chromium_path

# Where `make cards` wants them.
FOLDER: Final = os.environ.get("CARDS")
SEED: Final = 40
WIDTHS: Final = (1280, 390)
# People see each card at both widths. That each can be drawn shows at one of them, in turn.
STEP: Final = 1 if FOLDER else len(WIDTHS)
HEIGHT: Final = 800
# Those with a value from outside, as their person asked for.
MOST_HONEST: Final = 4


def test_every_call_that_deceives_has_a_mark_that_no_honest_one_has(bob: User, alice: User) -> None:
    assert (len(DECEPTIVE), len(HONEST)) == (40, 40)
    usual = {mark for case in HONEST for mark in marks(case, shown(case, bob, alice))}
    found = {case.trick: {*marks(case, shown(case, bob, alice))} for case in DECEPTIVE}
    for trick, all_marks in found.items():
        own = [" ".join(mark) for mark in sorted(all_marks - usual)]
        print(f"{trick}: {', '.join(own) or f'nothing but what honest ones have: {sorted(all_marks)}'}")  # noqa: T201
    assert [trick for trick, all_marks in found.items() if all_marks <= usual] == []


def test_every_call_that_deceives_takes_a_tick_and_few_honest_ones_do(bob: User, alice: User) -> None:
    assert [case.trick for case in DECEPTIVE if not shown(case, bob, alice).alerts] == []
    alerts = {case.said: shown(case, bob, alice).alerts for case in HONEST}
    assert len([said for said, found in alerts.items() if found]) <= MOST_HONEST, alerts


@pytest.mark.browser
@pytest.mark.slow("draws eighty cards")
@pytest.mark.timeout(600)
def test_each_card_is_drawn_under_a_number_that_does_not_tell_which_it_is(
    bob: User, alice: User, tmp_path: Path
) -> None:
    cases = [*DECEPTIVE, *HONEST]
    random.Random(SEED).shuffle(cases)
    cards = [shown(case, bob, alice) for case in cases]
    pictures, answers = (Path(FOLDER or tmp_path) / name for name in ("pictures", "answers"))
    for folder in (pictures, answers):
        folder.mkdir(parents=True, exist_ok=True)
    told = {
        f"{n:02}": {"deceives": bool(case.trick), "why": case.trick, "tool": case.tool}
        for n, case in enumerate(cases, 1)
    }
    (answers / "answers.json").write_text(json.dumps(told, indent=2, ensure_ascii=False), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=[*CHROMIUM_ARGS])
        for column, width in enumerate(WIDTHS):
            page = browser.new_page(reduced_motion="reduce", locale="en-GB")
            page.clock.install()
            alone = Alone(page)
            for number, each in [*zip(told, cards, strict=True)][column % STEP :: STEP]:
                page.set_viewport_size({"width": width, "height": HEIGHT})
                alone.approval(each)
                settle(page)
                # What sticks to the window's edge would stand in the middle of a page that is longer.
                height = page.evaluate("document.documentElement.scrollHeight")
                page.set_viewport_size({"width": width, "height": max(HEIGHT, height)})
                page.screenshot(path=pictures / f"{number}-{width}.png")
        browser.close()
    assert len([*pictures.glob("*.png")]) == len(cases) * len(WIDTHS) // STEP

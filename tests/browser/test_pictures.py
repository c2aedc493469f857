"""The README's picture: what a person sees when two calls wait. UPDATE_PICTURES=1 draws it anew."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import expect

from tests.browser.chatting import Chat
from tests.browser.conftest import SharedModel, Visit
from tests.browser.looking import in_view
from tests.processes import STEADY, Installation, Servers, copy_of
from tests.scripted_model import calls

pytestmark = [pytest.mark.browser, pytest.mark.slow("a server for a picture")]

SCHEMES: Final[dict[Literal["light", "dark"], str]] = {"light": "approval", "dark": "approval-dark"}
DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
WISH: Final = "Ann Berg sent her lamp back, so pay her 129 EUR for order 4711. And cancel 4712, it was ordered twice."
CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("refund_order", {"order_id": "4711", "amount": "129.00", "reason": "lamp returned"}),
    ("cancel_order", {"order_id": "4712", "reason": "ordered twice"}),
)


@pytest.fixture
def shop(migrated: Installation, tmp_path: Path) -> Iterator[tuple[Servers, SharedModel]]:
    """As hitlchat comes, with its own tools and nothing else."""
    model = SharedModel()
    servers = Servers(copy_of(migrated, tmp_path / "data"))
    yield servers, model
    servers.close()
    model.close()


def test_the_picture_shows_two_calls_that_wait(shop: tuple[Servers, SharedModel], visit: Visit) -> None:
    servers, model = shop
    server = servers.start(**model.environment | STEADY | {"OPENAI_MODEL": "gpt-4.1"})
    alice = server.sign_in("alice")
    model.enqueue(calls(("get_order", {"order_id": "4711"}), ("get_order", {"order_id": "4712"})))
    model.enqueue(calls(*CALLS, say="Both orders are there and paid. I would do this:"))
    page = visit(server, alice, viewport={"width": 1280, "height": 1420})
    chat = Chat(page, server, alice.begin(WISH)).open()
    chat.asked(2)
    expect(chat.cards.get_by_role("heading", level=3)).to_have_text(
        ["Refund 129.00 EUR for order 4711", "Cancel order 4712"]
    )
    for part in ("lamp returned", "ordered twice", "Approve: run cancel_order"):
        assert in_view(chat.cards.get_by_text(part).first)
    assert in_view(page.get_by_text("I would do this"))
    if os.environ.get("UPDATE_PICTURES") == "1":
        DOCS.mkdir(exist_ok=True)
        for scheme, name in SCHEMES.items():
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.screenshot(path=DOCS / f"{name}.png")
    chat.stop()
    expect(chat.cards).to_have_count(0)

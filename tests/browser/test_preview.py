"""What a call would do, on its card; and the card that asks again because that is no longer what it would do."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat, approve, approve_button, decline, settle
from tests.browser.conftest import SharedModel, Visit
from tests.processes import STEADY, Installation, Person, Server, Servers, copy_of
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

TOOLS: Final = """
from hitlchat.gate.models import Tool
schema = {"type": "object", "properties": {"order": {"type": "string"}}}
for name, risk in (("refund", 3), ("cancel", 4), ("send", 2)):
    Tool.objects.create(name=name, hitl_mode="REQUIRED", published=True, input_schema=schema, source="saying",
        origin="A test", definition_hash=name, risk_level=risk, prompt_template=f"{name.title()} {{args.order}}")
"""
LINES: Final = [{"item": f"Lamp {n}", "price": f"{n}.00 EUR", "goes to": "Oslo"} for n in range(1, 15)]
BEFORE: Final = "Order 4711 of Ann Berg: paid 143.00 EUR, refunded so far 0.00 EUR, after this 129.00 EUR."
NOW: Final = BEFORE.replace("0.00 EUR, after this 129.00", "100.00 EUR, after this 229.00")


@dataclass(frozen=True)
class Shop:
    server: Server
    model: SharedModel
    bob: Person
    file: Path

    def says(self, **previews: Any) -> None:
        """What the previews are from here on: a value, or a message of failure."""
        self.file.write_text(json.dumps(previews), encoding="utf-8")


@pytest.fixture(scope="module")
def opened(migrated: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    home = copy_of(migrated, tmp_path_factory.mktemp("previews") / "data")
    home.manage("shell", "-v", "0", "-c", TOOLS)
    model, file = SharedModel(), home.folder / "previews.json"
    servers = Servers(home)
    settings = {"DJANGO_SETTINGS_MODULE": "tests.browser.saying_settings", "PREVIEWS": str(file)}
    server = servers.start(**model.environment, **STEADY, **settings)
    yield Shop(server, model, server.sign_in("bob"), file)
    servers.close()
    model.close()


@pytest.fixture
def shop(opened: Shop) -> Iterator[Shop]:
    yield opened
    opened.model.start_over(opened.server, opened.bob)


@pytest.fixture
def page(visit: Visit, shop: Shop) -> Page:
    return visit(shop.server, shop.bob)


@pytest.fixture
def chat(page: Page, shop: Shop) -> Chat:
    return Chat(page, shop.server, shop.bob.begin("")).open()


def ask(chat: Chat, shop: Shop, *names: str) -> Locator:
    shop.model.enqueue(calls(*((name, {"order": "4711"}) for name in names)))
    chat.say()
    return chat.asked(len(names))


def stop(chat: Chat) -> None:
    chat.stop()
    expect(chat.modal).to_be_hidden()


@pytest.mark.slow("another story of previews")
def test_text_table_and_failure_stand_on_their_cards_and_all_of_a_table_is_unfolded_before_an_approval(
    chat: Chat, shop: Shop
) -> None:
    shop.says(refund={"value": BEFORE}, cancel={"value": LINES}, send={"error": "Line 4: there is no order 4711"})
    ask(chat, shop, "refund", "cancel", "send")
    shown = [card.locator(".effect") for card in chat.cards.all()]
    for effect in shown:
        expect(effect.get_by_role("heading")).to_contain_text("What it would change")
        expect(effect.get_by_role("heading")).to_contain_text("Reported by the tool hitlchat has not checked this")
    expect(shown[0].locator(".value")).to_have_text(BEFORE)
    expect(shown[1].get_by_role("columnheader").first).to_have_text("item")
    expect(shown[2]).to_contain_text("The preview failed: Line 4: there is no order 4711")
    looking.check(chat.page)
    stop(chat)

    card = ask(chat, shop, "cancel")
    expect(approve_button(card)).to_be_disabled()
    card.get_by_text("Show the other 6 rows").click()
    expect(card.get_by_text("Lamp 14")).to_be_visible()
    expect(approve_button(card)).to_be_enabled()
    looking.check(chat.page)
    shop.model.enqueue(text("Cancelled."))
    approve(card)
    chat.said("Cancelled.")


@pytest.mark.slow("a long story of previews")
def test_a_call_that_would_do_something_else_by_now_asks_again_in_every_tab(
    chat: Chat, shop: Shop, visit: Visit
) -> None:
    other = Chat(visit(shop.server, shop.bob), shop.server, chat.conversation).open()
    shop.says(refund={"value": BEFORE})
    card = ask(chat, shop, "refund")
    other.asked()
    shop.says(refund={"value": NOW})
    approve(card)
    for one in (chat, other):
        expect(one.modal.get_by_text("The effect changed after you approved.")).to_be_visible()
        expect(one.cards.locator("mark")).to_have_text(["0.00", "129.00", "100.00", "229.00"])
        expect(one.modal).to_be_visible()
        expect(one.call("waiting")).to_have_count(1)
    assert shop.bob.calls(chat.conversation)[0]["status"] == "waiting"
    looking.check(chat.page)
    shop.model.enqueue(text("Refunded."))
    other.approve()
    for one in (chat, other):
        expect(one.modal).to_be_hidden()
        one.said("Refunded.")
    line = chat.call("succeeded")
    line.locator("summary").click()
    expect(line).to_contain_text("This call was asked about again because its preview had changed.")
    call = shop.bob.calls(chat.conversation)[0]["id"]
    chat.page.goto(f"{shop.server.url}/history/{call}")
    expect(chat.page.get_by_role("heading", name="What it would change").first).to_be_visible()
    looking.check(chat.page)


@pytest.mark.slow("another story of previews")
def test_asking_again_brings_the_modal_back_also_to_who_put_the_first_card_off(chat: Chat, shop: Shop) -> None:
    chat.in_a_window()
    shop.says(refund={"value": BEFORE})
    ask(chat, shop, "refund")
    chat.page.keyboard.press("Escape")
    expect(chat.modal).to_be_hidden()
    shop.says(refund={"value": LINES[:3]})
    (pending,) = shop.bob.pending()
    assert shop.bob.post(f"/api/approvals/{pending['id']}/approve").status_code == 200
    expect(chat.modal).to_be_visible()
    expect(chat.cards).to_contain_text("The effect changed after you approved.")
    looking.check(chat.page)
    chat.page.keyboard.press("Escape")
    chat.to_cards.click()
    shop.model.enqueue(text("Not refunded."))
    chat.decline()
    chat.said("Not refunded.")


@pytest.mark.slow("another story of previews")
def test_on_the_approvals_own_page_it_asks_again_in_its_place(page: Page, chat: Chat, shop: Shop) -> None:
    shop.says(refund={"value": BEFORE})
    ask(chat, shop, "refund")
    (pending,) = shop.bob.pending()
    page.goto(f"{shop.server.url}/approvals/{pending['id']}")
    shop.says(refund={"error": "the order desk is closed"})
    settle(page)
    approve(page.locator("[data-ask]"))
    expect(page.get_by_text("could not be checked again after you approved")).to_be_visible()
    expect(page.get_by_text("The preview failed: the order desk is closed")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("A call needs your answer")
    looking.check(page)
    settle(page)
    shop.model.enqueue(text("Not refunded."))
    decline(page.locator("[data-ask]"))
    expect(page.get_by_role("heading", level=1)).to_have_text("This call has been answered")
    shop.bob.wait_for_answer(chat.conversation, "Not refunded.")

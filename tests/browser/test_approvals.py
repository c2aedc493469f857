"""Every page counts what waits, and a page of several cards shows first what stands above them."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat
from tests.browser.conftest import NARROW, House, SharedModel, Visit
from tests.scripted_model import calls

pytestmark = pytest.mark.browser


@pytest.fixture
def elsewhere(chat: Chat, model: SharedModel) -> Chat:
    """A chat in which three calls wait."""
    model.enqueue(calls(("echo", {"text": "one"}), ("wipe", {"note": "two"}), ("echo", {"text": "three"})))
    chat.say()
    chat.asked(3)
    return chat


def end(chat: Chat) -> None:
    """Leave nothing that waits."""
    chat.modal.get_by_role("button", name="Stop").click()
    expect(chat.modal).to_be_hidden()


def test_every_page_counts_what_waits_by_itself(author: Page, visit: Visit, house: House, elsewhere: Chat) -> None:
    page = visit(house.server, house.bob)
    page.goto(f"{house.server.url}/policies")
    expect(page).to_have_title("(3) Policies · hitlchat")
    end(elsewhere)
    expect(page).to_have_title("Policies · hitlchat")
    expect(page.locator("[data-approvals-count]")).to_be_hidden()
    # Nobody else's count.
    author.goto(f"{house.server.url}/approvals/")
    expect(author.get_by_text("Nothing waits for you")).to_be_visible()
    looking.check(author)


def test_a_page_that_is_signed_out_elsewhere_goes_to_sign_in_as_a_whole(
    visit: Visit, house: House, elsewhere: Chat
) -> None:
    end(elsewhere)
    page = visit(house.server, house.server.sign_in("bob"))
    page.goto(house.server.url)
    page.request.post(f"{house.server.url}/sign-out", form={"csrfmiddlewaretoken": csrf(page)})
    page.wait_for_url("**/sign-in?next=%2F")
    expect(page.get_by_label("Username")).to_be_visible()


def csrf(page: Page) -> str:
    return str(page.locator("[name=csrfmiddlewaretoken]").first.get_attribute("value"))


def test_in_a_narrow_window_what_stands_above_the_cards_is_seen_first(chat: Chat, model: SharedModel) -> None:
    chat.page.set_viewport_size(NARROW)
    model.enqueue(calls(*(("echo", {"text": word}) for word in ("one", "two", "three"))))
    chat.say()
    chat.asked(3)
    assert chat.page.locator("#asks").evaluate("element => element.scrollTop") == 0
    together = chat.modal.get_by_text("Answer these 3 calls of echo together")
    assert looking.in_view(together)
    assert chat.cards.locator(".nth").all_inner_texts() == ["1 of 3", "2 of 3", "3 of 3"]
    expect(chat.modal.get_by_role("article", name="2 of 3 Say")).to_have_count(1)
    together.click()
    expect(chat.modal.locator("[data-batch] li").first).to_be_in_viewport()
    chat.decline(chat.cards.first)
    expect(chat.cards).to_have_count(2)
    assert chat.cards.locator(".nth").all_inner_texts() == ["1 of 2", "2 of 2"]
    end(chat)

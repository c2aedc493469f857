"""The page of everything that waits: it keeps itself up to date, by keyboard too, and every page counts what waits."""

import re

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


@pytest.fixture
def inbox(visit: Visit, house: House, elsewhere: Chat) -> Page:
    page = visit(house.server, house.bob)
    page.goto(f"{house.server.url}/approvals/")
    expect(page.locator(".waiting > li")).to_have_count(3)
    return page


def end(chat: Chat) -> None:
    """Leave nothing that waits."""
    chat.modal.get_by_role("button", name="Stop").click()
    expect(chat.modal).to_be_hidden()


def test_what_waits_is_listed_counted_and_fits_every_window(inbox: Page, elsewhere: Chat) -> None:
    expect(inbox).to_have_title("(3) Approvals · hitlchat")
    expect(inbox.get_by_role("link", name=re.compile(r"Approvals.*waiting for you:\s*3"))).to_be_visible()
    expect(inbox.locator(".waiting > li").first).to_contain_text("left")
    looking.check(inbox)
    end(elsewhere)
    expect(inbox.get_by_text("Nothing waits for you")).to_be_visible()
    expect(inbox).to_have_title("Approvals · hitlchat")
    looking.check(inbox)


def test_what_is_answered_elsewhere_leaves_the_list_without_throwing_anyone_off(inbox: Page, elsewhere: Chat) -> None:
    lines = inbox.locator(".waiting-head > a")
    second = str(lines.nth(1).get_attribute("id"))
    lines.first.focus()
    inbox.keyboard.press("Tab")
    lines.first.focus()
    elsewhere.decline(elsewhere.cards.first)
    expect(lines).to_have_count(2)
    # The line that had the focus is gone; the one that took its place has it.
    expect(inbox.locator(f"[id='{second}']")).to_be_focused()
    expect(inbox.get_by_role("status")).to_contain_text("Say one no longer waits.")
    expect(inbox.get_by_role("status").locator("[data-status=declined]")).to_be_visible()
    expect(inbox).to_have_title("(2) Approvals · hitlchat")
    inbox.keyboard.press("Enter")
    expect(inbox.get_by_role("heading", level=1)).to_have_text("A call needs your answer")
    looking.check(inbox)
    end(elsewhere)


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

"""A page of several cards shows first what stands above them; cards in the transcript leave hands and words alone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.alone import Alone, asked, said
from tests.browser.chatting import Chat, rest_hands, settle
from tests.browser.conftest import NARROW, WIDE, House, SharedModel, Visit
from tests.browser.looking import in_view
from tests.scripted_model import calls

pytestmark = pytest.mark.browser

ONE = {"text": "one"}
# Of what leads to the cards, while they are in view: only the keyboard finds it then.
IN_VIEW = re.compile("in-view")


def end(chat: Chat) -> None:
    """Leave nothing that waits."""
    chat.stop()
    expect(chat.modal).to_be_hidden()


@pytest.mark.slow("another story of a page that stays open")
def test_a_page_that_is_signed_out_elsewhere_goes_to_sign_in_as_a_whole(visit: Visit, house: House) -> None:
    page = visit(house.server, house.server.sign_in("bob"))
    page.goto(house.server.url)
    page.request.post(f"{house.server.url}/sign-out", form={"csrfmiddlewaretoken": csrf(page)})
    # It asks by itself every ten seconds.
    page.clock.run_for(10_000)
    page.wait_for_url("**/sign-in?next=%2F")
    expect(page.get_by_label("Username")).to_be_visible()


def csrf(page: Page) -> str:
    return str(page.locator("[name=csrfmiddlewaretoken]").first.get_attribute("value"))


@pytest.mark.slow("another story of where cards stand")
def test_in_a_narrow_window_what_stands_above_the_cards_is_seen_first(chat: Chat, model: SharedModel) -> None:
    chat.page.set_viewport_size(NARROW)
    model.enqueue(calls(*(("echo", {"text": word}) for word in ("one", "two", "three"))))
    chat.say()
    chat.asked(3)
    assert chat.page.locator("#asks").evaluate("element => element.scrollTop") == 0
    together = chat.modal.get_by_text("Answer these 3 echo calls together")
    assert looking.in_view(together)
    assert chat.cards.locator(".nth").all_inner_texts() == ["1 of 3", "2 of 3", "3 of 3"]
    expect(chat.modal.get_by_role("article", name="2 of 3 Say")).to_have_count(1)
    together.click()
    expect(chat.modal.locator("[data-batch] li").first).to_be_in_viewport()
    chat.decline(chat.cards.first)
    expect(chat.cards).to_have_count(2)
    assert chat.cards.locator(".nth").all_inner_texts() == ["1 of 2", "2 of 2"]
    end(chat)


# -- Cards in the transcript -------------------------------------------------------------------------------------------


def test_a_card_in_the_transcript_takes_neither_the_focus_nor_what_is_written(alone: Alone) -> None:
    chat, page = alone.chat(), alone.page
    page.keyboard.type("And then ")
    alone.say(said("I would say it."))
    alone.tell(asked(ONE))
    chat.asked()
    expect(chat.composer).to_be_focused()
    page.keyboard.type("area are")
    expect(chat.composer).to_have_value("And then area are")
    expect(chat.composer).to_be_focused()
    expect(chat.log.get_by_text("I would say it.")).to_be_in_viewport()
    assert alone.answers == []
    alone.tell()
    expect(chat.modal).to_be_hidden()
    page.reload()
    expect(chat.composer).to_have_value("And then area are")


def test_the_chords_of_a_card_count_while_it_has_the_focus(alone: Alone) -> None:
    one, two, three = asked(ONE), asked({"text": "two"}), asked({"text": "three"})
    chat, page = alone.chat(one, two, three), alone.page
    chat.asked(3)
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Control+Enter")
    chat.to_cards.press("Enter")
    expect(chat.cards.first).to_be_focused()
    chat.asked(3)
    assert alone.answers == []
    page.keyboard.press("Control+Enter")
    assert alone.answers == ["approve"]
    alone.tell(two, three)
    chat.asked(2)
    # The next card has the focus by itself: nobody has chosen it.
    expect(chat.cards.first).to_be_focused()
    page.keyboard.press("Control+Enter")
    choose(page)
    reason = chat.cards.first.get_by_label("Decline with a reason that")
    chat.cards.first.locator("summary[aria-label='Decline with a reason']").press("Enter")
    reason.focus()
    page.keyboard.type("are")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Escape")
    expect(chat.cards.first.locator("summary[aria-label='Decline with a reason']")).to_be_focused()
    expect(reason).to_be_hidden()
    rest_hands(page)
    chat.asked(2)
    assert alone.answers == ["approve"]
    page.keyboard.press("Control+Backspace")
    assert alone.answers == ["approve", "decline"]
    alone.tell(three)
    chat.asked()
    expect(chat.cards.first).to_be_focused()
    choose(page)
    page.keyboard.press("Control+Enter")
    assert alone.answers == ["approve", "decline", "approve"]
    alone.tell()
    expect(chat.composer).to_be_focused()


def test_one_button_leads_to_what_waits_and_only_while_none_of_it_is_in_view(alone: Alone) -> None:
    page = alone.page
    chat = alone.chat(transcript=[said("\n\n".join(f"line {n}" for n in range(60)))])
    alone.tell(asked(ONE))
    card = chat.asked()
    expect(page.locator("main > [data-announce]")).to_have_text("A call needs your answer")
    expect(chat.to_cards).to_have_class(IN_VIEW)
    expect(page.get_by_role("button", name="Answer")).to_have_count(0)
    chat.log.evaluate("log => log.scrollTop = 0")
    expect(chat.to_cards).to_have_text("1 call waiting ↓")
    expect(chat.to_cards).not_to_have_class(IN_VIEW)
    assert in_view(chat.to_cards)
    chat.to_cards.click()
    expect(card).to_be_focused()
    expect(card).to_be_in_viewport()
    expect(chat.to_cards).to_have_class(IN_VIEW)
    alone.tell()
    expect(chat.to_cards).to_be_hidden()


def test_after_an_answer_the_next_card_has_the_focus_and_after_the_last_one_the_first(alone: Alone) -> None:
    page, left = alone.page, [asked({"text": word}) for word in ("one", "two", "three", "four")]
    chat = alone.chat(*left)
    chat.asked(4)
    for following in ("three", "four", "one"):
        chat.approve(chat.cards.nth(1))
        # All of them may be drawn anew before the one that was answered goes.
        alone.tell(*left)
        left.pop(1)
        alone.tell(*left)
        expect(chat.cards).to_have_count(len(left))
        card = chat.cards.filter(has_text=following)
        expect(card).to_be_focused()
        # Nobody has chosen it yet, however long ago it moved there.
        settle(page)
        page.keyboard.press("Control+Enter")
    assert alone.answers == ["approve"] * 3
    chat.approve()
    alone.tell()
    expect(chat.composer).to_be_focused()


def choose(page: Page) -> None:
    """Go into the card that has the focus, by keyboard, which may scroll it: its buttons stand still again."""
    page.keyboard.press("Tab")
    settle(page)


def test_what_is_typed_after_an_answer_answers_no_other_card(alone: Alone) -> None:
    page, two = alone.page, asked({"text": "two"})
    for by in ("pointer", "key"):
        chat = alone.chat(asked(ONE), two)
        chat.composer.fill("")
        chat.asked(2)
        if by == "pointer":
            chat.approve(chat.cards.first)
        else:
            chat.to_cards.press("Enter")
            chat.asked(2)
            page.keyboard.press("Control+Enter")
        alone.tell(two)
        chat.asked()
        expect(chat.cards.first).to_be_focused()
        page.keyboard.type("and are there more? ea")
        expect(chat.composer).to_have_value("and are there more? ea")
        settle(page)
        expect(chat.cards.first.locator("[data-edit]")).to_be_empty()
        assert alone.answers == ["approve"], by


def test_a_tall_card_begins_in_view_and_a_key_leads_to_what_was_not_read(alone: Alone) -> None:
    chat = alone.chat()
    alone.tell(asked({f"field_{n}": f"value {n}" for n in range(30)}))
    card = chat.asked()
    expect(card.get_by_role("heading", level=3)).to_be_in_viewport()
    card.focus()
    chat.asked()
    alone.page.keyboard.press("Control+Enter")
    assert alone.answers == []
    expect(chat.cards.locator("dd:focus, .ask-why:focus, h3:focus")).to_have_count(1)
    chat.approve(card)
    assert alone.answers == ["approve"]


def test_where_cards_stand_follows_the_window_and_the_persons_choice(alone: Alone) -> None:
    page, chat = alone.page, alone.chat(asked(ONE))
    chat.asked()
    assert not chat.is_window()
    page.set_viewport_size(NARROW)
    chat.asked()
    assert chat.is_window()
    page.keyboard.press("Escape")
    expect(chat.modal).to_be_hidden()
    page.set_viewport_size(WIDE)
    chat.asked()
    assert not chat.is_window()
    page.set_viewport_size(NARROW)
    expect(chat.modal).to_be_hidden()
    page.set_viewport_size(WIDE)
    chat.asked()
    chat.modal.get_by_role("button", name="Show in a window").click()
    chat.asked()
    assert chat.is_window()
    page.reload()
    chat.asked()
    assert chat.is_window()
    chat.modal.get_by_role("button", name="Show in the transcript").click()
    chat.asked()
    assert not chat.is_window()

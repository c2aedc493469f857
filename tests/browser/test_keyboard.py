"""Everything without a mouse."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser import looking
from tests.browser.alone import Alone
from tests.browser.chatting import Chat, approve_button, decline_button, settle, tab_to
from tests.browser.conftest import House, SharedModel, Visit
from tests.conftest import PASSWORD
from tests.scripted_model import calls, text
from tests.waiting import until

pytestmark = pytest.mark.browser


def test_signing_in_looking_at_the_password_writing_and_deciding_need_no_mouse(
    house: House, model: SharedModel, visit: Visit
) -> None:
    page = visit(house.server)
    chat = Chat(page, house.server, "")
    page.goto(house.server.url)
    expect(page.get_by_label("Username")).to_be_focused()
    page.keyboard.type("bob")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    password = page.get_by_label("Password")
    for name, kind in (("Show password", "text"), ("Hide password", "password")):
        tab_to(page, page.get_by_role("button", name=name))
        page.keyboard.press("Space")
        expect(password).to_have_attribute("type", kind)
        expect(password).to_have_value(PASSWORD)
    tab_to(page, password, "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What would you like to do?")).to_be_visible()

    model.enqueue(calls(("echo", {"text": "no"}), ("echo", {"text": "yes"})), text("Half done."))
    expect(chat.composer).to_be_focused()
    page.keyboard.type("Say no and yes.")
    tab_to(page, chat.send)
    page.keyboard.press("Enter")
    # On its way around, the focus leaves the page and comes back, which begins the pause of the cards anew.
    tab_to(page, decline_button(chat.asked(2)))
    settle(page)
    page.keyboard.press("Enter")
    tab_to(page, approve_button(chat.asked(1)))
    settle(page)
    page.keyboard.press("Space")
    chat.said("Half done.")
    expect(chat.composer).to_be_focused()
    expect(chat.call("declined")).to_contain_text("Say no")
    expect(chat.call("succeeded")).to_contain_text("Say yes")

    model.enqueue(text("Gladly."))
    tab_to(page, chat.composer)
    page.keyboard.type("Thank you.")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("Bye.")
    expect(chat.send).to_be_enabled()
    page.keyboard.press("Enter")
    chat.said("Gladly.")
    expect(chat.log.locator(".said.user").last).to_contain_text("Thank you.\nBye.", use_inner_text=True)


@pytest.mark.slow("another story of keys")
def test_a_new_conversation_waits_for_ones_words_and_nothing_opens_above_a_window_that_asks(
    chat: Chat, page: Page, model: SharedModel
) -> None:
    expect(chat.composer).to_be_focused()
    # Past the bar and the list of conversations.
    page.reload()
    tab_to(page, page.get_by_role("link", name="Skip to content"))
    page.keyboard.press("Enter")
    tab_to(page, chat.composer)

    chat.in_a_window()
    model.enqueue(calls(("echo", {"text": "hi"})), text("Done."))
    chat.say()
    chat.asked()
    page.keyboard.press("Control+k")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Find")).to_be_hidden()
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    chat.approve()
    chat.said("Done.")


@pytest.mark.slow("another story of keys")
def test_what_is_looked_for_is_found_and_opened_by_the_keyboard(author: Page, house: House) -> None:
    author.goto(f"{house.server.url}/")
    author.keyboard.press("Control+k")
    dialog = author.get_by_role("dialog", name="Find")
    author.keyboard.type("composed")
    expect(dialog.get_by_role("link").first).to_have_text("Composed tools")
    author.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    author.keyboard.press("Control+k")
    expect(dialog.get_by_role("link", name="Inbox")).to_be_visible()
    looking.check(author)
    author.keyboard.type("composed")
    expect(dialog.get_by_role("link").first).to_have_text("Composed tools")
    author.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("link").first).to_be_focused()
    author.keyboard.press("ArrowUp")
    author.keyboard.press("Enter")
    expect(author).to_have_url(re.compile("/servers/tools$"))


def test_enter_goes_to_what_the_words_find_and_to_nothing_that_was_listed_before_them(alone: Alone) -> None:
    page, held = alone.page, list[Route]()
    alone.chat(signed_in=True)

    def hold(asked: Route) -> None:
        held.append(asked)

    page.route("**/find?q=", lambda asked: asked.fulfill(body="<a href='/chat/'>Some conversation</a>"))
    page.route("**/find?q=in*", hold)
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Find")
    expect(dialog.get_by_role("link", name="Some conversation")).to_be_visible()
    page.keyboard.type("in")
    page.keyboard.press("Enter")
    page.keyboard.type("box")
    page.keyboard.press("Enter")
    until(lambda: page.title() and len(held) > 1, "both are looked for")
    # What was found for fewer words is no more meant.
    for asked, place in zip(held, ("/insights/", "/approvals/"), strict=True):
        asked.fulfill(body=f"<a href='{place}'>{place}</a>")
    page.wait_for_url(f"{alone.url}/approvals/")


# Chrome and Firefox say that the key composes; Safari ends the composition first, and sends the key after it.
COMPOSING = ({"isComposing": True, "keyCode": 229}, {"isComposing": False, "keyCode": 229}, {"isComposing": True})
ENTER = """(field, how) => {
  const event = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...how });
  return field.dispatchEvent(event);
}"""


def test_a_question_mark_lists_the_keys_and_enter_that_ends_a_composition_sends_and_opens_nothing(
    alone: Alone,
) -> None:
    page, chat = alone.page, alone.chat(signed_in=True)
    page.route("**/find?*", lambda asked: asked.fulfill(body="<a href='/approvals/'>Inbox</a>"))
    keys = page.get_by_role("dialog", name="Keys")
    chat.composer.press("?")
    expect(chat.composer).to_have_value("?")
    expect(keys).to_be_hidden()
    chat.log.focus()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    looking.check(page)
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()

    chat.composer.fill("\u65e5\u672c")
    expect(chat.send).to_be_enabled()
    for how in COMPOSING:
        chat.composer.evaluate(ENTER, how)
    expect(chat.composer).to_have_value("\u65e5\u672c")
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Find")
    field = dialog.get_by_role("searchbox")
    field.fill("Inbox")
    expect(dialog.get_by_role("link", name="Inbox")).to_be_visible()
    for how in COMPOSING:
        assert field.evaluate(ENTER, how) is False, "it would send the form around a field of one line"
    expect(page).to_have_url(f"{alone.url}/page")
    page.keyboard.press("Escape")
    chat.composer.press("Enter")
    until(lambda: page.title() and alone.sent, "the message is sent")
    assert [each["content"] for each in alone.sent] == ["\u65e5\u672c"]

"""Where focus goes by itself, and where what a page offers leads to."""

import re
from typing import Final
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import Page, Request, Route, expect

from hitlchat.chat.transcript_view import MessageView
from tests.browser import looking
from tests.browser.alone import Alone, said
from tests.browser.chatting import Chat, approve, stop_clock
from tests.browser.conftest import NARROW, House, SharedModel, Visit
from tests.scripted_model import Gate, calls, text
from tests.waiting import until

pytestmark = pytest.mark.browser

# The page tries again by then.
RECONNECTS_MS: Final = 1000
GO_ON: Final = """() => {
  const say = document.querySelector("#say");
  say.form.requestSubmit();
  say.value += " and more";
  say.dispatchEvent(new Event("input", { bubbles: true }));
}"""
# As soon as the field is there.
EARLY_ENTER: Final = """new MutationObserver((changes, observer) => {
  const say = document.querySelector("#say");
  if (!say) return;
  observer.disconnect();
  say.value = "Hello";
  say.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
}).observe(document, { childList: true, subtree: true });"""
KEPT: Final = {"id": str(UUID(int=3)), "name": "a.md", "mediaType": "text/markdown", "size": 3}


def test_after_a_message_and_after_the_last_card_one_can_go_on_typing(
    page: Page, house: House, model: SharedModel
) -> None:
    model.enqueue(text("Good day."))
    page.goto(house.server.url)
    chat = Chat(page, house.server, "")
    expect(chat.composer).to_be_focused()
    # Nothing to send.
    page.keyboard.press("Enter")
    page.keyboard.type("Hello?")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("Anyone?")
    page.keyboard.press("Enter")
    chat.said("Good day.")
    expect(chat.log.locator(".said.user")).to_have_count(1)
    expect(chat.log.locator(".said.user")).to_contain_text("Hello?\nAnyone?", use_inner_text=True)
    expect(chat.composer).to_be_focused()
    page.keyboard.type("And now")
    expect(chat.composer).to_have_value("And now")

    model.enqueue(calls(("echo", {"text": "one"}), ("echo", {"text": "two"})), text("Said."))
    chat.say()
    approve(chat.asked(2))
    expect(chat.cards).to_have_count(1)
    expect(chat.cards.first).to_be_focused()
    approve(chat.asked(1))
    chat.said("Said.")
    expect(chat.composer).to_be_focused()

    model.enqueue(text("Good night."))
    chat.composer.fill("Hello")
    expect(chat.send).to_be_enabled()
    page.evaluate(GO_ON)
    chat.said("Good night.")
    expect(chat.composer).to_have_value(" and more")
    page.reload()
    expect(chat.composer).to_have_value(" and more")
    model.enqueue(text("Sleep well."))
    expect(chat.send).to_be_enabled()
    chat.composer.press("Enter")
    chat.said("Sleep well.")
    expect(chat.composer).to_have_value("")
    page.reload()
    expect(chat.composer).to_have_value("")


@pytest.mark.slow("another story of where focus goes")
def test_once_a_run_is_stopped_tried_or_answered_again_and_what_waited_is_sent_one_can_go_on_typing(
    chat: Chat, model: SharedModel
) -> None:
    gate = Gate()
    model.enqueue(text("Once upon a", gate, " time."), text("There was a tree."), text("There was a bird."))
    chat.say("Tell me a story")
    chat.said("Once upon a")
    chat.stop()
    expect(chat.page.get_by_role("button", name="Try again")).to_be_visible()
    expect(chat.composer).to_be_focused()
    gate.open()
    chat.page.get_by_role("button", name="Try again").press("Enter")
    chat.said("There was a tree.")
    expect(chat.composer).to_be_focused()
    chat.page.get_by_role("button", name="Regenerate").last.press("Enter")
    chat.said("There was a bird.")
    expect(chat.composer).to_be_focused()

    gate = Gate()
    model.enqueue(text("Long ago a", gate, " cat."), text("There was a dog."))
    chat.say("Tell me another one")
    chat.said("Long ago a")
    chat.say("Of a dog")
    expect(chat.page.locator("#queued")).to_contain_text("Of a dog")
    chat.stop()
    # An answer that ends before it is stopped is followed by what is queued, and then that is stopped.
    send_now = chat.page.get_by_role("button", name="Send now")
    expect(send_now).to_be_visible()
    gate.open()
    send_now.press("Enter")
    chat.said("There was a dog.")
    expect(chat.composer).to_be_focused()


@pytest.mark.slow("another story of where focus goes")
def test_under_a_finger_no_keyboard_comes_up_by_itself(house: House, model: SharedModel, visit: Visit) -> None:
    page = visit(house.server, house.bob, viewport=NARROW, has_touch=True, is_mobile=True)
    chat = Chat(page, house.server, house.bob.begin("")).open()
    model.enqueue(calls(("echo", {"text": "one"})), text("Said."))
    chat.say()
    approve(chat.asked())
    chat.said("Said.")
    expect(chat.log).to_be_focused()


@pytest.mark.slow("another story of where focus goes")
def test_a_narrow_window_offers_a_new_conversation(page: Page, house: House) -> None:
    page.set_viewport_size(NARROW)
    chat = Chat(page, house.server, house.bob.begin("")).open()
    button = page.get_by_role("button", name="New conversation")
    expect(button).to_have_count(1)
    assert looking.in_view(button)
    looking.check(page)
    button.click()
    expect(page).not_to_have_url(chat.url)
    expect(page.get_by_label("Message")).to_be_focused()


@pytest.mark.slow("another story of where a page leads")
def test_a_button_that_its_script_runs_takes_no_press_before_the_script_has_come(author: Page, house: House) -> None:
    kept: list[Route] = []

    def keep(script: Route) -> None:
        kept.append(script)

    author.route("**/js/servers.*js", keep)
    author.goto(f"{house.server.url}/servers/new", wait_until="commit")
    test = author.get_by_role("button", name="Test connection")
    expect(test).to_have_css("pointer-events", "none")
    for script in kept:
        script.continue_()
    assert kept
    test.click()
    expect(author.locator("#trial")).not_to_be_empty()


@pytest.mark.slow("another story of where a page leads")
def test_what_was_not_saved_leads_to_its_field(author: Page, house: House, visit: Visit) -> None:
    visit.watch(author).expect("status of 422")
    author.goto(f"{house.server.url}/studio/new")
    author.get_by_label("Name", exact=True).fill("no good name!")
    author.get_by_role("button", name="Create draft").click()
    note = author.get_by_role("alert").filter(has_text="Not saved.")
    expect(note).to_be_visible()
    note.get_by_role("link", name="Name", exact=True).click()
    expect(author.get_by_label("Name", exact=True)).to_be_focused()
    looking.check(author)


def test_what_is_sent_without_a_connection_is_sent_once_there_is_one_and_once(alone: Alone) -> None:
    chat = alone.chat()
    stop_clock(alone.page)
    alone.lose()
    expect(chat.send).to_be_disabled()
    chat.composer.fill("Hello")
    chat.composer.press("Enter")
    chat.composer.press("Enter")
    note = alone.page.locator("[data-composer-note]")
    expect(note).to_contain_text("sent as soon as this page is connected")
    assert alone.sent == []
    alone.page.clock.run_for(RECONNECTS_MS)
    until(lambda: alone.sent, "the page has sent it")
    # Before the server has answered.
    chat.composer.press("Enter")
    alone.take()
    expect(chat.composer).to_have_value("")
    assert [each["content"] for each in alone.sent] == ["Hello"]
    expect(note).not_to_contain_text("connected")

    # What is written on meanwhile is sent by another press alone.
    alone.lose()
    expect(chat.send).to_be_disabled()
    chat.composer.fill("Hello")
    chat.composer.press("Enter")
    chat.composer.press_sequentially(" there")
    expect(note).not_to_contain_text("connected")
    alone.page.clock.run_for(RECONNECTS_MS)
    expect(chat.send).to_be_enabled()
    assert len(alone.sent) == 1
    chat.composer.press("Enter")
    until(lambda: len(alone.sent) == 2, "the page has sent it")
    assert alone.sent[-1]["content"] == "Hello there"


def test_enter_before_the_scripts_are_there_sends_once_they_are(alone: Alone) -> None:
    alone.page.add_init_script(EARLY_ENTER)
    chat = alone.chat()
    until(lambda: alone.sent, "the page has sent it")
    alone.take()
    expect(chat.composer).to_have_value("")
    assert [each["content"] for each in alone.sent] == ["Hello"]


def test_enter_while_a_file_is_on_its_way_says_that_it_waits_and_sends_both_once(alone: Alone) -> None:
    chat, uploads = alone.chat(), _held_uploads(alone.page)
    note = alone.page.get_by_text("Your message will be sent as soon as the files are uploaded.").last
    chat.composer.fill("Read it")
    _attach(alone.page)
    until(lambda: alone.page.evaluate("1") and uploads, "the file is on its way")
    chat.composer.press("Enter")
    chat.composer.press("Enter")
    expect(note).to_be_visible()
    looking.check(alone.page)
    assert alone.sent == []
    uploads[0].fulfill(status=201, json=KEPT)
    until(lambda: alone.sent, "the page has sent it")
    expect(note).to_be_hidden()
    assert [(each["content"], each["attachments"]) for each in alone.sent] == [("Read it", KEPT["id"])]


@pytest.mark.parametrize("why", ["the file is refused", "the text changes"])
def test_what_waits_for_a_file_is_not_sent_once_it_is_another_message(why: str, alone: Alone, visit: Visit) -> None:
    visit.watch(alone.page).expect("415")
    chat, uploads = alone.chat(), _held_uploads(alone.page)
    chat.composer.fill("Read it")
    _attach(alone.page)
    until(lambda: alone.page.evaluate("1") and uploads, "the file is on its way")
    chat.composer.press("Enter")
    if why == "the text changes":
        chat.composer.press_sequentially(" all")
        uploads[0].fulfill(status=201, json=KEPT)
    else:
        uploads[0].fulfill(status=415, json={"detail": "No such files here."})
    expect(alone.page.locator("[data-files-wait]")).to_be_hidden()
    expect(chat.send).to_be_enabled()
    assert alone.sent == []


def test_a_conversation_begins_with_what_waited_for_its_file_and_once(alone: Alone) -> None:
    alone.begin()
    uploads = _held_uploads(alone.page)
    begun: list[str] = []

    def note(request: Request) -> None:
        if request.is_navigation_request():
            begun.append(str(request.post_data))

    alone.page.on("request", note)
    alone.page.get_by_label("Message", exact=True).fill("Read it")
    _attach(alone.page)
    until(lambda: alone.page.evaluate("1") and uploads, "the file is on its way")
    alone.page.get_by_label("Message", exact=True).press("Enter")
    alone.page.get_by_role("button", name="Send").click()
    expect(alone.page.locator("[data-files-wait]")).to_be_visible()
    uploads[0].fulfill(status=201, json=KEPT)
    until(lambda: alone.page.evaluate("1") and begun, "the page has sent it")
    assert [str(KEPT["id"]) in each for each in begun] == [True]


def test_on_a_phone_the_button_that_sends_stays_in_view_below_many_conversations_whatever_is_attached(
    alone: Alone,
) -> None:
    alone.page.set_viewport_size(NARROW)
    alone.begin()
    alone.page.locator("nav.threads").evaluate("nav => { nav.innerHTML = '<a href=\"#\">One of many</a>'.repeat(30); }")
    send = alone.page.get_by_role("button", name="Send")
    before = alone.page.locator("nav.threads").bounding_box()
    assert looking.in_view(send)
    alone.page.locator("#say").evaluate("say => say.insertAdjacentHTML('afterend', '<div style=\"height: 250px\">')")
    assert looking.in_view(send)
    after = alone.page.locator("nav.threads").bounding_box()
    assert before is not None
    assert after is not None
    assert 0 < after["height"] < before["height"]


def _held_uploads(page: Page) -> list[Route]:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/conversations", lambda route: route.fulfill(status=201, json={"id": str(UUID(int=1))}))
    page.route("**/attachments", hold)
    return held


def _attach(page: Page) -> None:
    page.get_by_label("Attach files").set_input_files({"name": "a.md", "mimeType": "text/markdown", "buffer": b"# A"})


@pytest.mark.parametrize("is_taken", [True, False])
def test_an_edit_that_was_sent_goes_into_the_box_only_if_another_was_taken(is_taken: bool, alone: Alone) -> None:
    chat = alone.chat(transcript=[_asked("Hello")])
    alone.page.locator(".edit-message > summary").click()
    alone.page.get_by_label("New text").fill("Hello there ")
    alone.page.get_by_label("New text").press("Enter")
    until(lambda: alone.sent, "the page has sent it")
    alone.redraw([_asked("Hello there" if is_taken else "Good day")], 0)
    expect(alone.page.locator(".prose.typed")).to_have_text("Hello there" if is_taken else "Good day")
    expect(chat.composer).to_have_value("" if is_taken else "Hello there ")
    expect(chat.flash).to_have_text("" if is_taken else re.compile("Your text is in the box below"))


def test_in_a_narrow_window_an_edit_opens_with_its_buttons_in_view(alone: Alone) -> None:
    alone.page.set_viewport_size(NARROW)
    alone.chat(transcript=[*(said("Good day. " * 40) for _ in range(4)), _asked("Hello")])
    alone.page.locator(".edit-message > summary").click()
    send = alone.page.locator(".edit-message").get_by_role("button", name="Send")
    until(lambda: looking.in_view(send), "the button is in view")


def _asked(content: str) -> MessageView:
    view = said(content, "user")
    view.message.run_id = uuid4()
    return view


@pytest.mark.parametrize("template", ["studio/import.html", "record/page.html"])
def test_a_file_too_large_for_the_server_is_refused_on_the_page_with_the_limit(template: str, alone: Alone) -> None:
    field = alone.file_field(template, {"most_bytes": 3, "most_mib": 1.5, "most_tools": 200})
    field.evaluate("field => { field.dataset.largest = '3' }")
    field.set_input_files({"name": "small.json", "mimeType": "application/json", "buffer": b"[1]"})
    expect(alone.page.locator("[data-too-long]")).to_have_count(0)
    field.set_input_files({"name": "large.json", "mimeType": "application/json", "buffer": b"[12]"})
    expect(alone.page.get_by_role("alert")).to_have_text(
        re.compile(r"The file has more than (1\.5 MiB|20 MB), so it can")
    )
    expect(field).to_have_value("")
    field.set_input_files({"name": "small.json", "mimeType": "application/json", "buffer": b"[1]"})
    expect(alone.page.locator("[data-too-long]")).to_have_count(0)
    expect(field).to_have_value(re.compile("small"))

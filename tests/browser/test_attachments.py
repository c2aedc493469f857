"""Attachments as a person sends them: picked, pasted, dropped, removed, kept over a reload, wide and narrow."""

import base64
import re
from typing import Any, Final

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests import attaching
from tests.browser import looking
from tests.browser.chatting import Chat
from tests.browser.conftest import NARROW, House, SharedModel, Visit
from tests.scripted_model import Gate, calls, status, text, text_in

pytestmark = pytest.mark.browser

NOTES: Final[FilePayload] = {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"# Notes of May"}
PICTURE: Final[FilePayload] = {"name": "chart.png", "mimeType": "image/png", "buffer": attaching.png(60, 40)}
DRAWING: Final[FilePayload] = {"name": "evil.svg", "mimeType": "image/png", "buffer": attaching.SVG}

# A transfer of files, as a paste or a drop carries it.
TRANSFER: Final = """([name, type, data]) => {
  const transfer = new DataTransfer();
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  transfer.items.add(new File([bytes], name, { type }));
  return transfer;
}"""


def given(payload: FilePayload) -> list[str]:
    return [payload["name"], payload["mimeType"], base64.b64encode(payload["buffer"]).decode()]


def pick(page: Page, *payloads: FilePayload) -> None:
    page.get_by_label("Attach files").set_input_files(list(payloads))


def drag(page: Page, payload: FilePayload, *kinds: str, onto: str = "body") -> None:
    transfer: Any = page.evaluate_handle(TRANSFER, given(payload))
    for kind in kinds:
        page.dispatch_event(onto, kind, {"dataTransfer": transfer})


def paste(page: Page, payload: FilePayload, onto: str) -> None:
    page.evaluate(
        f"""([onto, ...file]) => document.querySelector(onto).dispatchEvent(
          new ClipboardEvent("paste", {{ clipboardData: ({TRANSFER})(file), bubbles: true, cancelable: true }}))""",
        [onto, *given(payload)],
    )


def chips(page: Page) -> Locator:
    return page.locator("[data-chips] .chip")


def attached(page: Page, *names: str) -> None:
    """Wait until these files are there, and nothing is on its way."""
    expect(page.locator("[data-chips] [data-name]")).to_have_text(list(names))
    expect(page.locator("[data-chips] progress")).to_have_count(0)


def test_files_are_picked_pasted_and_dropped_and_reach_the_model(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    chat.composer.fill("What is this?")
    pick(page, NOTES)
    attached(page, "notes.md")
    paste(page, PICTURE, "#say")
    attached(page, "notes.md", "chart.png")
    drag(page, {**NOTES, "name": "more.md"}, "dragenter", "dragover", onto=".log")
    expect(page.get_by_text("Drop files to attach them")).to_be_visible()
    drag(page, {**NOTES, "name": "more.md"}, "drop", onto=".log")
    expect(page.get_by_text("Drop files to attach them")).to_be_hidden()
    attached(page, "notes.md", "chart.png", "more.md")
    expect(chat.composer).to_be_focused()
    expect(chat.composer).to_have_value("What is this?")
    looking.check(page)
    model.enqueue(text("A chart."))
    chat.composer.press("Enter")
    chat.said("A chart.")
    expect(chips(page)).to_have_count(0)
    expect(chat.log.get_by_role("img", name="chart.png")).to_be_visible()
    expect(chat.log.get_by_role("link", name=re.compile("notes.md"))).to_be_visible()
    assert "# Notes of May" in text_in(model.messages[0])
    assert "image_url" in [part["type"] for part in model.messages[0]["content"]]
    looking.check(page)


@pytest.mark.slow("another story of attachments")
def test_what_cannot_be_attached_says_why_and_is_not_sent(visit: Visit, house: House, model: SharedModel) -> None:
    page = visit(house.server, house.bob)
    visit.watch(page).expect("415")
    chat = Chat(page, house.server, house.bob.begin("")).open()
    pick(page, DRAWING, NOTES)
    attached(page, "evil.svg", "notes.md")
    expect(chips(page).first).to_contain_text("the content is an SVG drawing")
    large = page.get_by_label("Attach files")
    large.evaluate("pick => { pick.dataset.mostBytes = '3' }")
    pick(page, {**NOTES, "name": "large.md"})
    expect(chips(page).last).to_contain_text("large.md has more than 10 MiB")
    looking.check(page)
    page.get_by_role("button", name="Remove large.md").press("Enter")
    expect(page.get_by_role("button", name="Remove notes.md")).to_be_focused()
    model.enqueue(text("Read."))
    chat.say("Read it")
    chat.said("Read.")
    expect(chips(page)).to_have_count(0)
    assert "SVG" not in text_in(model.messages[0]).upper()


@pytest.mark.slow("another story of attachments")
def test_a_draft_keeps_its_files_across_a_reload_and_removed_ones_stay_away(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    pick(page, NOTES, PICTURE)
    attached(page, "notes.md", "chart.png")
    with page.expect_response(lambda answer: answer.request.method == "DELETE"):
        page.get_by_role("button", name="Remove chart.png").click()
    chat.composer.fill("Still here")
    page.reload()
    attached(page, "notes.md")
    expect(chat.composer).to_have_value("Still here")
    model.enqueue(text("Read."))
    expect(chat.send).to_be_enabled()
    chat.send.click()
    chat.said("Read.")
    assert "# Notes of May" in text_in(model.messages[0])
    page.reload()
    expect(chat.log).to_contain_text("notes.md")
    expect(chips(page)).to_have_count(0)


def test_a_file_goes_along_while_a_card_waits_and_answers_nothing(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(calls(("echo", {"text": "hi"})), text("Sent."), text("Read."))
    chat.say("Send it")
    card = chat.asked()
    card.focus()
    pick(page, NOTES)
    drag(page, PICTURE, "dragenter", "drop", onto="[data-ask]")
    attached(page, "notes.md", "chart.png")
    expect(chat.cards).to_have_count(1)
    expect(chat.call("waiting")).to_have_count(1)
    chat.composer.fill("And read this")
    chat.composer.press("Enter")
    expect(page.locator("#queued")).to_contain_text("notes.md")
    page.get_by_role("button", name="Take back").click()
    attached(page, "notes.md", "chart.png")
    chat.composer.press("Enter")
    expect(page.locator("#queued")).to_contain_text("chart.png")
    chat.approve()
    chat.said("Read.")
    assert "# Notes of May" in text_in(model.messages[-1])


@pytest.mark.slow("another story of attachments")
def test_an_edited_message_keeps_the_files_that_are_left_in(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    pick(page, NOTES, {**NOTES, "name": "old.md", "buffer": b"Old words"})
    attached(page, "notes.md", "old.md")
    model.enqueue(text("One."), text("Two."))
    chat.say("Read both")
    chat.said("One.")
    page.locator(".edit-message > summary").click()
    page.get_by_role("button", name="Remove old.md").click()
    expect(page.get_by_label("New text")).to_be_focused()
    page.get_by_label("New text").fill("Read one")
    looking.check(page)
    page.get_by_label("New text").press("Enter")
    chat.said("Two.")
    assert "# Notes of May" in text_in(model.messages[0])
    assert "Old words" not in text_in(model.messages[0])


def paste_text(page: Page, field: str, text: str) -> None:
    script = """(field, text) => {
        const given = new DataTransfer();
        given.setData("text/plain", text);
        field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true }));
    }"""
    page.get_by_role("textbox", name=field).or_(page.get_by_role("searchbox", name=field)).evaluate(script, text)


@pytest.mark.slow("another story of attachments")
def test_a_text_too_long_for_a_field_is_attached_or_refused_and_never_cut(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    page.get_by_label("Message").fill("Read this")
    paste_text(page, "Message", "word " * 20_001)
    attached(page, "pasted.txt")
    expect(page.get_by_text("The text has 100,005 characters, and a message holds at most 100,000")).to_be_visible()
    looking.check(page)
    model.enqueue(text("Read."))
    page.get_by_role("button", name="Send").click()
    chat.said("Read.")
    assert "word word" in text_in(model.messages[-1])
    paste_text(page, "Search conversations", "long " * 100)
    expect(page.get_by_text("Nothing was pasted: the text has 500 characters")).to_be_visible()
    expect(page.get_by_role("searchbox", name="Search conversations")).to_have_value("")


@pytest.mark.slow("another story of attachments")
def test_a_model_without_images_is_tried_again_without_them(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(status(400, {"message": "image input is not supported"}), text("I only read."))
    pick(page, PICTURE)
    attached(page, "chart.png")
    chat.say("What is it?")
    expect(chat.notice()).to_contain_text("did not accept the images")
    looking.check(page)
    page.get_by_role("button", name="Try again without images").click()
    chat.said("I only read.")
    expect(chat.log).to_contain_text("The model is not sent this image.")


@pytest.mark.slow("another story of attachments")
def test_on_a_narrow_screen_a_conversation_begins_with_a_file(visit: Visit, house: House, model: SharedModel) -> None:
    page = visit(house.server, house.bob, viewport=NARROW)
    page.goto(house.server.url)
    pick(page, NOTES)
    attached(page, "notes.md")
    page.reload()
    attached(page, "notes.md")
    assert looking.overflow(page) == []
    gate = Gate()
    model.enqueue(text(gate, "Read."))
    page.get_by_label("Message").fill("Read my notes")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/chat/*")
    gate.open()
    expect(page.locator(".said.user")).to_contain_text("notes.md")
    expect(page.locator(".said.assistant")).to_contain_text("Read.")
    looking.check(page)
    page.goto(house.server.url)
    expect(chips(page)).to_have_count(0)

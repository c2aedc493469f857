"""Conversations beside the chat: renamed, pinned, archived, searched, exported, deleted and brought back."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat
from tests.browser.conftest import NARROW, WIDE, House, SharedModel, Visit
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser


# As when a conversation gets another title: every list on the page is told, whatever window it is for.
STALE = "document.querySelectorAll('.threads').forEach((list) => list.dispatchEvent(new Event('stale')))"


def beside(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Conversations")


def choose(page: Page, entry: str) -> None:
    page.get_by_label("This conversation", exact=True).click()
    page.locator("[data-menu]").get_by_text(entry, exact=True).click()


def rename(page: Page, title: str) -> None:
    choose(page, "Rename…")
    page.get_by_label("Title").fill(title)
    page.get_by_label("Title").press("Enter")
    expect(page.locator("#title")).to_have_text(title)


def test_a_conversation_is_renamed_pinned_archived_and_found(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(text("The parcel left Rotterdam on Monday."))
    chat.say("Where is my parcel?")
    chat.said("Rotterdam")
    rename(page, "Parcels of May")
    expect(beside(page).get_by_role("link", name="Parcels of May")).to_be_visible()
    choose(page, "Pin to the top")
    expect(beside(page).get_by_role("heading", name="Pinned")).to_be_visible()
    looking.check(page)
    choose(page, "Archive")
    expect(beside(page).locator(".threads").get_by_text("Parcels of May")).to_have_count(0)
    expect(page.get_by_text("Archived: the list shows it only with “Archived only”.")).to_be_visible()
    looking.check(page)
    beside(page).get_by_label("Archived only").check()
    expect(beside(page).get_by_role("link", name="Parcels of May")).to_be_visible()
    beside(page).get_by_label("Archived only").uncheck()
    search = beside(page).get_by_label("Search conversations")
    search.press_sequentially("rotter")
    expect(beside(page).get_by_role("heading", name="Found")).to_be_visible()
    expect(beside(page).locator(".threads").get_by_role("link")).to_have_text(["Parcels of May"])
    expect(search).to_be_focused()
    search.fill("no such words anywhere")
    expect(beside(page).locator(".threads")).to_contain_text("No conversation contains all of these words.")
    search.press("Enter")
    expect(page.locator("#title")).to_have_text("Parcels of May")


@pytest.mark.slow("another story of conversations")
def test_only_the_list_that_is_seen_asks_for_news_and_the_other_one_as_it_comes_into_view(
    chat: Chat, house: House
) -> None:
    page = chat.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/chat/threads" in request.url else None)
    expect(page.locator(".threads")).to_have_count(2)
    with page.expect_response("**/chat/threads?*"):
        page.evaluate(STALE)
    assert len(asked) == 1
    page.set_viewport_size(NARROW)
    expect(beside(page)).to_be_hidden()
    other = house.bob.post("/api/conversations", {"title": "Another"}).json()["id"]
    page.evaluate(STALE)
    with page.expect_response("**/chat/threads?*"):
        page.locator(".side-menu > summary").click()
    expect(page.locator(f".side-menu .threads a[href$='{other}']")).to_be_visible()
    assert len(asked) == 2
    with page.expect_response("**/chat/threads?*"):
        page.set_viewport_size(WIDE)
    expect(beside(page).locator(f".threads a[href$='{other}']")).to_be_visible()
    assert len(asked) == 3


@pytest.mark.slow("another story of conversations")
def test_a_double_click_on_the_title_renames_and_escape_leaves_it(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(text("Hello."))
    chat.say("Hello there")
    chat.said("Hello.")
    page.locator("#title").dblclick()
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Title")).to_be_hidden()
    expect(page.get_by_label("This conversation", exact=True)).to_be_focused()
    expect(page.locator("#title")).to_have_text("Hello there")


@pytest.mark.slow("another story of conversations")
def test_the_whole_conversation_is_saved_as_markdown(chat: Chat, model: SharedModel) -> None:
    model.enqueue(text("The answer is 42."))
    chat.say("What is the answer?")
    chat.said("42")
    with chat.page.expect_download() as saved:
        choose(chat.page, "Export as Markdown")
    assert saved.value.suggested_filename.startswith("what-is-the-answer-")
    assert "The answer is 42." in saved.value.path().read_text(encoding="utf-8")


@pytest.mark.slow("another story of conversations")
def test_in_a_narrow_window_one_menu_closes_the_other_and_escape_each(visit: Visit, house: House) -> None:
    page = visit(house.server, house.bob, viewport=NARROW)
    Chat(page, house.server, house.bob.begin("")).open()
    side, search = page.locator(".side-menu > summary"), page.locator(".side-menu").get_by_role("searchbox")
    rename = page.get_by_role("button", name="Rename")
    side.click()
    expect(search).to_be_visible()
    page.keyboard.press("Escape")
    expect(search).to_be_hidden()
    expect(side).to_be_focused()
    side.click()
    expect(search).to_be_visible()
    page.get_by_label("This conversation", exact=True).click()
    expect(rename).to_be_visible()
    expect(search).to_be_hidden()
    # Wherever the focus is: a finger leaves none on what it opens in every browser.
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Escape")
    expect(rename).to_be_hidden()
    expect(page.get_by_label("This conversation", exact=True)).to_be_focused()
    for elsewhere in (page.locator(".log"), page.get_by_role("navigation", name="Main").locator("a").last):
        side.click()
        elsewhere.dispatch_event("pointerdown")
        expect(search).to_be_hidden()


def test_a_phone_begins_with_the_last_conversations_and_their_search_and_has_them_in_each(
    visit: Visit, house: House
) -> None:
    page = visit(house.server, house.bob, viewport=NARROW, has_touch=True)
    url = f"/chat/{house.bob.post('/api/conversations', {'title': 'Olives for Ann'}).json()['id']}"
    page.goto(house.server.url)
    last, search = page.locator(f".threads a[href='{url}']").filter(visible=True), page.get_by_role("searchbox")
    assert looking.in_view(last)
    assert looking.in_view(page.get_by_label("Message"))
    panel = page.locator("aside.side").bounding_box()
    assert panel is not None
    assert panel["width"] == NARROW["width"]
    search.fill("no such words")
    expect(page.get_by_text("No conversation contains all of these words.")).to_be_visible()
    search.fill("olives")
    last.click()
    expect(page.locator("#title")).to_have_text("Olives for Ann")
    # No key is pressed on a phone.
    expect(page.get_by_text("Enter to send")).to_be_hidden()
    page.locator(".side-menu > summary").click()
    expect(last).to_be_visible()


@pytest.mark.slow("another story of conversations")
def test_in_a_narrow_window_the_note_below_a_message_has_a_line_of_its_own(
    visit: Visit, house: House, model: SharedModel
) -> None:
    page = visit(house.server, house.bob, viewport=NARROW)
    chat = Chat(page, house.server, house.bob.begin("")).open()
    model.enqueue(calls(("echo", {"text": "one"})))
    chat.say()
    chat.asked()
    page.get_by_role("button", name="Decide later").click()
    expect(page.locator("[data-composer-note]")).to_contain_text("queued until this run finishes")
    note, send = page.locator("[data-composer-note]").bounding_box(), page.get_by_label("Send").bounding_box()
    assert note is not None
    assert send is not None
    assert note["y"] >= send["y"] + send["height"]
    assert note["width"] > NARROW["width"] / 2
    chat.stop()


@pytest.mark.parametrize("size", ["wide", pytest.param("narrow", marks=pytest.mark.slow("another width"))])
def test_a_deleted_conversation_comes_back_within_ten_seconds(
    size: str, visit: Visit, house: House, model: SharedModel
) -> None:
    options = {"viewport": NARROW} if size == "narrow" else {}
    page = visit(house.server, house.bob, **options)
    chat = Chat(page, house.server, house.bob.begin("")).open()
    model.enqueue(calls(("echo", {"text": "bye"})))
    chat.say("Say bye")
    chat.asked()
    page.keyboard.press("Escape")
    choose(page, "Delete…")
    expect(page.get_by_text("1 call has not started and will be withdrawn")).to_be_visible()
    looking.check(page)
    looking.wear(page, f"{size} light")
    page.get_by_role("button", name="Delete conversation").click()
    expect(page.get_by_text("“Say bye” was deleted.")).to_be_visible()
    looking.check(page)
    looking.wear(page, f"{size} light")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Say bye")
    expect(chat.call("withdrawn")).to_have_count(1)


@pytest.mark.slow("another story of conversations")
def test_another_tab_leaves_a_conversation_that_is_deleted(
    chat: Chat, visit: Visit, house: House, model: SharedModel
) -> None:
    model.enqueue(text("Hello."))
    chat.say("Hello there")
    chat.said("Hello.")
    other = Chat(visit(house.server, house.bob), house.server, chat.conversation).open()
    expect(other.page.locator("#title")).to_have_text("Hello there")
    choose(chat.page, "Delete…")
    chat.page.get_by_role("button", name="Delete conversation").click()
    expect(other.page.get_by_role("heading", name="What would you like to do?")).to_be_visible()
    undo = chat.page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    chat.page.clock.run_for(10_000)
    expect(undo).to_have_count(0)
    expect(chat.composer).to_be_focused()
    # What is typed elsewhere begins the next conversation.
    chat.page.get_by_role("button", name="New conversation").focus()
    chat.page.keyboard.type("Hi")
    expect(chat.composer).to_have_value("Hi")


MARKDOWN = r"""Here it is:

```python
def area(r):
    return 3.14 * r**2
```

| what | how many |
|:-----|---------:|
| apples | 12 |

- [x] counted
- [ ] eaten
  - [ ] by Ann

The area is \(\pi\,r^2\)."""


@pytest.mark.slow("another story of conversations")
def test_code_and_whole_messages_are_copied_as_they_were_written(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    model.enqueue(text(MARKDOWN))
    chat.say("Show me")
    chat.said("The area is")
    answer = chat.log.locator(".said.assistant").last
    expect(answer.locator("math")).to_be_visible()
    outer, inner = (answer.get_by_text(words).bounding_box() for words in ["☑ counted", "☐ by Ann"])
    assert outer
    assert inner
    assert inner["x"] > outer["x"]
    answer.locator("pre").hover()
    answer.get_by_role("button", name="Copy code").click()
    expect(answer.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "def area(r):\n    return 3.14 * r**2\n"
    answer.get_by_role("button", name="Copy text").click()
    expect(answer.locator("header").get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == MARKDOWN
    looking.check(page)


@pytest.mark.slow("another story of conversations")
def test_wide_code_is_wrapped_by_a_button_and_a_wide_table_breaks_no_number(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    head = "|".join(f"Quarter {number}" for number in range(12))
    table = f"|{head}|\n|{'--:|' * 12}\n|{'12,345.00|' * 12}"
    model.enqueue(text(f"```python\n{'value = value + 1  # ' * 20}\n```\n\n{table}\n\nThat is all."))
    chat.say("Show me")
    chat.said("That is all.")
    answer = chat.log.locator(".said.assistant").last
    code, cell = answer.locator("pre"), answer.get_by_role("cell").first
    looking.check(page)
    assert scrolls(code)
    code.hover()
    wrap = answer.get_by_role("button", name="Wrap long lines")
    wrap.click()
    expect(wrap).to_have_attribute("aria-pressed", "true")
    assert not scrolls(code)
    looking.wear(page, "narrow light")
    assert cell.evaluate("cell => cell.clientHeight < 2 * parseFloat(getComputedStyle(cell).lineHeight)")
    assert scrolls(answer.get_by_role("table"))


def scrolls(locator: Locator) -> bool:
    return bool(locator.evaluate("element => element.scrollWidth > element.clientWidth"))


def test_a_message_is_said_in_another_way_and_both_versions_are_kept(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(text("Which parcel?"), text("It is in Leipzig."), text("It is in **Gera** by now."))
    chat.say("Where is my parcel?")
    chat.said("Which parcel?")
    page.locator(".said.user").hover()
    page.locator(".edit-message > summary").click()
    field = page.get_by_label("New text")
    expect(field).to_be_focused()
    field.fill("Where is parcel 4711?")
    looking.check(page)
    field.press("Enter")
    chat.said("It is in Leipzig.")
    expect(chat.composer).to_be_focused()
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    page.locator(".said.assistant").hover()
    page.get_by_role("button", name="Regenerate").click()
    chat.said("It is in Gera by now.")
    expect(page.get_by_role("group", name="Version 3 of 3")).to_be_visible()
    looking.check(page)
    page.get_by_role("button", name="Previous version").click()
    chat.said("It is in Leipzig.")
    expect(page.get_by_role("button", name="Previous version")).to_be_focused()
    page.keyboard.press("Enter")
    chat.said("Which parcel?")
    expect(page.get_by_role("button", name="Next version")).to_be_focused()
    expect(page.locator(".said.user .prose")).to_have_text("Where is my parcel?")


@pytest.mark.slow("another story of conversations")
def test_of_two_tabs_that_edit_a_message_the_later_one_keeps_its_words(
    chat: Chat, model: SharedModel, visit: Visit, house: House
) -> None:
    model.enqueue(text("Hello."), text("And to you."))
    chat.say("Hello there")
    chat.said("Hello.")
    other = Chat(visit(house.server, house.bob), house.server, chat.conversation).open()
    other.composer.fill("A draft")
    for each, words in ((other, "Good night"), (chat, "Good evening")):
        each.page.locator(".said.user").hover()
        each.page.locator(".edit-message > summary").click()
        # It gets the focus, with the caret at its end, a moment after it has opened.
        expect(each.page.get_by_label("New text")).to_be_focused()
        each.page.get_by_label("New text").fill(words)
    chat.page.get_by_label("New text").press("Enter")
    chat.said("And to you.")
    other.said("And to you.")
    expect(other.flash).to_contain_text("was changed elsewhere")
    expect(other.composer).to_have_value("Good night\n\nA draft")
    expect(other.composer).to_be_focused()
    expect(chat.composer).to_have_value("")
    looking.check(other.page)


@pytest.mark.slow("another story of conversations")
def test_an_edit_that_cannot_be_sent_yet_stays_as_it_was_written(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(text("Hello."), calls(("echo", {"text": "hi"})))
    chat.say("Hello there")
    chat.said("Hello.")
    chat.say("Send it.")
    chat.asked()
    page.keyboard.press("Escape")
    page.locator(".said.user").first.hover()
    page.locator(".edit-message > summary").first.click()
    field = page.get_by_label("New text").first
    field.fill("Good evening")
    page.locator(".edit-message").first.get_by_role("button", name="Send").click()
    expect(chat.flash).to_have_text("A call waits for an answer. Once it is decided, or the run is stopped, try again.")
    page.locator("#run").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("You stopped this run.")).to_be_visible()
    expect(field).to_have_value("Good evening")
    model.enqueue(text("And to you."))
    field.press("Enter")
    chat.said("And to you.")
    expect(page.locator(".said.user")).to_have_count(1)


@pytest.mark.slow("another story of conversations")
def test_what_is_sent_meanwhile_waits_above_the_box_and_is_said_in_its_turn(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(calls(("echo", {"text": "one"})), text("One."), text("Two."))
    chat.say("First")
    chat.asked()
    page.keyboard.press("Escape")
    chat.say("Second")
    expect(chat.composer).to_have_value("")
    chat.say("Third")
    waiting = page.locator("#queued .queued:not(.over)")
    expect(waiting).to_have_count(2)
    looking.check(page)
    page.keyboard.press("Escape")
    waiting.last.get_by_role("button", name="Take back").click()
    expect(chat.composer).to_have_value("Third")
    expect(waiting).to_have_count(1)
    expect(page.get_by_role("button", name="Send now")).to_be_hidden()
    chat.to_cards.press("Enter")
    chat.approve()
    chat.said("Two.")
    expect(waiting).to_have_count(0)
    expect(page.locator(".said.user .prose")).to_have_text(["First", "Second"])
    expect(chat.composer).to_have_value("Third")


@pytest.mark.slow("another story of conversations")
def test_a_conversation_is_shared_and_read_by_a_colleague(
    chat: Chat, model: SharedModel, house: House, visit: Visit
) -> None:
    page = chat.page
    model.enqueue(calls(("echo", {"text": "the parcel"})), text("It said **the parcel**."))
    chat.say("Say it.")
    chat.approve()
    chat.said("It said the parcel.")
    choose(page, "Share…")
    expect(page.get_by_role("heading", name="What they will see")).to_be_visible()
    looking.check(page)
    page.get_by_role("button", name="Create link").click()
    link = page.locator("#link").inner_text()
    looking.check(page)
    reader = visit(house.server, house.alice)
    reader.goto(link)
    expect(reader.get_by_text("It said the parcel.")).to_be_visible()
    reader.locator(".call > summary").click()
    expect(reader.get_by_text("Approved by bob")).to_be_visible()
    looking.check(reader)
    page.get_by_role("button", name="Stop sharing").click()
    expect(page.get_by_role("button", name="Create link")).to_be_visible()
    visit.watch(reader).expect("status of 404")
    reader.reload()
    expect(reader.get_by_role("heading", name="Page not found")).to_be_visible()

"""The transcript: titles, answers and footnotes, calls and who answered them, and what is read aloud."""

import re
from typing import Any, Final

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser import looking
from tests.browser.chatting import Chat, approve, press, settle
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.test_deciding import approve_changed, begin_edit, see_changes
from tests.conftest import PASSWORD
from tests.processes import Servers
from tests.scripted_model import Gate, Reply, ScriptedModel, calls, chunk, text, unfinished

pytestmark = pytest.mark.browser

# Changes of what a screen reader is told, as they come.
HEAR: Final = """() => {
  window.heard = [];
  new MutationObserver(changes => {
    for (const change of changes) {
      const place = change.target instanceof Element ? change.target : change.target.parentElement;
      const region = place?.closest("[role=status], [role=alert], [role=log], [aria-live]");
      const words = region?.textContent.trim();
      if (words && heard.at(-1) !== words) heard.push(words);
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def heard(page: Page) -> list[str]:
    found: list[str] = page.evaluate("heard")
    return found


@pytest.mark.slow("a server of its own")
def test_the_title_of_the_model_is_on_every_open_page_at_once(own: Servers, visit: Visit) -> None:
    model = ScriptedModel()
    server = own.start(**model.environment | {"CHAT_TITLES": "1"})
    bob = server.sign_in("bob")
    chat = Chat(visit(server, bob), server, bob.begin("")).open()
    other = visit(server, bob)
    other.goto(chat.url)
    gate = Gate()
    model.enqueue(text("It is in Leeds."), text(gate, "“Parcel of order 4711”"))
    chat.say("Where is the parcel?")
    chat.said("It is in Leeds.")
    gate.wait()
    expect(chat.page.locator("#title")).to_have_text("Where is the parcel?")
    gate.open()
    for page in (chat.page, other):
        expect(page.locator("#title")).to_have_text("Parcel of order 4711")
        expect(page).to_have_title("Parcel of order 4711 · hitlchat")
        expect(page.locator(".side .threads a[aria-current]")).to_have_text("Parcel of order 4711")
    chat.page.locator("#title").dblclick()
    expect(chat.page.get_by_label("Title")).to_have_value("Parcel of order 4711")
    chat.page.get_by_label("Title").fill("My own")
    chat.page.get_by_label("Title").press("Enter")
    expect(other.locator("#title")).to_have_text("My own")
    model.close()


@pytest.mark.slow("another story of the transcript")
def test_thoughts_of_an_answer_that_was_cut_off_stand_folded_above_it(chat: Chat, model: SharedModel) -> None:
    thoughts = chunk({"reasoning_content": "The person wants a story."})
    model.enqueue(Reply((thoughts, *unfinished("Once upon a").parts)))
    chat.say("Tell me a story")
    expect(chat.page.get_by_text("The answer was cut off here.")).to_be_visible()
    chat.page.get_by_text("Reasoning").click()
    expect(chat.page.get_by_text("The person wants a story.")).to_be_visible()
    looking.check(chat.page)


@pytest.mark.slow("another story of the transcript")
def test_a_footnote_is_read_and_left_by_its_links(chat: Chat, model: SharedModel) -> None:
    notes = "\n\n".join(f"Paragraph {n} of the answer." for n in range(40))
    answer = f"Water boils at 100 degrees.[^1] So it does.\n\n{notes}\n\n[^1]: At sea level.\n"
    model.enqueue(text(answer), text(answer))
    for number, words in enumerate(("When does water boil?", "Once more"), start=1):
        chat.say(words)
        # What is still being written follows its end, and would scroll away from what the link leads to.
        expect(chat.log.get_by_role("link", name="Footnote 1")).to_have_count(number)
        expect(chat.page.locator("#run")).to_have_attribute("data-active", "")
    second = chat.log.locator(".said.assistant").last
    second.get_by_role("link", name="Footnote 1").click()
    note = second.locator("li", has_text="At sea level.")
    expect(note).to_be_in_viewport()
    looking.check(chat.page)
    note.get_by_role("link", name="Back to the text").click()
    expect(second.get_by_role("link", name="Footnote 1")).to_be_in_viewport()
    expect(chat.page).to_have_url(re.compile(f"{chat.conversation}#m-.*-ref-1-0$"))


@pytest.mark.slow("another story of the transcript")
def test_the_lines_of_calls_say_who_changed_and_who_declined_them(chat: Chat, model: SharedModel) -> None:
    model.enqueue(calls(("echo", {"text": "one"}), ("echo", {"text": "two"}), ("look", {"text": "word " * 600})))
    chat.say()
    card = chat.asked(2)
    edit = begin_edit(card)
    edit.get_by_role("textbox", name="text").fill("three")
    see_changes(edit)
    approve(card, approve_changed(edit))
    card = chat.asked(1)
    card.locator("summary[aria-label='Decline with a reason']").click()
    card.get_by_label("Decline with a reason that").fill("Said it before")
    model.enqueue(text("Very well."))
    press(card.get_by_role("button", name="Decline with this reason"))
    chat.said("Very well.")
    expect(chat.call("succeeded").filter(has_text="Approved with changes by bob")).to_have_count(1)
    expect(chat.call("declined")).to_contain_text("Declined by bob: “Said it before”")
    looking.check(chat.page)
    long = chat.call("succeeded").filter(has_text="look")
    long.locator("summary").first.click()
    long.get_by_text("Result, 3,000 characters").click()
    expect(long.get_by_label("Result")).to_be_visible()


@pytest.mark.slow("another story of the transcript")
def test_a_call_of_another_version_is_found_from_the_history(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(calls(("look", {"text": "of the first version"})), text("Looked."), text("Not this time."))
    chat.say("Look it up")
    chat.said("Looked.")
    page.locator(".said.user").hover()
    page.locator(".edit-message > summary").click()
    expect(page.get_by_label("New text")).to_be_focused()
    page.get_by_label("New text").fill("Do not look it up")
    page.get_by_label("New text").press("Enter")
    chat.said("Not this time.")
    page.goto(chat.url.partition("/chat")[0] + "/history/")
    page.get_by_role("link", name=re.compile("of the first version|^look")).first.click()
    page.get_by_role("link", name="this chat").click()
    expect(page.get_by_text("is in version 1 of 2 of your message")).to_be_visible()
    looking.check(page)
    page.get_by_role("button", name="Show that version").click()
    chat.said("Looked.")
    expect(chat.call("succeeded")).to_be_in_viewport()
    expect(chat.call("succeeded").get_by_label("Arguments")).to_be_visible()
    expect(page.get_by_text("which is not shown")).to_have_count(0)


def test_a_screen_reader_is_told_of_an_answer_once_and_of_a_card_once(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    gate = Gate()
    expect(chat.composer).to_be_focused()
    page.evaluate(HEAR)
    model.enqueue(text(*(f"word{n} " for n in range(100)), gate, "end."))
    chat.say("Tell me much")
    chat.said("word60")
    assert heard(page) == []
    gate.open()
    chat.said("end.")
    expect(page.locator("main > [data-announce]")).to_have_text("The answer is complete.")
    assert heard(page) == ["The answer is complete."]
    model.enqueue(calls(("echo", {"text": "one"})), text("Short."))
    chat.say("Now a call")
    chat.asked()
    expect(page.locator("main > [data-announce]")).to_have_text("A call needs your answer")
    # Its time goes on, and what has been seen is counted.
    left = page.locator("[data-ask] [data-deadline]")
    expect(left).not_to_have_text(left.inner_text())
    chat.approve()
    chat.said("Short.")
    expect(page.locator("main > [data-announce]")).to_have_text("The answer is complete: Short.")
    assert heard(page) == ["The answer is complete.", "A call needs your answer", "The answer is complete: Short."]


@pytest.mark.slow("another story of the transcript")
def test_signing_in_again_for_a_call_of_the_highest_risk_leads_back_to_its_conversation(
    visit: Visit, house: House, model: SharedModel
) -> None:
    bob = house.server.sign_in("bob")
    chat = Chat(visit(house.server, bob), house.server, bob.begin("")).open()
    key = bob.cookies["sessionid"]
    house.server.home.manage("shell", "-v", "0", "-c", LONG_AGO.format(key=key))
    model.enqueue(calls(("wipe", {"note": "all"})), text("Wiped."))
    chat.say("Wipe it")
    card = chat.asked()
    expect(card.get_by_text("To approve a call of risk L5")).to_be_visible()
    looking.check(chat.page)
    # As `press` does, which would look at the card afterwards.
    link = card.get_by_role("link", name="Sign in again")
    link.hover()
    chat.page.mouse.move(1, 1)
    settle(chat.page)
    link.click()
    chat.page.get_by_label("Password").fill(PASSWORD)
    chat.page.get_by_role("button", name="Sign in").click()
    expect(chat.page).to_have_url(chat.url)
    card = chat.asked()
    card.get_by_label("I reviewed").check()
    chat.approve(card)
    chat.said("Wiped.")


LONG_AGO: Final = """
from django.contrib.sessions.backends.db import SessionStore
session = SessionStore({key!r})
session["signed_in_at"] = "2020-01-01T00:00:00+00:00"
session.save()
"""


class Line:
    """The network between a page and the server: while it is away, sockets end and none is opened."""

    def __init__(self, page: Page) -> None:
        self.is_away = False
        self._open: list[WebSocketRoute] = []
        page.route_web_socket(re.compile("/ws/conversations/"), self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self.is_away:
            socket.close(code=1012)
            return
        socket.connect_to_server()
        self._open.append(socket)

    def go(self) -> None:
        self.is_away = True
        for socket in self._open:
            socket.close(code=1012)
        self._open.clear()


@pytest.mark.slow("another story of the transcript")
def test_an_answer_that_is_written_while_the_network_is_away_is_whole_once_it_is_back(
    page: Page, house: House, model: SharedModel
) -> None:
    line = Line(page)
    chat = Chat(page, house.server, house.bob.begin("")).open()
    gates: tuple[Any, ...] = (Gate(), Gate())
    model.enqueue(text("Once upon ", gates[0], "a time ", gates[1], "it ended."))
    chat.say("Tell me a story")
    chat.said("Once upon")
    line.go()
    expect(chat.offline).to_contain_text("Reconnecting")
    chat.composer.fill("written meanwhile")
    gates[0].open()
    gates[1].wait()
    expect(chat.log.locator(".said.assistant").last).not_to_contain_text("a time")
    gates[1].open()
    line.is_away = False
    chat.said("Once upon a time it ended.")
    expect(chat.offline).to_be_hidden()
    expect(chat.composer).to_have_value("written meanwhile")
    expect(chat.log.locator(".said.assistant")).to_have_count(1)


@pytest.mark.slow("another story of the transcript")
def test_what_was_unfolded_stays_so_when_the_connection_is_back(page: Page, house: House, model: SharedModel) -> None:
    line = Line(page)
    chat = Chat(page, house.server, house.bob.begin("")).open()
    model.enqueue(Reply((chunk({"reasoning_content": "A short one will do."}), *text("Once upon a time.").parts)))
    chat.say("Tell me a story")
    chat.said("Once upon a time.")
    page.get_by_text("Reasoning").click()
    expect(page.get_by_text("A short one will do.")).to_be_visible()
    page.locator("#turns > li").evaluate_all("shown => shown.forEach((each) => each.dataset.before = '')")
    line.go()
    expect(chat.offline).to_contain_text("Reconnecting")
    line.is_away = False
    expect(page.locator("[data-before]")).to_have_count(0)
    expect(page.get_by_text("A short one will do.")).to_be_visible()

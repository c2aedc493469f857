"""The inbox in a browser: live in every tab, by keyboard alone, several together, on a phone, and in notifications."""

import re
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import GRACE_MS, approve_button, decline, leave_menu, middle, press, rest_hands, tab_to
from tests.browser.conftest import NARROW, House, SharedModel, Visit
from tests.browser.inbox import Asking, Inbox
from tests.waiting import until

pytestmark = pytest.mark.browser

# Keeps what would be shown, and lets a test say whether its page is in front.
NOTICES = """
window.shown = [];
window.inFront = true;
Object.defineProperty(Document.prototype, "hasFocus", { value: () => window.inFront });
window.Notification = class extends EventTarget {
  static permission = location.protocol === "http:" ? localStorage.getItem("allowed") ?? "default" : "default";
  static async requestPermission() {
    localStorage.setItem("allowed", "granted");
    return (this.permission = "granted");
  }
  constructor(title, options) {
    super();
    Object.assign(this, { title, ...options, closed: false });
    window.shown.push(this);
  }
  close() { this.closed = true; }
};
"""

# Nothing lies above the line, neither at its upper edge nor at its lower one.
IS_WHOLE = """line => {
  const { left, top, bottom } = line.getBoundingClientRect();
  return [top + 3, bottom - 3].every(y => line.contains(document.elementFromPoint(left + 60, y)));
}"""


@pytest.fixture
def ask(house: House, model: SharedModel) -> Iterator[Asking]:
    asking = Asking(house, model)
    yield asking
    asking.end()


@pytest.fixture
def inbox(page: Page, house: House) -> Inbox:
    return Inbox(page, house.server.url)


def test_a_call_comes_and_goes_by_itself_in_every_tab_and_the_card_at_hand_stays(
    inbox: Inbox, author: Page, visit: Visit, house: House, ask: Asking
) -> None:
    other = Inbox(visit(house.server, house.bob), house.server.url).open()
    inbox.open()
    for one in (inbox, other):
        expect(one.page.get_by_text("Nothing is waiting for you")).to_be_visible()
    ask(("echo", {"text": "one"}), ("wipe", {"note": "two"}))
    for one in (inbox, other):
        expect(one.lines).to_have_count(2)
        expect(one.page).to_have_title("(2) Inbox · hitlchat")
        expect(one.page.get_by_role("link", name=re.compile(r"Inbox.*waiting for you:\s*2"))).to_be_visible()
    # So does every other page, and nobody else's.
    elsewhere = inbox.page.context.new_page()
    elsewhere.goto(f"{house.server.url}/policies")
    expect(elsewhere).to_have_title("(2) Policies · hitlchat")
    author.goto(inbox.url)
    expect(author.get_by_text("Nothing is waiting for you")).to_be_visible()
    looking.check(author)
    other.line("Say").get_by_role("link").first.click()
    leave_menu(other.shows("Say one"))
    other.card.locator("summary[aria-label='Decline with a reason']").click()
    other.card.get_by_role("textbox").fill("Not before Friday")
    # What comes meanwhile takes neither the card nor the words, nor the focus.
    ask(("echo", {"text": "three"}))
    expect(other.lines).to_have_count(3)
    expect(other.card.get_by_role("textbox")).to_have_value("Not before Friday")
    expect(other.card.get_by_role("textbox")).to_be_focused()
    inbox.line("Say “one”").or_(inbox.line("Say one")).get_by_role("link").first.click()
    decline(inbox.shows("Say one"))
    expect(inbox.lines).to_have_count(2)
    expect(inbox.lately.get_by_role("row").nth(1)).to_contain_text("Declined")
    # The other tab says what became of it, where its card was.
    expect(other.page.locator("#card-slot")).to_contain_text("It was not executed")
    expect(other.page.locator("[data-told]")).to_contain_text(re.compile("Declined by bob"))
    expect(other.lines).to_have_count(2)
    looking.check(inbox.page)
    ask.end()
    expect(elsewhere).to_have_title("Policies · hitlchat")
    expect(elsewhere.locator("[data-approvals-count]")).to_be_hidden()


@pytest.mark.slow("another story of the inbox")
@pytest.mark.guarantee("gate:seen")
def test_by_keyboard_alone_the_chosen_line_is_answered_and_stray_keys_answer_nothing(
    inbox: Inbox, house: House, ask: Asking
) -> None:
    page, keys = inbox.page, inbox.page.keyboard
    ask(("echo", {"text": "one"}), ("note", {"note": "two"}), ("wipe", {"note": "all"}))
    inbox.open()
    # Stray keys: what is shown is not chosen yet.
    for _ in range(2):
        inbox.shows("Say one")
        keys.type("banana")
    expect(inbox.lines).to_have_count(3)
    assert len(house.bob.pending()) == 3
    keys.press("j")
    inbox.shows("Say one")
    keys.press("j")
    inbox.shows("Keep the note two")
    keys.press("k")
    inbox.shows("Say one")
    rest_hands(page)
    # Nothing is chosen after an answer: however often it is pressed, it answers nothing more.
    for _ in range(9):
        keys.press("a")
        page.clock.run_for(GRACE_MS // 2)
    expect(inbox.lines).to_have_count(2)
    assert len(house.bob.pending()) == 2
    rest_hands(page)
    keys.press("j")
    inbox.shows("Keep the note two")
    rest_hands(page)
    keys.press("r")
    reason = inbox.card.get_by_role("textbox")
    expect(reason).to_be_focused()
    keys.type("a jar of jam, x")
    expect(reason).to_have_value("a jar of jam, x")
    keys.press("Escape")
    expect(inbox.line("Keep the note").get_by_role("link").first).to_be_focused()
    rest_hands(page)
    keys.press("r")
    expect(reason).to_be_focused()
    keys.press("Tab")
    expect(inbox.card.get_by_role("button", name="Decline with this reason")).to_be_focused()
    rest_hands(page)
    keys.press("Enter")
    expect(inbox.lines).to_have_count(1)
    keys.press("j")
    # At the highest levels a key decides nothing: it leads to what is to be confirmed, and then to the button.
    card = inbox.shows("Wipe")
    rest_hands(page)
    keys.press("a")
    expect(card.get_by_role("checkbox")).to_be_focused()
    keys.press("Space")
    # In the card no letter does anything.
    rest_hands(page)
    keys.press("a")
    expect(card.get_by_role("checkbox")).to_be_focused()
    tab_to(page, approve_button(card))
    expect(inbox.lines).to_have_count(1)
    assert [call["toolName"] for call in house.bob.pending()] == ["wipe"]
    keys.press("?")
    expect(page.get_by_role("dialog", name="Keys of the inbox")).to_be_visible()
    page.get_by_role("switch", name="Single keys").uncheck()
    keys.press("Escape")
    expect(page.get_by_text("Single keys are off.")).to_be_visible()
    keys.press("?")
    keys.press("r")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.reload()
    expect(page.get_by_text("Single keys are off.")).to_be_visible()


def test_calls_take_two_keys_each_while_buttons_and_lines_stay_in_place(inbox: Inbox, ask: Asking) -> None:
    page, pressed, places = inbox.page, 0, set()
    # So low that the lines do not all fit.
    page.set_viewport_size({"width": 1280, "height": 560})
    inbox.open()
    ask(*(("echo", {"text": f"word {number}"}) for number in range(11)))
    expect(inbox.lines).to_have_count(11)
    for left in range(10, 5, -1):
        page.keyboard.press("j")
        chosen = page.locator(".pick:has([aria-current])")
        button = approve_button(inbox.shows(f"Say word {10 - left}"))
        assert chosen.evaluate(IS_WHOLE)
        places.add(middle(button))
        rest_hands(page)
        page.keyboard.press("a")
        pressed += 2
        expect(inbox.lines).to_have_count(left)
        rest_hands(page)
    assert pressed == 10
    assert len(places) == 1


def test_several_calls_are_answered_together_once_they_are_listed(inbox: Inbox, ask: Asking) -> None:
    page = inbox.page
    inbox.open()
    three = (("echo", {"text": word}) for word in ("one", "two", "three"))
    ask(*three, ("note", {"note": "n"}), ("wipe", {"note": "w"}))
    expect(inbox.lines).to_have_count(5)
    group = page.locator("[data-burst] > summary")
    expect(group).to_contain_text("3 calls to echo asked at once")
    group.click()
    expect(inbox.line("wipe").get_by_role("checkbox")).to_be_disabled()
    inbox.line("one").get_by_role("checkbox").check()
    expect(inbox.selected).to_contain_text("1 selected")
    # Of another tool: not with these.
    expect(inbox.line("Keep the note").get_by_role("checkbox")).to_be_disabled()
    page.get_by_role("button", name="Select all 3").click()
    # What is selected and unfolded outlives a refresh.
    ask(("note", {"note": "later"}))
    expect(inbox.lines).to_have_count(6)
    expect(inbox.selected).to_contain_text("3 selected")
    inbox.line("two").get_by_role("checkbox").uncheck()
    inbox.selected.get_by_role("button", name="Review 2").click()
    together = page.locator("#card-slot [data-batch]")
    expect(together.locator("ol > li")).to_have_count(2)
    expect(together.locator("ol")).not_to_contain_text("two")
    looking.check(page)
    expect(together).not_to_have_attribute("data-fresh", "")
    expect(together.locator("code").filter(visible=True)).not_to_have_text(re.compile("^[0-9a-f]{12}$"))
    together.get_by_text("Consent digests").click()
    expect(together.get_by_text(re.compile("^[0-9a-f]{12}$"))).to_have_count(2)
    press(together.get_by_role("button", name=re.compile("^Decline these 2")))
    expect(page.locator("#card-slot")).to_contain_text("All answers were recorded.")
    expect(page.locator("[data-told]")).to_have_text("All answers were recorded.")
    expect(inbox.line("two").get_by_role("link").first).to_be_focused()
    expect(inbox.lines).to_have_count(4)
    expect(inbox.line("two")).to_be_visible()
    expect(inbox.selected).to_be_hidden()


@pytest.mark.slow("another story of the inbox")
def test_filters_say_what_they_hide_and_hold_while_calls_come(inbox: Inbox, ask: Asking) -> None:
    page = inbox.page
    inbox.open()
    ask(("echo", {"text": "one"}), ("note", {"note": "two"}))
    inbox.open()
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Tool", exact=True).select_option("note")
    page.get_by_role("button", name="Apply filter").click()
    expect(inbox.lines).to_have_count(1)
    expect(page.get_by_text("2 waiting for you, the filter hides 1")).to_be_visible()
    ask(("echo", {"text": "three"}))
    expect(page.get_by_text("3 waiting for you, the filter hides 2")).to_be_visible()
    expect(inbox.lines).to_have_count(1)
    looking.check(page)
    inbox.open("?tool=note&kind=mcp")
    expect(page.get_by_text("No call matches")).to_be_visible()
    page.get_by_role("link", name="Clear the filter").first.click()
    expect(inbox.lines).to_have_count(3)


def test_on_a_phone_the_list_leads_to_the_card_and_back(inbox: Inbox, ask: Asking) -> None:
    inbox.page.set_viewport_size(NARROW)
    inbox.open()
    ask(("echo", {"text": "one"}), ("note", {"note": "two"}))
    expect(inbox.lines).to_have_count(2)
    expect(inbox.card).to_be_hidden()
    inbox.line("Keep the note two").get_by_role("link").first.click()
    card = inbox.shows("Keep the note two")
    expect(inbox.lines.first).to_be_hidden()
    expect(approve_button(card)).to_be_in_viewport()
    inbox.page.get_by_role("link", name="All waiting calls").click()
    expect(inbox.line("Keep the note two").get_by_role("link").first).to_be_focused()
    expect(inbox.card).to_be_hidden()
    inbox.line("Say").get_by_role("link").first.click()
    inbox.shows("Say one")
    inbox.page.go_back()
    expect(inbox.lines.first).to_be_visible()
    expect(inbox.card).to_be_hidden()


@pytest.mark.slow("another story of the inbox")
def test_one_notification_for_a_burst_while_no_page_is_in_front_and_none_before_it_was_asked_for(
    inbox: Inbox, house: House, ask: Asking
) -> None:
    page = inbox.page
    page.context.add_init_script(NOTICES)
    inbox.open()
    page.get_by_role("button", name="Notify me").click()
    expect(page.get_by_role("button", name="Notifications on")).to_have_attribute("aria-pressed", "true")
    behind = page.context.new_page()
    behind.goto(f"{house.server.url}/policies")
    behind.evaluate("window.inFront = false")
    # One page is in front.
    ask(("echo", {"text": "seen"}))
    expect(inbox.lines).to_have_count(1)
    ask.end()
    expect(inbox.lines).to_have_count(0)
    page.evaluate("window.inFront = false")
    ask(("note", {"note": "secret words"}), ("echo", {"text": "two"}))
    for each in (page, behind):
        until(partial(each.evaluate, "window.shown.length"))
        (told,) = each.evaluate("window.shown.map(({title, body, tag}) => [title, body, tag])")
        assert told[0] == "2 calls wait for your answer"
        assert told[1] in ("note and 1 other tool", "echo and 1 other tool")
        assert "secret" not in "".join(told)
        assert told[2] == "hitlchat-inbox"
    behind.evaluate("window.shown[0].dispatchEvent(new Event('click'))")
    behind.wait_for_url(re.compile(r"/approvals/\?call="))
    expect(Inbox(behind, house.server.url).card).to_be_visible()
    ask.end()
    until(partial(page.evaluate, "window.shown[0].closed"))
    page.get_by_role("button", name="Notifications on").click()
    ask(("echo", {"text": "unseen"}))
    expect(inbox.lines).to_have_count(1)
    assert page.evaluate("window.shown.length") == 1

"""Deciding in the chat: changed arguments, reasons, several calls at once, an approval taken back."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chatting import Chat, approve, approve_button, decline, decline_button, press, settle, tab_to
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.looking import check
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

Ask = Callable[..., None]


@pytest.fixture
def ask(chat: Chat, model: SharedModel) -> Ask:
    """Let the agent ask for these calls."""

    def ask(*wanted: tuple[str, dict[str, object]]) -> None:
        model.enqueue(calls(*wanted))
        chat.say()
        chat.asked(len(wanted))

    return ask


def begin_edit(card: Locator) -> Locator:
    card.get_by_text("More", exact=True).click()
    card.get_by_role("button", name="Change the arguments").click()
    expect(card.get_by_role("heading", name="Change the arguments")).to_be_focused()
    settle(card.page)
    return card.locator("[data-edit]")


def see_changes(edit: Locator) -> None:
    press(edit.get_by_role("button", name="Review changes"))
    expect(edit.get_by_role("heading", name="Your changes")).to_be_focused()
    settle(edit.page)


def approve_changed(edit: Locator) -> Locator:
    return edit.get_by_role("button", name=re.compile("^Approve with changes"))


@pytest.mark.slow("another story of deciding")
@pytest.mark.guarantee("gate:same-call")
def test_arguments_are_changed_while_others_decide_shown_approved_run_and_told_to_the_model(
    chat: Chat, ask: Ask, model: SharedModel, house: House, visit: Visit
) -> None:
    other = Chat(visit(house.server, house.bob), house.server, chat.conversation).open()
    note = {"note": "Call Ann at five\u202e", "data": {"a": 1}}
    ask(("note", note), ("count", {}), ("fail", {"text": "three"}), ("echo", {"text": "four"}))
    card = chat.cards.first
    edit = begin_edit(card)
    # What cannot be seen cannot be changed in a field: it is JSON, with the character spelled out.
    json = edit.get_by_label("All arguments, as JSON")
    expect(json).to_have_value(re.compile(r"five\\u202e"))
    expect(approve_button(card)).to_have_count(0)
    check(chat.page)
    json.fill('{"note": 5, "data": {"a": 1}}')
    press(edit.get_by_role("button", name="Review changes"))
    expect(edit.get_by_role("alert")).to_contain_text("note: 5 is not a text.")
    expect(json).to_be_focused()
    settle(chat.page)
    json.fill("")
    json.press_sequentially('{"note": "Call Ann')
    # Another call of the turn is decided elsewhere: the list is drawn again, and nothing here is lost.
    decline(other.asked(4).page.locator("dialog [data-ask]").nth(1))
    expect(chat.cards).to_have_count(3)
    expect(json).to_be_focused()
    json.press_sequentially(' at six", "data": {"a": 1}}')
    expect(json).to_have_value('{"note": "Call Ann at six", "data": {"a": 1}}')
    see_changes(edit)
    expect(edit.locator(".becomes")).to_contain_text("Keep the note Call Ann at six")
    expect(edit.locator(".version mark")).to_have_text(["fiveU+202E", "six"])
    expect(edit).to_contain_text("The other 2 arguments stay as requested.")
    check(chat.page)
    decline(other.asked(3).page.locator("dialog [data-ask]").nth(1))
    expect(chat.cards).to_have_count(2)
    expect(approve_changed(edit)).to_be_visible()
    settle(chat.page)
    approve(chat.cards.first, approve_changed(edit))
    # What is discarded changes nothing.
    edit = begin_edit(chat.asked(1))
    edit.get_by_role("textbox", name="text").fill("five")
    edit.get_by_role("button", name="Discard changes").click()
    settle(chat.page)
    model.enqueue(text("Kept."))
    approve(chat.cards.first)
    chat.said("Kept.")
    (done, *_, unchanged) = house.calls(chat.conversation)
    assert (done["status"], done["arguments"]["note"]) == ("succeeded", "Call Ann at six")
    assert unchanged["result"] == "four"
    assert "changed the arguments" in model.told[0]
    assert "Call Ann at six" in model.told[0]
    line = other.call("succeeded").first
    line.locator("summary").click()
    expect(line).to_contain_text("The arguments were changed first.")


@pytest.mark.slow("another way to change arguments")
def test_by_keyboard_alone_arguments_are_changed_and_approved(
    chat: Chat, ask: Ask, model: SharedModel, house: House
) -> None:
    ask(("echo", {"text": "helo"}))
    page, card = chat.page, chat.cards.first
    chat.go_to_card()
    tab_to(page, card.locator("summary", has_text="More"))
    page.keyboard.press("Enter")
    tab_to(page, card.get_by_role("button", name="Change the arguments"))
    page.keyboard.press("Enter")
    expect(card.get_by_role("heading", name="Change the arguments")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("hello")
    settle(page)
    tab_to(page, card.get_by_role("button", name="Review changes"))
    page.keyboard.press("Enter")
    expect(card.get_by_role("heading", name="Your changes")).to_be_focused()
    settle(page)
    tab_to(page, approve_changed(card))
    model.enqueue(text("It said hello."))
    page.keyboard.press("Enter")
    chat.said("It said hello.")
    assert house.calls(chat.conversation)[0]["result"] == "hello"


def test_a_critical_call_is_approved_with_changes_only_once_all_of_them_was_unfolded_and_reviewed(
    chat: Chat, ask: Ask, model: SharedModel, house: House
) -> None:
    ask(("wipe", {"note": "short"}))
    edit = begin_edit(chat.cards.first)
    edit.get_by_role("textbox", name="note").fill("long " * 200)
    see_changes(edit)
    expect(approve_changed(edit)).to_be_disabled()
    edit.get_by_text("Show your whole value").click()
    expect(edit.locator(".why-not")).to_have_text("Tick the box above first.")
    edit.get_by_label("I reviewed the tool and every argument, with my changes.").check()
    expect(approve_changed(edit)).to_be_enabled()
    model.enqueue(text("Wiped."))
    approve(chat.cards.first, approve_changed(edit))
    chat.said("Wiped.")
    assert house.calls(chat.conversation)[0]["arguments"]["note"] == "long " * 200


@pytest.mark.slow("another story of deciding")
def test_on_its_own_page_a_call_is_approved_with_changes(
    chat: Chat, ask: Ask, model: SharedModel, house: House
) -> None:
    ask(("echo", {"text": "one"}))
    page = chat.page
    page.goto(f"{house.server.url}/approvals/{house.calls(chat.conversation)[0]['approvalId']}")
    card = page.locator("[data-ask]")
    settle(page)
    edit = begin_edit(card)
    edit.get_by_role("textbox", name="text").fill("two")
    check(page)
    see_changes(edit)
    check(page)
    model.enqueue(text("Said."))
    approve(chat.cards.first, approve_changed(edit))
    expect(page.locator("#heading")).to_have_text("This call has been answered")
    expect(page.locator("pre.out")).to_have_text("two")
    expect(page.locator("[data-card-slot]")).to_be_focused()


def test_a_reason_is_picked_beside_decline_with_two_keys(chat: Chat, ask: Ask, model: SharedModel) -> None:
    ask(("echo", {"text": "one"}))
    page, card = chat.page, chat.cards.first
    chat.go_to_card()
    tab_to(page, decline_button(card))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    check(page)
    expect(card.get_by_role("button", name="Not now")).to_be_visible()
    tab_to(page, card.get_by_role("button", name="Wrong arguments"))
    model.enqueue(text("Understood."))
    page.keyboard.press("Enter")
    chat.said("Understood.")
    assert '"reason_given_by_the_user": "Wrong arguments"' in model.told[-1]
    line = chat.call("declined")
    line.locator("summary").click()
    expect(line).to_contain_text("Reason: “Wrong arguments”")


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth")
def test_a_call_is_declined_with_what_to_do_instead_and_the_next_attempt_answered_in_the_tools_place_by_keyboard(
    chat: Chat, ask: Ask, model: SharedModel, house: House
) -> None:
    ask(("echo", {"text": "Which customer?"}))
    page, card = chat.page, chat.cards.first
    chat.go_to_card()
    tab_to(page, card.locator("summary[aria-label='Decline with a reason']"))
    page.keyboard.press("Enter")
    tab_to(page, card.get_by_text("Decline and say what to do instead"))
    page.keyboard.press("Enter")
    card.get_by_label("What the model should do instead").fill("Ask for the number")
    tab_to(page, card.get_by_role("button", name="Decline: do this instead"))
    model.enqueue(calls(("echo", {"text": "Which number?"})))
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Attempt 2. The one before was declined, to do instead: “Ask for the number”")
    expect(card.locator(".args")).to_contain_text("In the declined call: Which customer?")
    assert '"instruction_given_by_the_user": "Ask for the number"' in model.told[-1]
    chat.asked()
    tab_to(page, card.locator("summary[aria-label='Decline with a reason']"))
    # From the composer the way leads around, out of the page and back, which begins the pause of the card anew.
    settle(page)
    page.keyboard.press("Enter")
    tab_to(page, card.get_by_text("Answer in the tool", exact=False).first)
    page.keyboard.press("Enter")
    check(page)
    card.get_by_label("Your answer.").fill("Customer <b>12</b>")
    tab_to(page, card.get_by_role("button", name="Answer: don"))
    model.enqueue(text("Customer 12, then."))
    page.keyboard.press("Enter")
    chat.said("Customer 12, then.")
    assert '"answer_given_by_a_person": "Customer <b>12</b>"' in model.told[-1]
    line = chat.call("answered")
    line.locator("summary").click()
    expect(line).to_contain_text("The tool did not run.")
    expect(line.locator("pre.out").last).to_have_text("Customer <b>12</b>")
    check(page)
    assert [call["status"] for call in house.calls(chat.conversation)] == ["declined", "answered"]


@pytest.mark.slow("another story of deciding")
def test_a_note_typed_behind_more_goes_to_the_model_with_the_one_press_on_approve(
    chat: Chat, ask: Ask, model: SharedModel
) -> None:
    ask(("echo", {"text": "one"}))
    card = chat.cards.first
    card.get_by_text("More", exact=True).click()
    card.get_by_label("Note that the model reads if you approve").fill("Only this once")
    card.get_by_text("More", exact=True).click()
    model.enqueue(text("Done."))
    approve(card)
    chat.said("Done.")
    assert "Only this once" in model.told[-1]


@pytest.mark.slow("another story of deciding")
def test_own_words_are_counted_against_the_limit(chat: Chat, ask: Ask, model: SharedModel) -> None:
    ask(("echo", {"text": "one"}))
    card = chat.cards.first
    card.locator("summary[aria-label='Decline with a reason']").click()
    words = card.get_by_label("Decline with a reason that")
    words.fill("x" * 600)
    assert len(words.input_value()) in (500, 600)
    words.fill("x" * 12)
    expect(card.get_by_text("12 of 500 characters")).to_be_visible()
    model.enqueue(text("Understood."))
    press(card.get_by_role("button", name="Decline with this reason"))
    chat.said("Understood.")


@pytest.mark.guarantee("gate:one-outcome")
def test_calls_of_one_tool_are_answered_together_and_each_outcome_is_told(
    chat: Chat, ask: Ask, model: SharedModel, house: House
) -> None:
    ask(*(("echo", {"text": word}) for word in ("one", "two", "three")), ("note", {"note": "four"}))
    batch = chat.modal.locator("[data-batch]")
    expect(batch).to_have_count(1)
    batch.get_by_text("Answer these 3 echo calls together").click()
    expect(batch.locator("li")).to_have_count(3)
    expect(batch.locator("li").nth(1)).to_contain_text("Say two")
    check(chat.page)
    approve(batch, batch.get_by_role("button", name="Approve these 3"))
    expect(chat.cards).to_have_count(1)
    expect(chat.flash).to_contain_text("Say three: Approved.")
    expect(batch).to_have_count(0)
    expect(chat.cards.first).to_be_focused()
    model.enqueue(text("Three of four."))
    chat.decline(chat.asked(1))
    chat.said("Three of four.")
    assert [call["status"] for call in house.calls(chat.conversation)] == ["succeeded"] * 3 + ["declined"]


@pytest.mark.slow("what the server decides, once more")
def test_calls_of_high_risk_or_of_different_tools_are_never_offered_together(chat: Chat, ask: Ask) -> None:
    ask(("wipe", {"note": "a"}), ("wipe", {"note": "b"}), ("echo", {"text": "c"}), ("note", {"note": "d"}))
    expect(chat.modal.locator("[data-batch]")).to_have_count(0)
    chat.stop()
    expect(chat.modal).to_be_hidden()

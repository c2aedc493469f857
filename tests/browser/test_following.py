"""What happens is seen: the end of the transcript is followed, and what comes out of sight is told."""

from typing import Final
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from hitlchat.agent.branches import Versions
from tests.browser import looking
from tests.browser.alone import Alone, asked, said, turns
from tests.browser.chatting import Chat
from tests.browser.conftest import NARROW, WIDE, House, SharedModel
from tests.browser.looking import in_view
from tests.scripted_model import calls, text
from tests.waiting import until

pytestmark = pytest.mark.browser

LONG = "\n\n".join(f"line {n}" for n in range(60))


@pytest.fixture
def long_chat(chat: Chat, model: SharedModel) -> Chat:
    """A conversation longer than its page."""
    model.enqueue(calls(("look", {"text": LONG})), text(LONG))
    chat.say()
    chat.said("line 59")
    return chat


def new_below(chat: Chat) -> Locator:
    return chat.log.get_by_role("button", name="New below")


def scroll_up(chat: Chat) -> None:
    """As people do: turn the wheel until it has moved, although text may still be coming in."""
    chat.log.hover()

    def turn() -> bool:
        chat.page.mouse.wheel(0, -2000)
        return bool(chat.log.evaluate("log => log.scrollHeight - log.scrollTop - log.clientHeight > 300"))

    until(turn, "the transcript has scrolled up")


@pytest.mark.slow("another story of following")
def test_opening_a_call_does_not_end_following(chat: Chat, model: SharedModel) -> None:
    model.enqueue(calls(("look", {"text": LONG})), text("Looked."))
    chat.say()
    chat.said("Looked.")
    chat.call("succeeded").locator("summary").click()
    model.enqueue(text("A short answer."))
    chat.say("Short, please.")
    answer = chat.log.get_by_text("A short answer.")
    expect(answer).to_be_visible()
    expect(answer).to_be_in_viewport()
    expect(new_below(chat)).to_be_hidden()


@pytest.mark.slow("another story of following")
def test_ones_own_message_is_scrolled_to(long_chat: Chat, model: SharedModel) -> None:
    scroll_up(long_chat)
    model.enqueue(text("A short answer."))
    long_chat.say("Short, please.")
    expect(long_chat.log.get_by_text("A short answer.")).to_be_in_viewport()


def test_who_reads_further_up_is_told_that_something_came(alone: Alone) -> None:
    chat = alone.chat(transcript=[said(LONG)])
    scroll_up(chat)
    expect(new_below(chat)).to_be_hidden()
    alone.say(said("It ends."))
    expect(new_below(chat)).to_be_visible()
    assert not looking.violations(alone.page)
    assert in_view(new_below(chat))
    end = chat.log.get_by_text("It ends.")
    expect(end).not_to_be_in_viewport()
    new_below(chat).click()
    expect(end).to_be_in_viewport()
    expect(new_below(chat)).to_be_hidden()


def test_another_version_is_nothing_new(alone: Alone) -> None:
    runs = (uuid4(), uuid4())
    one, other = (
        [said("Go on.", "user", Versions(runs, runs, place)), said(LONG + "\n\nend " * place)] for place in (1, 2)
    )
    chat = alone.chat(transcript=other)
    scroll_up(chat)
    chat.page.get_by_role("button", name="Previous version").click()
    until(lambda: {"type": "switch"}.items() <= alone.sent[-1].items(), "the page has asked for it")
    alone.redraw(one, 0)
    expect(chat.page.get_by_role("group", name="Version 1 of 2")).to_be_visible()
    expect(new_below(chat)).to_be_hidden()
    alone.say(said("It ends."))
    expect(new_below(chat)).to_be_visible()


@pytest.mark.slow("a long story of following")
def test_nothing_is_called_new_that_was_there_or_is_in_view(long_chat: Chat, model: SharedModel) -> None:
    chat = long_chat
    model.enqueue(calls(("echo", {"text": "one"}), ("echo", {"text": "two"})), text("Said."))
    chat.say()
    chat.asked(2)
    expect(chat.call("waiting")).to_have_count(2)
    pill = chat.log.locator("[data-new-below]")
    scroll_up(chat)
    for size in (NARROW, WIDE):
        chat.page.set_viewport_size(size)
        chat.asked(2)
        expect(pill).to_have_attribute("hidden", "")
    chat.to_cards.press("Enter")
    # From here the line of the call is in view above the cards, and changes there.
    chat.log.hover()
    chat.page.mouse.wheel(0, -40)
    chat.decline(chat.cards.first)
    expect(chat.call("declined")).to_have_count(1)
    expect(pill).to_have_attribute("hidden", "")
    chat.approve()
    chat.said("Said.")
    expect(pill).to_have_attribute("hidden", "")


@pytest.mark.slow("another story of following")
def test_only_the_transcript_scrolls(long_chat: Chat) -> None:
    for url in (long_chat.url, long_chat.url.partition("/chat/")[0]):
        long_chat.page.goto(url)
        for size in (WIDE, NARROW):
            long_chat.page.set_viewport_size(size)
            tall, there = long_chat.page.evaluate("[document.scrollingElement.scrollHeight, innerHeight]")
            assert tall <= there


EARLIER: Final = """
from hitlchat.agent.models import Conversation, Message, Run, RunStatus
shown = Conversation.objects.get(pk={conversation!r})
run = Run.objects.create(conversation=shown, status=RunStatus.DONE)
Conversation.objects.filter(pk=shown.pk).update(tip=run)
Message.objects.bulk_create(
    Message(conversation=shown, run=run, seq=seq, role="assistant", content=f"Line {{seq}}") for seq in range(1, 201)
)
"""


@pytest.mark.slow("a long conversation")
def test_earlier_messages_come_in_above_what_is_being_read(page: Page, house: House, model: SharedModel) -> None:
    chat = Chat(page, house.server, house.bob.begin(""))
    house.server.home.manage("shell", "-v", "0", "-c", EARLIER.format(conversation=chat.conversation))
    chat.open()
    more = page.get_by_role("button", name="Show earlier messages")
    read = chat.log.get_by_text("Line 140", exact=True)
    expect(read).to_have_count(1)
    # When it connects its transcript is drawn anew: once it has, what is said is answered.
    model.enqueue(text("Hello."))
    chat.say("Hello there")
    chat.said("Hello.")
    more.scroll_into_view_if_needed()
    more.focus()
    before = top(read)
    page.keyboard.press("Enter")
    expect(chat.log.get_by_text("Line 60", exact=True)).to_have_count(1)
    expect(more).to_be_focused()
    assert abs(top(read) - before) < 20


def top(line: Locator) -> float:
    return float(line.evaluate("line => line.getBoundingClientRect().top"))


def test_what_was_loaded_stays_when_all_is_drawn_anew_and_so_does_the_place_that_is_read(alone: Alone) -> None:
    page, lines = alone.page, [said(f"Line {n}\n\nmore") for n in range(60)]
    chat = alone.chat(transcript=lines[40:], earlier=40)
    more = page.get_by_role("button", name="Show earlier messages")
    page.route("**/before/40", lambda route: route.fulfill(body=turns(lines[20:40], 20)))
    more.click()
    read = chat.log.get_by_text("Line 30")
    read.scroll_into_view_if_needed()
    before = top(read)
    alone.redraw(lines[45:], 45)
    page.route("**/before/45", lambda route: route.fulfill(body=turns(lines[25:45], 25)))
    page.route("**/before/25", lambda route: route.fulfill(body=turns(lines[5:25], 5)))
    expect(chat.log.locator(".said")).to_have_count(55)
    expect(chat.log.locator(".said").first).to_contain_text("Line 5")
    assert abs(top(read) - before) < 5
    # No more than that.
    expect(more).to_be_visible()


LONG_ONES: Final = """
from hitlchat.agent.models import Conversation, Message, Run, RunStatus
shown = Conversation.objects.get(pk={conversation!r})
run = Run.objects.create(conversation=shown, status=RunStatus.DONE)
Conversation.objects.filter(pk=shown.pk).update(tip=run)
prose = "The quick brown *fox* jumps over the dog. " * 660
Message.objects.bulk_create(
    Message(conversation=shown, run=run, seq=seq, role="assistant", content=f"Answer {{seq}}.\\n\\n{{prose}}")
    for seq in range(1, 41)
)
"""


@pytest.mark.slow("a long conversation")
def test_a_long_conversation_comes_whole_and_in_order_and_its_card_is_answered(
    page: Page, house: House, model: SharedModel
) -> None:
    chat = Chat(page, house.server, house.bob.begin(""))
    house.server.home.manage("shell", "-v", "0", "-c", LONG_ONES.format(conversation=chat.conversation))
    chat.open()
    model.enqueue(calls(("echo", {"text": "hi"})), text("Sent."))
    chat.say("Send it")
    chat.asked()
    page.reload()
    chat.approve()
    chat.said("Sent.")
    # The page was drawn anew, piece by piece, before that.
    answers = chat.log.locator("#turns > li .prose > p:first-child").filter(has_text="Answer")
    expect(answers).to_have_text([f"Answer {seq}." for seq in range(1, 41)])


def test_a_card_stays_in_view_when_its_call_comes_into_the_transcript_after_it(alone: Alone) -> None:
    chat = alone.chat(transcript=[said(LONG)])
    alone.tell(asked({"text": "hi"}))
    card = chat.asked()
    # Not the page: what screen readers are told of the card stands at the end of the transcript too.
    assert alone.page.evaluate("document.scrollingElement.scrollHeight <= innerHeight")
    before = top(card)
    # Two frames of the socket may come in either order.
    for words in ("one", "two", "three"):
        alone.say(said(words))
    expect(chat.log.get_by_text("three", exact=True)).to_have_count(1)
    until(lambda: abs(top(card) - before) < 20, "the card is back where it was")

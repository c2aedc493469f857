"""Answers while they are written."""

from typing import Final

import pytest
from playwright.sync_api import expect

from tests.browser.chatting import Chat
from tests.browser.conftest import House, SharedModel, Visit
from tests.scripted_model import Gate, status, text

pytestmark = pytest.mark.browser

FIRST = "# Plan\n\nThe first step is **cle"
REST = "ar**, the second is:\n\n1. look\n2. ask\n\n```python\nprint('<b>done</b>')\n```\n\nThat is all."
TROUBLES: Final = {
    401: "Check OPENAI_API_KEY.",
    404: "Check OPENAI_MODEL.",
    429: "Wait, then try again.",
    500: "Try again",
}


def test_text_appears_while_the_model_still_writes_also_for_a_tab_that_joins_late(
    chat: Chat, model: SharedModel, house: House, visit: Visit
) -> None:
    gate = Gate()
    model.enqueue(text(FIRST, gate, REST))
    chat.say()
    chat.said("The first step is")
    late = Chat(visit(house.server, house.bob), house.server, chat.conversation).open()
    late.said("The first step is")
    assert not gate.opened.is_set()
    gate.open()
    shown = []
    for one in (chat, late):
        one.said("That is all.")
        expect(one.log.locator(".caret")).to_have_count(0)
        answer = one.log.locator(".said.assistant .prose").last
        expect(answer.get_by_role("heading")).to_have_text("Plan")
        expect(answer.locator("strong")).to_have_text("clear")
        expect(answer.locator("pre code")).to_have_text("print('<b>done</b>')\n")
        shown.append(answer.inner_html())
    chat.page.reload()
    chat.said("That is all.")
    shown.append(chat.log.locator(".said.assistant .prose").last.inner_html())
    assert len(set(shown)) == 1
    stored = house.bob.conversation(chat.conversation)["messages"][-1]
    assert stored["content"] == FIRST + REST


@pytest.mark.slow("another story of answers")
def test_stop_ends_an_answer_and_the_composer_can_be_used_again(chat: Chat, model: SharedModel) -> None:
    model.enqueue(text("A long story ", Gate(), "never told"))
    chat.say()
    chat.said("A long story")
    chat.page.get_by_role("button", name="Stop").click()
    expect(chat.log.get_by_text("The answer was cut off here.")).to_be_visible()
    chat.said("A long story")
    model.enqueue(text("A short one."))
    chat.say("Shorter, please.")
    chat.said("A short one.")


@pytest.mark.slow("another story of messages that wait")
def test_what_is_sent_while_the_assistant_works_is_said_next(chat: Chat, model: SharedModel) -> None:
    gate = Gate()
    model.enqueue(text("Thinking", gate, "."), text("Next."))
    chat.say()
    chat.said("Thinking")
    chat.say("Meanwhile")
    expect(chat.page.locator("#queued")).to_contain_text("Meanwhile")
    expect(chat.composer).to_have_value("")
    gate.open()
    chat.said("Next.")
    expect(chat.page.locator("#queued .queued")).to_have_count(0)
    expect(chat.page.locator(".said.user .prose")).to_have_text(["Do it.", "Meanwhile"])


@pytest.mark.slow("another story of answers")
def test_trouble_with_the_model_is_told_with_what_to_do(chat: Chat, model: SharedModel) -> None:
    for number, (code, words) in enumerate(TROUBLES.items(), start=1):
        model.enqueue(status(code))
        chat.say()
        expect(chat.notice().last).to_contain_text(words)
        model.enqueue(text(f"Back again {number}."))
        again = chat.page.get_by_role("button", name="Try again")
        again.click()
        chat.said(f"Back again {number}.")
        expect(again).to_be_hidden()
        expect(chat.log.locator(".said.user")).to_have_count(number)

"""Cards for those who do not see them."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.alone import Alone, asked
from tests.browser.chatting import settle

pytestmark = pytest.mark.browser


def names(alone: Alone) -> list[str]:
    """What the browser tells a screen reader of each button and of what opens something."""
    nodes = alone.page.context.new_cdp_session(alone.page).send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "DisclosureTriangle"}
    return [str(each["name"]["value"]) for each in nodes if each.get("role", {}).get("value") in roles]


def test_where_several_cards_wait_no_two_buttons_have_the_same_name_and_a_warning_describes_each_yes(
    alone: Alone,
) -> None:
    twice = {"text": "one"}
    question = {"question": "Which a\u202eb?", "fields": []}
    asks = [asked(question, tool="ask_user") for _ in range(2)]
    chat = alone.chat(asked(twice), asked(twice), *asks, together=True)
    settle(alone.page)
    chat.modal.locator("[data-batch] summary").first.click()
    found = [name for name in names(alone) if re.match("Approve|Decline|Answer|More", name)]
    assert len(found) == 4 * 3 + 2 + 3
    assert sorted(set(found)) == sorted(found)
    expect(chat.cards.last.locator("[data-approve]")).to_have_accessible_description(re.compile("direction override"))

    question_of_server = alone.question()
    for button in question_of_server.locator("[data-answers] button").all():
        expect(button).to_have_accessible_name(re.compile("The server counter asks you$"))
        expect(button).to_have_accessible_description(re.compile(r"Go on\?"))

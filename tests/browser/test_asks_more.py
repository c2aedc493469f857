"""A conversation is made to ask more at its top: grants stop counting in it, and every call waits for its person."""

import pytest
from playwright.sync_api import expect

from tests.browser.chatting import Chat, approve
from tests.browser.conftest import SharedModel
from tests.browser.looking import check
from tests.browser.test_grants import begin_grant
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.slow("another story of settings")
def test_it_is_chosen_at_the_top_and_a_granted_call_waits_again(chat: Chat, model: SharedModel) -> None:
    page = chat.page
    model.enqueue(calls(("remind", {"note": "one"})), text("Told one."))
    chat.say()
    step = begin_grant(chat.asked())
    approve(chat.cards.first, step.get_by_role("button", name="Approve and grant"))
    chat.said("Told one.")
    page.get_by_label("This conversation asks: As the tools say. Choose").click()
    page.get_by_role("button", name="About every call", exact=True).click()
    expect(page.get_by_label("This conversation asks: About every call. Choose")).to_be_visible()
    expect(page.get_by_text("The grant for remind does not apply here")).to_be_visible()
    check(page)
    model.enqueue(calls(("remind", {"note": "two"})), text("Told two."))
    chat.say()
    card = chat.asked()
    card.get_by_text("More", exact=True).click()
    expect(card).to_contain_text("The tool, a rule or the conversation requires approval every time, so this call")
    card.get_by_text("More", exact=True).click()
    chat.approve(card)
    chat.said("Told two.")
    page.get_by_label("This conversation", exact=True).click()
    page.get_by_role("link", name="Instructions, tools and limits…").click()
    expect(page.get_by_label("Asks")).to_have_value("every")
    check(page)
    page.get_by_label("Asks").select_option("tools")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. Applies from the next answer.")).to_be_visible()

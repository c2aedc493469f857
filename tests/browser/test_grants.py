"""A standing yes: its scope read before the click, the meter as it is used up, asked again, revoked."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chatting import Chat, approve, settle
from tests.browser.conftest import House, SharedModel
from tests.browser.looking import check
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

Ask = Callable[[str], None]


@pytest.fixture
def ask(chat: Chat, model: SharedModel) -> Ask:
    """Let the agent send one more note, and say so if nobody is asked any more."""

    def ask(note: str) -> None:
        model.enqueue(calls(("remind", {"note": note})), text(f"Told {note}."))
        chat.say()

    return ask


@pytest.fixture(autouse=True)
def no_grants(house: House) -> None:
    """Whatever tests before have given runs unasked no more."""
    for grant in house.bob.get("/api/grants").json():
        house.bob.post(f"/api/grants/{grant['id']}/revoke")


def begin_grant(card: Locator) -> Locator:
    card.get_by_text("More", exact=True).click()
    card.get_by_role("button", name="Approve and don\u2019t ask again for a while").click()
    expect(card.get_by_role("heading", name="Approve and don\u2019t ask again for a while")).to_be_focused()
    settle(card.page)
    return card.locator("[data-edit]")


@pytest.mark.slow("a long story of grants")
@pytest.mark.guarantee("gate:no-yes-no-run", "SR-43")
def test_a_grant_is_given_in_words_used_up_asked_again_and_revoked(
    chat: Chat, ask: Ask, model: SharedModel, house: House
) -> None:
    page, meter = chat.page, chat.page.get_by_role("list", name="Calls that run without asking")
    ask("one")
    step = begin_grant(chat.asked())
    words = step.get_by_role("status")
    expect(words).to_contain_text("run remind without asking for the next 5 calls in this conversation, until")
    check(page)
    step.get_by_label("How many calls").select_option("")
    step.get_by_label("For how long").select_option("")
    step.get_by_label("Only in this conversation").uncheck()
    expect(step.get_by_role("alert")).to_contain_text("A grant needs a limit")
    expect(step.get_by_role("button", name="Approve")).to_have_count(0)
    step.get_by_label("Only in this conversation").check()
    step.get_by_label("How many calls").select_option("2")
    step.get_by_label("Only if").fill('len(args["note"]) < 20')
    expect(words).to_have_text(
        "Approve, and run remind without asking for the next 2 calls in this conversation, "
        'while len(args["note"]) < 20 holds.'
    )
    settle(page)
    approve(chat.cards.first, step.get_by_role("button", name="Approve and grant"))
    chat.said("Told one.")
    expect(meter).to_contain_text("remind runs without asking: 2 of 2 left")
    check(page)
    ask("two")
    chat.said("Told two.")
    expect(meter).to_contain_text("1 of 2 left")
    line = chat.call("succeeded").last
    line.locator("summary").first.click()
    expect(line).to_contain_text("Not asked because of a grant: remind runs without asking for the next 2 calls")
    ask("three")
    chat.said("Told three.")
    expect(meter).to_have_count(0)
    ask("four")
    # Used up: it asks. Another one is given, and revoked on the meter.
    step = begin_grant(chat.asked())
    step.get_by_role("button", name="Approve and grant").click()
    chat.said("Told four.")
    meter.get_by_role("button", name="Revoke").click()
    expect(meter).to_have_count(0)
    ask("five")
    chat.decline()
    chat.said("Told five.")
    assert [call["status"] for call in house.calls(chat.conversation)] == ["succeeded"] * 4 + ["declined"]
    page.goto(f"{house.server.url}/approvals/")
    page.get_by_role("link", name="Grants").click()
    expect(page.get_by_role("table")).to_contain_text("Used up")
    expect(page.get_by_role("table")).to_contain_text("bob revoked it")
    check(page)


@pytest.mark.slow("another story of grants")
def test_on_the_page_of_grants_one_is_revoked_by_keyboard(chat: Chat, ask: Ask, house: House) -> None:
    ask("six")
    begin_grant(chat.asked()).get_by_role("button", name="Approve and grant").click()
    chat.said("Told six.")
    page = chat.page
    page.goto(f"{house.server.url}/grants/")
    check(page)
    page.get_by_role("button", name="Revoke").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("remind asks again")
    expect(page.get_by_role("button", name="Revoke")).to_have_count(0)

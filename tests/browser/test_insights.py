"""What a card was looked at: told once it is really in sight, marked on the record, and read by its own person."""

from typing import Any

import pytest
from django.utils.translation import override
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.alone import Alone
from tests.browser.chatting import Chat, decline
from tests.browser.conftest import NARROW, House, SharedModel, Visit
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

# So much that nobody can have read it in the time that a test takes; ten of them are folded.
LONG = {f"field_{number}": "one word after the other, " * 20 for number in range(30)}
MARK = "(about"
# The tab stands behind others until the test says otherwise.
BEHIND = "Object.defineProperty(Document.prototype, 'visibilityState', { get: () => window.inFront ?? 'hidden' })"
COME_FORWARD = "window.inFront = 'visible'; document.dispatchEvent(new Event('visibilitychange'))"


def asked(chat: Chat, model: SharedModel) -> None:
    model.enqueue(calls(("many", LONG)))
    chat.say()
    chat.asked()


def decision(house: House, chat: Chat) -> dict[str, Any]:
    (call,) = house.calls(chat.conversation)
    found: dict[str, Any] = house.bob.get(f"/api/approvals/{call['approvalId']}").json()["decisions"][0]
    return found


@pytest.mark.slow("another story of insights")
def test_whoever_approves_at_once_reads_the_mark_on_their_own_decision(
    chat: Chat, model: SharedModel, house: House, visit: Visit
) -> None:
    asked(chat, model)
    model.enqueue(text("Kept."))
    chat.approve()
    chat.said("Kept.")
    kept = decision(house, chat)
    assert (kept["hurried"], kept["opened"]) == (True, False)
    # The pause of the card is one of the page's clock, which the test had run.
    assert kept["shownForMs"] > 0
    chat.call("succeeded").locator("summary").first.click()
    expect(chat.call("succeeded")).to_contain_text(MARK)
    chat.page.get_by_role("link", name="Insights").click()
    own = chat.page.get_by_role("region", name="Your decisions").get_by_role("listitem").first
    expect(own).to_contain_text("Approved · many")
    expect(own).to_contain_text(MARK)
    expect(own).to_contain_text("Not all folded text was opened.")
    looking.check(chat.page)
    own.get_by_role("link").click()
    expect(chat.page.get_by_role("main")).to_contain_text(MARK)
    everyone = visit(house.server, house.alice)
    everyone.goto(f"{house.server.url}/insights/?period=7d")
    hurried = everyone.get_by_role("region", name="Faster than the card can be read")
    expect(hurried.get_by_role("listitem").first).to_contain_text("Approved by bob")
    for numbers in everyone.locator(".numbers > summary").all():
        numbers.click()
    looking.check(everyone)


@pytest.mark.slow("another story of insights")
def test_whoever_opens_all_that_is_folded_has_that_on_the_record(chat: Chat, model: SharedModel, house: House) -> None:
    asked(chat, model)
    for fold in chat.cards.first.locator("details[data-fold] > summary").all():
        fold.click()
    expect(chat.cards.first.locator("input[name=opened]").first).to_have_value("yes")
    model.enqueue(text("Left."))
    chat.decline()
    chat.said("Left.")
    assert (decision(house, chat)["opened"], decision(house, chat)["hurried"]) == (True, False)


@pytest.mark.slow("another story of insights")
def test_a_card_counts_as_shown_once_its_tab_is_in_front(
    chat: Chat, model: SharedModel, house: House, visit: Visit
) -> None:
    told: list[str] = []
    elsewhere = visit(house.server, house.bob)
    elsewhere.add_init_script(BEHIND)
    elsewhere.on("request", lambda request: told.append(request.url) if request.url.endswith("/shown") else None)
    chat.page.goto("about:blank")
    model.enqueue(calls(("many", LONG)))
    house.bob.post(f"/api/conversations/{chat.conversation}/messages", {"content": "Do it."})
    (call,) = house.bob.wait_for_call(chat.conversation, "waiting")
    elsewhere.goto(f"{house.server.url}/approvals/{call['approvalId']}")
    expect(elsewhere.locator("[data-ask]:not([data-fresh])")).to_be_visible()
    assert not told
    with elsewhere.expect_response("**/approvals/shown") as answer:
        elsewhere.evaluate(COME_FORWARD)
    assert answer.value.status == 204
    events = house.alice.get("/api/audit", call=call["id"], name="call.shown").json()
    assert [(event["actor"], event["means"]) for event in events] == [("bob", "session")]
    end(elsewhere, model)


def test_a_short_name_is_one_line_of_the_report(alone: Alone) -> None:
    alone.page.set_viewport_size(NARROW)
    names = alone.report("bob", "person-5", "a-" * 75)
    heights = [name.bounding_box()["height"] for name in names.all()]  # type: ignore[index]
    assert heights[0] == heights[1] < heights[2]


def test_no_figure_of_the_report_is_out_of_view_on_a_phone(alone: Alone) -> None:
    alone.page.set_viewport_size(NARROW)
    with override("de"):
        alone.report("bob")
    table = alone.page.locator("[aria-labelledby=answered-head] table")
    assert table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")


def end(page: Page, model: SharedModel) -> None:
    """Leave nothing that waits."""
    model.enqueue(text("Left."))
    decline(page.locator("[data-ask]"))
    expect(page.get_by_role("main")).to_contain_text("It was not executed.")

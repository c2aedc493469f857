"""The policy lab: a draft is tried on what people declined, kept, compared, published, and the next call goes by it."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chatting import Chat
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.looking import THOROUGHLY, check
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

CODE = 'def run(amount: int) -> str:\n    """Give money back."""\n    return f"{amount} given back"\n'


@pytest.fixture
def refund(house: House, new_name: str) -> str:
    house.server.home.add_tool(new_name, CODE, hitl_mode="REQUIRED", prompt_template="Give back {args.amount}")
    return new_name


def declined(chat: Chat, model: SharedModel, refund: str, amount: int) -> None:
    model.enqueue(calls((refund, {"amount": amount})), text(f"Not {amount}."))
    chat.say()
    chat.decline(chat.asked())
    chat.said(f"Not {amount}.")


@pytest.mark.slow("a long story of the lab")
@pytest.mark.timeout(240)
def test_a_draft_is_tried_kept_compared_and_published_and_the_next_call_goes_by_it(
    chat: Chat, author: Page, model: SharedModel, house: House, visit: Visit, refund: str
) -> None:
    # What it loosens is to be confirmed first.
    visit.watch(author).expect("status of 422")
    declined(chat, model, refund, 5)
    declined(chat, model, refund, 500)

    author.goto(f"{house.server.url}/policies/lab?tool={refund}")
    author.get_by_label("Approval").select_option("Policies decide")
    author.get_by_label("Condition", exact=True).fill('args["amount"] > 100')
    author.get_by_role("button", name="Replay").press("Enter")
    outcome = author.locator("#lab .outcome")
    expect(outcome.locator(".note.danger")).to_contain_text("1 declined call would have run.")
    expect(outcome.locator(".note.danger").get_by_role("link")).to_have_text(re.compile("Give back 5$"))
    check(author, THOROUGHLY)

    author.get_by_label("Name").fill(f"Small {refund}")
    author.get_by_label("What it is for").fill("Fewer questions about small refunds.")
    author.get_by_role("button", name="Keep draft").press("Enter")
    expect(author.get_by_role("heading", level=1)).to_have_text(f"Small {refund}")
    expect(author.get_by_role("status").first).to_have_text("Kept. Nothing of it is in force yet.")

    author.get_by_role("button", name="Compare").press("Enter")
    side = author.get_by_role("table").filter(has_text="The rules in force")
    expect(side.get_by_role("row", name="Declined, and would have run")).to_have_text(re.compile(r"run\s*1\s*0\s*$"))
    expect(author.get_by_role("heading", name="They differ on 1 call")).to_be_visible()
    check(author, THOROUGHLY)

    author.get_by_label("Why").fill("Nobody declined small ones for their amount.")
    author.get_by_role("button", name="Publish draft").press("Enter")
    confirm = author.get_by_label("I understand that fewer calls will be reviewed, or by other people")
    expect(confirm).to_be_focused()
    expect(author.get_by_role("alert")).to_contain_text("“Ask every time” becomes “Policies decide”")
    check(author, THOROUGHLY)
    confirm.press("Space")
    author.get_by_role("button", name="Publish draft").press("Enter")
    expect(author.get_by_text("Published by alice")).to_contain_text("Nobody declined small ones for their amount.")
    check(author)

    model.enqueue(calls((refund, {"amount": 7})), text("Seven."))
    chat.say()
    chat.said("Seven.")
    expect(chat.call("succeeded").last).to_contain_text(refund)
    declined(chat, model, refund, 700)

    author.goto(f"{house.server.url}/policies/lab")
    expect(author.get_by_role("listitem").filter(has_text=f"Small {refund}")).to_contain_text("Published")
    check(author)


def test_what_is_typed_while_a_chosen_tool_is_fetched_stays(author: Page, house: House, refund: str) -> None:
    author.goto(f"{house.server.url}/policies/lab")

    def never(_: Route) -> None:
        """Leave it without an answer."""

    author.route("**/policies/lab?*", never)
    with author.expect_request("**/policies/lab?*"):
        author.get_by_label("Tool", exact=True).select_option(refund)
    author.evaluate("document.addEventListener('htmx:sendAbort', () => (document.body.dataset.ended = 'early'))")
    author.get_by_label("Condition", exact=True).press_sequentially("len(args) > 2")
    expect(author.locator("body")).to_have_attribute("data-ended", "early")
    expect(author.get_by_label("Condition", exact=True)).to_have_value("len(args) > 2")
    expect(author.get_by_label("Tool", exact=True)).to_have_value(refund)

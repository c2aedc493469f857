"""Two people approve a call of a third, each in their own browser: neither of them alone, and never whom it is for."""

from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat, approve, approve_button, decline, settle
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.tools import ECHO
from tests.processes import Server
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

APPROVER = """
from django.contrib.auth.models import User
from hitlchat.accounts import roles
roles.give(User.objects.get(username="charlie"), roles.Role.APPROVER)
"""


@pytest.fixture
def charlie(house: House, visit: Visit) -> Page:
    """A page of charlie, who approves calls of others."""
    house.server.home.manage("shell", "-v", "0", "-c", APPROVER)
    return visit(house.server, house.server.sign_in("charlie"))


@pytest.fixture
def tool(house: House, new_name: str) -> str:
    """The name of a tool whose rules are this test's."""
    name = new_name.replace("-", "_")
    house.alice.add_tool(name, code=ECHO, hitlMode="REQUIRED")
    return name


def set_rules(alice: Page, server: Server, tool: str) -> None:
    alice.goto(f"{server.url}/studio/tools/{tool}")
    alice.get_by_role("link", name="Who decides").click()
    expect(alice.get_by_text("The person it is called for decides.")).to_be_visible()
    alice.get_by_label("Everyone with the role approver").check()
    alice.get_by_label("Required approvals").fill("3")
    alice.get_by_label("Never the person it is called for").check()
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_role("alert")).to_contain_text("only 2 active people could decide")
    looking.check(alice)
    alice.get_by_label("Required approvals").fill("2")
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_text("Saved. The rules apply from now on.")).to_be_visible()
    expect(alice.get_by_text("2 different approvers have to approve.")).to_be_visible()
    looking.check(alice)


def open_call(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/approvals/")
    expect(page.locator("[data-line]").get_by_text("for bob")).to_be_visible()
    page.locator("[data-line]", has_text="for bob").get_by_role("link").first.click()
    expect(page.locator("#card-slot [data-ask]")).to_be_visible()
    settle(page)


@pytest.fixture
def alice(house: House, server: Server, visit: Visit, charlie: Page, tool: str) -> Page:
    """A page of alice, by whose rules two decide, she and charlie; either may come too late."""
    page = visit(server, house.alice)
    for each in (page, charlie):
        visit.watch(each).expect("status of (409|422)")
    set_rules(page, server, tool)
    return page


@pytest.mark.timeout(300)
@pytest.mark.guarantee("gate:only-people", "gate:no-yes-no-run", "SR-25")
def test_two_approve_for_a_third_and_neither_of_them_alone(
    house: House, server: Server, model: SharedModel, visit: Visit, alice: Page, charlie: Page, tool: str
) -> None:
    chat = Chat(visit(server, house.bob), server, house.bob.begin("")).open()

    model.enqueue(calls((tool, {"text": "one"})), text("It said one."))
    chat.say()
    card = chat.asked()
    expect(card).to_contain_text("2 different approvers have to approve. Never bob, for whom it is called.")
    expect(approve_button(card)).to_have_count(0)
    expect(chat.modal.get_by_role("button", name="Close", exact=True)).to_be_hidden()
    looking.check(chat.page)
    for page in (alice, charlie):
        open_call(page, server)
    approve(alice.locator("[data-ask]"))
    expect(alice.get_by_role("button", name="Withdraw your approval")).to_be_visible()
    looking.check(alice)
    # The others see it by themselves: on the card of the one it is for, and on the page of the second.
    for page in (chat.page, charlie):
        expect(page.locator("[data-yes='1']")).to_contain_text("1 of 2 approved, by alice")
    looking.check(charlie)
    approve(charlie.locator("[data-ask]"))
    expect(chat.modal).to_be_hidden()
    chat.said("It said one.")
    for page in (alice, charlie):
        expect(page.locator(".decided", has_text="Approved by charlie, signed in")).to_be_visible()


@pytest.mark.slow("another story of who decides")
def test_whoever_says_by_key_that_they_are_on_it_stays_there_and_others_see_it(
    house: House, server: Server, model: SharedModel, visit: Visit, charlie: Page, tool: str
) -> None:
    alice = house.alice
    alice._client.put(
        f"/api/tools/{tool}/rules", json={"decidedBy": "approvers"}, headers=alice._headers
    ).raise_for_status()
    chat = Chat(visit(server, alice), server, alice.begin("")).open()
    model.enqueue(calls((tool, {"text": "one"})), text("It said one."))
    chat.say()
    card = chat.asked()
    charlie.goto(f"{server.url}/approvals/")
    charlie.locator("[data-line]", has_text="for alice").get_by_role("link").first.click()
    for word, seen in (("m on it", "alice is on it until"), ("Let go", "m on it")):
        button = card.get_by_role("button", name=word)
        button.focus()
        settle(chat.page)
        chat.page.keyboard.press("Enter")
        expect(button).to_have_count(0)
        expect(card.locator(".deciders button")).to_be_focused()
        expect(charlie.locator("#card-slot .deciders")).to_contain_text(seen)
    looking.check(chat.page)
    looking.check(charlie)
    approve(card)
    chat.said("It said one.")


@pytest.mark.slow("another story of who decides")
def test_somebody_who_is_away_is_represented_until_they_end_it(
    house: House, server: Server, model: SharedModel, visit: Visit, tool: str
) -> None:
    bob, charlie = visit(server, house.bob), visit(server, server.sign_in("charlie"))
    bob.goto(f"{server.url}/account")
    bob.get_by_label("Who decides meanwhile").select_option("charlie")
    bob.get_by_label("Until").fill(f"{datetime.now() + timedelta(days=2):%Y-%m-%dT%H:%M}")  # noqa: DTZ005 - as on its clock
    bob.get_by_role("region", name="Out of office").get_by_role("button", name="Save").click()
    expect(bob.get_by_text("charlie decides for bob from")).to_be_visible()
    looking.check(bob)
    chat = Chat(bob, server, house.bob.begin("")).open()
    model.enqueue(calls((tool, {"text": "one"})), text("It said one."))
    chat.say()
    chat.asked()
    charlie.goto(f"{server.url}/approvals/")
    line = charlie.locator("[data-line]", has_text="You decide for bob")
    line.get_by_role("link").first.click()
    expect(charlie.locator("#card-slot .deciders")).to_contain_text("You decide for bob, who is away.")
    settle(charlie)
    looking.check(charlie)
    approve(charlie.locator("#card-slot [data-ask]"))
    expect(charlie.locator(".decided", has_text="Approved by charlie for bob, signed in")).to_be_visible()
    chat.said("It said one.")
    bob.goto(f"{server.url}/approvals/")
    bob.locator("p", has_text="charlie decides for you from").get_by_role("link", name="Change").click()
    bob.get_by_role("button", name="End that charlie decides").click()
    expect(bob.get_by_text("Ended: nobody else decides in this place any more.")).to_be_visible()


@pytest.mark.slow("another story of who decides")
@pytest.mark.timeout(300)
@pytest.mark.guarantee("gate:only-people")
def test_one_of_two_declines_for_a_third_and_who_comes_too_late_is_told(
    house: House, server: Server, model: SharedModel, visit: Visit, alice: Page, charlie: Page, tool: str
) -> None:
    chat = Chat(visit(server, house.bob), server, house.bob.begin("")).open()

    model.enqueue(calls((tool, {"text": "two"})), text("It said nothing."))
    chat.say()
    chat.asked()
    for page in (alice, charlie):
        open_call(page, server)
    decline(charlie.locator("[data-ask]"))
    expect(charlie.locator(".decided", has_text="Declined by charlie")).to_be_visible()
    # Whether alice is quicker than her page or not.
    expect(alice.locator(".decided", has_text="Declined by charlie")).to_be_visible()
    chat.said("It said nothing.")


def make_group(alice: Page, server: Server, name: str, member: str) -> None:
    alice.goto(f"{server.url}/people/")
    alice.get_by_label("Name of a new group").fill(name)
    alice.get_by_role("button", name="Create group").click()
    alice.get_by_label("Person to add").select_option(member)
    alice.get_by_role("button", name="Add").click()
    expect(alice.get_by_role("button", name=f"Remove {member}")).to_be_visible()


@pytest.mark.slow("another story of who decides")
@pytest.mark.timeout(300)
@pytest.mark.guarantee("gate:only-people", "gate:no-yes-no-run", "SR-25")
def test_a_chain_goes_from_one_group_to_the_next(
    house: House, server: Server, model: SharedModel, visit: Visit, tool: str, new_name: str
) -> None:
    alice, charlie = visit(server, house.alice), visit(server, server.sign_in("charlie"))
    visit.watch(alice).expect("status of 422")
    finance, legal = f"Finance {new_name}", f"Legal {new_name}"
    make_group(alice, server, finance, "alice")
    make_group(alice, server, legal, "charlie")
    alice.goto(f"{server.url}/tools/{tool}/rules")
    alice.get_by_label("The people of one group").check()
    alice.get_by_label("Group", exact=True).select_option(label=finance)
    alice.get_by_label("Then one of", exact=True).select_option(label=finance)
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_role("alert")).to_contain_text("Expected another group for each step.")
    looking.check(alice)
    alice.get_by_label("Then one of", exact=True).select_option(label=legal)
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_text("Saved. The rules apply from now on.")).to_be_visible()
    chat = Chat(visit(server, house.bob), server, house.bob.begin("")).open()
    charlie.goto(f"{server.url}/approvals/")

    model.enqueue(calls((tool, {"text": "one"})), text("It said one."))
    chat.say()
    card = chat.asked()
    expect(card).to_contain_text(f"Now one of the people of the group “{finance}” has to approve.")
    open_call(alice, server)
    expect(charlie.locator("[data-line]", has_text="for bob")).to_have_count(0)
    approve(alice.locator("[data-ask]"))
    expect(alice.get_by_role("button", name="Withdraw your approval")).to_be_visible()
    expect(alice.get_by_role("button", name="Decline")).to_have_count(0)
    looking.check(alice)
    # The list of the next finds it by itself, and the card of the one it is for says whose turn it is.
    expect(charlie.locator("[data-line]", has_text="for bob")).to_be_visible()
    expect(card).to_contain_text(f"by alice. Now one of the people of the group “{legal}” has to approve.")
    open_call(charlie, server)
    expect(charlie.locator("[data-yes='1']")).to_contain_text("1 of 2 approved, by alice")
    looking.check(charlie)
    approve(charlie.locator("[data-ask]"))
    chat.said("It said one.")
    expect(alice.locator(".decided", has_text="Approved by charlie, signed in")).to_be_visible()


@pytest.mark.slow("waits for time to pass")
@pytest.mark.timeout(300)
@pytest.mark.guarantee("gate:only-people")
def test_after_a_while_a_second_group_may_answer_too(
    house: House, server: Server, model: SharedModel, visit: Visit, tool: str, new_name: str
) -> None:
    alice, charlie = visit(server, house.alice), visit(server, server.sign_in("charlie"))
    visit.watch(alice).expect("status of 422")
    watch = f"Night watch {new_name}"
    make_group(alice, server, watch, "charlie")
    alice.goto(f"{server.url}/tools/{tool}/rules")
    alice.get_by_label("Others who may decide too").select_option(label=watch)
    alice.get_by_label("Seconds until they may decide").fill("3")
    alice.get_by_role("button", name="Save").click()
    alice.get_by_label("I understand that fewer or other people will decide").check()
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_text("Saved. The rules apply from now on.")).to_be_visible()
    chat = Chat(visit(server, house.bob), server, house.bob.begin("")).open()
    charlie.goto(f"{server.url}/approvals/")

    model.enqueue(calls((tool, {"text": "late"})), text("It said late."))
    chat.say()
    card = chat.asked()
    expect(card).to_contain_text(watch)
    expect(approve_button(card)).to_be_visible()
    # Once the time is over the list finds it by itself.
    open_call(charlie, server)
    approve(charlie.locator("[data-ask]"))
    expect(charlie.locator(".decided", has_text="Approved by charlie, signed in")).to_be_visible()
    expect(chat.modal).to_be_hidden()
    chat.said("It said late.")

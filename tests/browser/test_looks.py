"""Pages on which something goes on, wide and narrow, light and dark: usable by everyone, and nothing sticks out."""

from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import Chat, approve, approve_button, decline, decline_button, settle
from tests.browser.conftest import NARROW, House, SharedModel, Visit
from tests.browser.looking import THOROUGHLY, check, in_view
from tests.scripted_model import calls, status, text

pytestmark = [pytest.mark.browser, pytest.mark.slow("axe at each page")]

ANSWER = """## Done

See [the list](https://example.com/list):

- one
- `two`

| a | b |
|---|---|
| 1 | 2 |

> quoted

```python
print("x" * 3)
```
"""
LONG = "a-word-without-any-end-" * 30
CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("echo", {"text": LONG}),
    ("echo", {"text": "no"}),
    ("fail", {"text": LONG}),
    ("brief", {}),
    ("look", {"text": "print me"}),
    ("echo", {"wrong": 1}),
    ("nowhere", {}),
)


def test_the_sign_in_page(house: House, visit: Visit) -> None:
    page = visit(house.server)
    page.goto(f"{house.server.url}/sign-in")
    check(page, THOROUGHLY)
    page.get_by_label("Username").fill("nobody")
    page.get_by_label("Password").fill("nothing")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    check(page, THOROUGHLY)


def test_the_chat_before_anything_was_said(page: Page, chat: Chat) -> None:
    check(page, THOROUGHLY)


def test_a_conversation_with_calls_of_every_fate(chat: Chat, model: SharedModel, house: House) -> None:
    model.enqueue(calls(*CALLS, say=ANSWER), text(f"{ANSWER}\n\nAll settled."))
    chat.say(LONG)
    chat.asked(4)
    said_yes, said_no, failed = (call["approvalId"] for call in house.calls(chat.conversation)[:3])
    house.bob.post(f"/api/approvals/{said_yes}/approve")
    house.bob.post(f"/api/approvals/{said_no}/reject", {"reason": LONG[:400]})
    house.bob.post(f"/api/approvals/{failed}/approve")
    chat.said("All settled.")
    model.enqueue(calls(("echo", {"text": "stopped"})), status(500))
    chat.say()
    chat.asked()
    chat.stop()
    expect(chat.call("withdrawn")).to_have_count(1)
    chat.say()
    expect(chat.notice()).to_be_visible()
    for line in chat.log.locator("details.call").all():
        line.locator("summary").click()
    fates = {"succeeded": 2, "declined": 1, "failed": 1, "expired": 1, "rejected": 2, "withdrawn": 1}
    assert {fate: chat.call(fate).count() for fate in fates} == fates
    check(chat.page, THOROUGHLY)


def test_the_modal(chat: Chat, model: SharedModel) -> None:
    model.enqueue(calls(("note", {"note": "pay\u202e001" + "x" * 900}), ("wipe", {"note": LONG})))
    chat.say()
    card = chat.asked(2)
    check(chat.page, THOROUGHLY)
    card.locator("[data-fold] > summary").first.click()
    card.locator("details.menu.end > summary").click()
    card.locator("details.menu.end details.raw > summary").click()
    check(chat.page, THOROUGHLY)
    chat.page.set_viewport_size(NARROW)
    box = chat.modal.bounding_box()
    assert box
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, NARROW["width"], NARROW["height"])
    chat.modal.get_by_role("heading", level=2).click()
    for button in (decline_button(card).first, approve_button(card)):
        assert in_view(button)
    chat.modal.get_by_role("button", name="Decide later").click()
    check(chat.page, THOROUGHLY)
    chat.page.get_by_role("button", name="Stop").click()
    expect(chat.call("withdrawn")).to_have_count(2)


def test_the_page_of_an_approval_before_and_after_its_answer(chat: Chat, model: SharedModel, house: House) -> None:
    model.enqueue(calls(("echo", {"text": LONG})), text("Done."))
    chat.say()
    chat.asked()
    (call,) = house.calls(chat.conversation)
    page = chat.page
    page.goto(f"{house.server.url}/approvals/{call['approvalId']}")
    check(page, THOROUGHLY)
    settle(page)
    approve(page.locator("[data-ask]"))
    expect(page.locator("[data-status=succeeded]")).to_be_visible()
    check(page, THOROUGHLY)
    page.reload()
    expect(page.get_by_role("heading", name="This call has been answered")).to_be_visible()
    check(page, THOROUGHLY)


# Its other pages are among those of test_every_page.
def test_the_studio(author: Page, house: House) -> None:
    author.goto(f"{house.server.url}/studio/tools/refund_order")
    expect(author.locator(".ace_line").first).to_be_visible()
    check(author, THOROUGHLY)
    author.goto(f"{house.server.url}/studio/?q=nothing-like-it")
    check(author, THOROUGHLY)


def test_a_tool_in_the_studio_with_errors_and_one_being_tested(author: Page, house: House, visit: Visit) -> None:
    visit.watch(author).expect("status of 422")
    author.goto(f"{house.server.url}/studio/new")
    author.get_by_label("Name", exact=True).fill("no good name!")
    author.get_by_text("Named hosts", exact=True).click()
    author.get_by_label("Hosts, one per line").fill("*")
    author.get_by_label("Approval prompt").fill("{nothing}")
    author.get_by_role("button", name="Create draft").click()
    expect(author.locator(".problem").first).to_be_visible()
    check(author, THOROUGHLY)
    author.goto(f"{house.server.url}/studio/tools/echo")
    author.get_by_label("text").first.fill(LONG)
    author.get_by_role("button", name="Run test").click()
    card = author.locator("#test-result [data-ask]")
    expect(card).to_be_visible()
    check(author, THOROUGHLY)
    decline(card)
    expect(author.locator("#test-result [data-status=declined]")).to_be_visible()
    check(author, THOROUGHLY)


def test_pages_that_are_not_there_or_not_for_everyone(page: Page, house: House, visit: Visit) -> None:
    visit.watch(page).expect("status of (403|404)")
    page.goto(f"{house.server.url}/nowhere")
    expect(page.get_by_role("heading")).to_have_text("Page not found")
    check(page, THOROUGHLY)
    page.goto(f"{house.server.url}/studio/")
    expect(page.get_by_role("heading")).to_have_text("You do not have access")
    check(page, THOROUGHLY)

"""A call is decided in the chat, found in the history, read as it was shown, marked, and exported."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import Chat
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.looking import check, in_view, wear
from tests.browser.watching import AWAY
from tests.processes import STEADY, Servers
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = [pytest.mark.browser, pytest.mark.servers("the SQL differs between the databases")]


@pytest.mark.slow("a story of the history")
@pytest.mark.guarantee("audit:complete")
def test_what_was_decided_in_the_chat_is_found_read_and_exported(
    chat: Chat, model: SharedModel, house: House, tmp_path: Path
) -> None:
    model.enqueue(calls(("echo", {"text": "history of this"})), text("Very well."))
    chat.say()
    chat.asked()
    chat.decline()
    chat.said("Very well.")
    page = chat.page
    page.get_by_role("navigation", name="Main").get_by_role("link", name="History").click()
    search = page.get_by_role("search", name="Filter the history")
    search.get_by_label("Outcome").select_option("Declined")
    search.get_by_label("Tool").fill("echo")
    search.get_by_text("More filters").click()
    search.get_by_label("Decided by").fill("bob")
    search.get_by_role("button", name="Filter").click()
    expect(search.get_by_role("link", name="Decided by: bob")).to_be_visible()
    check(page)
    wear(page, "narrow dark")
    page.get_by_text("Export…").click()
    assert in_view(page.get_by_role("button", name="CSV, for tables"))
    assert in_view(page.get_by_role("button", name="JSON, one call a line"))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="JSON, one call a line").click()
    wear(page, "wide light")
    waiting.value.save_as(tmp_path / "calls.jsonl")
    *rows, end = map(json.loads, (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines())
    assert end == {"id": "end-of-export", "rows": len(rows)}
    assert [row["arguments"]["text"] for row in rows if row["prompt"] == "Say “history of this”"] == ["history of this"]
    assert {row["outcome"] for row in rows} == {"declined"}
    page.get_by_role("link", name="history of this").click()
    card = page.get_by_label("The call as shown")
    expect(card).to_contain_text("This tool always needs approval.")
    expect(card).to_contain_text(rows[0]["consentDigest"])
    expect(page.get_by_text("Declined by bob, signed in")).to_be_visible()
    expect(page.get_by_text("The call was declined and did not run.")).to_be_visible()
    check(page)


@pytest.mark.slow("looks at the menu of another story once more")
@pytest.mark.parametrize("look", ["narrow dark", "wide light"])
def test_the_menu_of_the_export_is_whole_and_in_sight(page: Page, house: House, look: str) -> None:
    page.goto(f"{house.server.url}/history/")
    wear(page, look)
    page.get_by_text("Export…").click()
    for button in ("CSV, for tables", "JSON, one call a line"):
        assert in_view(page.get_by_role("button", name=button))
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV, for tables").click()
    assert download.value.suggested_filename == "calls.csv"


@pytest.mark.slow("kills a server")
@pytest.mark.processes
@pytest.mark.guarantee("gate:truth")
def test_a_call_whose_server_was_killed_is_marked_by_a_person(own: Servers, visit: Visit) -> None:
    model = ScriptedModel()
    first = own.start(**model.environment, LEASE_SECONDS="3")
    bob = first.sign_in("bob")
    chat = Chat(visit(first, bob), first, bob.begin("")).open()
    model.enqueue(calls(("slow", {"n": 9})))
    chat.say()
    chat.approve()
    bob.wait_for_call(chat.conversation, "executing")
    visit.watch(chat.page).expect(AWAY)
    first.kill()
    model.enqueue(text("I do not know."))
    second = own.start(**model.environment, **STEADY)
    again = second.sign_in("bob")
    again.wait_for_call(chat.conversation, "unknown")
    page = visit(second, again)
    page.goto(f"{second.url}/history/")
    desk = page.get_by_role("region", name="May or may not have happened")
    desk.get_by_text("Say what happened…").click()
    check(page)
    desk.get_by_label("How you know").fill("I looked: it slept.")
    desk.get_by_role("button", name="Mark as done").click()
    expect(page.get_by_role("status")).to_contain_text("Marked as done.")
    expect(page.get_by_text("I looked: it slept.")).to_be_visible()
    again.wait_for_call(chat.conversation, "succeeded")
    model.close()

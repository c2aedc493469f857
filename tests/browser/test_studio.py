"""The life of a tool in the Studio: a mistake seen and mended, tested, published, edited while it waits."""

import re
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat, approve, tab_to
from tests.browser.conftest import House, SharedModel, Visit
from tests.processes import Server
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

MISTAKE: Final = '''def run(name: str) -> str:
    """Greet someone.

    name: who
    """
    return "Hello, " + nam
'''
MENDED: Final = MISTAKE.replace("+ nam\n", "+ name\n")


@pytest.fixture
def studio(author: Page, server: Server) -> Page:
    """alice in the Studio; whatever she leaves unsaved is given up at the end."""
    author.on("dialog", lambda dialog: dialog.accept())
    author.goto(f"{server.url}/studio/")
    return author


def write_code(page: Page, code: str) -> None:
    page.locator("[data-code] .ace_content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(code)


def create(page: Page, server: Server, name: str, code: str, template: str = "function") -> None:
    page.goto(f"{server.url}/studio/new?template={template}")
    page.get_by_label("Name", exact=True).fill(name)
    write_code(page, code)
    page.get_by_role("button", name="Create draft").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def choose(page: Page, words: str) -> None:
    page.locator("#tool-form").get_by_text(words, exact=True).click()


def run_test(page: Page) -> Locator:
    page.get_by_role("button", name="Run test").click()
    return page.locator("#test-result")


# How it is used in the chat is the story of test_first_day.
def test_mistakes_are_shown_at_their_lines_mended_and_the_tool_tested_and_published(studio: Page, visit: Visit) -> None:
    name = "greet"
    studio.get_by_role("link", name="New", exact=True).click()
    studio.get_by_label("Name", exact=True).fill(name)
    write_code(studio, "def run(text: str) -> str:\n    return (text\n")
    studio.get_by_role("button", name="Create draft").click()
    expect(studio.locator(".main > .problem")).to_contain_text(re.compile(r"^Line \d"))
    expect(studio.get_by_label("Name", exact=True)).to_have_value(name)
    expect(studio.locator("[data-code]")).to_contain_text("return (text")
    visit.watch(studio).expect("status of 422")
    write_code(studio, MISTAKE)
    expect(studio.locator("[data-code] .ace_error")).to_have_count(1)
    expect(studio.locator("[data-code] .found-line")).to_have_count(1)
    expect(studio.locator("[data-finding-count]")).to_have_text("1 finding")
    looking.check(studio)
    studio.get_by_role("button", name="Line 6").click()
    expect(studio.locator(".ace_text-input")).to_be_focused()

    write_code(studio, MENDED)
    expect(studio.locator("[data-finding-count]")).to_have_text("No problems")
    expect(studio.locator("[data-code] .found-line")).to_have_count(0)
    choose(studio, "Ask")
    studio.get_by_label("Approval prompt").fill("Greet {args.name}")
    studio.get_by_role("button", name="Create draft").click()

    standing = studio.locator("#standing")
    expect(standing).to_contain_text("Run a test first")
    expect(standing.get_by_role("button", name="Publish")).to_be_disabled()
    studio.locator("#arg-name").fill("Ann")
    pane = run_test(studio)
    expect(pane.locator("[data-ask]")).to_be_visible()
    expect(studio.get_by_role("button", name="Run test")).to_be_focused()
    approve(pane.locator("[data-ask]"))
    expect(pane.locator(".out")).to_have_text("Hello, Ann")
    expect(pane).to_be_focused()
    expect(standing).to_contain_text("you can publish the tool")
    pane.get_by_text("Save as a test").click()
    looking.check(studio)
    pane.get_by_role("button", name="Publish version 1").click()
    expect(standing).to_contain_text("agents can call it")
    expect(studio.locator("#arg-name")).to_have_value("Ann")


def test_unsaved_code_is_not_tested_and_once_saved_it_withdraws_the_open_approval_in_the_other_tab(
    studio: Page, server: Server, chat: Chat, model: SharedModel
) -> None:
    model.enqueue(calls(("memo", {"note": "wait for me"})), text("It came to nothing."))
    chat.say()
    chat.asked()
    studio.goto(f"{server.url}/studio/tools/memo")
    expect(studio.locator("#open-calls")).to_contain_text("1 call to this tool waits for an answer.")
    looking.check(studio)
    write_code(studio, 'def run(note: str) -> str:\n    """Keep another note."""\n    return f"kept {note}"\n')
    expect(studio.get_by_text("You have unsaved changes.")).to_be_visible()
    expect(studio.get_by_role("button", name="Run test")).to_be_disabled()
    expect(studio.get_by_role("button", name="Unpublish")).to_be_disabled()
    studio.get_by_role("button", name="Save").click()
    expect(studio.locator("[data-saved]")).to_be_visible()
    expect(studio.locator("#open-calls .note")).to_have_count(0)
    expect(chat.modal).to_be_hidden()
    expect(chat.call("withdrawn")).to_contain_text("the tool was changed")
    chat.said("It came to nothing.")


@pytest.mark.slow("another story of the Studio")
def test_another_condition_alone_is_confirmed_where_the_page_says_so(
    studio: Page, server: Server, visit: Visit
) -> None:
    create(studio, server, "ruled", MENDED)
    choose(studio, "Policies decide")
    studio.get_by_label("Ask when").fill("True")
    box = studio.locator("[data-lower]")
    studio.get_by_role("button", name="Save").click()
    expect(studio.locator("[data-saved]")).to_be_visible()
    expect(box).to_be_hidden()
    studio.get_by_label("Ask when").fill("False")
    expect(box).to_be_visible()
    expect(box).to_contain_text("Another condition decides which calls ask.")
    studio.get_by_role("button", name="Save").click()
    expect(studio.locator("#condition_error, [id$=condition_error]")).to_contain_text("Confirm it below")
    expect(box).to_be_visible()
    looking.check(studio)
    studio.get_by_label("I understand that fewer calls will be reviewed").check()
    studio.get_by_role("button", name="Save").click()
    expect(studio.locator("[data-saved]")).to_be_visible()
    expect(box).to_be_hidden()
    visit.watch(studio).expect("status of 422")


@pytest.mark.slow("another story of the Studio")
def test_arguments_that_do_not_fit_are_refused_a_run_is_kept_as_a_test_and_a_tool_duplicated(
    studio: Page, server: Server
) -> None:
    studio.goto(f"{server.url}/studio/tools/note")
    studio.locator("#arg-note").fill("x")
    studio.locator("#arg-data").fill("{no json")
    pane = run_test(studio)
    expect(pane.get_by_role("alert")).to_contain_text("data: expected JSON")
    expect(studio.locator("#arg-data")).to_be_focused()
    expect(studio.locator("#arg-data")).to_have_attribute("aria-invalid", "true")
    looking.check(studio)

    studio.goto(f"{server.url}/studio/tools/look")
    studio.locator("#arg-text").fill("again and again")
    pane = run_test(studio)
    pane.get_by_text("Save as a test").click()
    pane.get_by_label("Test name").fill("says it back")
    pane.get_by_role("button", name="Save test").click()
    expect(studio).to_have_url(re.compile("/studio/tools/look/cases"))
    expect(studio.get_by_role("main")).to_contain_text("says it back")

    studio.goto(f"{server.url}/studio/tools/count")
    studio.get_by_role("link", name="Duplicate").click()
    expect(studio.get_by_label("Name", exact=True)).to_have_value("count_copy")
    expect(studio.get_by_label("Store")).to_be_checked()
    looking.check(studio)
    studio.get_by_role("button", name="Create draft").click()
    expect(studio.get_by_role("heading", level=1)).to_have_text("count_copy")
    expect(studio.locator("#standing")).to_contain_text("is a draft")


@pytest.mark.slow("another story of the Studio")
def test_the_list_is_searched_narrowed_and_folded_and_stays_so(studio: Page, server: Server) -> None:
    tools = studio.get_by_role("complementary", name="Tools")
    group = tools.locator("details[data-group='Custom']")
    expect(group).to_have_attribute("open", "")
    group.locator("summary").click()
    expect(group).not_to_have_attribute("open", "")
    studio.reload()
    expect(group).not_to_have_attribute("open", "")
    studio.goto(f"{server.url}/studio/tools/look")
    expect(group).to_have_attribute("open", "")

    studio.get_by_label("Search tools").fill("look")
    studio.keyboard.press("Enter")
    expect(tools.get_by_role("link", name=re.compile("^look"))).to_be_visible()
    expect(tools.get_by_role("link", name=re.compile("^echo"))).to_have_count(0)
    tools.get_by_text("Filters", exact=True).click()
    tools.get_by_label("Risk").select_option("5")
    tools.get_by_role("button", name="Search").click()
    expect(tools).to_contain_text("No tool matches")
    looking.check(studio)
    tools.get_by_role("link", name="Clear filters").first.click()
    expect(tools.locator("a[href$='/tools/echo']")).to_have_count(1)
    expect(group).not_to_have_attribute("open", "")


@pytest.mark.slow("another story of the Studio")
def test_what_someone_else_saved_meanwhile_is_not_overwritten_unseen(
    studio: Page, server: Server, house: House, visit: Visit
) -> None:
    create(studio, server, "shared", MENDED)
    other = visit(server, house.alice)
    other.goto(f"{server.url}/studio/tools/shared")
    other.get_by_label("Title").fill("Theirs")
    other.get_by_role("button", name="Save").click()
    expect(other.locator("[data-saved]")).to_be_visible()
    studio.get_by_label("Title").fill("Mine")
    studio.get_by_role("button", name="Save").click()
    notice = studio.get_by_role("alert")
    expect(notice).to_contain_text("alice saved version 2")
    expect(studio.get_by_label("Title")).to_have_value("Mine")
    expect(studio.get_by_text("You have unsaved changes.")).to_be_visible()
    looking.check(studio)
    studio.get_by_role("button", name="Save").click()
    expect(studio.locator(".editor-head")).to_contain_text("Mine")
    visit.watch(studio).expect("status of 409")


@pytest.mark.slow("another story of the Studio")
def test_the_tool_is_written_tested_and_published_without_a_mouse(studio: Page, server: Server) -> None:
    studio.goto(f"{server.url}/studio/new?template=function")
    skip_to_content(studio)
    tab_to(studio, studio.get_by_label("Name", exact=True))
    studio.keyboard.type("by_keys")
    studio.keyboard.press("Enter")
    expect(studio.get_by_role("heading", level=1)).to_have_text("by_keys")
    skip_to_content(studio)
    # Past the editor, which lets go of the Tab key.
    tab_to(studio, studio.get_by_role("button", name="Run test"))
    studio.keyboard.press("Enter")
    publish = studio.get_by_role("button", name="Publish version 1")
    expect(publish).to_be_visible()
    tab_to(studio, publish)
    studio.keyboard.press("Space")
    expect(studio.locator("#standing")).to_contain_text("agents can call it")


def skip_to_content(page: Page) -> None:
    tab_to(page, page.get_by_role("link", name="Skip to content"))
    page.keyboard.press("Enter")

"""The Composed Tools drawer: choosing what is exposed, and what stops an administrator from choosing too much."""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser import looking
from tests.browser.chatting import tab_to
from tests.browser.conftest import NARROW, Visit
from tests.processes import STEADY, Installation, Person, Server, Servers, copy_of
from tests.upstreams.client.upstreams import HOSTILE, Program, starting
from tests.upstreams.shops import Shop, shop_in
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

STDIO: Final = {"MCP_ALLOW_STDIO": "1"}
# What these servers get up to; all others are honest.
HABITS: Final = {"odd": "odd", "hundreds": "hundreds"}


@dataclass(frozen=True)
class Shopful:
    """A server process, and upstream servers of which nothing is exposed until a test does."""

    server: Server
    alice: Person
    honest: Program
    shop: Shop

    def connect(self, name: str) -> None:
        """Add the server of this name, unless it is there, and wait for its tools."""
        if name not in {each["name"] for each in self.alice.get("/api/servers").json()}:
            added = self.alice.post("/api/servers", {"name": name, **self._draft(name)})
            assert added.status_code == 201, added.text
        until(lambda: self.has_listed(name), f"{name} has listed its tools", seconds=90)

    def _draft(self, name: str) -> dict[str, Any]:
        if name not in HABITS:
            program = self.shop.program if name == "shop" else self.honest
            if program.process is None:
                program.start()
            return {"url": program.url}
        command = [sys.executable, str(HOSTILE), HABITS[name]]
        confirmed = {"confirmedCommandLine": shlex.join(command)}
        return {"transport": "stdio", "command": command[0], "args": command[1:], **confirmed}

    @property
    def catalog(self) -> dict[str, str]:
        """The composed tools in the catalog, with their HITL modes."""
        found = self.alice.get("/api/tools").json()
        return {each["name"]: each["hitlMode"] for each in found if each["published"] and each["source"] == "upstream"}

    def has_listed(self, name: str) -> bool:
        return "data-tool=" in self.alice.get(f"/servers/tools/of/{name}").text


@pytest.fixture(scope="module")
def house(migrated: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shopful]:
    upstream = starting()
    shop = shop_in(tmp_path_factory.mktemp("shop"))
    started = Servers(copy_of(migrated, tmp_path_factory.mktemp("drawer") / "data"))
    try:
        server = started.start(**STDIO, **STEADY)
        yield Shopful(server, server.sign_in("alice"), next(upstream)(), shop)
    finally:
        started.close()
        shop.program.kill()
        next(upstream, None)


@pytest.fixture
def page(house: Shopful, visit: Visit) -> Page:
    return visit(house.server, house.alice)


def open_at(page: Page, house: Shopful, name: str) -> Locator:
    house.connect(name)
    page.goto(f"{house.server.url}/servers/tools?server={name}")
    drawer = page.get_by_role("dialog", name="Composed tools")
    expect(drawer).to_be_visible()
    return drawer


def line(drawer: Locator, name: str, server: str = "") -> Locator:
    section = drawer.locator(f'[data-server="{server}"]') if server else drawer
    return section.locator(".tool").filter(has=drawer.page.get_by_text(name, exact=True))


def tick(drawer: Locator, name: str, server: str = "") -> Locator:
    return line(drawer, name, server).locator('[data-field="exposed"]')


def under(drawer: Locator, name: str, field: str) -> Locator:
    """What is said against a field, right under it."""
    return line(drawer, name).locator(f'[data-problem="{field}"]')


def ask_mode(drawer: Locator, name: str, words: str) -> None:
    line(drawer, name).locator(".seg").get_by_text(words, exact=True).click()


def form(drawer: Locator, server: str = "") -> Locator:
    """Return the form of a server, or of mode and ceiling."""
    return drawer.locator(f'[data-server="{server}"] form' if server else "#drawer-exposure")


def apply(drawer: Locator, server: str = "") -> None:
    form(drawer, server).locator("[data-send]").click()


def agree(drawer: Locator, server: str = "") -> None:
    """To less human oversight."""
    drawer.get_by_label("I understand that fewer calls will be reviewed").check()
    apply(drawer, server)


def told(drawer: Locator, server: str, words: str) -> None:
    expect(form(drawer, server).locator("[data-told]")).to_contain_text(words)


@pytest.mark.slow("a long story of the drawer")
def test_a_tool_is_exposed_used_under_its_alias_and_asks_less_only_after_a_question(page: Page, house: Shopful) -> None:
    house.connect("story")
    page.goto(f"{house.server.url}/servers/")
    opener = page.get_by_role("link", name="Composed tools")
    opener.click()
    drawer = page.get_by_role("dialog", name="Composed tools")
    expect(drawer.get_by_role("heading", name="Composed tools")).to_be_focused()
    expect(page).to_have_url(f"{house.server.url}/servers/tools")
    looking.check(page)

    drawer.locator('[data-server="story"] > summary').click()
    exposed = int(drawer.locator("[data-sum] b").inner_text())
    tick(drawer, "echo").check()
    tick(drawer, "add").check()
    expect(drawer.locator("[data-sum] b")).to_have_text(str(exposed + 2))
    told(drawer, "story", "2 changes, not saved.")
    expect(drawer.locator("[data-coming]")).to_have_text(["story_addnot saved", "story_echonot saved"])
    line(drawer, "echo").get_by_label("Alias").fill("say_it")
    line(drawer, "echo").get_by_text("Details").click()
    line(drawer, "echo").get_by_label("Approval prompt").fill("Say {args.text}?")
    expect(line(drawer, "echo").locator("pre").first).to_contain_text('"text"')
    looking.check(page)
    apply(drawer, "story")
    told(drawer, "story", "2 changes applied.")
    for alias in ("say_it", "story_add"):
        expect(drawer.locator("[data-chip]").get_by_text(alias, exact=True)).to_be_visible()
    assert {name: mode for name, mode in house.catalog.items() if name in {"say_it", "story_add"}} == {
        "say_it": "REQUIRED",
        "story_add": "REQUIRED",
    }

    ask_mode(drawer, "add", "Never")
    expect(line(drawer, "add").locator("[data-lowered]")).to_be_visible()
    apply(drawer, "story")
    question = drawer.get_by_role("heading", name="Reduce human oversight?")
    expect(question).to_be_focused()
    expect(question).to_be_in_viewport()
    looking.check(page)
    assert house.catalog["story_add"] == "REQUIRED"
    expect(form(drawer, "story").locator("[data-send]")).to_be_disabled()
    drawer.get_by_label("I understand that fewer calls will be reviewed").check()
    expect(form(drawer, "story").locator("[data-send]")).to_be_enabled()
    # Anything else is another question.
    ask_mode(drawer, "add", "Policies")
    expect(question).to_have_count(0)
    apply(drawer, "story")
    expect(form(drawer, "story").locator("[data-answer]")).to_contain_text("and will leave it to policies")
    drawer.get_by_label("I understand that fewer calls will be reviewed").check()
    apply(drawer, "story")
    told(drawer, "story", "1 change applied.")
    assert house.catalog["story_add"] == "CONDITIONAL"

    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(opener).to_be_focused()
    expect(page).to_have_url(f"{house.server.url}/servers/")


@pytest.mark.slow("another story of the drawer")
def test_a_name_that_is_taken_is_told_while_it_is_typed_and_kept_from_being_applied(page: Page, house: Shopful) -> None:
    drawer = open_at(page, house, "names")
    tick(drawer, "echo").check()
    tick(drawer, "fail").check()
    for name in ("echo", "fail"):
        line(drawer, name).get_by_label("Alias").fill("same_name")
    for name in ("echo", "fail"):
        expect(under(drawer, name, "alias")).to_contain_text("another tool's new alias")
    line(drawer, "fail").get_by_label("Alias").fill("approve")
    expect(under(drawer, "fail", "alias")).to_contain_text("a reserved word")
    expect(line(drawer, "fail").get_by_label("Alias")).to_have_attribute("aria-invalid", "true")
    expect(under(drawer, "echo", "alias")).to_be_empty()
    apply(drawer, "names")
    expect(drawer.get_by_role("alert")).to_contain_text("Nothing was applied: review 1 tool again.")
    looking.check(page)
    expect(line(drawer, "echo").get_by_label("Alias")).to_have_value("same_name")
    assert "same_name" not in house.catalog
    drawer.get_by_role("link", name="Show it").click()
    expect(tick(drawer, "fail")).to_be_focused()
    line(drawer, "fail").get_by_label("Alias").fill("")
    expect(line(drawer, "fail").get_by_text("the default")).to_be_visible()
    expect(under(drawer, "fail", "alias")).to_be_empty()
    apply(drawer, "names")
    told(drawer, "names", "2 changes applied.")
    assert {"same_name", "names_fail"} <= house.catalog.keys()


@pytest.mark.slow("another story of the drawer")
def test_all_tools_of_a_server_are_selected_and_approval_is_required_for_all(page: Page, house: Shopful) -> None:
    drawer = open_at(page, house, "bulk")
    section = drawer.locator('[data-server="bulk"]')
    many = section.locator(".tool").count()
    section.get_by_label("Select all").check()
    told(drawer, "bulk", f"{many} tools selected. {many} changes, not saved.")
    expect(section.get_by_label("Select all")).to_be_checked()
    ask_mode(drawer, "add", "Never")
    ask_mode(drawer, "echo", "Policies")
    tick(drawer, "die").uncheck()
    apply(drawer, "bulk")
    drawer.get_by_label("I understand that fewer calls will be reviewed").check()
    apply(drawer, "bulk")
    told(drawer, "bulk", f"{many - 1} changes applied.")
    assert (house.catalog["bulk_add"], house.catalog["bulk_echo"]) == ("DISABLED", "CONDITIONAL")

    page.on("dialog", lambda dialog: dialog.accept())
    drawer.get_by_role("button", name="Require approval for all exposed").click()
    expect(drawer.get_by_text("tools ask every time now.")).to_be_visible()
    assert {mode for name, mode in house.catalog.items() if name.startswith("bulk_")} == {"REQUIRED"}
    expect(line(drawer, "add").get_by_role("radio", name="Ask")).to_be_checked()
    drawer.get_by_role("button", name="Require approval for all exposed").click()
    expect(drawer.get_by_text("All exposed tools already ask every time.")).to_be_visible()
    expect(form(drawer, "bulk").locator("[data-send]")).to_be_disabled()


@pytest.mark.slow("another story of the drawer")
def test_a_ceiling_takes_tools_out_and_gives_them_back(page: Page, house: Shopful) -> None:
    drawer = open_at(page, house, "limit")
    tick(drawer, "echo").check()
    ask_mode(drawer, "echo", "Never")
    apply(drawer, "limit")
    agree(drawer, "limit")
    told(drawer, "limit", "1 change applied.")
    risk = int(line(drawer, "echo").get_attribute("data-risk") or 0)
    assert risk > 1
    drawer.get_by_label("Highest risk exposed").select_option("1")
    expect(drawer.locator('[data-ceiling-words="1"]')).to_contain_text("above it are not exposed")
    apply(drawer)
    told(drawer, "", "1 change applied.")
    expect(tick(drawer, "add")).to_be_disabled()
    expect(line(drawer, "add").locator(".why-not")).to_have_text(
        "Above your limit of L1: not offered", use_inner_text=True
    )
    expect(line(drawer, "echo").locator(".why-not")).to_have_text("Above your limit of L1: withheld")
    assert "limit_echo" not in house.catalog
    expect(drawer.locator("#drawer-sums")).to_contain_text("ticked but above L1")
    looking.check(page)
    drawer.get_by_label("Highest risk exposed").select_option("5")
    drawer.get_by_text("Composed only").click()
    told(drawer, "", "2 changes, not saved.")
    drawer.get_by_text("Both", exact=True).click()
    apply(drawer)
    # What never asks would come back.
    expect(form(drawer).locator("[data-answer]")).to_contain_text("echo on limit: will be exposed again and never ask")
    assert "limit_echo" not in house.catalog
    agree(drawer)
    told(drawer, "", "1 change applied.")
    assert "limit_echo" in house.catalog


@pytest.mark.slow("another story of the drawer")
def test_an_administrator_vouches_for_a_tool_and_then_for_all_of_a_server(page: Page, house: Shopful) -> None:
    drawer = open_at(page, house, "vouched")
    for name in ("echo", "add"):
        tick(drawer, name).check()
    apply(drawer, "vouched")
    told(drawer, "vouched", "2 changes applied.")
    unknown = drawer.get_by_text("Unknown risk", exact=True)
    expect(line(drawer, "echo").get_by_text("Unknown risk", exact=True)).to_be_visible()
    many = unknown.count()
    line(drawer, "echo").get_by_text("Details").click()
    line(drawer, "echo").get_by_label("Is its risk known?").select_option("Known: L2")
    line(drawer, "echo").get_by_label("Note on vouching").fill("Only says it back.")
    apply(drawer, "vouched")
    expect(form(drawer, "vouched").locator("[data-answer]")).to_contain_text("Its risk counts as L2 instead of L5")
    looking.check(page)
    drawer.get_by_label("I understand that fewer calls will be reviewed").check()
    apply(drawer, "vouched")
    told(drawer, "vouched", "1 change applied.")
    expect(unknown).to_have_count(many - 1)
    expect(line(drawer, "echo").locator(".why .risk").first).to_have_text("L2")
    drawer.get_by_role("button", name="Apply, and vouch for 1 tool").click()
    told(drawer, "vouched", "1 change applied.")
    expect(unknown).to_have_count(many - 2)
    expect(drawer.get_by_role("button", name="and vouch for")).to_have_count(0)
    assert {name: house.catalog[name] for name in ("vouched_echo", "vouched_add")} == {
        "vouched_echo": "REQUIRED",
        "vouched_add": "REQUIRED",
    }


@pytest.mark.slow("another story of the drawer")
def test_a_tool_that_changed_under_the_page_is_shown_as_it_is_now_and_chosen_again(page: Page, house: Shopful) -> None:
    drawer = open_at(page, house, "shop")
    # The look at the plan that follows a choice must not be the one that finds the change.
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        tick(drawer, "echo", "shop").check()
    told(drawer, "shop", "1 change, not saved.")
    house.shop.offer(echo="Say it to the whole town.", other="Say something else.")
    assert house.alice.post("/servers/s/shop/reconnect").status_code in {200, 302}
    until(lambda: "the whole town" in house.alice.get("/servers/tools/of/shop").text, "it was listed anew", seconds=30)
    apply(drawer, "shop")
    expect(drawer.get_by_role("alert")).to_contain_text("The tool has changed since you reviewed it.")
    expect(line(drawer, "echo", "shop").locator(".desc")).to_have_text("Say it to the whole town.")
    whole = line(drawer, "echo", "shop").locator('[data-problem=""]')
    expect(whole).to_contain_text("were undone")
    expect(tick(drawer, "echo", "shop")).not_to_be_checked()
    expect(form(drawer, "shop").locator("[data-send]")).to_be_disabled()
    tick(drawer, "echo", "shop").check()
    apply(drawer, "shop")
    told(drawer, "shop", "1 change applied.")
    assert "shop_echo" in house.catalog


def offered_anew(house: Shopful, description: str) -> None:
    """The shop offers “fail” with this description, and that is listed."""
    house.connect("shop")
    house.shop.offer(echo="Say it to everyone.", other="Say something else.", fail=description)
    assert house.alice.post("/servers/s/shop/reconnect").status_code in {200, 302}
    until(lambda: description in house.alice.get("/servers/tools/of/shop").text, "it was listed anew", seconds=30)


@pytest.mark.slow("another story of the drawer")
def test_a_late_answer_does_not_hide_that_changes_were_taken_back(page: Page, house: Shopful) -> None:
    offered_anew(house, "Come late.")
    drawer = open_at(page, house, "shop")
    # The check of this choice is over before the tool changes: it must not be the one that finds that.
    with page.expect_response("**/servers/tools/check/shop"):
        tick(drawer, "fail", "shop").check()
    told(drawer, "shop", "1 change, not saved.")
    offered_anew(house, "Come later.")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/servers/tools/check/shop", hold)
    # The look at another choice is on its way while one applies.
    line(drawer, "fail", "shop").locator("[data-field=hitl_mode][value=CONDITIONAL]").check(force=True)
    until(lambda: page.title() and held, "the look is on its way")
    apply(drawer, "shop")
    whole = line(drawer, "fail", "shop").locator('[data-problem=""]')
    expect(drawer.get_by_role("alert")).to_contain_text("The tool has changed since you reviewed it.")
    expect(whole).to_contain_text("were undone")
    for route in held:
        route.continue_()
    line(drawer, "fail", "shop").locator(".more > summary").click()
    expect(line(drawer, "fail", "shop").locator("pre").first).to_be_visible()
    expect(whole).to_contain_text("were undone")
    expect(tick(drawer, "fail", "shop")).not_to_be_checked()


@pytest.mark.slow("another story of the drawer")
def test_what_is_not_applied_is_kept_while_searching_and_asked_about_before_it_is_lost(
    page: Page, house: Shopful
) -> None:
    house.connect("names")
    drawer = open_at(page, house, "unsaved")
    tick(drawer, "echo", "unsaved").check()
    drawer.get_by_label("Find tools").fill("Fail.")
    expect(drawer.get_by_text("tools found on")).to_be_visible()
    expect(tick(drawer, "echo")).to_have_count(1)
    expect(tick(drawer, "echo", "unsaved")).to_be_checked()
    expect(form(drawer, "unsaved").locator("[data-send]")).to_have_text("Apply 1 change")
    drawer.get_by_label("Find tools").fill("say it back")
    expect(tick(drawer, "echo", "names")).to_be_visible()
    expect(tick(drawer, "echo", "unsaved")).to_be_checked()
    page.keyboard.press("Escape")
    expect(drawer.get_by_label("Find tools")).to_have_value("")
    page.keyboard.press("Escape")
    question = page.get_by_role("dialog", name="Close without applying?")
    expect(question).to_contain_text("1 change is not applied and would be lost.")
    looking.check(page)
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    told(drawer, "unsaved", "1 change, not saved.")
    with page.expect_event("dialog") as asked:
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.evaluate("setTimeout(() => window.location.reload())")
    assert asked.value.type == "beforeunload"
    drawer.get_by_role("button", name="Close").click()
    question.get_by_role("button", name="Discard and close").click()
    expect(drawer).to_have_count(0)
    page.reload()
    assert "unsaved_echo" not in house.catalog


@pytest.mark.slow("another story of the drawer")
def test_whoever_is_signed_out_meanwhile_is_told_and_loses_nothing(page: Page, house: Shopful, visit: Visit) -> None:
    drawer = open_at(page, house, "unsaved")
    tick(drawer, "echo", "unsaved").check()
    page.context.clear_cookies()
    visit.watch(page).expect("403|Response Status Error Code")
    apply(drawer, "unsaved")
    told(drawer, "unsaved", "You are signed out")
    told(drawer, "unsaved", "your changes are kept here")
    expect(tick(drawer, "echo", "unsaved")).to_be_checked()
    expect(form(drawer, "unsaved").locator("[data-send]")).to_be_enabled()
    page.once("dialog", lambda dialog: dialog.accept())


@pytest.mark.slow("another story of the drawer")
def test_everything_can_be_done_with_the_keyboard_on_a_narrow_screen(page: Page, house: Shopful) -> None:
    page.set_viewport_size(NARROW)
    house.connect("keys")
    page.goto(f"{house.server.url}/servers/tools")
    drawer = page.get_by_role("dialog", name="Composed tools")
    summary = drawer.locator('[data-server="keys"] > summary')
    tab_to(page, summary)
    page.keyboard.press("Enter")
    expect(tick(drawer, "add", "keys")).to_be_visible()
    tab_to(page, tick(drawer, "add", "keys"))
    page.keyboard.press("Space")
    looking.check(page)
    page.set_viewport_size(NARROW)
    tab_to(page, line(drawer, "add", "keys").get_by_role("radio", name="Ask"))
    page.keyboard.press("ArrowRight")
    expect(line(drawer, "add", "keys").get_by_role("radio", name="Policies")).to_be_checked()
    page.keyboard.press("ArrowLeft")
    # Backwards over its beginning the focus comes to its end, and never to the page behind.
    drawer.get_by_role("button", name="Close").focus()
    for _ in range(3):
        page.keyboard.press("Shift+Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    tab_to(page, form(drawer, "keys").locator("[data-send]"))
    page.keyboard.press("Enter")
    told(drawer, "keys", "1 change applied.")
    assert house.catalog["keys_add"] == "REQUIRED"


@pytest.mark.slow("another story of the drawer")
def test_what_a_hostile_server_says_is_only_ever_text(page: Page, house: Shopful, visit: Visit) -> None:
    drawer = open_at(page, house, "odd")
    odd = drawer.locator('[data-server="odd"]')
    expect(odd.locator(".tool")).to_have_count(2)
    expect(tick(drawer, "broken")).to_be_disabled()
    expect(line(drawer, "broken").locator(".why-not")).to_contain_text("Cannot be exposed.")
    expect(line(drawer, "recursive").locator(".desc").first).to_contain_text("<script>alert(1)</script>")
    line(drawer, "recursive").locator(".more > summary").click()
    expect(line(drawer, "recursive").locator(".value.long .esc")).to_have_text("U+202E U+200B")
    assert odd.locator("img, script, .tool a[href^='javascript']").count() == 0
    looking.check(page)
    assert not [url for url in visit.watch(page).requests if "evil" in url]


@pytest.mark.slow("another story of the drawer")
def test_hundreds_of_tools_are_found_and_selected(page: Page, house: Shopful) -> None:
    drawer = open_at(page, house, "hundreds")
    section = drawer.locator('[data-server="hundreds"]')
    expect(section.locator(".tool")).to_have_count(100)
    section.get_by_role("button", name="Show 100 more").click()
    expect(section.locator(".tool")).to_have_count(200)
    expect(section.locator(".tool").nth(100).locator('[data-field="exposed"]')).to_be_focused()
    # By name it would be looked for among thousands of labels.
    section.locator("[data-all]").check()
    told(drawer, "hundreds", "200 tools selected. 200 changes, not saved.")
    section.locator("[data-discard]").click()
    told(drawer, "hundreds", "No changes.")
    expect(section.locator(".tool :checked:not([type=radio])")).to_have_count(0)
    expect(section.get_by_role("button", name="Apply, and select 100 more")).to_be_visible()
    drawer.locator('[data-find] [name="find"]').fill("tool_277")
    expect(drawer.locator(".tool")).to_have_count(1)

"""An administrator makes a tool set and a preset; a conversation begins with it, is held to it, and chooses others."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit
from tests.processes import STEADY, Server, Servers
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.browser


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    started = ScriptedModel()
    yield started
    started.close()


@pytest.fixture
def server(servers: Servers, model: ScriptedModel) -> Server:
    return servers.start(**STEADY | model.environment | {"HITL_ASK_USER": "1"})


@pytest.fixture
def alice(server: Server, visit: Visit) -> Page:
    return visit(server, server.sign_in("alice"))


def box(page: Page, tool: str) -> Locator:
    """The box of a tool: its label has the risk, too."""
    return page.get_by_role("listitem").get_by_role("checkbox", name=re.compile(rf"^{tool}\b"))


def make_set(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/models/")
    page.get_by_role("main").get_by_role("link", name="Tool sets").click()
    page.get_by_role("link", name="New tool set").click()
    page.get_by_label("Name", exact=True).fill("Orders/desk")
    page.get_by_label("Filter the tools").fill("order")
    box(page, "get_order").check()
    box(page, "ask_user").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("without a slash, and not only dots.")).to_be_visible()
    looking.check(page)
    page.get_by_label("Name", exact=True).fill("Orders")
    page.get_by_label("Description").fill("To look orders up")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Orders is saved.")).to_be_visible()
    expect(page.get_by_text("1 tool · To look orders up")).to_be_visible()
    looking.check(page)


def make_preset(page: Page) -> None:
    page.get_by_role("main").get_by_role("link", name="Presets").click()
    expect(page.get_by_text("There are no presets yet.")).to_be_visible()
    page.get_by_role("link", name="New preset").click()
    page.get_by_label("Name", exact=True).fill("Order desk")
    page.get_by_label("Description").fill("Where an order is, and what is in it")
    page.get_by_label("Instructions").fill("Look an order up before you say anything about it.")
    page.get_by_label("Starter prompts").fill("Where is order 4711?\nWhat is in order 4712?")
    page.get_by_label("Tools", exact=True).select_option("Orders")
    page.get_by_label("Asks").select_option("risky")
    page.get_by_label("Published").check()
    looking.check(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Order desk is saved.")).to_be_visible()
    looking.check(page)


@pytest.mark.timeout(300)
@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.slow("another story of settings")
def test_a_preset_holds_its_conversation_to_a_set_until_its_person_chooses_others(
    alice: Page, server: Server, visit: Visit, model: ScriptedModel
) -> None:
    visit.watch(alice).expect("status of 422")
    make_set(alice, server)
    make_preset(alice)
    bob = server.sign_in("bob")
    page = visit(server, bob)
    page.goto(server.url)
    expect(page.get_by_role("radio", name="Order desk")).to_be_visible()
    looking.check(page)
    model.enqueue(calls(("cancel_order", {"order_id": "4711", "reason": "late"})), text("I cannot cancel orders here."))
    page.get_by_role("button", name="Where is order 4711?").click()
    expect(page.get_by_text("I cannot cancel orders here.", exact=True)).to_be_visible()
    expect(page.get_by_text("The assistant can use the 1 tool in “Orders”.")).to_be_visible()
    expect(page.get_by_label("This conversation asks: Also about every call above L1. Choose")).to_be_visible()
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["get_order"]
    (call,) = bob.calls(page.url.rsplit("/", 1)[-1])
    assert call["status"] == "rejected"
    looking.check(page)

    page.get_by_label("This conversation", exact=True).click()
    page.get_by_role("link", name="Instructions, tools and limits…").click()
    expect(page.get_by_label("Tools", exact=True).first).to_have_value("set/Orders")
    expect(page.get_by_label("Filter the tools")).to_be_hidden()
    page.get_by_label("Tools", exact=True).first.select_option("picked")
    page.get_by_label("Filter the tools").fill("order")
    box(page, "cancel_order").check()
    looking.check(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. Applies from the next answer.")).to_be_visible()
    page.get_by_label("Tools", exact=True).first.select_option("set/Orders")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Back to the conversation").click()

    alice.goto(f"{server.url}/presets/at/Order%20desk/remove")
    looking.check(alice)
    alice.get_by_role("button", name="Delete it").click()
    expect(alice.get_by_text("Order desk was removed.")).to_be_visible()
    alice.get_by_role("main").get_by_role("link", name="Tool sets").click()
    alice.get_by_role("link", name="Remove… Orders").click()
    looking.check(alice)
    alice.get_by_role("button", name="Remove it").click()
    page.reload()
    expect(page.get_by_text("was removed, so no tools are available.")).to_be_visible()
    looking.check(page)
    page.get_by_role("link", name="Choose tools").click()
    expect(page.get_by_label("Tools", exact=True).first).to_have_value("gone")
    page.get_by_label("Tools", exact=True).first.select_option("all")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Back to the conversation").click()
    expect(page.get_by_text("may use no tool")).to_be_hidden()


@pytest.mark.slow("a server of its own")
def test_a_preset_with_its_own_model_is_chosen_with_words_of_ones_own(
    server: Server, visit: Visit, model: ScriptedModel
) -> None:
    alice = server.sign_in("alice")
    shop = {"name": "shop", "baseUrl": model.base_url, "model": "scripted-small"}
    assert alice.post("/api/endpoints", shop).status_code == 201
    desk = {"name": "Order desk", "endpoint": "shop", "published": True}
    assert alice.post("/api/presets", desk).status_code == 201
    page = visit(server, server.sign_in("bob"))
    page.goto(server.url)
    route = page.get_by_label("Model", exact=True)
    page.get_by_role("radio", name="Order desk").check()
    expect(route).to_be_disabled()
    page.get_by_role("radio", name="No preset").check()
    expect(route).to_be_enabled()
    page.get_by_role("radio", name="Order desk").check()
    model.enqueue(text("From the desk."))
    page.get_by_label("Message").fill("Hello")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("From the desk.", exact=True)).to_be_visible()
    assert model.requests[-1]["model"] == "scripted-small"

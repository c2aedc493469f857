"""A model endpoint is added, tested and chosen in a conversation, which answers from it and says what that took."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit
from tests.processes import STEADY, Server, Servers
from tests.scripted_model import Reply, ScriptedModel, sse, status, text

pytestmark = pytest.mark.browser


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    started = ScriptedModel()
    yield started
    started.close()


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.start(**STEADY, CHAT_TITLES="0")


@pytest.fixture
def alice(server: Server, visit: Visit) -> Page:
    return visit(server, server.sign_in("alice"))


def counted(said: str) -> Reply:
    """An answer whose tokens are told."""
    parts = text(said).parts
    usage = {"prompt_tokens": 1200, "completion_tokens": 34}
    return Reply((*parts[:-1], sse({"id": "x", "choices": [], "usage": usage}), *parts[-1:]))


@pytest.mark.slow("a long story of models")
@pytest.mark.timeout(300)
def test_an_endpoint_is_added_tested_and_chosen_in_a_conversation(
    alice: Page, server: Server, visit: Visit, model: ScriptedModel
) -> None:
    visit.watch(alice).expect("status of 422")
    model.enqueue(text("ready"), counted("From the endpoint."))
    model.listed = {"data": [{"id": "scripted"}, {"id": "scripted-small"}]}
    alice.goto(f"{server.url}/servers/")
    alice.get_by_role("main").get_by_role("link", name="Models").click()
    expect(alice.get_by_text("Demo model", exact=True).first).to_be_visible()
    alice.get_by_role("link", name="Add endpoint").click()
    alice.get_by_label("Name", exact=True).fill("workshop")
    alice.get_by_label("Address", exact=True).fill(f"{model.base_url}/chat/completions")
    alice.get_by_label("Key", exact=True).fill("sk-of-the-workshop")
    alice.get_by_label("Default model", exact=True).fill("scripted")
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_text("Leave out /chat/completions: it is added.")).to_be_visible()
    looking.check(alice)
    alice.get_by_label("Address", exact=True).fill(model.base_url)
    alice.get_by_label("Key", exact=True).fill("sk-of-the-workshop")
    alice.get_by_label("Input price").fill("2")
    alice.get_by_label("Output price").fill("8")
    alice.get_by_role("button", name="Save").click()
    expect(alice.get_by_text("workshop is saved.")).to_be_visible()
    alice.get_by_role("button", name="Test").click()
    expect(alice.get_by_text("The model answered “ready” after")).to_be_visible()
    alice.get_by_role("button", name="List models").click()
    alice.get_by_label("scripted-small", exact=True).check()
    looking.check(alice)
    alice.get_by_role("button", name="Offer these").click()
    alice.get_by_role("main").get_by_role("link", name="Models").click()
    expect(alice.get_by_text("and 1 other")).to_be_visible()
    looking.check(alice)

    alice.goto(server.url)
    expect(alice.get_by_label("Model", exact=True)).to_be_visible()
    looking.check(alice)
    alice.get_by_role("button", name="New conversation").first.click()
    alice.get_by_label("Model: demo. Choose another").click()
    looking.check(alice)
    alice.get_by_role("button", name="scripted-small").click()
    expect(alice.get_by_label("Model: scripted-small. Choose another")).to_be_visible()
    alice.get_by_label("Message").fill("Where are you?")
    alice.get_by_role("button", name="Send").click()
    expect(alice.get_by_text("From the endpoint.", exact=True)).to_be_visible()
    expect(alice.get_by_role("listitem").get_by_text("1,234 tokens · 0.0027 USD")).to_be_visible()
    alice.get_by_label("This conversation", exact=True).click()
    expect(alice.locator("#used")).to_contain_text("1,234 tokens · 0.0027 USD")
    looking.check(alice)
    assert model.requests[-1]["model"] == "scripted-small"


@pytest.mark.slow("a server of its own")
@pytest.mark.timeout(300)
def test_a_summary_is_read_and_undone_and_is_still_there_after_a_reload(
    servers: Servers, visit: Visit, model: ScriptedModel
) -> None:
    server = servers.start(**STEADY, **model.environment)
    too_long = status(400, {"message": "too much", "code": "context_length_exceeded"})
    model.enqueue(text("long " * 2000), too_long, text("The person likes **tea**."), text("Tea."))
    page = visit(server, server.sign_in("bob"))
    page.goto(server.url)
    page.get_by_role("button", name="New conversation").first.click()
    for said in ("I like tea.", "What do I like?"):
        page.get_by_label("Message").fill(said)
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_text("Tea." if said.endswith("?") else "long long").first).to_be_visible()
    page.get_by_text("The summary", exact=True).click()
    expect(page.get_by_text("The person likes tea.")).to_be_visible()
    looking.check(page)
    page.get_by_role("button", name="Undo: read the messages instead").click()
    expect(page.get_by_text("This summary is not used")).to_be_visible()
    page.reload()
    expect(page.get_by_text("This summary is not used")).to_be_visible()
    page.get_by_role("button", name="Use the summary again").click()
    expect(page.get_by_text("The conversation no longer fits")).to_be_visible()
    looking.check(page)

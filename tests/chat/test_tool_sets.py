"""The pages of tool sets and presets, and choosing them where a conversation begins and on the page of what it uses."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from hitlchat.agent import conversations, endpoints, presets, tool_sets
from hitlchat.agent.models import Conversation, OwnDefaults, Preset, ToolSet
from hitlchat.agent.tool_sets import Draft
from hitlchat.gate import oversight
from tests.chat.conftest import words
from tests.conftest import MakeTool, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

USES = {"instructions": "", "temperature": "", "max_tokens": "", "max_turns": ""}
DESK = {
    "name": "Order desk",
    "description": "Orders and refunds",
    "instructions": "Look it up first.",
    "starters": "Where is order 42?\r\n\r\n Refund order 42 \r\n",
    "route": "",
    "tool_set": "Orders",
    "asks": "risky",
    "temperature": "0.2",
    "max_tokens": "",
    "max_turns": "5",
    "published": "on",
}


@pytest.fixture
def orders(alice: User, make_tool: MakeTool) -> ToolSet:
    for name in ("look", "refund"):
        make_tool(name, hitl_mode="DISABLED")
    return tool_sets.create(Draft("Orders", tools=("refund",)), signed_in(alice))


@pytest.fixture
def bobs(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


@pytest.fixture
def made(bob: User, orders: ToolSet) -> Conversation:
    return conversations.create(bob, title="A chat")


def held(made: Conversation) -> Any:
    made = Conversation.objects.get(pk=made.pk)
    return made.tool_set.name if made.tool_set else made.tools


# -- Tool sets ---------------------------------------------------------------------------------------------------------


def test_a_set_is_made_changed_and_removed_on_its_pages(admin: Client, orders: ToolSet, settings: Settings) -> None:
    settings.HITL_ASK_USER = True
    assert 'value="ask_user" checked' in admin.get("/tool-sets/new").content.decode()
    answer = admin.post("/tool-sets/new", {"name": "Büro & Co", "tools": ["look", "refund"]}, follow=True)
    assert "Büro &amp; Co is saved." in words(answer)
    assert "2 tools" in words(answer)
    page = reverse("tool-sets:one", args=["Büro & Co"])
    assert 'value="look" checked' in admin.get(page).content.decode()
    admin.post(page, {"name": "Office", "description": "Of all", "tools": ["look"]})
    found = ToolSet.objects.get(name="Office")
    assert (found.description, found.tools) == ("Of all", ["look"])
    assert "have no tools until their owners choose again" in words(admin.get("/tool-sets/at/Office/remove"))
    answer = admin.post("/tool-sets/at/Office/remove", follow=True)
    assert "Office was removed." in words(answer)
    assert admin.get("/tool-sets/at/Office").status_code == 404


def test_what_a_set_cannot_be_is_said_and_nothing_is_saved(admin: Client, orders: ToolSet) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"name": "a/b"}, "id_name_error"),
        ({"name": ""}, "id_name_error"),
        ({"tools": ["nothing"]}, "There is no tool named"),
    ]
    for sent, field in rows:
        answer = admin.post("/tool-sets/at/Orders", {"name": "Other", "tools": ["look"]} | sent)
        assert answer.status_code == 422
        assert field in answer.content.decode()
        orders.refresh_from_db()
        assert (orders.name, orders.tools) == ("Orders", ["refund"])


def test_a_tool_that_is_not_there_now_can_be_kept_or_left_out(admin: Client, orders: ToolSet) -> None:
    ToolSet.objects.update(tools=["gone", "refund"])
    assert "Not available now" in words(admin.get("/tool-sets/at/Orders"))
    assert admin.post("/tool-sets/at/Orders", {"name": "Orders", "tools": ["gone"]}).status_code == 302
    assert ToolSet.objects.get().tools == ["gone"]


def test_new_conversations_begin_with_the_one_that_is_chosen(admin: Client, orders: ToolSet) -> None:
    answer = admin.post("/tool-sets/begin", {"name": "Orders"}, follow=True)
    assert "New conversations use it from now on." in words(answer)
    assert tool_sets.default() == orders
    answer = admin.post("/tool-sets/at/Orders/remove")
    assert (answer.status_code, "Choose another default first" in words(answer)) == (422, True)
    admin.post("/tool-sets/begin", {"name": ""})
    assert tool_sets.default() is None


def test_the_pages_are_for_administrators(bobs: Client, orders: ToolSet) -> None:
    for path in ["tool-sets/", "tool-sets/new", "tool-sets/at/Orders", "presets/", "presets/new"]:
        assert bobs.get(f"/{path}").status_code == 403


# -- The page of what a conversation uses ------------------------------------------------------------------------------


def test_all_tools_a_set_or_tools_picked_one_by_one_are_chosen(
    bobs: Client, bob: User, made: Conversation, orders: ToolSet
) -> None:
    page = f"/chat/{made.pk}/uses"
    for which, tools, found in (
        ("set/Orders", ["look"], "Orders"),
        ("picked", ["look", "refund"], ["look", "refund"]),
        ("", [], ["look", "refund"]),
        ("picked", [], []),
        ("all", ["look"], None),
    ):
        assert bobs.post(page, USES | {"which": which, "tools": tools}).status_code == 302
        assert held(made) == found
    assert OwnDefaults.objects.filter(person=bob).first() is None
    bobs.post(page, USES | {"which": "set/Orders", "begin_so": "on"})
    assert held(conversations.create(bob)) == "Orders"
    bobs.post(page, USES | {"which": "all", "begin_so": "on"})
    assert held(conversations.create(bob)) is None


def test_tools_that_cannot_be_chosen_are_said_and_nothing_is_saved(bobs: Client, made: Conversation) -> None:
    rows: list[dict[str, Any]] = [
        {"which": "set/Nothing"},
        {"which": "some"},
        {"which": "picked", "tools": ["nothing"]},
        {"which": "gone"},
    ]
    for sent in rows:
        answer = bobs.post(f"/chat/{made.pk}/uses", USES | {"instructions": "Other", **sent})
        assert answer.status_code == 422
        assert 'id="id_which_error"' in answer.content.decode()
        made.refresh_from_db()
        assert (held(made), made.instructions) == (None, "")


def test_a_set_that_was_removed_is_said_on_both_pages_and_stays_until_another_is_chosen(
    bobs: Client, alice: User, made: Conversation, orders: ToolSet
) -> None:
    conversations.change(made, tool_set="Orders")
    assert "The assistant can use the 1 tool in “Orders”." in words(bobs.get(f"/chat/{made.pk}"))
    tool_sets.remove(orders.pk, signed_in(alice))
    assert "tool set “Orders” was removed" in words(bobs.get(f"/chat/{made.pk}"))
    assert "Orders (removed)" in words(bobs.get(f"/chat/{made.pk}/uses"))
    assert bobs.post(f"/chat/{made.pk}/uses", USES | {"which": "gone"}).status_code == 302
    assert held(made) == "Orders"


def test_what_it_asks_about_is_offered_from_what_its_preset_has(
    bobs: Client, admin: Client, bob: User, orders: ToolSet
) -> None:
    admin.post("/presets/new", DESK)
    made = conversations.create(bob, preset=presets.named("Order desk"))
    for page in (f"/chat/{made.pk}", f"/chat/{made.pk}/uses"):
        found = bobs.get(page).content.decode()
        assert ('value="every"' in found, 'value="tools"' in found) == (True, False)
    assert "This conversation started with the preset “Order desk”" in words(bobs.get(f"/chat/{made.pk}/uses"))
    answer = bobs.post(f"/chat/{made.pk}/change", {"asks": "tools"}, follow=True)
    assert "The preset of this conversation asks at least “risky”." in words(answer)
    assert bobs.post(f"/chat/{made.pk}/uses", USES | {"asks": "tools"}).status_code == 422
    assert oversight.strictness_of(made.pk) == "risky"


# -- Presets -----------------------------------------------------------------------------------------------------------


def test_a_preset_is_made_changed_and_deleted_on_its_pages(admin: Client, alice: User, orders: ToolSet) -> None:
    endpoints.create(endpoints.Draft("shop", base_url="https://models.example/v1", model="large"), signed_in(alice))
    answer = admin.post("/presets/new", DESK | {"route": "shop/large"}, follow=True)
    assert "Order desk is saved." in words(answer)
    row = presets.named("Order desk")
    found = presets.draft_of(row)
    assert (found.endpoint, found.model, found.tool_set, found.asks) == ("shop", "large", "Orders", "risky")
    assert found.starters == ("Where is order 42?", "Refund order 42")
    assert (found.temperature, found.max_tokens, found.max_turns, found.published) == (0.2, None, 5, True)
    page = reverse("presets:one", args=["Order desk"])
    shown = admin.get(page).content.decode()
    assert '<option value="shop/large" selected>' in shown
    assert '<option value="Orders" selected>' in shown
    admin.post(page, DESK | {"published": "", "route": "", "tool_set": ""})
    changed = presets.draft_of(Preset.objects.get())
    assert (changed.endpoint, changed.model, changed.tool_set, changed.published) == (None, "", None, False)
    assert "Not published" in words(admin.get("/presets/"))
    assert "stay as they are" in words(admin.get(f"{page}/remove"))
    assert "Order desk was removed." in words(admin.post(f"{page}/remove", follow=True))


def test_what_a_preset_cannot_be_is_said_at_its_field(admin: Client, orders: ToolSet) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"name": "a/b"}, "name"),
        ({"starters": "x\n" * 7}, "starters"),
        ({"route": "nothing/x"}, "route"),
        ({"tool_set": "Nothing"}, "tool_set"),
        ({"asks": "never"}, "asks"),
        ({"temperature": "3"}, "temperature"),
        ({"max_turns": "many"}, "max_turns"),
        ({"instructions": "x" * 10_001}, "instructions"),
    ]
    for sent, field in rows:
        answer = admin.post("/presets/new", DESK | sent)
        assert answer.status_code == 422
        assert f'id="id_{field}_error"' in answer.content.decode()
        assert not Preset.objects.exists()


def test_published_presets_are_cards_where_a_conversation_begins(
    admin: Client, bobs: Client, bob: User, orders: ToolSet
) -> None:
    assert "Start with" not in words(bobs.get("/"))
    admin.post("/presets/new", DESK)
    admin.post("/presets/new", {"name": "Draft", "asks": "tools"})
    shown = words(bobs.get("/"))
    assert ("Order desk" in shown, "Where is order 42?" in shown, "Draft" in shown) == (True, True, False)
    bobs.post("/chat/new", {"preset": "Order desk", "content": ""})
    made = Conversation.objects.get(owner=bob)
    assert (made.preset, made.instructions, held(made), oversight.strictness_of(made.pk)) == (
        *("Order desk", "Look it up first.", "Orders", "risky"),
    )
    answer = bobs.post("/chat/new", {"preset": "Draft", "content": "Do it"}, follow=True)
    assert "There is no published preset with this name. Your text was: Do it" in words(answer)
    assert Conversation.objects.count() == 1


def test_the_model_of_a_preset_goes_before_the_one_that_the_page_sends_along(
    admin: Client, bobs: Client, alice: User, bob: User, orders: ToolSet
) -> None:
    endpoints.create(endpoints.Draft("shop", base_url="https://models.example/v1", model="large"), signed_in(alice))
    admin.post("/presets/new", DESK | {"route": "shop/large"})
    admin.post("/presets/new", DESK | {"name": "Plain"})
    asked = []
    for preset in ("Order desk", "Plain"):
        bobs.post("/chat/new", {"preset": preset, "route": "environment/demo"})
        made = Conversation.objects.filter(owner=bob).latest("created_at")
        asked.append(made.endpoint.name if made.endpoint else None)
    assert asked == ["shop", None]


def test_a_conversation_to_which_files_were_sent_ahead_begins_with_the_preset(
    admin: Client, bobs: Client, bob: User, orders: ToolSet
) -> None:
    admin.post("/presets/new", DESK)
    made = conversations.create(bob)
    bobs.post("/chat/new", {"conversation": str(made.pk), "preset": "Order desk"})
    assert (held(made), oversight.strictness_of(made.pk)) == ("Orders", "risky")

"""Drafts of policies on the pages of the lab, and what publishing one does to tools of each source."""

import html
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from hitlchat.gate import decide, lab, tools
from hitlchat.gate.models import PolicyDraft, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams.models import ToolEvent
from tests.agent.cast import agent
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask
from tests.upstreams.shops import expose, listing, somewhere, take_in
from tools_studio.models import ScriptVersion

pytestmark = pytest.mark.django_db


def test_a_draft_sets_tools_of_every_source_as_their_own_pages_do(alice: User, make_tool: MakeTool) -> None:
    make_tool("echo")
    agent(alice, "helper", hitl_mode="REQUIRED")
    shop = somewhere(alice)
    take_in(shop, listing(echo="Say it back."))
    expose(alice, shop, alias="shop_echo")
    never = {"hitlMode": "CONDITIONAL", "condition": 'caller["kind"] == "mcp"'}
    names = ("echo", "helper", "shop_echo")
    draft = lab.keep({"tools": dict.fromkeys(names, never)}, signed_in(alice), name="All three")
    lab.publish(draft.pk, signed_in(alice), "So.", confirmed=True)
    assert {tool.hitl_mode for tool in Tool.objects.filter(name__in=names)} == {"CONDITIONAL"}
    assert {tool.condition for tool in Tool.objects.filter(name__in=names)} == {never["condition"]}
    saved = ScriptVersion.objects.filter(script__tool__name="echo").latest("number")
    assert (saved.number, saved.draft["hitlMode"], Tool.objects.get(name="echo").published) == (2, "CONDITIONAL", True)
    configured = ToolEvent.objects.filter(name="tool.configured").latest("pk")
    assert (configured.actor, configured.data["after"]["condition"]) == (alice, never["condition"])
    assert lab.outdated(draft), "it is in force now"


def test_what_a_source_refuses_is_said_of_its_tool_and_field(alice: User, make_tool: MakeTool) -> None:
    make_tool("echo")
    shop = somewhere(alice)
    take_in(shop, listing(echo="Say it back."))
    expose(alice, shop, alias="shop_echo")
    for name in ("echo", "shop_echo"):
        given = {"tools": {name: {"hitlMode": "CONDITIONAL", "condition": "1"}}}
        draft = lab.keep(given, signed_in(alice), name=name)
        with pytest.raises(lab.CannotPublish) as caught:
            lab.publish(draft.pk, signed_in(alice), "So.", confirmed=True)
        assert [*caught.value.errors] == [f"tools.{name}.condition"]
        assert Tool.objects.get(name=name).hitl_mode == "REQUIRED"


GIVEN: dict[str, Any] = {
    "tools": {"echo": {"hitlMode": "CONDITIONAL", "condition": 'args["text"] == "big"'}},
}


@pytest.fixture
def page(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def declined(bob: User, make_tool: MakeTool) -> list[ToolCall]:
    """Calls that bob declined, each for its text, of a tool that asked every time."""
    tool = make_tool("echo")
    calls = [ask(bob, tool, {"text": text}) for text in ("small <b>", "big")]
    for call in calls:
        decide.decline(approval_of(call).pk, signed_in(bob))
    return calls


def keep(alice: User, given: Any = GIVEN, name: str = "Big ones", **words: str) -> str:
    return f"/policies/lab/{lab.keep(given, signed_in(alice), name=name, **words).pk}"


def text(response: Any, status: int = 200) -> str:
    found: str = response.content.decode()
    assert response.status_code == status, found
    return html.unescape(found)


def replayed(page: Client, **fields: str) -> str:
    usual = {"tool": "echo", "mode": "CONDITIONAL", "condition": 'args["text"] == "big"', "days": "30"}
    return text(page.post("/policies/lab", usual | fields))


def test_a_replayed_draft_is_kept_from_its_page_and_listed(declined: list[ToolCall], alice: User, page: Client) -> None:
    assert "No drafts yet" in text(page.get("/policies/lab"))
    shown = replayed(page)
    sent = re.search(r'name="draft" value="(.*?)" id', shown)
    assert sent
    assert json.loads(sent[1]) == GIVEN
    fields = {"draft": sent[1], "name": "Big <ones>", "purpose": "Fewer questions."}
    assert text(page.post("/policies/lab/drafts", fields | {"name": " "}), 422).count("This field is required") == 1
    answer = page.post("/policies/lab/drafts", fields, follow=True)
    assert "Kept by alice" in text(answer)
    draft = PolicyDraft.objects.get()
    assert (draft.body, draft.purpose) == (GIVEN, "Fewer questions.")
    assert "Big <ones>" in text(page.get("/policies/lab"))
    assert b"Big &lt;ones&gt;" in page.get("/policies/lab").content
    taken = text(page.post("/policies/lab/drafts", fields), 422)
    assert "There is already a draft with this name." in taken
    assert '"big"</textarea>' in taken, "what was tried is still there"


def test_a_kept_draft_is_opened_again_in_the_fields_or_as_json(
    declined: list[ToolCall], alice: User, page: Client, make_tool: MakeTool
) -> None:
    make_tool("another")
    simple = keep(alice).rpartition("/")[2]
    shown = text(page.get(f"/policies/lab?draft={simple}"))
    assert '<option value="echo" selected>' in shown
    assert '"big"</textarea>' in shown
    whole = {"tools": GIVEN["tools"] | {"another": {"rules": {"decidedBy": "approvers"}}}}
    shown = text(page.get(f"/policies/lab?draft={keep(alice, whole, 'Two').rpartition('/')[2]}"))
    assert '"decidedBy": "approvers"' in shown
    found = replayed(page, draft=json.dumps(whole))
    assert "1 declined call would have run." in found
    assert text(page.get("/policies/lab?draft=nonsense"))


def test_a_whole_draft_that_cannot_be_read_is_said_at_its_field(declined: list[ToolCall], page: Client) -> None:
    for wrong, words in (
        ("{", "Expecting property name"),
        ('{"tools": {"gone": {}}}', "tools.gone: There is no tool named 'gone'."),
    ):
        shown = text(page.post("/policies/lab", {"tool": "echo", "mode": "REQUIRED", "days": "7", "draft": wrong}), 422)
        assert words in shown.partition('id="draft-error"')[2].partition("</p>")[0]


def test_two_drafts_are_compared_with_the_declined_ones_first(
    declined: list[ToolCall], alice: User, page: Client
) -> None:
    path, never = keep(alice), keep(alice, {"tools": {"echo": {"hitlMode": "DISABLED"}}}, "Never")
    for headers in ({}, {"HX-Request": "true"}):
        other = {"other": never.rpartition("/")[2], "days": "30"}
        shown = text(page.post(f"{path}/compare", other, headers=headers))
        assert ("<html" in shown) != bool(headers)
        assert shown.index("1 declined call would have run.") < shown.index("Minutes saved")
        assert '<td class="num bad">1</td><td class="num bad">2</td>' in shown
        assert "They differ on 1 call" in shown
        assert f"/history/{declined[1].pk}" in shown.partition("They differ on")[2]
    in_force = text(page.post(f"{path}/compare", {"other": "", "days": "30"}))
    assert '<td class="num bad">1</td><td class="num">0</td>' in in_force
    assert "Ensure this value is greater" in text(page.post(f"{path}/compare", {"days": "0"}), 422)


def test_a_draft_is_published_with_a_reason_once_what_it_loosens_is_confirmed(
    declined: list[ToolCall], alice: User, bob: User, page: Client
) -> None:
    path = keep(alice)
    shown = text(page.get(path))
    assert "Ask every time" in shown
    assert "confirm_lowering" not in shown
    assert "This field is required" in text(page.post(f"{path}/publish", {"why": ""}), 422)
    loosens = text(page.post(f"{path}/publish", {"why": "So <it> is."}), 422)
    assert "<code>echo</code> “Ask every time” becomes “Policies decide”" in loosens
    assert Tool.objects.get(name="echo").hitl_mode == "REQUIRED"
    confirmed = {"why": "So <it> is.", "confirm_lowering": "on"}
    assert "It is in force from now on." in text(page.post(f"{path}/publish", confirmed, follow=True))
    assert b"So &lt;it&gt; is." in page.get(path).content
    assert ask(bob, Tool.objects.get(name="echo"), {"text": "small"}).status == Status.ALLOWED
    again = text(page.post(f"{path}/publish", confirmed), 409)
    assert "Publish draft" not in again


def test_a_draft_whose_tool_has_changed_says_so_and_is_not_published(
    declined: list[ToolCall], alice: User, page: Client
) -> None:
    path = keep(alice)
    tools.change(Tool.objects.get(name="echo").pk, {"condition": "True"}, signed_in(alice))
    shown = text(page.get(path))
    assert "<code>tools.echo.condition</code> Since the draft was made" in shown
    assert "Publish draft" not in shown
    text(page.post(f"{path}/publish", {"why": "So.", "confirm_lowering": "on"}), 409)
    assert Tool.objects.get(name="echo").hitl_mode == "REQUIRED"


def test_a_draft_with_policies_shows_the_line_for_the_settings_in_place_of_a_button(
    declined: list[ToolCall], alice: User, page: Client
) -> None:
    path = keep(alice, GIVEN | {"policies": [{"policy": "never_ask", "tools": ["*"]}]})
    shown = text(page.get(path))
    assert """HITL_POLICIES='[{"policy": "never_ask", "tools": ["*"]}]'""" in shown
    assert "Publish draft" not in shown
    text(page.post(f"{path}/publish", {"why": "So.", "confirm_lowering": "on"}), 409)


def test_a_draft_is_deleted(declined: list[ToolCall], alice: User, page: Client) -> None:
    path = keep(alice)
    assert "No drafts yet" in text(page.post(f"{path}/delete", follow=True))
    text(page.get(path), 404)


def test_a_draft_whose_tool_and_group_are_gone_is_still_shown(alice: User, page: Client, make_tool: MakeTool) -> None:
    group = Group.objects.create(name="finance")
    rules = {"decidedBy": "group", "group": "finance"}
    alice.groups.add(group)
    path = keep(alice, {"tools": {make_tool("echo").name: {"rules": rules}}})
    group.delete()
    assert "There is no group with this name." in text(page.get(path))
    tools.remove([Tool.objects.get(name="echo")], signed_in(alice))
    assert "This tool was deleted since the draft was made." in text(page.get(path))
    assert "There is no tool named 'echo'." in text(page.post(f"{path}/compare", {"days": "7"}), 422)

"""Drafts of policies on the pages of the lab, and what publishing one does to tools of each source."""

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import lab
from hitlchat.gate.models import Tool
from hitlchat.upstreams.models import ToolEvent
from tests.agent.cast import agent
from tests.conftest import MakeTool, signed_in
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

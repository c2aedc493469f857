"""Presets and tool sets: kept by administrators, chosen for conversations."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import Field

from hitlchat.accounts.roles import may_administer
from hitlchat.agent import models as agent
from hitlchat.agent import presets, tool_sets
from hitlchat.api.auth import ApiRequest, administrator
from hitlchat.api.contract import Body, Shape, Text, examples
from hitlchat.gate.models import Asks

router = Router(tags=["presets"], by_alias=True)
# Operation ids are given, since clients are generated with them: by default they follow the module.
tool_sets_router = Router(tags=["tool sets"], by_alias=True)
CHANGE_PRESETS, CHANGE_TOOL_SETS = "change presets", "change tool sets"


class PresetChange(Body):
    """A change: fields left out stay as they are; null and empty ones are left to who begins a conversation."""

    model_config = examples({"published": True}, {"toolSet": "Orders", "asks": "every"}) | {"use_enum_values": True}

    name: Text = Field("", description="Up to 64 characters, without a slash.")
    description: Text = Field("", description="One line of up to 300 characters, shown on the card.")
    instructions: Text = ""
    endpoint: Text | None = Field(None, description="The endpoint's name; “environment”: that of OPENAI_….")
    model: Text = Field("", description="A model that the endpoint offers; empty: the endpoint's default.")
    tool_set: Text | None = Field(None, description="By name.")
    starters: list[Text] = Field(default_factory=list, description="Up to 6 starter prompts.")
    temperature: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    asks: Asks = Field(Asks.TOOLS, strict=False, description="The least value of `asks` for its conversations.")
    published: bool = False


class NewPreset(PresetChange):
    model_config = examples(
        {
            "name": "Order desk",
            "instructions": "Look an order up before you change it.",
            "toolSet": "Orders",
            "starters": ["Where is order 42?"],
            "asks": "risky",
            "published": True,
        }
    )

    name: Text = Field(...)


class Preset(Shape):
    name: str
    description: str
    instructions: str
    endpoint: str | None
    model: str
    tool_set: str | None
    starters: list[str]
    temperature: float | None
    max_tokens: int | None
    max_turns: int | None
    asks: str
    published: bool
    created_at: datetime
    updated_at: datetime


class ToolSetChange(Body):
    """A change: fields that are left out stay as they are."""

    model_config = examples({"tools": ["find_order", "refund", "ask_user"]}, {"isDefault": True})

    name: Text = Field("", description="Up to 64 characters, without a slash.")
    description: Text = Field("", description="One line of up to 300 characters.")
    tools: list[Text] = Field(
        default_factory=list, description="Names of tools, published or not. “ask_user”: the model may ask the person."
    )
    is_default: bool = Field(default=False, description="New conversations use it; one set at a time.")


class NewToolSet(ToolSetChange):
    model_config = examples({"name": "Orders", "tools": ["find_order", "refund"]})

    name: Text = Field(...)


class ToolSet(Shape):
    name: str
    description: str
    tools: list[str]
    is_default: bool
    created_at: datetime
    updated_at: datetime


@router.get("", response=list[Preset])
def list_presets(request: ApiRequest) -> list[Preset]:
    """The published presets; for administrators, all of them."""
    return [_shape(row) for row in _seen(request)]


@router.post("", response={201: Preset})
def create_preset(request: ApiRequest, body: NewPreset) -> Preset:
    """A new preset. For administrators: an `api` token may not."""
    actor = administrator(request, CHANGE_PRESETS)
    return _shape(presets.create(presets.Draft(**_fields(body)), actor))


@router.get("/{name}", response=Preset)
def read_preset(request: ApiRequest, name: str) -> Preset:
    return _shape(get_object_or_404(_seen(request), name=name))


@router.patch("/{name}", response=Preset)
def change_preset(request: ApiRequest, name: str, body: PresetChange) -> Preset:
    """Change what is sent. Conversations that began with it stay as they are."""
    actor, row = administrator(request, CHANGE_PRESETS), _named(name)
    return _shape(presets.change(row.pk, replace(presets.draft_of(row), **_fields(body)), actor))


@router.delete("/{name}", response={204: None})
def delete_preset(request: ApiRequest, name: str) -> None:
    """Delete the preset. Conversations that began with it stay as they are."""
    presets.remove(_named(name).pk, administrator(request, CHANGE_PRESETS))


def _seen(request: ApiRequest) -> QuerySet[agent.Preset]:
    return presets.rows() if may_administer(request.auth.user) else presets.published()


def _named(name: str) -> agent.Preset:
    return get_object_or_404(presets.rows(), name=name)


def _fields(body: PresetChange) -> dict[str, Any]:
    """Return a body's fields as a draft has them."""
    given = body.given()
    # Another endpoint is asked for its usual model.
    return {"model": ""} | given if "endpoint" in given else given


def _shape(row: agent.Preset) -> Preset:
    return Preset.of(row, **asdict(presets.draft_of(row)))


@tool_sets_router.get("", response=list[ToolSet], operation_id="hitlchat_api_tool_sets_list_tool_sets")
def list_tool_sets(request: ApiRequest) -> list[ToolSet]:
    """The tool sets that conversations may choose."""
    return [_tool_set(row) for row in tool_sets.rows()]


@tool_sets_router.post("", response={201: ToolSet}, operation_id="hitlchat_api_tool_sets_create_tool_set")
def create_tool_set(request: ApiRequest, body: NewToolSet) -> ToolSet:
    """A new tool set, which conversations may choose at once. For administrators: an `api` token may not."""
    actor = administrator(request, CHANGE_TOOL_SETS)
    return _tool_set(tool_sets.create(tool_sets.Draft(**body.given("is_default")), actor, begins=body.is_default))


@tool_sets_router.get("/{name}", response=ToolSet, operation_id="hitlchat_api_tool_sets_read_tool_set")
def read_tool_set(request: ApiRequest, name: str) -> ToolSet:
    return _tool_set(_tool_set_named(name))


@tool_sets_router.patch("/{name}", response=ToolSet, operation_id="hitlchat_api_tool_sets_change_tool_set")
def change_tool_set(request: ApiRequest, name: str, body: ToolSetChange) -> ToolSet:
    """Change what is sent, for all conversations that are held to it. What has not started and is out is withdrawn."""
    actor, row = administrator(request, CHANGE_TOOL_SETS), _tool_set_named(name)
    given = body.given()
    begins = given.pop("is_default", None)
    changed = tool_sets.change(row.pk, replace(tool_sets.draft_of(row), **given), actor)
    if begins is not None and begins != changed.is_default:
        tool_sets.begin_with(changed.pk if begins else None, actor)
    return _tool_set(tool_sets.rows().get(pk=row.pk))


@tool_sets_router.delete("/{name}", response={204: None}, operation_id="hitlchat_api_tool_sets_delete_tool_set")
def delete_tool_set(request: ApiRequest, name: str) -> None:
    """Remove the set: conversations held to it may use no tool until their people choose again.

    409 for the default one, and for one that a preset has.
    """
    tool_sets.remove(_tool_set_named(name).pk, administrator(request, CHANGE_TOOL_SETS))


def _tool_set_named(name: str) -> agent.ToolSet:
    return get_object_or_404(tool_sets.rows(), name=name)


def _tool_set(row: agent.ToolSet) -> ToolSet:
    return ToolSet.of(row, **asdict(tool_sets.draft_of(row)))

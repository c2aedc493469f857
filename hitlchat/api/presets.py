"""Presets: kept by administrators, chosen when a conversation begins."""

from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import Field

from hitlchat.accounts.roles import may_administer
from hitlchat.agent import models as agent
from hitlchat.agent import presets
from hitlchat.agent.presets import Draft
from hitlchat.api.auth import ApiRequest, administrator
from hitlchat.api.contract import Body, Shape, Text, examples
from hitlchat.gate.models import Asks


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


router = Router(tags=["presets"], by_alias=True)
_administrator = partial(administrator, to="change presets")


@router.get("", response=list[Preset])
def list_presets(request: ApiRequest) -> list[Preset]:
    """The published presets; for administrators, all of them."""
    return [_shape(row) for row in _seen(request)]


@router.post("", response={201: Preset})
def create_preset(request: ApiRequest, body: NewPreset) -> Preset:
    """A new preset. For administrators: an `api` token may not."""
    actor = _administrator(request)
    return _shape(presets.create(Draft(**_fields(body)), actor))


@router.get("/{name}", response=Preset)
def read_preset(request: ApiRequest, name: str) -> Preset:
    return _shape(get_object_or_404(_seen(request), name=name))


@router.patch("/{name}", response=Preset)
def change_preset(request: ApiRequest, name: str, body: PresetChange) -> Preset:
    """Change what is sent. Conversations that began with it stay as they are."""
    actor, row = _administrator(request), _named(name)
    return _shape(presets.change(row.pk, replace(presets.draft_of(row), **_fields(body)), actor))


@router.delete("/{name}", response={204: None})
def delete_preset(request: ApiRequest, name: str) -> None:
    """Delete the preset. Conversations that began with it stay as they are."""
    presets.remove(_named(name).pk, _administrator(request))


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

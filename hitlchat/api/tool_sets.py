"""Tool sets: kept by administrators, chosen in conversations."""

from dataclasses import asdict, replace
from datetime import datetime
from functools import partial

from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import Field

from hitlchat.agent import models as agent
from hitlchat.agent import tool_sets
from hitlchat.agent.tool_sets import Draft
from hitlchat.api.auth import ApiRequest, administrator
from hitlchat.api.contract import Body, Shape, Text, examples


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


router = Router(tags=["tool sets"], by_alias=True)
_administrator = partial(administrator, to="change tool sets")


@router.get("", response=list[ToolSet])
def list_tool_sets(request: ApiRequest) -> list[ToolSet]:
    """The tool sets that conversations may choose."""
    return [_shape(row) for row in tool_sets.rows()]


@router.post("", response={201: ToolSet})
def create_tool_set(request: ApiRequest, body: NewToolSet) -> ToolSet:
    """A new tool set, which conversations may choose at once. For administrators: an `api` token may not."""
    actor = _administrator(request)
    return _shape(tool_sets.create(Draft(**body.given("is_default")), actor, begins=body.is_default))


@router.get("/{name}", response=ToolSet)
def read_tool_set(request: ApiRequest, name: str) -> ToolSet:
    return _shape(_named(name))


@router.patch("/{name}", response=ToolSet)
def change_tool_set(request: ApiRequest, name: str, body: ToolSetChange) -> ToolSet:
    """Change what is sent, for all conversations that are held to it. What has not started and is out is withdrawn."""
    actor, row = _administrator(request), _named(name)
    given = body.given()
    begins = given.pop("is_default", None)
    changed = tool_sets.change(row.pk, replace(tool_sets.draft_of(row), **given), actor)
    if begins is not None and begins != changed.is_default:
        tool_sets.begin_with(changed.pk if begins else None, actor)
    return _shape(tool_sets.rows().get(pk=row.pk))


@router.delete("/{name}", response={204: None})
def delete_tool_set(request: ApiRequest, name: str) -> None:
    """Remove the set: conversations held to it may use no tool until their people choose again.

    409 for the default one, and for one that a preset has.
    """
    tool_sets.remove(_named(name).pk, _administrator(request))


def _named(name: str) -> agent.ToolSet:
    return get_object_or_404(tool_sets.rows(), name=name)


def _shape(row: agent.ToolSet) -> ToolSet:
    return ToolSet.of(row, **asdict(tool_sets.draft_of(row)))

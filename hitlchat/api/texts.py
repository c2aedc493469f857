"""Texts: what models read about calls that were declined, edited, late or refused, in an administrator's words."""

from functools import partial

from django.shortcuts import get_object_or_404
from ninja import Router
from ninja.errors import AuthorizationError
from pydantic import Field

from hitlchat.api.auth import ApiRequest, administrator, only_after
from hitlchat.api.contract import Body, Shape, Text
from hitlchat.gate import results
from hitlchat.gate.models import Tool
from hitlchat.gate.results import TextField

router = Router(tags=["texts"], by_alias=True)
router.add_decorator(only_after(partial(administrator, to="see and change the texts for models")))


class ModelText(Shape):
    outcome: str
    text: str = Field(description="The template; empty: `instead` applies.")
    instead: str = Field(description="The text used if there is no template.")
    placeholders: list[str]
    example: str = Field(description="What a model would read about a made-up call.")


class TextChanges(Body):
    """One that is left out stays as it is; null or empty takes it away."""

    declined: Text | None = None
    feedback: Text | None = Field(default=None, description="Added if a call was declined with a reason.")
    edited: Text | None = None
    expired: Text | None = None
    refused: Text | None = None
    confirm_lowering: bool = Field(default=False, description="Confirms that models read different texts from now on.")


@router.get("/texts", response=list[ModelText])
def read_texts(request: ApiRequest) -> list[TextField]:
    """Return those for all tools."""
    return results.fields(None)


@router.put("/texts", response=list[ModelText])
def change_texts(request: ApiRequest, body: TextChanges) -> list[TextField]:
    """All of them or none. Only a person's session or a token of kind “approver” may.

    409: models would read other words (`confirmLowering`).
    """
    return _change(request, None, body)


@router.get("/tools/{name}/texts", response=list[ModelText])
def read_tool_texts(request: ApiRequest, name: str) -> list[TextField]:
    """The tool's own, which count before those for all."""
    return results.fields(get_object_or_404(Tool, name=name))


@router.put("/tools/{name}/texts", response=list[ModelText])
def change_tool_texts(request: ApiRequest, name: str, body: TextChanges) -> list[TextField]:
    """Change the texts of one tool, as those of all tools."""
    return _change(request, get_object_or_404(Tool, name=name), body)


def _change(request: ApiRequest, tool: Tool | None, body: TextChanges) -> list[TextField]:
    actor = request.auth.actor
    if not actor.is_person:
        raise AuthorizationError(message="Only a person may change these texts: sign in, or use an approver token.")
    results.save(tool, body.given("confirm_lowering"), actor, confirmed=body.confirm_lowering)
    return results.fields(tool)

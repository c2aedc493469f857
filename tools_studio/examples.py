"""The arguments kept with a tool to try it with."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Q

from hitlchat.gate import schema, tools
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool
from tools_studio.language import signature
from tools_studio.language.snippet import SignatureError


def keep(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Make `arguments` the tool's example, unless it was saved anew meanwhile.

    That is no version of its own: an example changes nothing of what the tool does, and what was tested stays tested.
    """
    same = Q(definition_hash=tool.definition_hash)
    tools.change(tool.pk, {"example": dict(arguments)}, SYSTEM, only_if=same)


def fitting(example: dict[str, Any] | None, code: str) -> dict[str, Any] | None:
    """`example` if the signature in `code` still takes it."""
    if example is None:
        return None
    try:
        schema.validate(signature.read(code).input_schema, example)
    except (SignatureError, schema.BadArguments, schema.BadSchema):
        return None
    return example

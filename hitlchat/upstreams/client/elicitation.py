"""Elicitation, as MCP calls it: what a server may ask a person in the middle of a call, and what is answered."""

import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

import mcp_types as types

from hitlchat.upstreams.client.spec import Masking

LARGEST = 64 * 1024
LONGEST_MESSAGE = 2000

Action = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True)
class Question:
    """`server` asks for what `schema` describes (a flat JSON object), or, where `url` is set, to open that address.

    Everything but `server` was written by the upstream server, and is as trustworthy as it is.
    """

    server: str
    message: str
    schema: dict[str, Any] = field(default_factory=dict)
    url: str = ""


@dataclass(frozen=True)
class Reply:
    """`content` goes with `accept` only."""

    action: Action
    content: dict[str, str | int | float | bool | list[str] | None] = field(default_factory=dict)

    def as_result(self) -> types.ElicitResult:
        return types.ElicitResult(action=self.action, content=self.content if self.action == "accept" else None)


OnQuestion = Callable[[Question], Coroutine[Any, Any, Reply]]
# Told why, when a question was declined without anybody having been asked.
OnDeclined = Callable[[str], None]


def unasked() -> Reply:
    """Answer for hitlchat, which asks nobody. A server is never told that its user declined when nobody did."""
    return Reply("cancel")


def question(server: str, params: types.ElicitRequestParams, mask: Masking) -> Question:
    """Return the question; an address with a secret in it is none any more. Raises: ValueError, if it is too large."""
    asked: Any = params.url if isinstance(params, types.ElicitRequestURLParams) else dict(params.requested_schema)
    size = len(json.dumps([params.message, asked]))
    if size > LARGEST:
        raise ValueError(f"it is larger than the {LARGEST:,} bytes that a question may have")
    message = mask.text(params.message)[:LONGEST_MESSAGE]
    if isinstance(params, types.ElicitRequestURLParams):
        return Question(server, message, url=mask.text(params.url))
    return Question(server, message, schema=mask.value(asked))

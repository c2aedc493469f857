"""What a session is in the middle of, and what came of it: calls, and questions that the client's user is asked."""

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeGuard
from uuid import UUID

import mcp_types as types

from hitlchat.gate import contents
from hitlchat.mcp_server.inspector.recording import cut, shown
from hitlchat.mcp_server.outcomes import CALL


class State(StrEnum):
    GOING = "going"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass
class Call:
    """One tools/call. `born` and `changed` are numbers of the recording; `error`: why there is no result.
    `call_id`: of the call on record, once the result has named it; `pictures`: its attachments that a page may show, by
    their digests."""

    number: int
    tool: str
    arguments: str
    at: datetime
    born: int
    changed: int
    state: State = State.GOING
    milliseconds: float = 0.0
    progress: str = ""
    share: float | None = None
    content: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    structured: str = ""
    meta: str = ""
    call_id: UUID | None = None
    is_error: bool = False
    error: str = ""
    task: asyncio.Task[None] | None = None

    def take(self, result: types.CallToolResult) -> None:
        self.state, self.is_error = State.DONE, bool(result.is_error)
        self.content = [_block(block) for block in result.content]
        self.pictures = [_digest(block.data) for block in result.content if _is_picture(block)]
        self.structured = "" if result.structured_content is None else shown(result.structured_content)
        self.meta = shown(result.meta) if result.meta else ""
        self.call_id = _id((result.meta or {}).get(CALL))


@dataclass
class Question:
    """An elicitation that waits for its answer. `address`: of the page that its user is sent to; empty for a form."""

    number: int
    call: Call | None
    at: datetime
    message: str
    schema: str
    address: str
    reply: "asyncio.Future[str]"

    @classmethod
    def of(cls, params: types.ElicitRequestParams, number: int, call: Call | None, at: datetime) -> "Question":
        return cls(
            number=number,
            call=call,
            at=at,
            message=cut(params.message),
            schema=shown(params.requested_schema) if isinstance(params, types.ElicitRequestFormParams) else "",
            address=params.url if isinstance(params, types.ElicitRequestURLParams) else "",
            reply=asyncio.get_running_loop().create_future(),
        )


def _id(said: Any) -> UUID | None:
    try:
        return UUID(said) if isinstance(said, str) else None
    except ValueError:
        return None


def _block(block: types.ContentBlock) -> str:
    if isinstance(block, types.TextContent):
        return cut(block.text)
    plain = block.model_dump(by_alias=True, mode="json", exclude_none=True)
    for holder, name in ((plain, "data"), (plain.get("resource", {}), "blob")):
        if name in holder:
            holder[name] = f"… {len(holder[name]):,} characters of Base64"
    return shown(plain)


def _is_picture(block: types.ContentBlock) -> TypeGuard[types.ImageContent]:
    return isinstance(block, types.ImageContent) and block.mime_type in contents.PICTURES


def _digest(packed: str) -> str:
    return contents.digest(base64.b64decode(packed))

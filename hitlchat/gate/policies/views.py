"""What a rule is told about a call: plain values, none of which can change anything."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class CallView:
    """`arguments` are those that would run, with defaults, as a copy. `caller_kind`: chat, studio, api or mcp."""

    tool_name: str
    arguments: dict[str, Any]
    caller_kind: str
    user_id: int
    user_name: str
    groups: frozenset[str]
    conversation_id: UUID | None


@dataclass(frozen=True)
class ToolView:
    id: UUID
    name: str
    title: str
    description: str
    source: str
    origin: str
    risk_level: int
    hitl_mode: str
    definition_hash: str
    published: bool


@dataclass(frozen=True)
class Context:
    """`approved_before()` says whether this person approved the same arguments of the same tool before, signed in, and
    that call succeeded. It reads the database: asynchronous code crosses over with `sync_to_async`.

    `known_groups` are those of the groups named in rules that exist.
    """

    now: datetime
    approved_before: Callable[[], bool]
    known_groups: frozenset[str] = frozenset()

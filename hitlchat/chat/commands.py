"""What a page may send over its websocket. Frames are parsed strictly: the unexpected is refused, never guessed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from uuid import UUID

from hitlchat.agent.models import LONGEST_MESSAGE
from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.gate import decide
from hitlchat.gate.attention import claimed
from hitlchat.gate.batch import Item
from hitlchat.gate.grants import scope
from hitlchat.gate.grants.scope import BadGrant, Scope

LONGEST_FRAME = 512 * 1024
VERDICTS = ("approve", "decline")


class BadFrame(ValueError):
    """The frame is not one that a page of ours sends; the message is for the person who looks at it."""


@dataclass(frozen=True)
class Say:
    content: str


@dataclass(frozen=True)
class Decide:
    approval: UUID
    verdict: Literal["approve", "decline"]
    digest: str
    reason: str
    # JSON text, and the digest of the changed call as it was shown; None if nothing was changed.
    edited: str | None = None
    shown: str = ""
    grant: Scope | None = None
    # Whether folded text was opened, as the page claims.
    opened: bool | None = None


@dataclass(frozen=True)
class DecideAll:
    """Calls of one tool, answered together."""

    verdict: Literal["approve", "decline"]
    items: tuple[Item, ...]
    opened: bool | None = None


@dataclass(frozen=True)
class TakeBack:
    """An approval, while its call has not started."""

    call: UUID


@dataclass(frozen=True)
class RevokeGrant:
    grant: UUID


@dataclass(frozen=True)
class Stop:
    pass


@dataclass(frozen=True)
class StopCall:
    call: UUID


@dataclass(frozen=True)
class Resolve:
    call: UUID
    outcome: Literal["done", "failed", "again"]


Command = Say | Decide | DecideAll | TakeBack | RevokeGrant | Stop | StopCall | Resolve

# What says no more than which one is meant.
OF_ONE: Final[dict[str, tuple[Callable[[UUID], Command], str]]] = {
    "take-back": (TakeBack, "call"),
    "stop-call": (StopCall, "call"),
    "revoke-grant": (RevokeGrant, "grant"),
}


def parse(frame: str) -> Command:
    """The command in `frame`; BadFrame otherwise."""
    fields = _fields(frame)
    match fields.get("type"):
        case "say":
            return Say(_content(fields))
        case "decide":
            return _decide(fields)
        case "decide-all":
            return DecideAll(_one_of(fields, "verdict", VERDICTS), _items(fields), claimed(fields.get("opened")))
        case "stop":
            return Stop()
        case str(kind) if kind in OF_ONE:
            made, name = OF_ONE[kind]
            return made(_uuid(fields, name))
        case "resolve":
            return Resolve(_uuid(fields, "call"), _one_of(fields, "outcome", ("done", "failed", "again")))
        case _:
            raise BadFrame("The page sent something unknown. Reload it.")


def _decide(fields: dict[str, Any]) -> Decide:
    # Only these exact words: what is not "approve" to the letter is not a yes (SR-13).
    verdict = _one_of(fields, "verdict", VERDICTS)
    found = Decide(_uuid(fields, "approval"), verdict, _text(fields, "digest"), _reason(fields))
    found = replace(found, opened=claimed(fields.get("opened")))
    if "grant" in fields:
        return replace(found, grant=_grant(fields))
    if "edited" not in fields:
        return found
    return replace(found, edited=_text(fields, "edited"), shown=_text(fields, "shown"))


def _grant(fields: dict[str, Any]) -> Scope:
    if "edited" in fields:
        raise BadFrame("A grant is given with the call as it was asked. Nothing was decided.")
    try:
        return scope.read(_text(fields, "grant"))
    except BadGrant as error:
        raise BadFrame(f"{error} Nothing was decided.") from error


def _reason(fields: dict[str, Any]) -> str:
    try:
        return decide.checked_reason(_text(fields, "reason", ""))
    except decide.BadReason as error:
        raise BadFrame(f"{error} Nothing was decided.") from error


def _items(fields: dict[str, Any]) -> tuple[Item, ...]:
    items = fields.get("items")
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise BadFrame("The page sent no usable “items”. Nothing was decided. Reload it.")
    try:
        pairs = [item.split(":") for item in items]
        return tuple(Item(UUID(approval), digest) for approval, digest in pairs)
    except ValueError as error:
        raise BadFrame("The page sent no usable “items”. Nothing was decided. Reload it.") from error


def _fields(frame: str) -> dict[str, Any]:
    if len(frame) > LONGEST_FRAME:
        raise BadFrame("That was too long to be sent.")
    try:
        fields = canonical.loads(frame)
    except canonical.NotJson as error:
        raise BadFrame(f"The page sent something unreadable ({error}). Reload it.") from error
    if not isinstance(fields, dict):
        raise BadFrame("The page sent something unreadable. Reload it.")
    return fields


def _content(fields: dict[str, Any]) -> str:
    content = _text(fields, "content").strip()
    if not content:
        raise BadFrame("Write something first.")
    if len(content) > LONGEST_MESSAGE:
        raise BadFrame(f"The message has {len(content):,} characters; at most {LONGEST_MESSAGE:,} can be sent.")
    return content


def _text(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or value != storable(value):
        raise BadFrame(f"The page sent no usable “{name}”. Reload it.")
    return value


def _one_of(fields: dict[str, Any], name: str, words: tuple[str, ...]) -> Any:
    value = fields.get(name)
    if value not in words or not isinstance(value, str):
        raise BadFrame(f"The page sent no usable “{name}”. Nothing was decided. Reload it.")
    return value


def _uuid(fields: dict[str, Any], name: str) -> UUID:
    try:
        return UUID(_text(fields, name))
    except ValueError as error:
        raise BadFrame(f"The page sent no usable “{name}”. Reload it.") from error

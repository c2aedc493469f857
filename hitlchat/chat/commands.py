"""What a page may send over its websocket. Frames are parsed strictly: the unexpected is refused, never guessed."""

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from hitlchat.agent.models import LONGEST_MESSAGE
from hitlchat.gate import canonical
from hitlchat.gate.storable import storable

LONGEST_FRAME = 512 * 1024


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


@dataclass(frozen=True)
class Stop:
    pass


@dataclass(frozen=True)
class Resolve:
    call: UUID
    outcome: Literal["done", "failed", "again"]


Command = Say | Decide | Stop | Resolve


def parse(frame: str) -> Command:
    """The command in `frame`; BadFrame otherwise."""
    if len(frame) > LONGEST_FRAME:
        raise BadFrame("That was too long to be sent.")
    try:
        fields = canonical.loads(frame)
    except canonical.NotJson as error:
        raise BadFrame(f"The page sent something unreadable ({error}). Reload it.") from error
    if not isinstance(fields, dict):
        raise BadFrame("The page sent something unreadable. Reload it.")
    match fields.get("type"):
        case "say":
            return Say(_content(fields))
        case "decide":
            # Only these exact words: what is not "approve" to the letter is not a yes (SR-13).
            verdict = _one_of(fields, "verdict", ("approve", "decline"))
            return Decide(_uuid(fields, "approval"), verdict, _text(fields, "digest"), _text(fields, "reason", ""))
        case "stop":
            return Stop()
        case "resolve":
            return Resolve(_uuid(fields, "call"), _one_of(fields, "outcome", ("done", "failed", "again")))
        case _:
            raise BadFrame("The page sent something unknown. Reload it.")


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

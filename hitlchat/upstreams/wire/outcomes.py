"""How a call of an upstream tool can end. Only `NeverRan` may be repeated without asking anyone."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """The tool ran and answered. `content`: plain JSON objects, each with its `type`; those of images, sounds and other
    bytes name them by their SHA-256, under which they are `attachments`. `structured`: any JSON value, or None.
    `is_error`: the tool says that it failed."""

    content: list[dict[str, Any]] = field(default_factory=list)
    structured: Any = None
    is_error: bool = False
    attachments: dict[str, bytes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All texts of the content, one below the other."""
        return "\n".join(str(block["text"]) for block in self.content if "text" in block)


@dataclass(frozen=True)
class Rejected:
    """The server answered with a protocol error instead of a result."""

    code: int
    message: str


@dataclass(frozen=True)
class NeverRan:
    """The server provably never got the request, or turned it away unread. `http_status`: what it said, if it did."""

    reason: str
    http_status: int | None = None
    retry: bool = False
    """The connection was at fault, and has been given up: over a new one the call may well succeed."""


@dataclass(frozen=True)
class Unreadable:
    """An answer came, so the tool has ended, but what it said cannot be used: too large, too deep, not the protocol."""

    reason: str


@dataclass(frozen=True)
class Unknown:
    """The request was sent, and no answer came: the tool may or may not have run."""

    reason: str


Outcome = Answer | Rejected | NeverRan | Unreadable | Unknown
Trouble = NeverRan | Unreadable | Unknown

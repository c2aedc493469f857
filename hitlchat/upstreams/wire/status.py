"""What is known of one server at this moment, for pages and records."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

State = Literal["disabled", "connecting", "up", "down"]


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Status:
    """`since`: when it came into this state. `last_error` stays, secrets masked, until the server is up for good, and
    `latency_ms` is of the last exchange without work. `http_status`: 401 where the server wants someone to sign in."""

    state: State
    since: datetime = field(default_factory=now)
    last_error: str = ""
    last_error_at: datetime | None = None
    http_status: int | None = None
    latency_ms: float | None = None
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    tool_count: int | None = None
    notes: tuple[str, ...] = ()
    """The last lines that the server wrote to its standard error, and what was wrong with its output."""

"""Who did something, and how they were known."""

from dataclasses import dataclass
from typing import Literal

Means = Literal["session", "token", "console", "system"]


@dataclass(frozen=True)
class Actor:
    """A person (`user_id`) known by session, personal approver token or console; or the system itself."""

    user_id: int | None
    means: Means

    @property
    def is_person(self) -> bool:
        return self.user_id is not None and self.means in ("session", "token", "console")


SYSTEM = Actor(None, "system")


@dataclass(frozen=True)
class Caller:
    """Who submitted a call, on whose behalf, and where it came from."""

    kind: Literal["chat", "studio", "api", "mcp"]
    user_id: int
    user_name: str

    @property
    def actor(self) -> Actor:
        return Actor(self.user_id, "system")

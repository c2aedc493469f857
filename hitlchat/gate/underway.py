"""What this process works on: calls that wait for their turn here, are claimed, or execute."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from hitlchat.base.background import Waker
from hitlchat.gate.placing import Place


@dataclass(eq=False)
class Work:
    """The work of this process on one call.

    `place`: where it runs, once it is claimed; `since`: when its lease was taken, by a clock that nobody sets.
    `stop`: set once the call is to stop; there is one while it executes. `has_returned`: its result is being recorded.
    """

    place: Place | None = None
    since: float = 0.0
    stop: Waker | None = None
    has_returned: bool = False


# By the call; each is good for one execution.
works: Final[dict[UUID, Work]] = {}


def executing() -> tuple[UUID, ...]:
    """Return the calls that this process executes."""
    return tuple(call_id for call_id, work in [*works.items()] if work.stop is not None)


def is_running(call_id: UUID) -> bool:
    """Return whether this process has claimed the call, and its tool has not returned."""
    work = works.get(call_id)
    return work is not None and work.place is not None and not work.has_returned

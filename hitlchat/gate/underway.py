"""What this process has claimed and not gone on to record: the end of such a call is yet to be told here, so that who
waits for it need not look."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

_calls: set[UUID] = set()


def begins(call_id: UUID) -> None:
    _calls.add(call_id)


def is_underway(call_id: UUID) -> bool:
    return call_id in _calls


@contextmanager
def ends(call_id: UUID) -> Iterator[None]:
    """With this block."""
    try:
        yield
    finally:
        _calls.discard(call_id)

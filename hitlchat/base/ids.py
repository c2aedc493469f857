"""Ids that somebody else wrote: in a form, in a query, in a frame."""

from uuid import UUID


def uuid_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None

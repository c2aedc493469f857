"""Ids of rows: UUIDv7, so that they sort by when they were made."""

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    return uuid7()

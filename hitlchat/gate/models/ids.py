"""Ids of rows: UUIDv7, so that they sort by when they were made."""

from uuid_utils.compat import uuid7 as new_id

__all__ = ["new_id"]

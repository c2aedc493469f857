"""The capability `store`: values that the tools of one group keep between calls."""

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.sandbox import HostFunction
from tools_studio.models import StoreEntry

MOST_KEYS = 10_000
LONGEST_KEY = 200
LARGEST_VALUE = 64 * 1024


def grants(group: str) -> dict[str, HostFunction]:
    """The host functions behind `hitl.store` for tools of `group`; they reach no other group's values."""

    async def get(key: str, default: Any = None) -> Any:
        entry = await in_db(_rows(group).filter(key=_key(key)).first)()
        return default if entry is None else entry.value

    async def set_(key: str, value: Any) -> None:
        await in_db(_put)(group, _key(key), value)

    async def delete(key: str) -> bool:
        removed, _ = await in_db(_rows(group).filter(key=_key(key)).delete)()
        return removed > 0

    async def keys(prefix: str = "") -> list[str]:
        return await in_db(_names)(group, _text(prefix))

    return {"store.get": get, "store.set": set_, "store.delete": delete, "store.keys": keys}


def _rows(group: str) -> QuerySet[StoreEntry]:
    return StoreEntry.objects.filter(group=group)


def _put(group: str, key: str, value: Any) -> None:
    try:
        size = len(canonical.dumps(value))
    except canonical.NotJson as error:
        raise ValueError(f"store.set can keep JSON values only: {error}") from error
    if size > LARGEST_VALUE:
        raise ValueError(f"store.set: the value takes {size:,} bytes; at most {LARGEST_VALUE:,} can be kept")
    with transaction.atomic():
        if not _rows(group).filter(key=key).update(value=value):
            if _rows(group).count() >= MOST_KEYS:
                raise ValueError(f"store.set: the group has {MOST_KEYS:,} keys already; delete some first")
            _create(group, key, value)


def _create(group: str, key: str, value: Any) -> None:
    try:
        with transaction.atomic():
            StoreEntry.objects.create(group=group, key=key, value=value)
    except IntegrityError:  # another call was first
        _rows(group).filter(key=key).update(value=value)


def _names(group: str, prefix: str) -> list[str]:
    return list(_rows(group).filter(key__startswith=prefix).order_by("key").values_list("key", flat=True))


def _key(key: object) -> str:
    text = _text(key)
    if not 1 <= len(text) <= LONGEST_KEY:
        raise ValueError(f"store: a key has 1 to {LONGEST_KEY} characters, not {len(text):,}")
    return text


def _text(value: object) -> str:
    if not isinstance(value, str) or "\x00" in value:
        raise TypeError("store: a key is a text without U+0000")
    return value

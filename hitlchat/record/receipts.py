"""Receipts of calls that somebody decided: what was asked, who had it before them, what they said, what ran.

All of it is in the record's events but what was shown and the arguments: these are taken from where they are kept only
if their digest is the one that the events name.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Q

from hitlchat.base import canonical
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.record import rows
from hitlchat.record.receipts_checked import ASKED, entry, receipt
from hitlchat.record.seals import Row
from hitlchat.secrets.detection import Cover

AT_ONCE = 200

Body = dict[str, Any]


def of(calls: Mapping[str, list[int]], hide: Callable[[Row, Any], Body]) -> Iterator[Body]:
    """A receipt for each of these calls, from these of its events, of which `hide` gives the data as it is in the
    file, knowing the arguments of the call.
    """
    left = iter(calls.items())
    while some := dict(islice(left, AT_ONCE)):
        ids = [UUID(call_id) for call_id in some]
        arguments = kept(ToolCall, ids, "pk", "arguments")
        shown = kept(Approval, ids, "call_id", "disclosure")
        events: dict[str, list[Row]] = {}
        for row in rows.read(Q(call_id__in=ids)):
            if rows.is_readable(row):
                events.setdefault(row["call"], []).append(row)
        for call_id, wanted in some.items():
            own = [row for row in events.get(call_id, []) if row["id"] in set(wanted)]
            yield _receipt(call_id, own, arguments.get(call_id), shown.get(call_id), hide)


def kept(model: Any, ids: list[UUID], key: str, column: str) -> dict[str, Any]:
    """Return what is in this column, by call; nothing where it cannot be read."""
    where = model.objects.filter(**{f"{key}__in": ids})
    try:
        return {str(call_id): value for call_id, value in where.values_list(key, column)}
    except rows.UNREADABLE:
        return kept(model, ids[:1], key, column) | kept(model, ids[1:], key, column) if len(ids) > 1 else {}


def _receipt(
    call_id: str, events: list[Row], arguments: Any, disclosure: Any, hide: Callable[[Row, Any], Body]
) -> Body:
    disclosures = [row["data"]["before"] for row in events if row["name"] == ASKED and "before" in row["data"]]
    disclosures += [disclosure] if disclosure is not None else []
    cover = Cover(arguments, *disclosures)
    made = receipt(call_id, [entry({**row, "data": hide(row, arguments)}) for row in events])
    shown = [each | _shown(each["digest"], disclosures, cover) for each in made["shown"]]
    return {**made, "shown": shown, **_ran(made["ranDigest"], arguments, cover)}


def _shown(digest: str | None, disclosures: list[Any], cover: Cover) -> Body:
    """`whole`: nothing was hidden of it, so that its digest can be made anew. `matches`: it was here, when exported."""
    found = next((each for each in disclosures if _digest(each) == digest), None)
    shown = cover.value(found)
    return {"matches": found is not None, "disclosure": shown, "whole": found is not None and shown == found}


def _ran(digest: str | None, arguments: Any, cover: Cover) -> Body:
    if digest is None or _digest(arguments) != digest:
        return {"ran": None, "ranWhole": False}
    ran = cover.value(arguments)
    return {"ran": ran, "ranWhole": ran == arguments}


def _digest(value: Any) -> str:
    try:
        return canonical.sha256(value)
    except canonical.NotJson:
        return ""

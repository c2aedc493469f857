"""One signed file of the record, or of a single call, which `checking` verifies without the database.

Secrets in what the record exports (SR-44): secrets/detection.py finds them.

A value that holds one is kept back as a whole: its hash stands for it, so that the seal still fits, with how the rest
of it reads beside it. The record itself keeps what was said; an export goes further than that.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models import Max, Min
from django.utils import timezone

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, AuditEvent, Drop, RecordKey, Seal, ToolCall
from hitlchat.gate.transition import note
from hitlchat.record import keys, proofs, rows, sealing
from hitlchat.record.file_format import ASKED, DECIDED, FORMAT, Writer, entry, receipt_of
from hitlchat.record.proofs import (
    COLUMNS,
    EXPORT,
    Body,
    Row,
    SaltOf,
    below,
    node,
    paths,
    salt_of_row,
    salts,
    sign,
    text_digest,
    unreadable_inner,
)
from hitlchat.record.verifying import verify
from hitlchat.secrets.detection import Cover, told
from hitlchat.secrets.masking import HIDDEN as DOTS


class Hiding:
    """The hidden parts of one event: `hidden` are their hashes by path, once `of` went over its data."""

    def __init__(self, cover: Cover, salt_of: SaltOf) -> None:
        self._cover, self._salt_of = cover, salt_of
        self.hidden: dict[str, str] = {}

    def of(self, value: Any, path: str = "") -> Any:
        """Return how `value`, which is the data of an event, reads with its secrets hidden.

        Its own keys, at the top, are hitlchat's, and say nothing of what is secret.
        """
        if isinstance(value, dict):
            if any(self._cover.text(key) != key for key in value):
                return self._keep_back(value, path, self._cover.value(value))
            return {key: self._member(key, item, path) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item, f"{path}/{number}") for number, item in enumerate(value)]
        shown = self._cover.value(value)
        return value if shown == value else self._keep_back(value, path, shown)

    def _member(self, key: str, item: Any, path: str) -> Any:
        where = below(path, key)
        return self._keep_back(item, where, DOTS) if path and told(key, item) else self.of(item, where)

    def _keep_back(self, value: Any, path: str, reads: Any) -> Any:
        self.hidden[path] = node(value, self._salt_of, path=path).hex()
        return reads


EXPORTED = "record.exported"
MOST_FINDINGS = 10


class NothingThere(LookupError):
    """The record has nothing of what was asked for."""


@dataclass
class _Counts:
    """Counts of what is in a file, and which events of which call."""

    batches: int = 0
    events: int = 0
    receipts: int = 0
    calls: dict[str, list[int]] = field(default_factory=dict)
    decided: dict[str, None] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        self.events += 1
        if row["call"] is not None:
            self.calls.setdefault(row["call"], []).append(row["id"])
            if row["name"] in DECIDED:
                self.decided[row["call"]] = None

    @property
    def as_json(self) -> dict[str, int]:
        return {"batches": self.batches, "events": self.events, "receipts": self.receipts}


def first_line(to: Path) -> Body:
    """Return the header of a file that was just written."""
    with to.open("rb") as lines:
        header: Body = json.loads(next(lines))
    return header


def export(to: Path, actor: Actor, *, since: datetime | None = None, until: datetime | None = None) -> dict[str, int]:
    """Write all batches with events from `since` up to `until` into the new file `to`; how much of what is in it.

    That it was exported is on record before, and in the file if it goes up to now. Whole batches, so that there may be
    events from before and after. NothingThere, BadKey, OtherKey, OSError.
    """
    span = {"from": _iso(since), "to": _iso(until)}
    note(None, EXPORTED, actor=actor, data={"format": "file", **span})
    sealing.seal_all()
    batches = _batches(since, until)
    return _write(to, {"what": "export", **span}, lambda counts: _whole(batches, counts))


def _verified() -> Body:
    """Return, for the first line, whether the record is as it was, and the first things that are not: no values."""
    found = verify().findings
    named = [{"kind": each.kind, "batch": each.batch, "event": each.event} for each in found[:MOST_FINDINGS]]
    return {"verified": not found, "found": len(found), "findings": named}


def receipt(to: Path, call_id: UUID, actor: Actor) -> dict[str, int]:
    """Export one call: its events, each with a proof that it is in its batch."""
    if not ToolCall.objects.filter(pk=call_id).exists():
        raise NothingThere(f"There is no call {call_id}.")
    note(call_id, EXPORTED, actor=actor, data={"format": "receipt"})
    sealing.seal_all()
    return _write(to, {"what": "receipt", "call": str(call_id)}, lambda counts: _of_one_call(call_id, counts))


def _write(to: Path, about: Body, content: Any) -> dict[str, int]:
    """Write a file, whole or not at all, for its owner only."""
    private = keys.own()
    key = keys.enrolled(private)
    counts, writer = _Counts(), Writer()
    if to.exists():
        raise FileExistsError(f"{to} exists: name a file that does not.")
    draft = to.with_name(f"{to.name}.part")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(
                writer.line(
                    "header", {"format": FORMAT, "at": _iso(timezone.now()), **about, **_verified(), **_keys(key)}
                )
            )
            for kind, body in content(counts):
                handle.write(writer.line(kind, body))
            said = {"counts": counts.as_json, "lines": writer.count, "over": writer.sum}
            handle.write(writer.line("trailer", {**said, "signature": sign(private, EXPORT, said)}))
        draft.replace(to)
    finally:
        draft.unlink(missing_ok=True)
    return counts.as_json


def _keys(key: RecordKey) -> Body:
    every = RecordKey.objects.filter(number__lte=key.number).order_by("number")
    return {"key": key.pk, "keys": list(every.values("id", "public", "number", "endorsement"))}


def _batches(since: datetime | None, until: datetime | None) -> Iterable[Seal]:
    span = AuditEvent.objects.all()
    span = span.filter(at__gte=since) if since is not None else span
    span = span.filter(at__lte=until) if until is not None else span
    ends = span.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None:
        raise NothingThere("Nothing is on record from that time.")
    # What was dropped counts as older.
    first = _batch_of(ends["first"]) if since is not None else 1
    return rows.every_seal(first or 1, _batch_of(ends["last"]) if until is not None else None)


def _batch_of(event_id: int) -> int | None:
    return Seal.objects.filter(last__gte=event_id).order_by("last").values_list("number", flat=True).first()


def _whole(batches: Iterable[Seal], counts: _Counts) -> Iterator[tuple[str, Body]]:
    for seal in batches:
        counts.batches += 1
        drop = Drop.objects.filter(pk=seal.number).first()
        yield "seal", _seal(seal, whole=drop is None, drop=drop)
        if drop is None:
            there = rows.sealed(seal)
            yield from (("event", each) for each in _events(seal, there, counts))
    yield from _receipts(counts)


def _of_one_call(call_id: UUID, counts: _Counts) -> Iterator[tuple[str, Body]]:
    ids = set(AuditEvent.objects.filter(call_id=call_id).values_list("pk", flat=True))
    late = rows.late_batches()
    for number in sorted({late.get(event_id) or _batch_of(event_id) or 0 for event_id in ids}):
        seal = Seal.objects.get(pk=number)
        counts.batches += 1
        yield "seal", _seal(seal, whole=False)
        there = rows.sealed(seal)
        hashes = [rows.hashed(row, seal.salt, rows.form_of(seal)) for row in there]
        mine = [(place, row) for place, row in enumerate(there) if row["id"] in ids]
        for (place, _), body in zip(mine, _events(seal, [row for _, row in mine], counts), strict=True):
            yield "event", {**body, "index": place, "proof": [each.hex() for each in proofs.proof(hashes, place)]}
    yield from _receipts(counts, also=str(call_id))


def _receipts(counts: _Counts, also: str = "") -> Iterator[tuple[str, Body]]:
    wanted = {**counts.decided, **({also: None} if also else {})}
    # In a receipt the salts do not matter, as no hash is made anew of what it says.
    ids = {call_id: counts.calls.get(call_id, []) for call_id in wanted}
    for body in receipts_of(ids, lambda row, arguments: _hidden(row, arguments, salts("00" * 32))[0]):
        counts.receipts += 1
        yield "receipt", body


def _seal(seal: Seal, *, whole: bool, drop: Drop | None = None) -> Body:
    said: Body = {"seal": rows.body_of(seal), "hash": seal.hash, "signature": seal.signature, "whole": whole}
    if whole:
        said["marks"] = seal.marks
    if drop is not None:
        said["drop"] = {"drop": rows.body_of_drop(drop, seal), "signature": drop.signature}
    return said


def _events(seal: Seal, there: list[Row], counts: _Counts) -> Iterator[Body]:
    """Yield events with secrets kept back, and what it takes to hash the rest."""
    calls = {row["call"] for row in there if rows.is_readable(row) and row["call"]}
    arguments = stored_values(ToolCall, [UUID(each) for each in calls], "pk", "arguments")
    for row in there:
        salt = salt_of_row(seal.salt, row["id"])
        # Also one whose JSON cannot be hashed is found out by hashing it.
        rows.hashed(row, seal.salt, rows.form_of(seal))
        if not rows.is_readable(row):
            counts.events += 1
            inner = unreadable_inner(row[rows.RAW], salts(salt))
            yield {"batch": seal.number, "row": {"id": row["id"]}, "unreadable": inner}
            continue
        counts.add(row)
        yield {"batch": seal.number, **_event(row, rows.form_of(seal), salt, arguments.get(row["call"] or ""))}


def _hidden(row: Row, arguments: Any, salt_of: SaltOf) -> tuple[Any, dict[str, str]]:
    """Return the data of an event with its secrets hidden, and the hashes of what is hidden, by path."""
    hiding = Hiding(Cover(row["data"], arguments), salt_of)
    return hiding.of(row["data"]), hiding.hidden


def _event(row: Row, form: int, salt: str, arguments: Any) -> Body:
    salt_of = salts(salt)
    data, hidden = _hidden(row, arguments, salt_of)
    opened: Body = {"salt": salt}
    if hidden:
        left = paths(data, hidden)
        opened = {"salts": {path: salt_of(path).hex() for path in left}, "hidden": hidden}
    if form != 1:
        opened["text"] = text_digest(row[rows.TEXT], salt_of)
    return {"row": {**{name: row[name] for name in COLUMNS}, "data": data}, **opened}


def _iso(at: datetime | None) -> str | None:
    return rows.iso(at) if at is not None else None


AT_ONCE = 200


def receipts_of(calls: Mapping[str, list[int]], hide: Callable[[Row, Any], Body]) -> Iterator[Body]:
    """A receipt for each of these calls, from these of its events, of which `hide` gives the data as it is in the
    file, knowing the arguments of the call.
    """
    left = iter(calls.items())
    while some := dict(islice(left, AT_ONCE)):
        ids = [UUID(call_id) for call_id in some]
        arguments = stored_values(ToolCall, ids, "pk", "arguments")
        shown = stored_values(Approval, ids, "call_id", "disclosure")
        events = rows.by_call(ids)
        for call_id, wanted in some.items():
            own = [row for row in events.get(call_id, []) if row["id"] in set(wanted)]
            yield _receipt(call_id, own, arguments.get(call_id), shown.get(call_id), hide)


def stored_values(model: Any, ids: list[UUID], key: str, column: str) -> dict[str, Any]:
    """Return what is in this column, by call; nothing where it cannot be read."""
    found = rows.readable_values(model.objects.filter(**{f"{key}__in": ids}), (key, column))
    return {str(row[key]): row[column] for row in found}


def _receipt(
    call_id: str, events: list[Row], arguments: Any, disclosure: Any, hide: Callable[[Row, Any], Body]
) -> Body:
    disclosures = [row["data"]["before"] for row in events if row["name"] == ASKED and "before" in row["data"]]
    disclosures += [disclosure] if disclosure is not None else []
    cover = Cover(arguments, *disclosures)
    made = receipt_of(call_id, [entry({**row, "data": hide(row, arguments)}) for row in events])
    shown = [each | _shown(each["digest"], disclosures, cover) for each in made["shown"]]
    return {**made, "shown": shown, **_ran(made["ranDigest"], arguments, cover)}


def _shown(digest: str | None, disclosures: list[Any], cover: Cover) -> Body:
    """Return what was shown. `whole`: nothing of it is hidden; `matches`: it was here when exported."""
    found = next((each for each in disclosures if rows.digest_of(each) == digest), None)
    shown = cover.value(found)
    return {"matches": found is not None, "disclosure": shown, "whole": found is not None and shown == found}


def _ran(digest: str | None, arguments: Any, cover: Cover) -> Body:
    if digest is None or rows.digest_of(arguments) != digest:
        return {"ran": None, "ranWhole": False}
    ran = cover.value(arguments)
    return {"ran": ran, "ranWhole": ran == arguments}

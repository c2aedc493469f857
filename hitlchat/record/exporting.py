"""One signed file of the record, or of a single call, which `checking` verifies without the database.

A value that holds a secret (SR-44; secrets/detection.py finds them) is kept back as a whole: its hash stands for it, so
that the seal still fits, with the masked value beside it. The record itself keeps the values.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db.models import Max, Min
from django.utils import timezone

from hitlchat.base.schemas import step
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, AuditEvent, Drop, RecordKey, Seal, ToolCall
from hitlchat.gate.transition import note
from hitlchat.record import keys, proofs, rows, sealing
from hitlchat.record.checking import ASKED, DECIDED, FORMAT, Writer, entry, receipt_of
from hitlchat.record.proofs import Body, Row, SaltOf
from hitlchat.record.verifying import verify
from hitlchat.secrets.detection import Cover, is_secret
from hitlchat.secrets.masking import HIDDEN as DOTS

EXPORTED: Final = "record.exported"
MOST_FINDINGS: Final = 10
AT_ONCE: Final = 200

Lines = Iterator[tuple[str, Body]]


class NothingThere(LookupError):
    """The record has nothing to export."""


def export(to: Path, actor: Actor, *, since: datetime | None = None, until: datetime | None = None) -> dict[str, int]:
    """Write all batches with events from `since` up to `until` into the new file `to`; return its counts.

    That it was exported is on record before, and in the file if it goes up to now. Whole batches, so that there may be
    events from before and after. NothingThere, BadKey, OtherKey, OSError.
    """
    span = {name: rows.iso(at) if at is not None else None for name, at in (("from", since), ("to", until))}
    note(None, EXPORTED, actor=actor, data={"format": "file", **span})
    sealing.seal_all()
    batches = _batches(since, until)
    return _write(to, {"what": "export", **span}, lambda content: content.batches(batches))


def receipt(to: Path, call_id: UUID, actor: Actor) -> dict[str, int]:
    """Export one call: its events, each with a proof that it is in its batch."""
    if not ToolCall.objects.filter(pk=call_id).exists():
        raise NothingThere(f"There is no call {call_id}.")
    note(call_id, EXPORTED, actor=actor, data={"format": "receipt"})
    sealing.seal_all()
    return _write(to, {"what": "receipt", "call": str(call_id)}, lambda content: content.of_call(call_id))


def first_line(to: Path) -> Body:
    with to.open("rb") as lines:
        header: Body = json.loads(next(lines))
    return header


def _write(to: Path, about: Body, lines: Callable[["_Content"], Lines]) -> dict[str, int]:
    private = keys.own()
    key = keys.enrolled(private)
    if to.exists():
        raise FileExistsError(f"{to} already exists. Name a new file.")
    # The first findings, without values.
    found = verify().findings
    named = [{"kind": each.kind, "batch": each.batch, "event": each.event} for each in found[:MOST_FINDINGS]]
    header: Body = {
        "format": FORMAT,
        "at": rows.iso(timezone.now()),
        **about,
        "verified": not found,
        "found": len(found),
        "findings": named,
        "key": key.pk,
        "keys": list(
            RecordKey.objects.filter(number__lte=key.number)
            .order_by("number")
            .values("id", "public", "number", "endorsement")
        ),
    }
    content, writer = _Content(), Writer()
    with keys.private_file(to, replace=True) as handle:
        handle.write(writer.line("header", header))
        for kind, body in lines(content):
            handle.write(writer.line(kind, body))
        signed = {"counts": content.counts, "lines": writer.count, "over": writer.sum}
        handle.write(writer.line("trailer", {**signed, "signature": proofs.sign(private, proofs.EXPORT, signed)}))
    return content.counts


def _batches(since: datetime | None, until: datetime | None) -> Iterable[Seal]:
    span = AuditEvent.objects.all()
    span = span.filter(at__gte=since) if since is not None else span
    span = span.filter(at__lte=until) if until is not None else span
    ends = span.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None:
        raise NothingThere("The record has no events from that time.")
    # Dropped batches count as older.
    first = _batch_of(ends["first"]) if since is not None else 1
    return rows.every_seal(first or 1, _batch_of(ends["last"]) if until is not None else None)


def _batch_of(event_id: int) -> int | None:
    return Seal.objects.filter(last__gte=event_id).order_by("last").values_list("number", flat=True).first()


class _Content:
    """The lines between header and trailer, each with its kind; `counts`: how many of each there are."""

    def __init__(self) -> None:
        self.counts = {"batches": 0, "events": 0, "receipts": 0}
        # Events in the file by call, and the calls that were decided there, in order.
        self._calls: dict[str, list[int]] = {}
        self._decided: dict[str, None] = {}

    def batches(self, seals: Iterable[Seal]) -> Lines:
        for seal in seals:
            drop = Drop.objects.filter(pk=seal.number).first()
            yield self._seal(seal, whole=drop is None, drop=drop)
            if drop is None:
                yield from (("event", body) for body in self._events(seal, rows.sealed(seal)))
        yield from self._receipts()

    def of_call(self, call_id: UUID) -> Lines:
        ids = set(AuditEvent.objects.filter(call_id=call_id).values_list("pk", flat=True))
        for number in sorted({*rows.batches_of(ids).values()}):
            seal = Seal.objects.get(pk=number)
            yield self._seal(seal, whole=False)
            there = rows.sealed(seal)
            hashes = [rows.hashed(row, seal) for row in there]
            mine = {place: row for place, row in enumerate(there) if row["id"] in ids}
            for place, body in zip(mine, self._events(seal, list(mine.values())), strict=True):
                yield "event", {**body, "index": place, "proof": [each.hex() for each in proofs.proof(hashes, place)]}
        self._decided[str(call_id)] = None
        yield from self._receipts()

    def _seal(self, seal: Seal, *, whole: bool, drop: Drop | None = None) -> tuple[str, Body]:
        self.counts["batches"] += 1
        body: Body = {"seal": rows.body_of(seal), "hash": seal.hash, "signature": seal.signature, "whole": whole}
        if whole:
            body["marks"] = seal.marks
        if drop is not None:
            body["drop"] = {"drop": rows.body_of_drop(drop, seal), "signature": drop.signature}
        return "seal", body

    def _events(self, seal: Seal, there: list[Row]) -> Iterator[Body]:
        """Yield events with secrets kept back, and the salts to hash the rest."""
        calls = {row["call"] for row in there if rows.is_readable(row) and row["call"]}
        arguments = _stored(ToolCall, [UUID(each) for each in calls], "pk", "arguments")
        for row in there:
            self.counts["events"] += 1
            salt = proofs.salt_of_row(seal.salt, row["id"])
            # Marks a row whose JSON cannot be hashed as unreadable.
            rows.hashed(row, seal)
            if not rows.is_readable(row):
                inner = proofs.unreadable_inner(row[rows.RAW], proofs.salts(salt))
                yield {"batch": seal.number, "row": {"id": row["id"]}, "unreadable": inner}
                continue
            if row["call"] is not None:
                self._calls.setdefault(row["call"], []).append(row["id"])
                if row["name"] in DECIDED:
                    self._decided[row["call"]] = None
            event = _event(row, salt, arguments.get(row["call"] or ""))
            text = {"text": proofs.text_digest(row[rows.TEXT], proofs.salts(salt))} if rows.form_of(seal) != 1 else {}
            yield {"batch": seal.number, **event, **text}

    def _receipts(self) -> Lines:
        left = iter(self._decided)
        while some := list(islice(left, AT_ONCE)):
            ids = [UUID(call_id) for call_id in some]
            arguments = _stored(ToolCall, ids, "pk", "arguments")
            shown = _stored(Approval, ids, "call_id", "disclosure")
            events = rows.by_call(ids)
            for call_id in some:
                wanted = {*self._calls.get(call_id, [])}
                own = [row for row in events.get(call_id, []) if row["id"] in wanted]
                self.counts["receipts"] += 1
                yield "receipt", _receipt(call_id, own, arguments.get(call_id), shown.get(call_id))


def _stored(model: Any, ids: list[UUID], key: str, column: str) -> dict[str, Any]:
    """Return the values of a column by call, as far as they can be read."""
    found = rows.readable_values(model.objects.filter(**{f"{key}__in": ids}), (key, column))
    return {str(row[key]): row[column] for row in found}


def _event(row: Row, salt: str, arguments: Any) -> Body:
    salt_of = proofs.salts(salt)
    hiding = Hiding(Cover(row["data"], arguments), salt_of)
    data = hiding.of(row["data"])
    opened: Body = {"salt": salt}
    if hiding.hidden:
        left = proofs.paths(data, hiding.hidden)
        opened = {"salts": {path: salt_of(path).hex() for path in left}, "hidden": hiding.hidden}
    return {"row": {**{name: row[name] for name in proofs.COLUMNS}, "data": data}, **opened}


def _receipt(call_id: str, events: list[Row], arguments: Any, disclosure: Any) -> Body:
    disclosures = [row["data"]["before"] for row in events if row["name"] == ASKED and "before" in row["data"]]
    disclosures += [disclosure] if disclosure is not None else []
    cover = Cover(arguments, *disclosures)
    # As in the file. The salts do not matter, as a receipt has no hashes of values.
    made = receipt_of(call_id, [entry(_event(row, "00" * 32, arguments)["row"]) for row in events])
    shown = [each | _shown(each["digest"], disclosures, cover) for each in made["shown"]]
    has_run = made["ranDigest"] is not None and rows.digest_of(arguments) == made["ranDigest"]
    ran = cover.value(arguments) if has_run else None
    return {**made, "shown": shown, "ran": ran, "ranWhole": has_run and ran == arguments}


def _shown(digest: str | None, disclosures: list[Any], cover: Cover) -> Body:
    """Return the disclosure with this digest. `whole`: no value is hidden; `matches`: it was here when exported."""
    found = next((each for each in disclosures if rows.digest_of(each) == digest), None)
    shown = cover.value(found)
    return {"matches": found is not None, "disclosure": shown, "whole": found is not None and shown == found}


class Hiding:
    """The hidden parts of one event: `hidden` are their hashes by path, once `of` went over its data."""

    def __init__(self, cover: Cover, salt_of: SaltOf) -> None:
        self._cover, self._salt_of = cover, salt_of
        self.hidden: dict[str, str] = {}

    def of(self, value: Any, path: str = "") -> Any:
        """Return `value`, which is the data of an event, with its secrets hidden.

        Its own keys, at the top, are hitlchat's, and do not mark anything as secret.
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
        where = step(path, key)
        return self._keep_back(item, where, DOTS) if path and is_secret(key, item) else self.of(item, where)

    def _keep_back(self, value: Any, path: str, reads: Any) -> Any:
        self.hidden[path] = proofs.node(value, self._salt_of, path=path).hex()
        return reads

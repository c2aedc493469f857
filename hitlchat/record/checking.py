"""An exported file, and checking one on any machine: needs neither Django's settings nor a database.

It has numbered lines of JSON, each with a sum over all lines before it; and receipts of calls. A receipt is made of a
call's events alone, so that whoever has these makes it again and compares. Only the disclosure and the arguments that
ran stand beside the events, which name both by their digest.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from hitlchat.base import canonical
from hitlchat.base.sentences import part, translatable
from hitlchat.record import proofs
from hitlchat.record.proofs import Body, PublicKey, spaced

FORMAT: Final = "hitlchat record 2"
# Could be made of a record that had been changed without `check` saying so.
OLDER: Final = ("hitlchat record 1",)
ASKED: Final = "call.waiting"
# Put before one person for the first time.
SEEN: Final = "call.shown"
DECIDED: Final = frozenset({"call.approved", "call.declined", "call.answered", "call.counted"})
ANSWERED: Final = DECIDED | {"call.yes_taken_back"}
STARTED: Final = "call.executing"
# As gate.status has them, which needs settings.
STATUSES: Final = frozenset(
    f"call.{status}"
    for status in (
        *("rejected", "refused", "allowed", "waiting", "approved", "declined", "expired", "withdrawn", "executing"),
        *("succeeded", "failed", "unknown", "answered"),
    )
)
# Fields of the data of events that go into receipts.
_FIELDS: Final = ("digest", "argumentsDigest", "resultDigest", "tool", "caller", "by", "reason")
MALFORMED: Final = part("does not have the expected form")
CUT_OFF: Final = part("is missing: the file was cut off before its end")
# Parts of a receipt that come from beside the events.
_BESIDE: Final = ("disclosure", "matches", "whole")


class Writer:
    """Gives each line its number and its sum."""

    def __init__(self) -> None:
        self.count, self.sum = 0, ""

    def line(self, kind: str, body: Body) -> bytes:
        self.count += 1
        whole = {**body, "n": self.count, "kind": kind}
        self.sum = sum_of(self.sum, whole)
        return f"{canonical.dumps({**whole, 'sum': self.sum})}\n".encode("ascii")


def sum_of(before: str, body: Body) -> str:
    return hashlib.sha256(f"{before}\n{canonical.dumps(body)}".encode("ascii")).hexdigest()


def entry(row: Body) -> Body:
    """Return the fields of an event that go into receipts; `row` as it is in the file, with its secrets hidden."""
    data = row["data"] if isinstance(row["data"], dict) else {}
    columns = {name: row[name] for name in ("name", "actor", "means", "at")}
    return {"event": row["id"], **columns, **{name: data[name] for name in _FIELDS if name in data}}


def receipt_of(call: str, entries: list[Body]) -> Body:
    """Return the receipt of a call from the entries of all its events, in the order of their ids."""
    ordered = sorted(entries, key=lambda each: int(each["event"]))
    statuses = [each["name"] for each in ordered if each["name"] in STATUSES]
    started = [each for each in ordered if each["name"] == STARTED]
    return {
        "call": call,
        "tool": _first_of(ordered, "tool"),
        "caller": _first_of(ordered, "caller"),
        "events": [each["event"] for each in ordered],
        "shown": [{"event": each["event"], "digest": each.get("digest")} for each in ordered if each["name"] == ASKED],
        "seen": [_by(each) for each in ordered if each["name"] == SEEN],
        "said": [
            {**_by(each), "name": each["name"], "reason": str(each.get("reason") or "")}
            for each in ordered
            if each["name"] in ANSWERED
        ],
        # None if it was not run, or its events do not state the arguments, since they are older than that.
        "ranDigest": started[-1].get("argumentsDigest") if started else None,
        "resultDigest": _first_of(ordered[::-1], "resultDigest"),
        "status": statuses[-1].removeprefix("call.") if statuses else None,
    }


class WrongLine(ValueError):
    """A line that is not as it was written; the message says how, to go on "line 7 …"."""


@dataclass
class Checked:
    """The content of a file, and its first wrong line with a sentence. `found`: how many findings the record had."""

    batches: int = 0
    events: int = 0
    receipts: int = 0
    hidden: int = 0
    unreadable: int = 0
    what: str = ""
    at: str = ""
    key: str = ""
    line: int | None = None
    wrong: str = ""
    found: int = 0

    @property
    def is_genuine(self) -> bool:
        return not self.wrong


def check(lines: Iterable[bytes], noted: str = "") -> Checked:
    """Read `lines`, each with its end, up to the first that is wrong. `noted`: the fingerprint that the key must have,
    or a key before it.
    """
    file = _File(noted)
    checked = file.checked
    try:
        for raw in lines:
            file.take(raw)
    except WrongLine as wrong:
        checked.line, checked.wrong = file.count, str(wrong)
    except (KeyError, TypeError, ValueError, AttributeError):
        # Somebody has made the sums again for their own lines.
        checked.line, checked.wrong = file.count, MALFORMED
    else:
        if not file.is_over:
            checked.line, checked.wrong = file.count + 1, CUT_OFF
    return checked


def checked_words(found: Checked, noted: str) -> list[str]:
    """Return the outcome in English, a line each, which pages show in their language."""
    if found.wrong:
        fault = " ".join((part(f"line {found.line}"), found.wrong))
        return [translatable(f"Not genuine: {fault}.")]
    batches = part("1 batch") if found.batches == 1 else part(f"{found.batches:,} batches")
    receipts = part("1 receipt") if found.receipts == 1 else part(f"{found.receipts:,} receipts")
    events = _counted_events(found.events)
    lines = [translatable(f"Unchanged since it was written on {found.at}: {batches}, {events}, {receipts}.")]
    if found.found:
        lines.insert(0, translatable(f"The record itself had been changed (problems found: {found.found})."))
    if (count := found.hidden) == 1:
        lines.append(translatable("1 value is withheld as secret; the file has its hash instead."))
    elif count:
        lines.append(translatable(f"{count:,} values are withheld as secret; the file has their hashes instead."))
    if found.unreadable:
        counted = _counted_events(found.unreadable)
        lines.append(translatable(f"{counted} could not be read when sealed: the file has only the hashes."))
    lines.append(translatable(f"Signed with the key {spaced(found.key)}"))
    lines.append(
        translatable(
            "This is the key you named, or a later key that it vouches for."
            if noted
            else "Compare this with the fingerprint you noted: the file alone cannot prove whose key this is."
        )
    )
    return lines


def _first_of(ordered: list[Body], name: str) -> Any:
    return next((each[name] for each in ordered if name in each), None)


def _by(each: Body) -> Body:
    by = each.get("by")
    name = by.get("name") if isinstance(by, dict) else None
    found = {"event": each["event"], "by": name, "person": each["actor"], "means": each["means"]}
    return {**found, "digest": each.get("digest"), "at": each["at"]}


def _counted_events(count: int) -> str:
    return part("1 event") if count == 1 else part(f"{count:,} events")


class _File:
    """A file as far as it was read. WrongLine: a line is not as it was written."""

    def __init__(self, noted: str) -> None:
        self.checked = Checked()
        self.count, self.is_over = 0, False
        self._noted, self._sum = noted, ""
        self._header: Body | None = None
        self._keys: dict[str, str] = {}
        self._batch: _Batch | None = None
        self._before: _Batch | None = None
        self._entries: dict[str, list[Body]] = {}
        # Calls whose receipt must follow.
        self._decided: set[str] = set()

    def take(self, raw: bytes) -> None:
        before, body = self._sum, self._read(raw)
        if self.is_over:
            raise WrongLine("comes after the end of the file")
        kind = body["kind"]
        if (kind == "header") != (self._header is None):
            raise WrongLine("is not a header" if self._header is None else "is a second header")
        match kind:
            case "header":
                self._begin(body)
            case "seal":
                self._seal(body)
            case "event":
                self._event(body)
            case "receipt":
                self._close()
                self._receipt(body)
            case "trailer":
                self._close()
                self._end(body, before)
            case _:
                raise WrongLine(MALFORMED)

    def _read(self, raw: bytes) -> Body:
        """Return the line, if its number and its sum are those that follow here."""
        self.count += 1
        body = _parsed(raw)
        if body.get("n") != self.count:
            raise WrongLine(f"is numbered {body.get('n')!r}: lines before it were removed, inserted or moved")
        stated = body.pop("sum", None)
        self._sum = sum_of(self._sum, body)
        if stated != self._sum:
            raise WrongLine("was edited, or is not the next line")
        return body

    def _begin(self, body: Body) -> None:
        if body["format"] in OLDER:
            raise WrongLine(
                "says that an older version of hitlchat wrote the file, which cannot rule out a forged "
                "record. Export it again with this version"
            )
        if body["format"] != FORMAT:
            raise WrongLine(f"says that the file is {body['format']!r}, not {FORMAT!r}")
        chain = [PublicKey(each["id"], each["public"], each["number"], each["endorsement"]) for each in body["keys"]]
        self._header, self._keys = body, {each.id: each.public for each in chain}
        self.checked.what, self.checked.at, self.checked.key = body["what"], body["at"], body["key"]
        # The first files do not state it.
        self.checked.found = int(body.get("found", 0))
        anchor = self._noted or body["key"]
        if why := proofs.broken(chain, anchor):
            raise WrongLine(f"names keys that cannot be trusted. {why}")
        if body["key"] not in proofs.onward(chain, anchor):
            raise WrongLine(f"names a key older than {anchor[:16]}…")

    def _seal(self, body: Body) -> None:
        self._close()
        self._batch = _Batch(body, self._keys)
        if self.checked.what == "export" and self._before is not None:
            self._batch.require_follows(self._before)
        self.checked.batches += 1

    def _event(self, body: Body) -> None:
        if self._batch is None:
            raise WrongLine("is an event before any seal")
        self._batch.take(body)
        self.checked.events += 1
        if "unreadable" in body:
            self.checked.unreadable += 1
            return
        row = body["row"]
        if row["call"] is not None:
            self._entries.setdefault(row["call"], []).append(entry(row))
            if row["name"] in DECIDED:
                self._decided.add(row["call"])
        self.checked.hidden += len(body.get("hidden", ()))

    def _close(self) -> None:
        """End the current batch. Raises: WrongLine, where events of it are missing."""
        if self._batch is not None:
            self._batch.close()
            self._before, self._batch = self._batch, None

    def _receipt(self, given: Body) -> None:
        """Compare a receipt with the events of its call."""
        call = given["call"]
        expected = receipt_of(call, self._entries.pop(call, []))
        self._decided.discard(call)
        if given["events"] != expected["events"]:
            raise WrongLine(f"is the receipt of call {call}, but does not list the call's events")
        stated = {name: given[name] for name in expected if name != "shown"}
        shown = [{name: item for name, item in each.items() if name not in _BESIDE} for each in given["shown"]]
        if {**stated, "shown": shown} != expected:
            raise WrongLine(f"is the receipt of call {call}, but contradicts the call's events")
        for each in given["shown"]:
            if each["whole"] and canonical.sha256(each["disclosure"]) != each["digest"]:
                raise WrongLine(f"is the receipt of call {call}, but differs from what was shown")
        if given["ranWhole"] and canonical.sha256(given["ran"]) != given["ranDigest"]:
            raise WrongLine(f"is the receipt of call {call}, but differs from what ran")
        if given.keys() - {*expected, "ran", "ranWhole", "n", "kind"}:
            raise WrongLine(f"is the receipt of call {call}, but says more than the call's events")
        self.checked.receipts += 1

    def _end(self, body: Body, before: str) -> None:
        if self._decided:
            raise WrongLine(f"comes in place of the receipt of call {min(self._decided)}, which is missing")
        counts = {name: getattr(self.checked, name) for name in ("batches", "events", "receipts")}
        signed = {"counts": counts, "lines": body["n"] - 1, "over": before}
        if body["counts"] != counts:
            raise WrongLine("has counts that do not match the file")
        if not proofs.is_signed(self._keys[self.checked.key], body["signature"], proofs.EXPORT, signed):
            raise WrongLine("has a signature that does not match the file")
        self.is_over = True


class _Batch:
    """Takes the events of a batch as they come. WrongLine: an event is not the one that was sealed there."""

    def __init__(self, body: Body, keys: dict[str, str]) -> None:
        self.seal, self.hash = body["seal"], body["hash"]
        match proofs.fault_of(self.seal, self.hash, body["signature"], keys.get(self.seal["key"], "")):
            case "edited":
                raise WrongLine(f"is the seal of batch {self.seal['number']}, but was edited")
            case "unsigned":
                raise WrongLine(f"is the seal of batch {self.seal['number']}, but lacks its key's signature")
        self._is_whole = bool(body["whole"])
        self._hashes: list[bytes] = []
        marks = body["marks"] if self._is_whole else ""
        if self._is_whole and proofs.digest(marks) != self.seal["marks"]:
            raise WrongLine(f"is the seal of batch {self.seal['number']}, but its marks were edited")
        # Events still to come, with their marks.
        self._expected = proofs.sealed_as(self.seal, marks)
        if "drop" in body:
            drop = body["drop"]["drop"]
            is_of_this = (drop["number"], drop["seal"]) == (self.seal["number"], self.hash)
            has_signature = proofs.is_signed(keys.get(drop["key"], ""), body["drop"]["signature"], proofs.DROP, drop)
            if self._is_whole or not (is_of_this and has_signature):
                raise WrongLine(f"says that batch {self.seal['number']} was dropped, but this is not signed")

    def require_follows(self, before: "_Batch") -> None:
        if self.seal["number"] != before.seal["number"] + 1 or self.seal["previous"] != before.hash:
            raise WrongLine(f"is the seal of batch {self.seal['number']}, which does not follow the previous seal")

    def take(self, body: Body) -> None:
        row, number = body["row"], self.seal["number"]
        event = row["id"]
        if body["batch"] != number:
            raise WrongLine(f"is an event of batch {body['batch']} among those of batch {number}")
        made = _hash(body, self.seal.get("format", 1))
        if not self._is_whole:
            path = [bytes.fromhex(each) for each in body["proof"]]
            found = proofs.climbed(made, body["index"], self.seal["count"], path)
            is_sealed = found is not None and found.hex() == self.seal["root"]
        else:
            expected, mark = next(self._expected, (None, ""))
            if expected is None:
                raise WrongLine(f"is event {event}, after the last one")
            if event != expected:
                raise WrongLine(f"is event {event}, where event {expected} was expected")
            is_sealed = proofs.mark_of(made) == mark
        if not is_sealed:
            raise WrongLine(f"is event {row['id']}, which was changed after it was sealed in batch {number}")
        self._hashes.append(made)

    def close(self) -> None:
        """Close after the last event: were they all there?"""
        if not self._is_whole:
            return
        missing, _ = next(self._expected, (None, ""))
        if missing is not None:
            raise WrongLine(f"comes in place of event {missing} of batch {self.seal['number']}, which is missing")
        if proofs.root(self._hashes).hex() != self.seal["root"]:
            raise WrongLine(f"comes after batch {self.seal['number']}, which was changed after it was sealed")


def _hash(body: Body, form: int) -> bytes:
    row = body["row"]
    if "unreadable" in body:
        return proofs.unreadable_hash(row["id"], body["unreadable"])
    opened: dict[str, str] = body.get("salts", {})
    salt_of = proofs.salts(body["salt"]) if "salt" in body else (lambda path: bytes.fromhex(opened[path]))
    return proofs.row_hash(row, salt_of, form, text=body.get("text", ""), hidden=body.get("hidden", proofs.NOTHING))


def _parsed(raw: bytes) -> Body:
    try:
        body = canonical.loads(raw)
        is_spelled = f"{canonical.dumps(body)}\n".encode("ascii") == raw
    except canonical.NotJson as error:
        raise WrongLine(f"was edited or cut off: not valid JSON ({error})") from error
    if not isinstance(body, dict) or not is_spelled:
        raise WrongLine("was edited: the spelling is not the original one")
    return body

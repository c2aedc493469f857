"""An exported file: numbered lines of JSON, each with a sum over all lines before it; and receipts of calls.

Receipts are made of a call's events alone: so whoever has these makes one anew, and compares. Only what was shown and
what ran stand beside the events, which name both by their digest. Needs neither Django's settings nor a database.
"""

import hashlib
from typing import Any, Final

from hitlchat.base import canonical
from hitlchat.record.proofs import Body

FORMAT = "hitlchat record 2"
# Could be made of a record that had been changed without `check` saying so.
OLDER = ("hitlchat record 1",)


class Writer:
    """Gives each line its number and its sum."""

    def __init__(self) -> None:
        self.count, self.sum = 0, ""

    def line(self, kind: str, body: Body) -> bytes:
        self.count += 1
        whole = {**body, "n": self.count, "kind": kind}
        self.sum = sum_of(self.sum, whole)
        return f"{canonical.dumps({**whole, 'sum': self.sum})}\n".encode("ascii")


class WrongLine(ValueError):
    """A line that is not as it was written; the message says how, to go on "line 7 …"."""


class Reader:
    """Reads lines back, each only if it is what was written there."""

    def __init__(self) -> None:
        self.count, self.sum = 0, ""

    def read(self, raw: bytes) -> Body:
        """Return what the next line says.

        Raises: WrongLine
        """
        self.count += 1
        body = _parsed(raw)
        if body.get("n") != self.count:
            raise WrongLine(f"is numbered {body.get('n')!r}: lines before it were removed, put in or moved")
        stated = body.pop("sum", None)
        self.sum = sum_of(self.sum, body)
        if stated != self.sum:
            raise WrongLine("was edited, or is not the one that followed here")
        return body


def sum_of(before: str, body: Body) -> str:
    return hashlib.sha256(f"{before}\n{canonical.dumps(body)}".encode("ascii")).hexdigest()


def _parsed(raw: bytes) -> Body:
    try:
        body = canonical.loads(raw)
        is_spelled = f"{canonical.dumps(body)}\n".encode("ascii") == raw
    except canonical.NotJson as error:
        raise WrongLine(f"was edited or cut off: it is no JSON ({error})") from error
    if not isinstance(body, dict) or not is_spelled:
        raise WrongLine("was edited: it is not spelled as it was written")
    return body


ASKED = "call.waiting"
# Put before one person for the first time.
SEEN = "call.shown"
DECIDED = frozenset({"call.approved", "call.declined", "call.counted"})
SAID = DECIDED | {"call.yes_taken_back"}
STARTED = "call.executing"
_KEPT: Final = ("digest", "argumentsDigest", "resultDigest", "tool", "caller", "by", "reason")
# What comes to a receipt from beside the events, and how each is held to a digest.
_BESIDE: Final = ("disclosure", "matches", "whole")
STATUSES: Final = frozenset(
    f"call.{status}"
    for status in (
        *("rejected", "refused", "allowed", "waiting", "approved", "declined", "expired", "withdrawn", "executing"),
        *("succeeded", "failed", "unknown"),
    )
)


def entry(row: Body) -> Body:
    """Return what of an event goes into receipts; `row` as it is in the file, with its secrets hidden."""
    data = row["data"] if isinstance(row["data"], dict) else {}
    stated = {name: data[name] for name in _KEPT if name in data}
    return {
        "event": row["id"],
        "name": row["name"],
        "actor": row["actor"],
        "means": row["means"],
        "at": row["at"],
    } | stated


def receipt_of(call: str, entries: list[Body]) -> Body:
    """Return the receipt from what `entry` keeps of all its events, in the order of their ids."""
    ordered = sorted(entries, key=lambda each: int(each["event"]))
    statuses = [each["name"] for each in ordered if each["name"] in STATUSES]
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
            if each["name"] in SAID
        ],
        "ranDigest": _ran(ordered),
        "resultDigest": _first_of(ordered[::-1], "resultDigest"),
        "status": statuses[-1].removeprefix("call.") if statuses else None,
    }


class Calls:
    """The calls of a file, as its events tell them."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Body]] = {}
        self._decided: set[str] = set()

    def take(self, row: Body) -> None:
        if row["call"] is None:
            return
        self._entries.setdefault(row["call"], []).append(entry(row))
        if row["name"] in DECIDED:
            self._decided.add(row["call"])

    def compare(self, given: Body) -> None:
        """Compare a receipt with the events of its call.

        Raises: WrongLine
        """
        call = given["call"]
        expected = receipt_of(call, self._entries.pop(call, []))
        self._decided.discard(call)
        if given["events"] != expected["events"]:
            raise WrongLine(f"is the receipt of call {call}, and names other events than there are of it")
        stated = {name: given[name] for name in expected if name != "shown"}
        shown = [{name: item for name, item in each.items() if name not in _BESIDE} for each in given["shown"]]
        if {**stated, "shown": shown} != expected:
            raise WrongLine(f"is the receipt of call {call}, and tells otherwise than its events")
        for each in given["shown"]:
            if each["whole"] and canonical.sha256(each["disclosure"]) != each["digest"]:
                raise WrongLine(f"is the receipt of call {call}, and shows something else than was shown")
        if given["ranWhole"] and canonical.sha256(given["ran"]) != given["ranDigest"]:
            raise WrongLine(f"is the receipt of call {call}, and tells of something else than what ran")
        if given.keys() - {*expected, "ran", "ranWhole", "n", "kind"}:
            raise WrongLine(f"is the receipt of call {call}, and says more than its events")

    def require_receipts(self) -> None:
        """Require that no receipt is missing.

        Raises: WrongLine
        """
        if self._decided:
            raise WrongLine(f"comes where the receipt of call {min(self._decided)} is missing")


def _ran(ordered: list[Body]) -> str | None:
    """The digest of the arguments that it was run with; None if it was not, or its events are from before they said."""
    started = [each for each in ordered if each["name"] == STARTED]
    return started[-1].get("argumentsDigest") if started else None


def _first_of(ordered: list[Body], name: str) -> Any:
    return next((each[name] for each in ordered if name in each), None)


def _by(each: Body) -> Body:
    by = each.get("by")
    name = by.get("name") if isinstance(by, dict) else None
    ordered = {"event": each["event"], "by": name, "person": each["actor"], "means": each["means"]}
    return {**ordered, "digest": each.get("digest"), "at": each["at"]}

"""An exported file: numbered lines of JSON, each with a sum over all lines before it; and receipts of calls.

Receipts are made of a call's events alone: so whoever has these makes one anew, and compares. Only what was shown and
what ran stand beside the events, which name both by their digest. Needs neither Django's settings nor a database.
"""

import hashlib
from typing import Any, Final

from hitlchat.base import canonical
from hitlchat.record.proofs import Body

FORMAT: Final = "hitlchat record 2"
# Could be made of a record that had been changed without `check` saying so.
OLDER: Final = ("hitlchat record 1",)
ASKED: Final = "call.waiting"
# Put before one person for the first time.
SEEN: Final = "call.shown"
DECIDED: Final = frozenset({"call.approved", "call.declined", "call.counted"})
ANSWERED: Final = DECIDED | {"call.yes_taken_back"}
STARTED: Final = "call.executing"
# As gate.status has them, which needs settings.
STATUSES: Final = frozenset(
    f"call.{status}"
    for status in (
        *("rejected", "refused", "allowed", "waiting", "approved", "declined", "expired", "withdrawn", "executing"),
        *("succeeded", "failed", "unknown"),
    )
)
# What of the data of an event goes into receipts.
_FIELDS: Final = ("digest", "argumentsDigest", "resultDigest", "tool", "caller", "by", "reason")


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
    """Return what of an event goes into receipts; `row` as it is in the file, with its secrets hidden."""
    data = row["data"] if isinstance(row["data"], dict) else {}
    columns = {name: row[name] for name in ("name", "actor", "means", "at")}
    return {"event": row["id"], **columns, **{name: data[name] for name in _FIELDS if name in data}}


def receipt_of(call: str, entries: list[Body]) -> Body:
    """Return the receipt from what `entry` gives of all its events, in the order of their ids."""
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
        # None if it was not run, or its events are from before they said with which arguments.
        "ranDigest": started[-1].get("argumentsDigest") if started else None,
        "resultDigest": _first_of(ordered[::-1], "resultDigest"),
        "status": statuses[-1].removeprefix("call.") if statuses else None,
    }


def _first_of(ordered: list[Body], name: str) -> Any:
    return next((each[name] for each in ordered if name in each), None)


def _by(each: Body) -> Body:
    by = each.get("by")
    name = by.get("name") if isinstance(by, dict) else None
    found = {"event": each["event"], "by": name, "person": each["actor"], "means": each["means"]}
    return {**found, "digest": each.get("digest"), "at": each["at"]}

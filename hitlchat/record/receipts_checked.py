"""Receipts made of a call's events alone: so whoever has these makes one anew, and compares.

Only what was shown and what ran stand beside the events, which name both by their digest. Needs neither Django's
settings nor a database.
"""

from typing import Any, Final

from hitlchat.base import canonical
from hitlchat.record.lines import Body, WrongLine

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
    said = {name: data[name] for name in _KEPT if name in data}
    return {
        "event": row["id"],
        "name": row["name"],
        "actor": row["actor"],
        "means": row["means"],
        "at": row["at"],
    } | said


def receipt(call: str, entries: list[Body]) -> Body:
    """Return the receipt from what `entry` keeps of all its events, in the order of their ids."""
    told = sorted(entries, key=lambda each: int(each["event"]))
    statuses = [each["name"] for each in told if each["name"] in STATUSES]
    return {
        "call": call,
        "tool": _first(told, "tool"),
        "caller": _first(told, "caller"),
        "events": [each["event"] for each in told],
        "shown": [{"event": each["event"], "digest": each.get("digest")} for each in told if each["name"] == ASKED],
        "seen": [_by(each) for each in told if each["name"] == SEEN],
        "said": [_said(each) for each in told if each["name"] in SAID],
        "ranDigest": _ran(told),
        "resultDigest": _last(told, "resultDigest"),
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
        """WrongLine."""
        call = given["call"]
        expected = receipt(call, self._entries.pop(call, []))
        self._decided.discard(call)
        if given["events"] != expected["events"]:
            raise WrongLine(f"is the receipt of call {call}, and names other events than there are of it")
        said = {name: given[name] for name in expected if name != "shown"}
        shown = [{name: item for name, item in each.items() if name not in _BESIDE} for each in given["shown"]]
        if {**said, "shown": shown} != expected:
            raise WrongLine(f"is the receipt of call {call}, and tells otherwise than its events")
        for each in given["shown"]:
            if each["whole"] and canonical.sha256(each["disclosure"]) != each["digest"]:
                raise WrongLine(f"is the receipt of call {call}, and shows something else than was shown")
        if given["ranWhole"] and canonical.sha256(given["ran"]) != given["ranDigest"]:
            raise WrongLine(f"is the receipt of call {call}, and tells of something else than what ran")
        if given.keys() - {*expected, "ran", "ranWhole", "n", "kind"}:
            raise WrongLine(f"is the receipt of call {call}, and says more than its events")

    def require_receipts(self) -> None:
        """WrongLine."""
        if self._decided:
            raise WrongLine(f"comes where the receipt of call {min(self._decided)} is missing")


def _ran(told: list[Body]) -> str | None:
    """The digest of the arguments that it was run with; None if it was not, or its events are from before they said."""
    started = [each for each in told if each["name"] == STARTED]
    return started[-1].get("argumentsDigest") if started else None


def _first(told: list[Body], name: str) -> Any:
    return next((each[name] for each in told if name in each), None)


def _last(told: list[Body], name: str) -> Any:
    return _first(told[::-1], name)


def _said(each: Body) -> Body:
    return {**_by(each), "name": each["name"], "reason": str(each.get("reason") or "")}


def _by(each: Body) -> Body:
    by = each.get("by")
    name = by.get("name") if isinstance(by, dict) else None
    told = {"event": each["event"], "by": name, "person": each["actor"], "means": each["means"]}
    return {**told, "digest": each.get("digest"), "at": each["at"]}

"""The events of a call as sentences, in the order in which they happened."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hitlchat.gate.models import AuditEvent

Data = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """`name` is the event's own; `who` is empty where hitlchat itself did it; `note` is what a person wrote."""

    at: datetime
    name: str
    said: str
    who: str
    note: str


def _reason(words: str) -> Callable[[Data], str]:
    def said(data: Data) -> str:
        reason = str(data.get("reason") or "")
        return f"{words}: {reason}" if reason else f"{words}."

    return said


def _asked(data: Data) -> str:
    return _reason("Asked about again")(data) if "before" in data else _reason("Put before people")(data)


def _refused(data: Data) -> str:
    return _reason("Nobody could be asked" if data.get("nobodyAsked") else "Refused by a policy")(data)


def _ended(words: str, marked: str) -> Callable[[Data], str]:
    return lambda data: marked if "marked" in data else words


def _counted(data: Data) -> str:
    return f"Approved: {data.get('yes')} of {data.get('quorum')} people."


WORDS: Final[dict[str, Callable[[Data], str]]] = {
    "call.waiting": _asked,
    "call.allowed": _reason("Let run without asking"),
    "call.refused": _refused,
    "call.rejected": _reason("Rejected, and nobody was asked"),
    "call.approved": lambda data: "Approved with changed arguments." if data.get("edited") else "Approved.",
    "call.declined": _reason("Declined"),
    "call.shown": lambda _: "First shown.",
    "call.expired": lambda _: "Expired: nobody answered in time.",
    "call.withdrawn": _reason("Withdrawn"),
    "call.queued": lambda _: "All workers were taken: it waits for a free one.",
    "call.executing": lambda _: "Started.",
    "call.succeeded": _ended("Ended: it succeeded.", "Marked as done."),
    "call.failed": _ended("Ended: it failed.", "Marked as failed."),
    "call.unknown": _reason("Lost sight of, so that it may or may not have happened"),
    "call.counted": _counted,
    "call.yes_taken_back": lambda _: "An approval was taken back.",
    "call.stop_requested": lambda _: "Told to stop.",
    "call.extended": lambda _: "Given more time to answer.",
    "call.question_asked": lambda _: "Its server asked a question.",
    "call.question_answered": lambda _: "The question of its server was answered.",
    "call.question_declined": _reason("The question of its server was declined"),
    "call.question_expired": lambda _: "The question of its server expired: nobody answered in time.",
    "call.question_withdrawn": lambda _: "The question of its server was withdrawn.",
    "call.run_again": lambda data: f"Run again, as call {data.get('as')}.",
    "record.exported": lambda _: "A receipt of it was exported.",
    "grant.given": lambda _: "A grant was given with the approval.",
    "grant.used": lambda _: "Ran on a grant.",
    "grant.used_up": lambda _: "The grant was used up with it.",
}


def timeline(events: Iterable[AuditEvent]) -> list[Moment]:
    return [_moment(each) for each in events]


def _moment(event: AuditEvent) -> Moment:
    words = WORDS.get(event.name)
    said = words(event.data) if words else _spelt(event.name)
    return Moment(event.at, event.name, said, _who(event), str(event.data.get("remark") or ""))


def _spelt(name: str) -> str:
    """For events of which nothing more is known here."""
    return f"{name.replace('.', ': ').replace('_', ' ').capitalize()}."


def _who(event: AuditEvent) -> str:
    if event.actor is None:
        return ""
    name = event.actor.get_username()
    if event.name == "call.shown":
        return f"to {name}"
    return f"for {name}" if event.means == "system" else f"by {name}"

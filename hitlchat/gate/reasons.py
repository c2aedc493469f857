"""Why people decline, in words that are ready to be picked; their own words do as well."""

from collections.abc import Iterable
from typing import Final

from hitlchat.gate.decide import LONGEST_REASON
from hitlchat.gate.models import Decision, Verdict
from hitlchat.gate.storable import storable

PRESETS: Final = ("Not now", "Wrong arguments", "Too risky", "Not what I asked for")


class BadReason(ValueError):
    """The reason cannot reach the model as it was written; the message says why."""


def given(decisions: Iterable[Decision]) -> str:
    """Why a call was declined, of all that was decided about it; empty if it was not, or without a reason. Not by the
    time of each: others may have said yes with clocks that are ahead."""
    return next((each.reason for each in decisions if each.verdict == Verdict.DECLINE), "")


def checked(reason: str) -> str:
    """The reason as it is kept. BadReason: nothing of it is cut, so it has to fit."""
    # A browser sends each line's end as two characters, but counts it as one.
    reason = reason.replace("\r\n", "\n").strip()
    if len(reason) > LONGEST_REASON:
        raise BadReason(f"The reason has {len(reason):,} characters; at most {LONGEST_REASON:,} are passed on.")
    if reason != storable(reason):
        raise BadReason("The reason has a character that cannot be kept, such as U+0000.")
    return reason

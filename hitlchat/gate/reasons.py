"""Why people decline, in words that are ready to be picked; their own words do as well."""

from typing import Final

from hitlchat.gate.decide import LONGEST_REASON
from hitlchat.gate.storable import storable

PRESETS: Final = ("Not now", "Wrong arguments", "Too risky", "Not what I asked for")


class BadReason(ValueError):
    """The reason cannot reach the model as it was written; the message says why."""


def checked(reason: str) -> str:
    """The reason as it is kept. BadReason: nothing of it is cut, so it has to fit."""
    # A browser sends each line's end as two characters, but counts it as one.
    reason = reason.replace("\r\n", "\n").strip()
    if len(reason) > LONGEST_REASON:
        raise BadReason(f"The reason has {len(reason):,} characters; at most {LONGEST_REASON:,} are passed on.")
    if reason != storable(reason):
        raise BadReason("The reason has a character that cannot be kept, such as U+0000.")
    return reason

"""Which keys are vouched for, starting from one that is known: the own one, or one whose fingerprint somebody noted.

A key's signature over a seal covers all seals before, whoever signed those. Forward it is the endorsement that a key
gives to the one that follows it. Needs neither Django's settings nor a database.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hitlchat.record.seals import KEY
from hitlchat.record.signing import endorsed, fingerprint, is_signed


@dataclass(frozen=True)
class PublicKey:
    """As the record has it, in the order of `number`."""

    id: str
    public: str
    number: int
    endorsement: str


def broken(keys: Sequence[PublicKey], anchor: str) -> str:
    """Why the last of `keys` is not to be believed, if the one with the fingerprint `anchor` is; empty if it is."""
    for key in keys:
        if not _is_own_fingerprint(key):
            return f"The key {key.id[:16]}… on record is not the one that this fingerprint belongs to."
    places = [place for place, key in enumerate(keys) if key.id == anchor]
    if not places:
        return f"The record was never sealed with the key {anchor[:16]}…."
    for before, key in zip(keys[places[0] :], keys[places[0] + 1 :], strict=False):
        if not is_signed(before.public, key.endorsement, KEY, endorsed(key.public, before.id)):
            return f"The key {key.id[:16]}… took over, and the key {before.id[:16]}… before it never vouched for it."
    return ""


def onward(keys: Sequence[PublicKey], anchor: str) -> set[str]:
    """The anchor and the keys after it. What is chained below a seal of one of them is believed with that seal."""
    ids = [key.id for key in keys]
    return set(ids[ids.index(anchor) :]) if anchor in ids else set()


def _is_own_fingerprint(key: PublicKey) -> bool:
    try:
        return fingerprint(key.public) == key.id
    except ValueError:
        return False

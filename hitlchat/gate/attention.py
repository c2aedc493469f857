"""Attention: how long somebody had a card before them, and how long reading it takes (SR-42).

A log and no condition: an answer without a recorded display counts like any other, and the record says that there was
none. What is kept is for everyone to see who it is about.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hitlchat.base.moments import about
from hitlchat.base.statements import compiled
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import FOLD_AFTER, FOLD_AFTER_LINES, MOST_FACTS, ROWS_SHOWN, SHOWN_OF_FOLDED, in_order, lines
from hitlchat.gate.contents import spelled
from hitlchat.gate.models import Approval, Decision, Showing, Verdict
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note

logger = logging.getLogger("hitlchat.gate")

# Silent reading of non-fiction in English, and the mean length of its words with the space after each: M. Brysbaert,
# “How many words do we read per minute?”, Journal of Memory and Language 109 (2019), 104047.
WORDS_A_MINUTE: Final = 238
CHARACTERS_A_WORD: Final = 5.6
# Who knows a tool skims its card. Nobody reads four times as fast as that.
FRACTION: Final = 0.25
# Below it nobody has taken in even the shortest question; and after so long nobody is said to have hurried.
FLOOR_SECONDS: Final = 2.0
MOST_SECONDS: Final = 30.0
# An answer that took longer was interrupted by something else: no more than this counts as time that asking took.
IDLE_SECONDS: Final = 120

# What a card shows without a click, besides the arguments, of a stored disclosure.
_SHOWN: Final = ("prompt", "reason", "preview", "again", "attempt")

SHOWN: Final = "call.shown"
# Whether folded text was opened, as a page says it of its own person. Anything else says nothing.
CLAIMS: Final = {"yes": True, "no": False}


@dataclass(frozen=True)
class Together:
    """Several questions answered at once. `since`: when the first of them was shown; `seconds`: to read them all."""

    since: datetime | None
    seconds: float


@dataclass(frozen=True)
class Looked:
    """Facts on how an answer came about. `opened`: whether folded text was, as the page claims; None:
    nothing was folded. `since`: first shown then, on the card of an identical call. `typed`: what a page was given for
    the value that its card may ask for; None: the answer comes from no page. `caution_read`: it comes with the
    tick for a second model's caution.
    """

    opened: bool | None = None
    since: datetime | None = None
    typed: str | None = None
    together: Together | None = None
    caution_read: bool = False


NOTHING_KNOWN: Final = Looked()


def seconds_to_read(disclosure: dict[str, Any]) -> float:
    """Return the time to read all that the card of `disclosure` shows folded. What is missing takes no time."""
    texts = list(_texts(disclosure))
    # Of an id or a key each by itself nobody reads every letter, and not all languages have spaces: the less counts.
    words = min(sum(len(text.split()) for text in texts), sum(map(len, texts)) / CHARACTERS_A_WORD)
    return words / WORDS_A_MINUTE * 60


def least_seconds(reading: float) -> float:
    """Seconds below which an answer to what takes `reading` seconds was hurried."""
    return min(MOST_SECONDS, max(FLOOR_SECONDS, FRACTION * reading))


def shown(approval: Approval, actor: Actor) -> None:
    """Keep that `actor`, who may see it, has the card of `approval` before them now; the first time in a round counts.

    Any number of times, at the price of one query. For programs and consoles: in the moment they deliver it. Never
    raises for the database's sake: nobody is kept from looking, nor from answering, since a log could not be written.
    """
    is_someone = actor.is_person or (actor.means == "elicitation" and actor.user_id is not None)
    if not is_someone or approval.call.status != Status.WAITING:
        return
    first = {"approval_id": approval.pk, "person_id": actor.user_id, "round": approval.call.round}
    try:
        if not Showing.objects.filter(**first).exists():
            with transaction.atomic():
                more = {"means": actor.means, "digest": approval.digest}
                _, is_first = Showing.objects.get_or_create(**first, defaults=more)
                if is_first:
                    data = {"approval": str(approval.pk), "digest": approval.digest, "round": approval.call.round}
                    note(approval.call_id, SHOWN, actor=actor, data=data)
    except DatabaseError:
        logger.exception("The display of approval %s could not be recorded", approval.pk)


def claimed(claim: object) -> bool | None:
    """Return what a page says of folded text; None if it says nothing, or nothing that makes sense."""
    return CLAIMS.get(claim) if isinstance(claim, str) else None


def together(approvals: Iterable[Approval], actor: Actor) -> Together:
    rows = list(approvals)
    displays = Showing.objects.filter(approval__in=rows, person_id=actor.user_id).values_list("approval", "round", "at")
    rounds = {row.pk: row.call.round for row in rows}
    times = [at for approval, number, at in displays if rounds[approval] == number]
    return Together(min(times, default=None), sum(seconds_to_read(row.disclosure) for row in rows))


def weigh(decision: Decision, looked: Looked) -> Decision:
    """Write into `decision`, which is about to be kept, what is known of how it came about; with one query."""
    shown = looked.since or _shown(decision.approval_id, decision.person_id, decision.round).first()
    decision.first_shown_at, decision.opened = shown, looked.opened
    since, seconds = decision.first_shown_at, 0.0
    if looked.together is not None:
        since, seconds = looked.together.since, looked.together.seconds
    elif since is not None:
        seconds = seconds_to_read(decision.approval.disclosure)
    # A no that comes fast lets nothing run.
    if decision.verdict == Verdict.APPROVE and since is not None:
        took = (decision.decided_at - since).total_seconds()
        decision.hurried = took < least_seconds(seconds)
    return decision


def shown_for(decision: Decision) -> timedelta | None:
    """Return the time from first display to the answer; None if hitlchat knows of no display."""
    if decision.first_shown_at is None:
        return None
    return max(timedelta(0), decision.decided_at - decision.first_shown_at)


def shown_for_ms(decision: Decision) -> int | None:
    took = shown_for(decision)
    return None if took is None else round(took.total_seconds() * 1000)


def facts(decision: Decision) -> dict[str, Any]:
    return {"shownForMs": shown_for_ms(decision), "opened": decision.opened, "hurried": decision.hurried}


def words(decision: Decision, disclosure: dict[str, Any], *, timed: bool = False) -> str:
    """The same in plain sentences, for whoever looks at the record, its person among them.

    `timed`: how long it took since the question is said beside it, so a second figure has to say more.
    """
    took = shown_for(decision)
    if took is None:
        return _("Not shown by hitlchat before the answer.")
    after, least = about(took.total_seconds()), about(max(1.0, seconds_to_read(disclosure)))
    if decision.hurried:
        sentence = _("Answered in {after} (about {least} to read).").format(after=after, least=least)
    else:
        sentence = "" if timed else _("Answered in {after}.").format(after=after)
    folded = _("Not all folded text was opened.") if decision.opened is False else ""
    return f"{sentence} {folded}".strip()


@compiled
def _shown(approval_id: UUID, person_id: int, number: int) -> QuerySet[Showing, datetime]:
    rows = Showing.objects.filter(approval_id=approval_id, person_id=person_id, round=number)
    return rows.order_by("pk").values_list("at", flat=True)


def _texts(disclosure: dict[str, Any]) -> Iterator[str]:
    for name in _SHOWN:
        yield from _leaves(disclosure.get(name))
    yield from _leaves([disclosure.get("tool", {}).get(name) for name in ("name", "origin")])
    yield from _leaves(disclosure.get("facts", [])[:MOST_FACTS])
    for name in in_order(disclosure)[0]:
        yield name
        yield _before_fold(spelled(disclosure["arguments"][name]))
        for line in lines(disclosure, name):
            yield line.words
            yield line.value.plain if line.value else ""
    for name, (text, _cut) in disclosure.get("lastTime", {}).get("missing", {}).items():
        yield name
        yield text


def _leaves(value: Any) -> Iterator[str]:
    """Every text and number in JSON; of what folds, the part before the fold."""
    if isinstance(value, dict | list):
        parts: Iterable[Any] = value.values() if isinstance(value, dict) else value[: ROWS_SHOWN + 2]
        for part in parts:
            yield from _leaves(part)
    elif value is not None and not isinstance(value, bool):
        yield _before_fold(str(value))


def _before_fold(text: str) -> str:
    folds = len(text) > FOLD_AFTER or text.count("\n") >= FOLD_AFTER_LINES
    return text[:SHOWN_OF_FOLDED] if folds else text

"""The person at a terminal: each question is shown as it comes, and answered as themselves through the gate."""

import select
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Final
from uuid import UUID

from django.db.models import Max, QuerySet

from hitlchat.approvals.console import showing
from hitlchat.approvals.console.showing import must_unfold, one_line
from hitlchat.gate import decide, deciders
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card
from hitlchat.gate.models import Approval, AuditEvent
from hitlchat.gate.status import Status

SHORTEST_DIGEST: Final = 12
APPROVED: Final = "Approved. A server performs it within a few seconds."
COUNTED: Final = "Approved. The call runs once the others have approved it too."
DECLINED: Final = "Declined. It does not run."
OTHER_DIGEST: Final = "The digest does not belong to the waiting call. Show the call again and read what it says now."
YES_OR_LEAVE: Final = 'Type "approve" to run the call, anything else to leave it: '
WHAT: Final = 'Type "approve", "decline" or "later": '
WHY: Final = "Reason, for the model to read (Enter for none): "
LEFT: Final = "Nothing was decided. The call is still waiting."
NEITHER: Final = "Nothing was decided: type one of the three words."
# What is typed within it was meant for something else (SR-39).
TOO_SOON_SECONDS: Final = 0.4
LOOK_AGAIN_SECONDS: Final = 1.0
LONGEST_LINE: Final = 4096
LOOK_EVERY_SECONDS: Final = 1.5
# What comes about by time alone, or was committed late, leaves no newer event.
LOOK_ANYWAY_SECONDS: Final = 15.0
# Read at once; what is asked for is nearly always among the first of them.
AT_ONCE: Final = 200
REFUSALS: Final = (
    decide.NoSuchApproval,
    decide.AlreadySettled,
    decide.OtherDigest,
    decide.BadEdit,
    deciders.NotEntitled,
    deciders.AlreadyCounted,
    decide.BadReason,
    showing.NobodyNamed,
)

Write = Callable[[str], None]
# An approval, and the round in which it is asked.
Key = tuple[UUID, int]


class Ended(Exception):
    """Nobody is at the terminal any more: it was closed, or ended by Ctrl-D."""


class Overtaken(Exception):
    """The call that the person was asked about has its outcome already."""


def approve(approval_id: UUID, actor: Actor, digest: str) -> str:
    """Say yes to the call with this consent digest, whole or its first 12 characters or more; what comes of it, in
    words. What decide.py raises.
    """
    found = showing.approval(approval_id)
    matches = len(digest) >= SHORTEST_DIGEST and found.digest.startswith(digest.lower())
    # Whoever may not see it, or comes too late, is told that and not what is right or wrong about a digest.
    if not matches and deciders.sees(actor, found) and found.call.status == Status.WAITING:
        raise decide.OtherDigest(OTHER_DIGEST)
    decided = decide.approve(approval_id, actor, digest=found.digest if matches else digest)
    return COUNTED if decided.call.status == Status.WAITING else APPROVED


def decline(approval_id: UUID, actor: Actor, reason: str) -> str:
    """Say no; what comes of it, in words. What decide.py raises, BadReason."""
    decide.decline(approval_id, actor, reason=decide.checked_reason(reason))
    return DECLINED


def require(found: Approval, actor: Actor) -> None:
    """Require that a yes of `actor` would count as things are. Raises: what decide.py raises."""
    if not deciders.sees(actor, found):
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    if found.call.status != Status.WAITING:
        raise decide.AlreadySettled(found.call)
    decide.require(actor, found)
    deciders.require(actor, found)


def refusal(error: Exception) -> str:
    """Return why an answer did not count; of one that came too late also who decided, and how."""
    if isinstance(error, decide.AlreadySettled):
        settled = Approval.objects.select_related("call").get(call=error.call)
        return f"{error} Your answer was not recorded. {showing.sentence(settled)}"
    return f"{one_line(str(error))} Nothing was decided."


def overtaken(found: Approval) -> str:
    """Return what became of a question that its person was about to answer."""
    now = showing.approval(found.pk)
    if now.call.status == Status.WAITING:
        return "The call asks again and will come back."
    return f"It has its outcome meanwhile. {showing.sentence(now)}"


class Desk:
    """A person at a terminal. Nothing is read ahead, so that what was typed too soon can be thrown away."""

    def __init__(self, stdin: IO[str], write: Write, actor: Actor, style: showing.Style) -> None:
        self._file = stdin.fileno()
        self._read = stdin.buffer.raw.read  # type: ignore[attr-defined]
        self._write, self._actor, self._style = write, actor, style

    def confirm(self, found: Approval) -> str:
        """Show the card and have it approved, or left. Raises: what `require` raises, Ended, Overtaken."""
        card = self._show(found)
        return approve(found.pk, self._actor, card.digest) if self._ask(YES_OR_LEAVE, card) == "approve" else LEFT

    def decide(self, found: Approval) -> str:
        """Show the card and have it approved, declined, or left for later."""
        card = self._show(found)
        try:
            while (typed := self._ask(WHAT, card)) not in ("approve", "decline", "later"):
                self._write(f"{NEITHER}\n")
            if typed == "later":
                return LEFT
            if typed == "approve":
                return approve(found.pk, self._actor, card.digest)
            return decline(found.pk, self._actor, self._reason(card))
        except Overtaken:
            return f"\n{overtaken(found)}"
        except REFUSALS as error:
            return refusal(error)

    def rest(self, seconds: float) -> None:
        """Wait so long; Ended if the terminal ends meanwhile. What is typed counts for nothing."""
        if select.select([self._file], [], [], seconds)[0] and not self._read(LONGEST_LINE):
            raise Ended

    def _show(self, found: Approval) -> Card:
        card = showing.card_of(found, self._actor)
        facts = showing.presented(found, card, viewer=self._actor, full=must_unfold(card))
        self._write(f"{self._style.text(facts)}\n")
        # What is typed until a moment after the card appeared is forgotten.
        time.sleep(TOO_SOON_SECONDS)
        termios.tcflush(self._file, termios.TCIFLUSH)
        return card

    def _ask(self, question: str, card: Card) -> str:
        """Return the line that is typed in answer.

        Raises: Ended; Overtaken within a second of the question being no longer the one on the card.
        """
        self._write(question)
        while not select.select([self._file], [], [], LOOK_AGAIN_SECONDS)[0]:
            rows = Approval.objects.filter(pk=card.id, digest=card.digest, call__status=Status.WAITING)
            if not rows.filter(call__round=card.round).exists():
                raise Overtaken
        # A terminal gives one line at a time, and nothing at its end.
        typed: bytes = self._read(LONGEST_LINE) or b""
        if not typed.endswith(b"\n"):
            raise Ended
        return typed.decode(errors="replace").strip()

    def _reason(self, card: Card) -> str:
        while True:
            try:
                return decide.checked_reason(self._ask(WHY, card))
            except decide.BadReason as error:
                self._write(f"{error}\n")


@dataclass
class Watch:
    """What waits among `rows`, a query, of which nothing is reported twice."""

    rows: Callable[[], QuerySet[Approval]]
    seen: set[Key] = field(default_factory=set)
    _latest: int | None = -1
    _looked: float = 0.0

    def next(self) -> Approval | None:
        """Return the most urgent question that was not reported; None while there is none.

        Between events it costs one look at the end of an index.
        """
        if not self._is_due():
            return None
        key = next((each for each in self._waiting() if each not in self.seen), None)
        if key is None:
            return None
        self.seen.add(key)
        # There may be more.
        self._looked = 0.0
        return showing.approval(key[0])

    def events(self) -> Iterator[dict[str, object]]:
        """Yield what began and what ended to wait since the last call, as JSON objects."""
        if not self._is_due():
            return
        now = set(self._waiting())
        for found, round_ in _read(self.seen - now):
            end = showing.ENDS.get(Status(found.call.status), "approved")
            if found.call.status == Status.WAITING:
                # Either the round is over, or the call waits for other people.
                end = "again" if found.call.round > round_ else "others"
            yield {"event": end, **showing.line(found)}
        for found, _ in _read(now - self.seen):
            yield {"event": "waiting", **showing.line(found)}
        self.seen = now

    def _waiting(self) -> Iterator[Key]:
        """Yield what waits, read as far as it is needed."""
        start, ids = 0, self.rows().values_list("pk", "call__round")
        while page := list(ids[start : start + AT_ONCE]):
            yield from page
            start += AT_ONCE

    def _is_due(self) -> bool:
        latest = AuditEvent.objects.aggregate(latest=Max("pk"))["latest"]
        is_due = latest != self._latest or time.monotonic() - self._looked > LOOK_ANYWAY_SECONDS
        if is_due:
            self._latest, self._looked = latest, time.monotonic()
        return is_due


def _read(keys: set[Key]) -> Iterator[tuple[Approval, int]]:
    """Yield each with the round that was meant, in the order in which they were asked, without what is large."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), AT_ONCE):
        rounds = dict(ordered[start : start + AT_ONCE])
        rows = Approval.objects.filter(pk__in=rounds).select_related("call__caller").defer(*showing.LARGE)
        for found in rows.order_by("pk"):
            yield found, rounds[found.pk]

"""A card, the question what to do with it, and what the person at the terminal types."""

import select
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from hitlchat.approvals.console import answering, looking, showing
from hitlchat.approvals.console.facts import must_unfold
from hitlchat.gate import decide
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status

# What is typed within it was meant for something else (SR-39).
TOO_SOON_SECONDS = 0.4
LOOK_AGAIN_SECONDS = 1.0
LONGEST_LINE = 4096


class Ended(Exception):
    """There is nobody at the terminal any more: it was closed, or ended by Ctrl-D."""


class Overtaken(Exception):
    """What the person was asked about has its outcome already."""


class Terminal:
    """`stdin` of a terminal. Nothing is read ahead, so that what was typed too soon can be thrown away."""

    def __init__(self, stdin: IO[str], write: Callable[[str], None]) -> None:
        self._file = stdin.fileno()
        self._write = write
        self._read = stdin.buffer.raw.read  # type: ignore[attr-defined]

    def settle(self) -> None:
        """A moment after something appeared, and forget what was typed until then."""
        time.sleep(TOO_SOON_SECONDS)
        termios.tcflush(self._file, termios.TCIFLUSH)

    def ask(self, question: str, stands: Callable[[], bool]) -> str:
        """The line that is typed in answer. Ended; Overtaken once `stands` says so, which is asked every second."""
        self._write(question)
        while not select.select([self._file], [], [], LOOK_AGAIN_SECONDS)[0]:
            if not stands():
                raise Overtaken
        # A terminal gives one line at a time, and nothing at its end.
        typed: bytes = self._read(LONGEST_LINE) or b""
        if not typed.endswith(b"\n"):
            raise Ended
        return typed.decode(errors="replace").strip()

    def rest(self, seconds: float) -> None:
        """Wait so long; Ended if the terminal ends meanwhile. What is typed counts for nothing."""
        if select.select([self._file], [], [], seconds)[0] and not self._read(LONGEST_LINE):
            raise Ended


YES_OR_LEAVE = 'Type "approve" to run it, anything else to leave it: '
WHAT = 'Type "approve", "decline" or "later": '
WHY = "Reason, which the model is told (Enter for none): "
LEFT = "Nothing was decided; it waits on."
NEITHER = "Nothing was decided: that was none of the three."

Write = Callable[[str], None]


@dataclass(frozen=True)
class Desk:
    """Where a person answers: at `terminal`, as `actor`."""

    terminal: Terminal
    actor: Actor
    style: showing.Style
    write: Write

    def confirm(self, found: Approval) -> str:
        """Show the card and have it approved, or left. What answering.py raises, Ended, Overtaken."""
        card = self._show(found)
        typed = self.terminal.ask(YES_OR_LEAVE, lambda: stands(card))
        return answering.approve(found.pk, self.actor, card.digest) if typed == "approve" else LEFT

    def decide(self, found: Approval) -> str:
        """Show the card and have it approved, declined, or left for later."""
        card = self._show(found)
        try:
            while (typed := self.terminal.ask(WHAT, lambda: stands(card))) not in ("approve", "decline", "later"):
                self.write(f"{NEITHER}\n")
            return self._answer(card, found, typed)
        except Overtaken:
            return f"\n{overtaken(found)}"
        except answering.REFUSALS as error:
            return answering.refusal(error)

    def _show(self, found: Approval) -> Card:
        card = looking.card_of(found, self.actor)
        told = showing.presented(found, card, viewer=self.actor, full=must_unfold(card))
        self.write(f"{self.style.text(told)}\n")
        self.terminal.settle()
        return card

    def _answer(self, card: Card, found: Approval, typed: str) -> str:
        if typed == "later":
            return LEFT
        if typed == "approve":
            return answering.approve(found.pk, self.actor, card.digest)
        return answering.decline(found.pk, self.actor, self._reason(card))

    def _reason(self, card: Card) -> str:
        while True:
            typed = self.terminal.ask(WHY, lambda: stands(card))
            try:
                return decide.checked_reason(typed)
            except decide.BadReason as error:
                self.write(f"{error}\n")


def stands(card: Card) -> bool:
    """Whether the question is still the one on the card."""
    rows = Approval.objects.filter(pk=card.id, digest=card.digest, call__status=Status.WAITING)
    return rows.filter(call__round=card.round).exists()


def overtaken(found: Approval) -> str:
    now = looking.approval(found.pk)
    if now.call.status == Status.WAITING:
        return "It is asked about again meanwhile, and comes anew."
    return f"It has its outcome meanwhile. {showing.sentence(now)}"

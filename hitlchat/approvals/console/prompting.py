"""A card, and the question what to do with it, for the person at the terminal."""

from collections.abc import Callable
from dataclasses import dataclass

from hitlchat.approvals.console import answering, looking, showing
from hitlchat.approvals.console.facts import must_unfold
from hitlchat.approvals.console.terminal import Overtaken, Terminal
from hitlchat.gate import decide
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status

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

"""One approval on the screen: its card while it waits, and what became of it afterwards."""

from collections.abc import Iterator
from dataclasses import dataclass

from hitlchat.approvals.console import looking, printing
from hitlchat.approvals.console.facts import facts
from hitlchat.approvals.console.text import Fact, fact, one_line, plain, said
from hitlchat.base import canonical
from hitlchat.base.visible import see
from hitlchat.gate import attention, results, who
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card
from hitlchat.gate.models import Approval, Decision, Verdict
from hitlchat.gate.status import Status


@dataclass(frozen=True)
class Style:
    """How to print: `plain`, one fact a line, or with boxes; in `colours` where that is a terminal."""

    plain: bool = False
    colours: bool = False

    def text(self, what: list[Fact]) -> str:
        return printing.in_plain(what) if self.plain else printing.in_boxes(what, colours=self.colours)


def shown(found: Approval, *, viewer: Actor | None = None, full: bool = False) -> list[Fact]:
    """For whoever looks, who may be nobody in particular."""
    if found.call.status == Status.WAITING:
        return presented(found, looking.card_of(found, viewer), viewer=viewer, full=full)
    return [*became(found), *_as_shown(found, full=full)]


def presented(found: Approval, card: Card, *, viewer: Actor | None, full: bool) -> list[Fact]:
    """The card of a question that waits, about to be before its person: the one place at the console that shows one."""
    if viewer is not None:
        attention.shown(found, viewer)
    return facts(card, found, full=full)


def became(found: Approval) -> list[Fact]:
    """What became of the question: in all the words that there are for it."""
    status = Status(found.call.status)
    answers = looking.decisions(found)
    edited = [each.edited_arguments for each in answers if each.edited_arguments is not None]
    changed = (fact("Ran with", see(canonical.pretty(each, indent=2)), "value") for each in edited[-1:])
    return [said("Outcome", f"{status.label}."), *map(_answer, answers), *changed, *_why(found)]


def sentence(found: Approval) -> str:
    """The same in one line, but for arguments that were changed."""
    return " ".join(plain(line) for each in became(found) if each.kind != "value" for line in each.lines)


def _answer(decision: Decision) -> Fact:
    word = "Approved" if decision.verdict == Verdict.APPROVE else "Declined"
    name = one_line(decision.person.get_username())
    reason = f" Reason: {one_line(decision.reason)}" if decision.reason else ""
    return said("Decision", f"{word} by {name}, {one_line(who.how(decision))}.{reason}")


def _why(found: Approval) -> Iterator[Fact]:
    call = found.call
    if call.status == Status.WITHDRAWN and call.reason:
        yield fact("Why", see(call.reason))
    if call.error:
        yield fact("What happened", see(results.sentence(call.error)))


def _as_shown(found: Approval, *, full: bool) -> list[Fact]:
    try:
        card = looking.card_of(found)
    except KeyError:
        return [said("As shown", "an older record, which lacks a part of the card")]
    return [said("As shown", "the card, as it was when it was asked"), *facts(card, found, full=full)]

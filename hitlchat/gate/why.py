"""Asking why: what people asked the model about a call, and what it claimed. Nothing checks what it claims.

The record keeps both, and is where they are read: nobody can change them later, and no conversation has them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import lookalikes
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import Seen, see
from hitlchat.gate import meant, question
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, AuditEvent, ToolCall
from hitlchat.gate.status import Status

ASKED_WHY, WHY_ANSWERED = "call.asked_why", "call.why_answered"
# Questions about one call, each of which costs a request, whether it is answered or not.
MOST: Final = 3
LONGEST_QUESTION: Final = 300
LONGEST_ANSWER: Final = 1500
UNANSWERED: Final = gettext_noop("The model did not answer in time.")
NOTHING: Final = gettext_noop("The model answered with nothing.")
IMITATION: Final = gettext_noop("The model's answer uses words of this card, so it is not shown.")
# Buttons, levels and labels of a card, in the languages of the pages; as they are folded, line by line.
_OF_A_CARD: Final = re.compile(
    r"^(?:approve|decline|genehmigen|ablehnen) ?:|\bapprove ?: ?run\b|\bdecline ?: ?don't run\b|"
    r"^genehmigt (?:von|durch)\b|"
    r"\bl[0-5] ?[-\u2013:·(]? ?(?:verified|safe|low|moderate|high|critical)|consent digest|prufsumme ?:|"
    r"\bl[0-5] ?[-\u2013:·(]? ?(?:gepruft|sicher|niedrig|mittel|hoch|kritisch)|"
    r"what the model says|was das modell sagt|nothing checked it|reported by the tool|vom werkzeug gemeldet",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Exchange:
    """A question and what came of it. With `trouble`, the reason in words, there is no answer; `cut`: it was longer."""

    number: int
    person: str
    question: str
    asked_at: datetime
    until: datetime
    answer: str = ""
    cut: bool = False
    trouble: str = ""
    answered_at: datetime | None = None

    @property
    def waits(self) -> bool:
        return not (self.answer or self.trouble)

    @property
    def shown(self) -> Seen:
        return see(self.answer)


@dataclass(frozen=True)
class Whys:
    """All that was asked about a call. `may_ask`: whoever looks at it may ask more; `left`: how often."""

    exchanges: tuple[Exchange, ...]
    may_ask: bool
    left: int
    longest: int = LONGEST_QUESTION

    @property
    def waits(self) -> bool:
        return any(each.waits for each in self.exchanges)

    @property
    def again(self) -> bool:
        """Return whether the last question got no answer."""
        return bool(self.exchanges) and bool(self.exchanges[-1].trouble)

    @property
    def mark(self) -> str:
        """Return a text that changes whenever what is shown changes."""
        return f"{len(self.exchanges)}.{sum(each.waits for each in self.exchanges)}.{self.may_ask:d}"


def has_model(call: ToolCall) -> bool:
    """Return whether a model of ours asked for the call, and in a conversation. A question is its own words already."""
    return call.conversation_id is not None and not question.is_one(call)


def may_ask(call: ToolCall, actor: Actor) -> bool:
    return actor.is_person and actor.user_id == call.caller_id


def of(approval: Approval, viewer: Actor | None = None) -> Whys | None:
    """Return what was asked; None where there is no model to ask. Costs a query only where something was."""
    call = approval.call
    if not has_model(call):
        return None
    found = of_calls([call.pk]).get(call.pk, ()) if approval.whys else ()
    asks = viewer is not None and may_ask(call, viewer)
    return Whys(found, asks and call.status == Status.WAITING, MOST - approval.whys)


def of_calls(call_ids: Iterable[UUID]) -> dict[UUID, tuple[Exchange, ...]]:
    """Return what was asked about each of these calls, in its order."""
    rows = AuditEvent.objects.filter(call__in=list(call_ids), name__in=[ASKED_WHY, WHY_ANSWERED]).order_by("pk")
    found: dict[UUID, dict[int, Exchange]] = {}
    for each in rows:
        assert each.call_id is not None
        exchanges, data = found.setdefault(each.call_id, {}), each.data
        if each.name == ASKED_WHY:
            until, by = datetime.fromisoformat(data["until"]), data["by"]["name"]
            exchanges[data["number"]] = Exchange(data["number"], by, data["question"], each.at, until)
        elif data["number"] in exchanges:
            answer = "" if data["trouble"] else data["answer"]
            more = {"answer": answer, "cut": data["cut"], "trouble": data["trouble"], "answered_at": each.at}
            exchanges[data["number"]] = replace(exchanges[data["number"]], **more)
    return {call_id: tuple(map(_now, exchanges.values())) for call_id, exchanges in found.items()}


def judged(text: str, *, is_whole: bool) -> tuple[str, bool, str]:
    """Return the answer as it is shown, whether it was cut, and why it is not shown; empty if it is."""
    words = text.strip()
    folded = "\n".join(" ".join(line.split()) for line in lookalikes.fold(words).text.splitlines())
    is_like_a_card = meant.LIKE_A_CARD.search(folded) or _OF_A_CARD.search(folded)
    trouble = IMITATION if is_like_a_card else "" if words else NOTHING
    return words[:LONGEST_ANSWER], not is_whole or len(words) > LONGEST_ANSWER, trouble


def slow(seconds: int) -> str:
    return translatable(f"The model did not answer within {seconds} seconds.")


def _now(exchange: Exchange) -> Exchange:
    """Return it as it stands: of a server that died no answer comes any more."""
    is_over = exchange.waits and exchange.until <= timezone.now()
    return replace(exchange, trouble=UNANSWERED) if is_over else exchange

"""A conversation as its page shows it: messages with their calls, cards that wait, what the run does."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString

from hitlchat.agent import branches, runs
from hitlchat.agent.branches import Versions
from hitlchat.agent.models import ACTIVE, Conversation, Message, MessageState, QueuedMessage, Role, Run
from hitlchat.base import canonical
from hitlchat.base.durations import about
from hitlchat.chat.grid import Grid, grid
from hitlchat.chat.markdown import render
from hitlchat.gate import attention, batch, contents, deciders, placing, results, stopping, who
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card, card, key
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.models import Approval, Decision, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.elicitation.card import QuestionCard
from hitlchat.upstreams.elicitation.card import card as question_card

MOST_MESSAGES = 80
SHOWN_OF_RESULT = 4000


@dataclass(frozen=True)
class CallView:
    call: ToolCall
    summary: str
    result: str
    # The same as a table, if it is one.
    grid: Grid | None
    hidden: int
    fate: str
    arguments: str
    # The arguments as they were asked, if a person changed them.
    asked: str
    approval: Approval | None
    # Of the card that asks about it.
    card_key: str
    reason: str
    decided_at: datetime | None
    # How long what was answered had been shown, in sentences.
    looked: str
    questions: list[QuestionCard]
    can_stop: bool


@dataclass(frozen=True)
class MessageView:
    message: Message
    html: SafeString | str
    calls: list[CallView]
    # Of what a person said; None where there is but one.
    versions: Versions | None = None

    @property
    def is_answer(self) -> bool:
        """Return whether it ends a run, whose work can be done again."""
        return self.message.role == Role.ASSISTANT and not self.streaming and not self.calls

    @property
    def streaming(self) -> bool:
        return self.message.state == MessageState.STREAMING

    @property
    def is_cut(self) -> bool:
        return self.message.state == MessageState.CUT


@dataclass(frozen=True)
class Asked:
    """The cards, and which of them may be answered together; and how many calls come up once some are answered."""

    cards: list[Card]
    groups: list[batch.Group]
    held: int = 0


@dataclass(frozen=True)
class RunView:
    status: str
    waiting: int
    active: bool
    run_id: UUID | None
    # Nothing of what waits is for its owner to answer.
    for_others: bool = False
    # Of a server, if one waits for its person.
    question_id: UUID | None = None


def messages(conversation_id: UUID, before: int | None = None) -> tuple[list[MessageView], int]:
    """The last messages (before place `before`), oldest first; and the place before which there are more, or 0."""
    rows = Message.objects.shown().filter(conversation_id=conversation_id).exclude(role=Role.TOOL).order_by("-seq")
    found = list((rows if before is None else rows.filter(seq__lt=before))[: MOST_MESSAGES + 1])
    shown = found[:MOST_MESSAGES][::-1]
    calls = _calls(Q(turn_id__in=[message.pk for message in shown]))
    earlier = shown[0].seq if len(found) > MOST_MESSAGES else 0
    versions = branches.versions(shown)
    return [_message(each, calls.get(each.pk, []), versions.get(each.pk)) for each in shown], earlier


def message(conversation_id: UUID, message_id: UUID) -> MessageView | None:
    row = Message.objects.shown().filter(pk=message_id, conversation_id=conversation_id).first()
    if row is None:
        return None
    return _message(row, _calls(Q(turn_id=row.pk)).get(row.pk, []), branches.versions([row]).get(row.pk))


def call(conversation_id: UUID, call_id: UUID) -> CallView | None:
    found = _calls(Q(pk=call_id, conversation_id=conversation_id))
    return next((view for views in found.values() for view in views), None)


def asked(conversation_id: UUID) -> Asked:
    """Return what waits for an answer in this conversation, in the order in which it was asked."""
    waiting = Approval.objects.filter(call__conversation_id=conversation_id, call__status=Status.WAITING)
    found = waiting.select_related("call__tool").defer("call__arguments", "call__tool__input_schema")
    leads = batch.leads(found.order_by("call__created_at", "call__position"))
    # A conversation is its owner's, for whom all its calls are. When they signed in, each of their pages knows.
    cards = [replace(card(row, Actor(row.call.caller_id, "session")), times=times) for row, times in leads]
    # Those that were asked more than once are answered by themselves: their yes is for one of them.
    once = [(row, each) for (row, times), each in zip(leads, cards, strict=True) if times == 1]
    groups = batch.groups([row for row, _ in once], [each for _, each in once])
    return Asked(cards, groups, _held(conversation_id))


def _held(conversation_id: UUID) -> int:
    run = Run.objects.filter(conversation_id=conversation_id, status__in=ACTIVE).values_list("turn_id", flat=True)
    return runs.count(run.first())


def grants(conversation_id: UUID) -> dict[str, Any]:
    """Return the context of the meter; `meter_seen` changes with what it shows."""
    chat = Conversation.objects.only("owner_id").get(pk=conversation_id)
    found = [(grant, scope.left(grant)) for grant in giving.in_conversation(conversation_id, chat.owner_id)]
    told = [[str(grant.pk), left] for grant, left in found]
    return {"meter": found, "meter_seen": canonical.sha256(told)[:16], "conversation": chat}


def queued(conversation_id: UUID) -> QuerySet[QueuedMessage]:
    """Return the messages that wait for the end of the run, in their order."""
    return QueuedMessage.objects.filter(conversation_id=conversation_id)


def title(conversation_id: UUID) -> str:
    """The first message makes it, so it may change while a page is open."""
    return str(Conversation.objects.get(pk=conversation_id))


def run(conversation_id: UUID) -> RunView:
    last = Conversation.objects.filter(pk=conversation_id).values_list("tip", "tip__status").first()
    asked = Approval.objects.filter(call__conversation_id=conversation_id, call__status=Status.WAITING)
    waiting = len(batch.leads(asked.order_by().only("same")))
    run_id, status = last or (None, None)
    if run_id is None or status is None:
        return RunView("", waiting, active=False, run_id=None)
    found = questions.open_in(conversation_id).values_list("pk", flat=True).first()
    others = waiting > 0 and not _waits_for_owner(conversation_id)
    return RunView(status, waiting, active=status in ACTIVE, run_id=run_id, for_others=others, question_id=found)


def _waits_for_owner(conversation_id: UUID) -> bool:
    owner = Conversation.objects.values_list("owner_id", flat=True).get(pk=conversation_id)
    return deciders.waiting_for(owner).filter(call__conversation_id=conversation_id).exists()


def _message(row: Message, calls: list[CallView], versions: Versions | None) -> MessageView:
    html = render(row.content) if row.role != Role.USER and row.state != MessageState.STREAMING else row.content
    return MessageView(row, html, calls, versions)


def _calls(which: Q) -> dict[UUID | None, list[CallView]]:
    rows: QuerySet[ToolCall] = ToolCall.objects.filter(which).select_related("approval")
    found: dict[UUID | None, list[CallView]] = {}
    more = ("approval__decisions__person", "approval__grants", "questions__answered_by")
    for row in rows.prefetch_related(*more).order_by("position", "created_at"):
        found.setdefault(row.turn_id, []).append(_call(row))
    return found


def _call(row: ToolCall) -> CallView:
    approval: Approval | None = getattr(row, "approval", None)
    text = contents.text(row) if row.status == Status.SUCCEEDED else ""
    return CallView(
        call=row,
        summary=approval.prompt if approval else _summary(row.arguments),
        result=text[:SHOWN_OF_RESULT],
        grid=grid(contents.structured(row)) if row.status == Status.SUCCEEDED else None,
        hidden=max(0, len(text) - SHOWN_OF_RESULT),
        fate=fate(row, approval),
        arguments=canonical.pretty(row.arguments, indent=2),
        asked=_asked(row, approval),
        approval=approval,
        card_key=key(approval.pk, row.round) if approval else "",
        reason=row.reason,
        decided_at=decisions[-1].decided_at if (decisions := _decisions(approval)) else None,
        looked=attention.words(decisions[-1], approval.disclosure) if approval and decisions else "",
        questions=[question_card(question) for question in row.questions.all()],
        can_stop=stopping.can_stop(row) and not stopping.is_requested(row),
    )


def _asked(row: ToolCall, approval: Approval | None) -> str:
    if approval is None or canonical.dumps(approval.disclosure["arguments"]) == canonical.dumps(row.arguments):
        return ""
    return canonical.pretty(approval.disclosure["arguments"], indent=2)


def _decisions(approval: Approval | None) -> list[Decision]:
    """Return one for each time it was asked about and answered."""
    return list(approval.decisions.all()) if approval else []


def fate(row: ToolCall, approval: Approval | None) -> str:
    """Return what became of a call, in plain sentences: who, how long it took, what happened."""
    said = [_said(decision, row) for decision in _decisions(approval)]
    said += [
        f"A grant was given with it: {scope.sentence(each)}" for each in (approval.grants.all() if approval else ())
    ]
    return " ".join(part for part in (*said, _ending(row)) if part)


def _said(decision: Decision, row: ToolCall) -> str:
    seconds = (decision.decided_at - row.created_at).total_seconds()
    word = "Approved" if decision.verdict == "approve" else "Declined"
    said = f"{word} by {decision.person.get_username()}, {who.how(decision)}, after {about(seconds)}."
    if decision.edited_arguments is not None:
        said += " The arguments were changed first."
    if decision.reason:
        said += f" Reason: “{decision.reason}”"
    if decision.round < row.round:
        said += " It was asked about again, since its preview was another one by then."
    return said


def _ending(row: ToolCall) -> str:
    match Status(row.status):
        case Status.DECLINED:
            return "It was not executed."
        case Status.EXPIRED:
            return "Nobody answered in time. It was not executed."
        case Status.WITHDRAWN | Status.REFUSED | Status.REJECTED:
            return row.reason
        case Status.UNKNOWN:
            return f"{_why_unknown(row)} It may or may not have happened. It will not be repeated by itself."
        case Status.FAILED:
            return results.sentence(row.error or {})
        case Status.APPROVED | Status.ALLOWED:
            return placing.outlook(row)
        case Status.EXECUTING:
            who = stopping.requested_by(row)
            return f"{who} told it to stop. It may still go on." if who else "It is executing now."
        case _:
            return ""


def _why_unknown(row: ToolCall) -> str:
    event = row.events.filter(name="call.unknown").last()
    why = str(event.data.get("reason", "")) if event else ""
    return f"{why[:1].upper()}{why[1:].rstrip('.')}." if why else "The server stopped while this was executing."


def _summary(arguments: dict[str, Any]) -> str:
    text = ", ".join(
        f"{name} {value if isinstance(value, str) else canonical.pretty(value)}" for name, value in arguments.items()
    )
    return text if len(text) <= 160 else text[:159] + "…"

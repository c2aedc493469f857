"""A conversation as its page shows it: messages with their calls, cards that wait, what the run does."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitlchat.agent import branches, conversations, endpoints, routes, runs, usage
from hitlchat.agent.attachments import keeping, kinds, reading
from hitlchat.agent.branches import Versions
from hitlchat.agent.model_client import uses_demo
from hitlchat.agent.models import ACTIVE, Attachment, Conversation, Message, MessageState, QueuedMessage, Role, Run
from hitlchat.agent.usage import Used
from hitlchat.base import canonical
from hitlchat.base.moments import about
from hitlchat.base.sentences import translated
from hitlchat.base.statements import compiled, prefetch
from hitlchat.base.visible import escaped
from hitlchat.chat.grid import Grid, grid
from hitlchat.gate import (
    attention,
    batch,
    contents,
    decide,
    disclosure,
    oversight,
    question,
    queue,
    results,
    stopping,
    who,
)
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card, card, key
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.models import Approval, Asks, Decision, Grant, ToolCall, Verdict, delegation
from hitlchat.gate.models.delegation import Delegation
from hitlchat.gate.status import Status
from hitlchat.gate.tools import AGENT
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.models import UpstreamQuestion
from hitlchat.upstreams.pages.questions import QuestionCard
from hitlchat.upstreams.pages.questions import card as question_card

MOST_MESSAGES = 80
SHOWN_OF_RESULT = 4000
# A longer result is folded.
LONG_RESULT = 1000
SHOWN_OF_ARGUMENTS = 20_000
SHOWN_OF_THOUGHTS = 50_000
# What a person said, of signs each of which takes several in HTML.
LONG_AS_HTML = 300_000
# Of an agent: all of them are on its own page.
MOST_STEPS = 50
NOT_ON_CARDS = ("call__arguments", "call__tool__input_schema")


@dataclass(frozen=True)
class CallView:
    call: ToolCall
    summary: str
    result: str
    # The same as a table, if it is one.
    grid: Grid | None
    # Characters of the result, and how many of them are not among those shown.
    size: int
    hidden: int
    # What its line says of an answer beyond its status.
    verdict: str
    fate: str
    arguments: str
    # What it printed.
    output: str
    # The arguments as they were asked, if a person changed them.
    asked: str
    approval: Approval | None
    # Of the card that asks about it.
    card_key: str
    decided_at: datetime | None
    # How long what was answered had been shown, in sentences.
    looked: str
    questions: list[QuestionCard]
    can_stop: bool
    # Of a call of an agent, once it works.
    agent: "AgentView | None"

    @property
    def is_long(self) -> bool:
        return self.size > LONG_RESULT

    @property
    def granted_until(self) -> datetime | None:
        grants = self.approval.grants.all() if self.approval else ()
        return next((each.until for each in grants), None)


@dataclass(frozen=True)
class StepView:
    """A call of an agent."""

    call: ToolCall
    summary: str
    agent: "AgentView | None" = None


@dataclass(frozen=True)
class AgentView:
    """The calls of an agent that works for a call, with what agents below it do, and where all of it can be read."""

    conversation_id: UUID
    steps: list[StepView]
    more: bool


@dataclass(frozen=True)
class FileView:
    """`note`: what the model does not get of it."""

    row: Attachment
    label: str
    note: str

    @property
    def plain(self) -> str:
        return escaped(self.row.name)


@dataclass(frozen=True)
class MessageView:
    """`html`: the text as it was written, until it is laid out (chat/layout.py)."""

    message: Message
    html: SafeString | str
    calls: list[CallView]
    # Of what a person said; None where there is but one.
    versions: Versions | None = None
    files: list[FileView] = field(default_factory=list)
    # None where the model server has told nothing.
    used: Used | None = None

    @property
    def is_answer(self) -> bool:
        """Return whether it ends a run, whose work can be done again."""
        return self.message.role == Role.ASSISTANT and not self.streaming and not self.calls

    @property
    def streaming(self) -> bool:
        return self.message.state == MessageState.STREAMING

    @property
    def thoughts(self) -> str:
        return _beginning(self.message.reasoning, SHOWN_OF_THOUGHTS)

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
    # Of a server, if one waits for its person.
    question_id: UUID | None = None
    # It failed, and without images it might not have.
    refused_images: bool = False
    # Why the model is about to be asked once more.
    retrying: str = ""
    # Of the conversation: the first message makes it, so it may change while a page is open.
    title: str = ""


def messages(conversation_id: UUID, before: int | None = None) -> tuple[list[MessageView], int]:
    """The last messages (before place `before`), oldest first; and the place before which there are more, or 0."""
    rows = Message.objects.shown().filter(conversation_id=conversation_id).exclude(role=Role.TOOL).order_by("-seq")
    rows = rows.prefetch_related("attachments")
    found = list((rows if before is None else rows.filter(seq__lt=before))[: MOST_MESSAGES + 1])
    shown = found[:MOST_MESSAGES][::-1]
    return _views(conversation_id, shown), shown[0].seq if len(found) > MOST_MESSAGES else 0


def message(conversation_id: UUID, message_id: UUID) -> MessageView | None:
    row = _message(conversation_id, message_id).one()
    return None if row is None else _views(conversation_id, [row])[0]


def _views(conversation_id: UUID, shown: list[Message]) -> list[MessageView]:
    calls = _calls(_of_turns([each.pk for each in shown])) if shown else {}
    versions = branches.versions(shown)
    used = usage.of_messages(conversation_id, [each.pk for each in shown if each.role == Role.ASSISTANT])
    attached = {row.pk: list(row.attachments.all()) for row in shown if row.role == Role.USER}
    has_images = any(each.is_image for files in attached.values() for each in files)
    unsent = reading.left_out(Conversation.objects.get(pk=conversation_id)) if has_images else set()
    views = []
    for row in shown:
        # A person's message is on the page twice: to be read, and to be edited.
        is_long = row.role == Role.USER and len(escape(row.content)) > LONG_AS_HTML
        views.append(
            MessageView(
                message=row,
                html=_beginning(row.content, SHOWN_OF_THOUGHTS) if is_long else row.content,
                calls=calls.get(row.pk, []),
                versions=versions.get(row.pk),
                files=[_file(each, unsent) for each in attached.get(row.pk, ())],
                used=used.get(row.pk),
            )
        )
    return views


def chip(row: Attachment) -> dict[str, Any]:
    """Return a file as the composer of a page shows it."""
    about = {"id": str(row.pk), "name": row.name, "mediaType": row.media_type, "size": row.size}
    return about | {"note": keeping.note(row)}


def attach(conversation: Conversation | None) -> dict[str, Any]:
    """Return the context of the button that attaches files."""
    limits = {"mib": settings.ATTACHMENT_MIB, "bytes": keeping.most_bytes(), "files": settings.ATTACHMENT_FILES}
    takes_images = settings.MODEL_IMAGES > 0 if conversation is None else routes.takes_images(conversation)
    return {"attach": limits, "takes_images": takes_images}


def call(conversation_id: UUID, call_id: UUID) -> CallView | None:
    found = _calls(_of_id(conversation_id, call_id))
    return next((view for views in found.values() for view in views), None)


def asked(conversation_id: UUID, viewer: Actor) -> Asked:
    """Return what waits for an answer in this conversation and of its agents, in the order in which it was asked."""
    waiting = [*_asked_here(conversation_id), *_asked_below(conversation_id)]
    leads = queue.leads(sorted(waiting, key=lambda row: (row.call.created_at, row.call.position)))
    cards = [replace(card(row, viewer), times=times) for row, times in leads]
    # Those that were asked more than once are answered by themselves: their yes is for one of them.
    once = [(row, each) for (row, times), each in zip(leads, cards, strict=True) if times == 1]
    groups = batch.groups([row for row, _ in once], [each for _, each in once])
    return Asked(cards, groups, runs.count(_turn(conversation_id).first()))


def grants(conversation_id: UUID) -> dict[str, Any]:
    """Return the context of the meter; `meter_seen` changes with what it shows."""
    chat = Conversation.objects.only("owner_id").get(pk=conversation_id)
    word = oversight.strictness_of(conversation_id)
    found = [
        (grant, scope.left(grant, _), oversight.asks_under(word, grant.risk_level) is None)
        for grant in giving.in_conversation(conversation_id, chat.owner_id)
    ]
    told = [[str(grant.pk), left, counts] for grant, left, counts in found]
    return {"meter": found, "meter_seen": canonical.sha256(told)[:16], "conversation": chat}


def total(conversation_id: UUID) -> dict[str, Any]:
    """Return the context of what the conversation's answers took in all, and how far its context is filled."""
    used = usage.of_conversation(conversation_id)
    endpoint_id, length = _context(conversation_id).one() or (None, None)
    found = length if endpoint_id else endpoints.environment().context_length
    filled = min(100, round(100 * usage.last_input(conversation_id) / found)) if found and used.tokens else 0
    return {"used": used, "filled": filled}


def model(conversation: Conversation) -> dict[str, Any]:
    """Return the context of the chooser of models, of a conversation or of one that begins."""
    choices = routes.choices(conversation)
    chosen = next((each for _name, group in choices.groups for each in group if each.is_chosen), None)
    is_demo = bool(chosen) and uses_demo() and conversation.endpoint is None
    return {
        "choices": choices,
        "model_name_here": choices.missing or (chosen.model if chosen else ""),
        "trouble": routes.trouble(conversation, _),
        "demo_answers": is_demo,
    }


def asks_by_itself(conversation: Conversation) -> dict[str, Any]:
    """Return the context of the chooser of what the conversation asks about by itself."""
    word, words = oversight.strictness_of(conversation.pk), conversations.asks_choices(conversation)
    return {
        "word": word,
        "choices": [(each, label) for each, label in Asks.choices if each in words],
        "is_known": word in Asks.values,
        "is_stricter": word != Asks.TOOLS,
        "label": Asks(word if word in Asks.values else Asks.EVERY).label,
    }


def queued(conversation_id: UUID) -> QuerySet[QueuedMessage]:
    """Return the messages that wait for the end of the run, in their order."""
    return QueuedMessage.objects.filter(conversation_id=conversation_id).prefetch_related("attachments")


def run(conversation_id: UUID) -> RunView:
    chat = _with_tip(conversation_id).one()
    waiting, title = len({same or str(pk) for same, pk in _cards(conversation_id)}), str(chat or "")
    if chat is None or chat.tip is None:
        return RunView("", waiting, active=False, run_id=None, title=title)
    return RunView(
        chat.tip.status,
        waiting,
        active=chat.tip.status in ACTIVE,
        run_id=chat.tip.pk,
        question_id=questions.open_in(conversation_id).one(),
        refused_images=chat.tip.refused_images,
        retrying=chat.tip.retrying,
        title=title,
    )


@compiled
def _with_tip(conversation_id: UUID) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(pk=conversation_id).select_related("tip")
    return rows.only("title", "tip__status", "tip__refused_images", "tip__retrying")


@compiled
def _context(conversation_id: UUID) -> QuerySet[Conversation, tuple[UUID | None, int | None]]:
    rows = Conversation.objects.filter(pk=conversation_id)
    return rows.values_list("endpoint_id", "endpoint__context_length")


@compiled
def _cards(conversation_id: UUID) -> QuerySet[Approval, tuple[str, UUID]]:
    """What tells the cards of a conversation, and of the agents below it, apart."""
    here, below = (rows.values_list("same", "pk") for rows in _asked(conversation_id))
    return here.union(below)


@compiled
def _asked_here(conversation_id: UUID) -> QuerySet[Approval]:
    return _asked(conversation_id)[0].select_related("call__tool").defer(*NOT_ON_CARDS)


@compiled
def _asked_below(conversation_id: UUID) -> QuerySet[Approval]:
    return _asked(conversation_id)[1].select_related("call__tool").defer(*NOT_ON_CARDS)


def _asked(conversation_id: UUID) -> tuple[QuerySet[Approval], QuerySet[Approval]]:
    """Return what waits in a conversation, and what in those of the agents below it: each has an index of its own."""
    waiting = Approval.objects.order_by().filter(call__status=Status.WAITING)
    below = Delegation.objects.order_by().filter(above_id=conversation_id).values("conversation_id")
    return waiting.filter(call__conversation_id=conversation_id), waiting.filter(call__conversation_id__in=below)


@compiled
def _turn(conversation_id: UUID) -> QuerySet[Run, UUID | None]:
    """The turn of the run that is under way."""
    return Run.objects.filter(conversation_id=conversation_id, status__in=ACTIVE).values_list("turn_id", flat=True)


def _file(row: Attachment, unsent: set[UUID]) -> FileView:
    note = _("The model is not sent this image.") if row.pk in unsent else keeping.note(row)
    return FileView(row, kinds.LABELS.get(row.media_type, row.media_type), note)


def _calls(rows: Iterable[ToolCall]) -> dict[UUID | None, list[CallView]]:
    listed, found = list(rows), dict[UUID | None, list[CallView]]()
    approvals = [row.approval for row in listed if hasattr(row, "approval")]
    prefetch(approvals, "decisions", _decisions, "approval_id")
    prefetch(approvals, "grants", _grants, "approval_id")
    prefetch(listed, "questions", _questions, "call_id")
    agents = _agents([row.pk for row in listed if row.source == AGENT])
    for row in listed:
        found.setdefault(row.turn_id, []).append(_call(row, agents.get(row.pk)))
    return found


@compiled
def _message(conversation_id: UUID, message_id: UUID) -> QuerySet[Message]:
    return Message.objects.shown().filter(pk=message_id, conversation_id=conversation_id)


@compiled
def _of_turns(turn_ids: list[UUID]) -> QuerySet[ToolCall]:
    return _shown(ToolCall.objects.filter(turn_id__in=turn_ids))


@compiled
def _of_id(conversation_id: UUID, call_id: UUID) -> QuerySet[ToolCall]:
    return _shown(ToolCall.objects.filter(pk=call_id, conversation_id=conversation_id))


def _shown(rows: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    schemas = ("tool__input_schema", "tool__output_schema", "tool__description")
    return rows.select_related("approval", "tool").defer(*schemas).order_by("position", "created_at")


@compiled
def _decisions(approval_ids: list[UUID]) -> QuerySet[Decision]:
    return Decision.objects.filter(approval__pk__in=approval_ids).select_related("person")


@compiled
def _grants(approval_ids: list[UUID]) -> QuerySet[Grant]:
    return Grant.objects.filter(approval__pk__in=approval_ids)


@compiled
def _questions(call_ids: list[UUID]) -> QuerySet[UpstreamQuestion]:
    return UpstreamQuestion.objects.filter(call__pk__in=call_ids).select_related("answered_by")


def _agents(call_ids: list[UUID]) -> dict[UUID, AgentView]:
    """Return what the agents do that these calls began."""
    begun = delegation.begun_by(call_ids) if call_ids else {}
    if not begun:
        return {}
    rows = ToolCall.objects.filter(conversation_id__in=begun.values()).select_related("approval")
    listed = list(disclosure.with_words(rows).order_by("created_at", "position"))
    # As deep as agents may call agents.
    below = _agents([row.pk for row in listed if row.source == AGENT])
    steps: dict[UUID | None, list[StepView]] = {}
    for row in listed:
        steps.setdefault(row.conversation_id, []).append(StepView(row, disclosure.sentence(row), below.get(row.pk)))
    return {
        call_id: AgentView(where, steps.get(where, [])[:MOST_STEPS], len(steps.get(where, [])) > MOST_STEPS)
        for call_id, where in begun.items()
    }


def _call(row: ToolCall, agent: AgentView | None) -> CallView:
    approval: Approval | None = getattr(row, "approval", None)
    # One for each time it was asked about and answered.
    decisions = list(approval.decisions.all()) if approval else []
    text = contents.text(row) if row.status == Status.SUCCEEDED else ""
    arguments, asked = canonical.pretty(row.arguments, indent=2), ""
    if approval is not None and not question.is_one(row):
        before = approval.disclosure["arguments"]
        is_changed = canonical.dumps(before) != canonical.dumps(row.arguments)
        asked = _beginning(canonical.pretty(before, indent=2), SHOWN_OF_ARGUMENTS) if is_changed else ""
    return CallView(
        call=row,
        summary=disclosure.sentence(row),
        result=text[:SHOWN_OF_RESULT],
        grid=None if contents.has_text_beside(row) or not text else grid(contents.structured(row)),
        size=len(text),
        hidden=max(0, len(text) - SHOWN_OF_RESULT),
        verdict=_verdict(decisions[-1], row) if decisions else "",
        fate=fate(row, approval),
        arguments=_beginning(arguments, SHOWN_OF_ARGUMENTS),
        output=_beginning(row.output, SHOWN_OF_ARGUMENTS),
        asked=asked,
        approval=approval,
        card_key=key(approval.pk, row.round) if approval else "",
        decided_at=decisions[-1].decided_at if decisions else None,
        looked=attention.words(decisions[-1], approval.disclosure) if approval and decisions else "",
        questions=[question_card(each) for each in row.questions.all()],
        can_stop=stopping.can_stop(row) and not stopping.is_requested(row),
        agent=agent,
    )


def _beginning(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    left = _("%(hidden)s more characters are kept in the record.") % {"hidden": f"{len(text) - most:,}"}
    return f"{text[:most]}…\n{left}"


def fate(row: ToolCall, approval: Approval | None) -> str:
    """Return the outcome of a call in plain sentences: who decided, how long it took, and how it ended."""
    sentences = []
    if approval is not None:
        grant = _("A grant was given with it: {grant}")
        sentences += [_answer(decision, row) for decision in approval.decisions.all()]
        sentences += [grant.format(grant=scope.sentence(each, translated)) for each in approval.grants.all()]
    return " ".join(part for part in (*sentences, _ending(row)) if part)


def _verdict(last: Decision, row: ToolCall) -> str:
    name = last.person.get_username()
    if last.verdict == Verdict.APPROVE:
        if question.is_one(row):
            return _("Answered by {name}: “{answer}”").format(name=name, answer=question.in_words(row.arguments))
        return "" if last.edited_arguments is None else _("Approved with changes by {name}").format(name=name)
    if last.verdict == Verdict.ANSWER:
        return _("Answered in the tool's place by {name}").format(name=name)
    if last.verdict == Verdict.SUGGEST:
        return _("Declined by {name}, to do instead: “{reason}”").format(name=name, reason=last.reason)
    if not last.reason:
        return _("Declined by {name}").format(name=name)
    return _("Declined by {name}: “{reason}”").format(name=name, reason=decide.shown_reason(last.reason))


def _answer(decision: Decision, row: ToolCall) -> str:
    seconds, yes = (decision.decided_at - row.created_at).total_seconds(), decision.verdict == "approve"
    said = _("Approved by {name}, {how}, after {span}.") if yes else _("Declined by {name}, {how}, after {span}.")
    if yes and question.is_one(row):
        said = _("Answered by {name}, {how}, after {span}.")
    if decision.verdict == Verdict.ANSWER:
        said = _("Answered in the tool's place by {name}, {how}, after {span}.")
    said = said.format(name=decision.person.get_username(), how=translated(who.how(decision)), span=about(seconds))
    if decision.edited_arguments is not None and not question.is_one(row):
        said += " " + _("The arguments were changed first.")
    if decision.reason:
        why = _("Note: “{reason}”") if yes else _("Reason: “{reason}”")
        if decision.verdict == Verdict.SUGGEST:
            why = _("To do instead: “{reason}”")
        said += " " + why.format(reason=decide.shown_reason(decision.reason))
    if decision.round < row.round:
        said += " " + _("This call was asked about again because its preview had changed.")
    return said


def _ending(row: ToolCall) -> str:
    match Status(row.status):
        case Status.DECLINED | Status.EXPIRED if question.is_one(row):
            return _("The model was told that there was no answer.")
        case Status.DECLINED | Status.EXPIRED | Status.ANSWERED:
            words = {
                Status.DECLINED: _("It was not executed."),
                Status.EXPIRED: _("Nobody answered in time, and the call did not run."),
                Status.ANSWERED: _("The tool did not run. The model reads that a person answered."),
            }
            return words[Status(row.status)]
        case Status.WITHDRAWN | Status.REFUSED | Status.REJECTED:
            return translated(row.reason)
        case Status.UNKNOWN:
            again = _("It may or may not have happened. It will not be repeated automatically.")
            return f"{_why_unknown(row)} {again}"
        case Status.FAILED:
            return results.sentence(row.error or {})
        case Status.APPROVED | Status.ALLOWED:
            return _(stopping.outlook(row))
        case Status.EXECUTING:
            name = stopping.requested_by(row)
            stopped = _("{name} requested a stop. It may still be running.")
            return stopped.format(name=name) if name else _("Running now.")
        case _:
            return ""


def _why_unknown(row: ToolCall) -> str:
    event = row.events.filter(name="call.unknown").last()
    why = str(event.data.get("reason", "")) if event else ""
    sentence = f"{why[:1].upper()}{why[1:].rstrip('.')}." if why else "The server stopped while this was executing."
    return _(sentence)

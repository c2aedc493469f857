"""A conversation as its page shows it: messages with their calls, cards that wait, what the run does."""

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitlchat.agent import branches, conversations, endpoints, presets, routes, usage
from hitlchat.agent.attachments import keeping, kinds, reading
from hitlchat.agent.branches import Versions
from hitlchat.agent.calls import held_back
from hitlchat.agent.model_client import uses_demo
from hitlchat.agent.models import ACTIVE, Attachment, Conversation, Message, MessageState, QueuedMessage, Role, Run
from hitlchat.agent.usage import Used
from hitlchat.base import canonical
from hitlchat.base.statements import compiled
from hitlchat.base.visible import escaped
from hitlchat.chat import call_view
from hitlchat.gate import batch, oversight, queue
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card, card
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.models import Approval, Asks
from hitlchat.gate.models.delegation import Delegation
from hitlchat.gate.status import Status
from hitlchat.upstreams.elicitation import questions

MOST_MESSAGES = 80
SHOWN_OF_THOUGHTS = 50_000
# What a person said, of signs each of which takes several in HTML.
LONG_AS_HTML = 300_000
NOT_ON_CARDS = ("call__arguments", "call__tool__input_schema")


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
    calls: list[call_view.CallView]
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
        return call_view.beginning(self.message.reasoning, SHOWN_OF_THOUGHTS)

    @property
    def is_cut(self) -> bool:
        return self.message.state == MessageState.CUT


@dataclass(frozen=True)
class Waiting:
    """The cards, and which of them may be answered together; and how many calls come up once some are answered."""

    cards: list[Card]
    groups: list[batch.Group]
    more: int = 0


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
    calls = call_view.of_turns([each.pk for each in shown])
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
                html=call_view.beginning(row.content, SHOWN_OF_THOUGHTS) if is_long else row.content,
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


def waiting(conversation_id: UUID, viewer: Actor) -> Waiting:
    """Return what waits for an answer in this conversation and of its agents, in the order in which it was asked."""
    rows = [*_asked_here(conversation_id), *_asked_below(conversation_id)]
    leads = queue.leads(sorted(rows, key=lambda row: (row.call.created_at, row.call.position)))
    cards = [replace(card(row, viewer), times=times) for row, times in leads]
    # Those that were asked more than once are answered by themselves: their yes is for one of them.
    once = [(row, each) for (row, times), each in zip(leads, cards, strict=True) if times == 1]
    groups = batch.groups([row for row, _ in once], [each for _, each in once])
    return Waiting(cards, groups, held_back(_turn(conversation_id).first()))


def grants(conversation_id: UUID) -> dict[str, Any]:
    """Return the context of the meter; `meter_seen` changes with what it shows."""
    chat = Conversation.objects.only("owner_id").get(pk=conversation_id)
    word = oversight.strictness_of(conversation_id)
    found = [
        (grant, scope.left(grant, _), oversight.asks_under(word, grant.risk_level) is None)
        for grant in giving.in_conversation(conversation_id, chat.owner_id)
    ]
    listed = [[str(grant.pk), left, counts] for grant, left, counts in found]
    return {"meter": found, "meter_seen": canonical.sha256(listed)[:16], "conversation": chat}


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
    chosen = choices.chosen
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
        "label": Asks(presets.asks_word(word)).label,
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


@compiled
def _message(conversation_id: UUID, message_id: UUID) -> QuerySet[Message]:
    return Message.objects.shown().filter(pk=message_id, conversation_id=conversation_id)


def _file(row: Attachment, unsent: set[UUID]) -> FileView:
    note = _("The model is not sent this image.") if row.pk in unsent else keeping.note(row)
    return FileView(row, kinds.LABELS.get(row.media_type, row.media_type), note)

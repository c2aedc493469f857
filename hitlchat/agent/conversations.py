"""Conversations as their owner keeps them: titled, pinned, archived, deleted, and brought back."""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from hitlchat.agent import runner, search, writing
from hitlchat.agent.models import ACTIVE, Conversation, Message, Run
from hitlchat.base.background import Worker
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.problems import Invalid, NotFound
from hitlchat.gate import withdraw
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import SETTLED
from hitlchat.gate.transition import note

LONGEST_TITLE: Final = 200
LONGEST_INSTRUCTIONS: Final = 10_000
# How long a deleted one can be brought back at least; pages offer it for ten seconds.
KEPT: Final = timedelta(minutes=1)
CLEAN_SECONDS: Final = 30.0
AT_ONCE: Final = 20
SHARED, UNSHARED = "conversation.shared", "conversation.unshared"
WHY: Final = "its conversation was deleted"


class BadConversation(Invalid):
    """The conversation cannot be so; `errors` says by field what was expected, and nothing was changed."""


def of(user: User | int) -> QuerySet[Conversation]:
    """Return the conversations of this person, without deleted ones."""
    return Conversation.objects.filter(owner=user, deleted_at=None)


def create(owner: User, *, title: str = "", **columns: Any) -> Conversation:
    """Begin a conversation: with a title of one's own, or with that which the first message makes."""
    with transaction.atomic():
        made = Conversation.objects.create(owner=owner, title=title, **columns)
        if title:
            search.note_title(made.pk, title)
    return made


def change(conversation: Conversation, **wanted: Any) -> None:
    """Set any of `title`, `pinned`, `archived`, `model`, `instructions`, `tools`. Raises: BadConversation."""
    columns: dict[str, Any] = {name: wanted[name] for name in ("model", "tools") if name in wanted}
    if "title" in wanted:
        columns["title"] = _title(wanted["title"])
    if "instructions" in wanted:
        columns["instructions"] = _instructions(wanted["instructions"])
    for name in ("pinned", "archived"):
        if name in wanted:
            before = getattr(conversation, f"{name}_at")
            columns[f"{name}_at"] = (before or timezone.now()) if wanted[name] else None
    with transaction.atomic():
        Conversation.objects.filter(pk=conversation.pk).update(**columns)
        if "title" in columns:
            search.note_title(conversation.pk, columns["title"])
    for name, value in columns.items():
        setattr(conversation, name, value)
    writing.tell_soon(conversation.pk, "run")


def _title(wanted: str) -> str:
    title = " ".join(wanted.split())
    if not title or title != storable(title) or len(title) > LONGEST_TITLE:
        raise BadConversation({"title": f"Expected 1 to {LONGEST_TITLE} characters that can be kept."})
    return title


def _instructions(wanted: str) -> str:
    text = wanted.replace("\r\n", "\n").strip()
    if text != storable(text) or len(text) > LONGEST_INSTRUCTIONS:
        expected = f"Expected at most {LONGEST_INSTRUCTIONS:,} characters that can be kept."
        raise BadConversation({"instructions": expected})
    return text


def share(conversation: Conversation, actor: Actor) -> None:
    """Let whoever is signed in and has the link read the conversation; on record. One that is shared stays as it is."""
    with transaction.atomic():
        rows = Conversation.objects.filter(pk=conversation.pk, share=None)
        if rows.update(share=uuid4()) == 1:
            note(None, SHARED, actor=actor, data={"conversation": str(conversation.pk)})
    conversation.refresh_from_db(fields=["share"])


def unshare(conversation: Conversation, actor: Actor) -> None:
    """End that; on record. Sharing it again makes another link."""
    with transaction.atomic():
        rows = Conversation.objects.filter(pk=conversation.pk, share__isnull=False)
        if rows.update(share=None) == 1:
            note(None, UNSHARED, actor=actor, data={"conversation": str(conversation.pk)})
    conversation.share = None


def shared(link: UUID) -> Conversation | None:
    """Return the conversation behind a link; None once sharing has ended, or its owner may not sign in any more."""
    rows = Conversation.objects.filter(share=link, deleted_at=None, owner__is_active=True)
    return rows.select_related("owner").first()


def delete(conversation: Conversation, actor: Actor) -> None:
    """Take the conversation away: nothing begins in it any more, its run ends, and what has not started is withdrawn.

    Its calls stay in the history and on the record. `restore` brings the rest back for KEPT.
    """
    # First: a run that begins after this is refused, and one that began before is found below.
    Conversation.objects.filter(pk=conversation.pk, deleted_at=None).update(deleted_at=timezone.now())
    _end(conversation.pk, actor)
    writing.tell_soon(conversation.pk, "gone")


def _end(conversation_id: UUID, actor: Actor) -> None:
    for run in Run.objects.filter(conversation_id=conversation_id, status__in=ACTIVE):
        runner.stop(run.pk, conversation_id, actor)
    withdraw.withdraw_conversation(conversation_id, actor=actor, why=WHY)


def restore(user: User, conversation_id: UUID) -> Conversation:
    """Bring back a deleted conversation; what was withdrawn stays withdrawn. Raises: NotFound, once it is gone."""
    Conversation.objects.filter(pk=conversation_id, owner=user).update(deleted_at=None)
    found = of(user).filter(pk=conversation_id).first()
    if found is None:
        raise NotFound("It is too late: this conversation is gone.")
    return found


def not_started(conversation: Conversation) -> int:
    """Return how many calls deleting it would withdraw."""
    return ToolCall.objects.filter(conversation_id=conversation.pk, status__in=withdraw.NOT_STARTED).count()


def cleaner() -> Worker:
    """Remove for good what was deleted a while ago."""
    return Worker("deleted conversations", in_db(purge), CLEAN_SECONDS)


def purge() -> None:
    """Remove the messages and runs of deleted conversations; one with a call that still executes waits for its end.

    What a process that died while it deleted one had left of it is ended first.
    """
    late = Conversation.objects.filter(deleted_at__lt=Now() - KEPT)
    for pk in list(late.values_list("pk", flat=True)[:AT_ONCE]):
        _end(pk, SYSTEM)
    open_calls = ToolCall.objects.filter(conversation_id=OuterRef("pk")).exclude(status__in=SETTLED)
    gone = late.filter(~Exists(open_calls))
    for pk in list(gone.values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            # Unless it was brought back just now, which locks the row too.
            if gone.select_for_update(of=("self",)).filter(pk=pk).first() is None:
                continue
            Message.objects.filter(conversation_id=pk).delete()
            Run.objects.filter(conversation_id=pk).delete()
            Conversation.objects.filter(pk=pk).delete()

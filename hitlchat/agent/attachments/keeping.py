"""Attachments as rows: taken in for a conversation, bound to what is said, fetched, and removed with their files."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Now
from django.http import HttpResponse
from django.utils.translation import gettext as _

from hitlchat.agent import routes
from hitlchat.agent.attachments import files, kinds, pdf
from hitlchat.agent.attachments.kinds import BadFile, TooLarge
from hitlchat.agent.models import Attachment, Conversation, Message
from hitlchat.base.background import Worker
from hitlchat.base.database import in_db
from hitlchat.base.download import stored
from hitlchat.base.problems import Conflict, Invalid, NotFound, required

# A draft that nobody sends loses its files after so long.
KEPT: Final = timedelta(days=3)
# Files that one person has ready without sending them.
MOST_UNSENT: Final = 100
SWEEP_SECONDS: Final = 600.0
AT_ONCE: Final = 500
UNSENT: Final = Q(message=None, queued=None)
# A conversation that began with a file on the start page, and in which nothing was ever said or set.
UNBEGUN: Final = Q(draft=True, runs=None, messages=None, queued=None)
# What is the same of a file that is said again with another message.
COPIED: Final = ("conversation", "name", "media_type", "size", "digest", "text", "length", "pages", "pages_read")


class BadAttachments(Invalid):
    """The files cannot be sent with this message; nothing was said."""

    field = "attachments"


class Sent(Conflict):
    """The attachment belongs to a message by now."""


class TooManyUnsent(Conflict):
    """A file too many: so many wait to be sent that nobody could mean one more."""


class NoRoomLeft(Conflict):
    """The person's files take up what one person may keep."""


def most_bytes() -> int:
    return int(settings.ATTACHMENT_MIB) * 2**20


def require_size(name: str, size: int) -> None:
    if size > most_bytes():
        sentence = _("“%(name)s” is %(size)s MiB. Files can be up to %(most)s MiB.")
        raise TooLarge(sentence % {"name": name, "size": f"{size / 2**20:.1f}", "most": settings.ATTACHMENT_MIB})


def add(conversation: Conversation, name: str, data: bytes) -> Attachment:
    """Keep a file for a message that is still to be sent. Raises: BadFile, TooManyUnsent, NoRoomLeft, NoRoom, Busy."""
    name = kinds.clean_name(name)
    require_size(name, len(data))
    _require_room(conversation, len(data))
    kind = kinds.kind_of(data, name)
    if kind.family == kinds.IMAGE and not routes.takes_images(conversation):
        raise BadFile(
            _("“%(name)s” is an image, which this model does not accept. Attach text or a PDF.") % {"name": name}
        )
    row = Attachment(conversation=conversation, name=name, media_type=kind.media_type, size=len(data))
    # What the model may read.
    text, most = kind.text, settings.ATTACHMENT_CHARACTERS
    if kind.family == kinds.PDF:
        found = pdf.extract(data, name, pdf.Limits(most))
        text, row.pages, row.pages_read = found.text, found.pages, found.read
    row.text, row.length = text[:most], len(text)
    with files.storing():
        row.digest = files.write(data)
        with transaction.atomic():
            # Of several that come at once each counts those before it.
            User.objects.select_for_update(no_key=True).get(pk=conversation.owner_id)
            _require_room(conversation, len(data))
            row.save(force_insert=True)
    return row


def _require_room(conversation: Conversation, size: int) -> None:
    theirs = Attachment.objects.filter(conversation__owner=conversation.owner_id)
    if theirs.filter(UNSENT).count() >= MOST_UNSENT:
        sentence = _("%(most)s files are waiting to be sent. Send or remove some first.")
        raise TooManyUnsent(sentence % {"most": MOST_UNSENT})
    if size + (theirs.aggregate(sum=Sum("size"))["sum"] or 0) > settings.ATTACHMENT_PERSON_MIB * 2**20:
        sentence = _("Your files use all of your %(most)s MiB. Delete conversations with files first.")
        raise NoRoomLeft(sentence % {"most": settings.ATTACHMENT_PERSON_MIB})


def unsent() -> QuerySet[Attachment]:
    return Attachment.objects.filter(UNSENT)


def mine(user: User) -> QuerySet[Attachment]:
    """Return those in conversations of this person, without deleted ones."""
    return Attachment.objects.filter(conversation__owner=user, conversation__deleted_at=None)


def only_drafts() -> QuerySet[Conversation]:
    """Return the conversations that are nothing but files for a first message that was not sent, or not even these:
    they were removed by hand, or the first one was refused.
    """
    return Conversation.objects.filter(UNBEGUN)


def shared(conversation: Conversation) -> QuerySet[Attachment]:
    """Return those that whoever may read the conversation sees: they belong to a message that is shown."""
    return Attachment.objects.filter(conversation=conversation, message__run__shown=True)


def fetched(row: Attachment) -> HttpResponse:
    """Return the file to be shown, or saved. Raises: NotFound, if the disk has it no more."""
    data = required(files.read(row.digest), NotFound(_("“%(name)s” is no longer on the server.") % {"name": row.name}))
    return stored(data, name=row.name, media_type=row.media_type, is_shown=row.is_image)


def claim(locked: Conversation, ids: Sequence[UUID], *, of: Message | None = None) -> list[Attachment]:
    """Return the unsent attachments with these ids in their order, also those `of` a message that is said in another
    way; within the transaction that holds the conversation. Raises: BadAttachments.
    """
    if not ids:
        return []
    theirs = UNSENT if of is None else UNSENT | Q(message=of)
    rows = {row.pk: row for row in locked.attachments.select_for_update().filter(theirs, pk__in=ids)}
    if len(ids) > settings.ATTACHMENT_FILES:
        sentence = _("Attach up to %(most)s files to a message, not %(count)s.")
        raise BadAttachments(sentence % {"most": settings.ATTACHMENT_FILES, "count": len(ids)})
    if len(set(ids)) < len(ids) or rows.keys() != set(ids):
        raise BadAttachments(_("An attachment no longer exists, or was already sent. Attach the file again."))
    if sum(row.size for row in rows.values()) > settings.ATTACHMENT_MESSAGE_MIB * 2**20:
        sentence = _("Attach up to %(most)s MiB of files to a message.")
        raise BadAttachments(sentence % {"most": settings.ATTACHMENT_MESSAGE_MIB})
    return [rows[each] for each in ids]


def bind(rows: Sequence[Attachment], message: Message) -> list[Attachment]:
    """Have the attachments belong to `message`, those of another message as copies; returns them as they are now."""
    bound = [
        row if row.message_id is None else Attachment(**{name: getattr(row, name) for name in COPIED}) for row in rows
    ]
    for place, row in enumerate(bound):
        row.message, row.queued, row.place = message, None, place
        row.save()
    return bound


def remove(row: Attachment) -> None:
    """Remove an attachment that was not sent. Raises: Sent."""
    if unsent().filter(pk=row.pk).delete()[0] == 0:
        raise Sent(_("“%(name)s” was sent with a message and cannot be removed.") % {"name": row.name})
    # Of a draft: what is written beside it may still be sent.
    Conversation.objects.filter(UNBEGUN, pk=row.conversation_id).update(updated_at=Now())
    forget([row.digest])


def note(row: Attachment) -> str:
    """Return what the model reads of a text that it does not get whole; empty if it does."""
    read = row.sent if row.message_id else len(row.text)
    if read >= row.length and row.pages_read >= row.pages:
        return ""
    if row.pages:
        sentence = _("The model reads %(read)s characters, from the first %(some)s of %(pages)s pages.")
        return sentence % {"read": f"{read:,}", "some": row.pages_read, "pages": row.pages}
    sentence = _("The model reads the first %(read)s of %(length)s characters.")
    return sentence % {"read": f"{read:,}", "length": f"{row.length:,}"}


# -- Files that nobody needs any more ----------------------------------------------------------------------------------


def sweeper() -> Worker:
    """Remove what abandoned drafts and crashes have left."""
    return Worker("attachments", in_db(sweep), SWEEP_SECONDS)


def sweep() -> None:
    """Remove attachments that were not sent for long, and files that no row names."""
    late = unsent().filter(created_at__lt=Now() - KEPT)
    emptied = only_drafts().filter(attachments=None, updated_at__lt=Now() - KEPT)
    with_files = late.order_by().values_list("conversation_id", flat=True)
    for conversation_id in {*with_files, *emptied.order_by().values_list("pk", flat=True)}:
        with transaction.atomic():
            # Whoever says something in it meanwhile locks it too.
            locked = Conversation.objects.select_for_update(of=("self",)).filter(pk=conversation_id)
            is_there = locked.first() is not None
            late.filter(conversation_id=conversation_id).delete()
            if is_there:
                Conversation.objects.filter(UNBEGUN, pk=conversation_id, attachments=None).delete()
    for digests in files.everything():
        for start in range(0, len(digests), AT_ONCE):
            forget(digests[start : start + AT_ONCE])


def forget(digests: Collection[str]) -> None:
    """Remove those files that no row names."""
    if not set(digests) - _named(digests):
        return
    with files.removing():
        # Again: one may have been attached since.
        files.remove(set(digests) - _named(digests))


def _named(digests: Collection[str]) -> set[str]:
    return set(Attachment.objects.filter(digest__in=digests).order_by().values_list("digest", flat=True))

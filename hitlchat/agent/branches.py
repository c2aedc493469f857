"""Branches of a conversation: what is said in place of something else, and which of it is shown.

Runs are the nodes: each has the one before it as its parent. Those that began with a message of the person and have the
same parent are its versions. The model reads the shown branch alone; what the calls of another one did stays done.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext_noop

from hitlchat.agent import transcript, writing
from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import Conversation, Message, Role, Run
from hitlchat.agent.runs import Claim, begin, first_words, holding, leave_out_images, retitle
from hitlchat.base.problems import NotFound, required

# As many parameters as each database takes.
AT_ONCE: Final = 10_000


class NoSuchVersion(NotFound):
    sentence = gettext_noop("This version no longer exists. Reload the page.")


@dataclass(frozen=True)
class Versions:
    """The runs that begin with a version of a message, and these messages, the oldest first; `place` counts from 1."""

    runs: tuple[UUID, ...]
    messages: tuple[UUID, ...]
    place: int

    @property
    def before(self) -> UUID | None:
        return self.runs[self.place - 2] if self.place > 1 else None

    @property
    def after(self) -> UUID | None:
        return self.runs[self.place] if self.place < len(self.runs) else None


@dataclass(frozen=True)
class Hidden:
    """A turn of a branch that is not shown: its run, and which version of a message leads there (None: none does)."""

    run_id: UUID
    versions: Versions | None


def instead(
    conversation_id: UUID,
    run_id: UUID,
    content: str | None = None,
    attached: Sequence[UUID] | None = None,
    *,
    without_images: bool = False,
) -> Claim:
    """Begin a run beside the one that `run_id` belongs to, with what was said there, or with `content` in its place.

    `attached`: which files go along, of what was said or not sent yet; None: those of what was said.
    `without_images`: if the model refused them last, it is sent none from now on.
    Claimed by this process. Raises: RunActive while a run goes on, NoSuchVersion, Gone, BadAttachments.
    """
    with holding(conversation_id) as locked:
        last, message, titled = locked.tip, _begun_with(locked, run_id), first_words(locked)
        assert message.run is not None
        before = list(message.attachments.all())
        rows = before if attached is None else keeping.claim(locked, attached, of=message)
        run = begin(locked, message.run.parent)
        _show(locked, run.pk)
        transcript.add_user(locked, run, message.content if content is None else content, rows)
        retitle(locked, titled)
        if without_images:
            leave_out_images(locked, run, last)
    return Claim(run.pk, conversation_id, run.owner)


def switch(conversation_id: UUID, run_id: UUID) -> None:
    """Show the branch of this run, as far as it was last gone on with. Raises: RunActive, NoSuchVersion, Gone."""
    with holding(conversation_id, idle=True) as locked:
        tip = required(Run.objects.filter(conversation=locked, pk=run_id).first(), NoSuchVersion)
        titled = first_words(locked)
        # Of each the child that began last.
        rows = Run.objects.filter(conversation=locked, parent__isnull=False).order_by("created_at", "pk")
        last = dict(rows.values_list("parent_id", "pk"))
        at = tip.pk
        while at in last:
            at = last[at]
        _show(locked, at)
        Conversation.objects.filter(pk=locked.pk).update(tip=at)
        retitle(locked, titled)
    writing.tell_soon(conversation_id, "resync")


def versions(messages: Iterable[Message]) -> dict[UUID, Versions]:
    """Return those of each message, by its id, that has more than one; with as many queries for many as for one."""
    begun = {each.run_id: each for each in messages if each.role == Role.USER and each.run_id is not None}
    if not begun:
        return {}
    parents = dict(Run.objects.filter(pk__in=begun).values_list("pk", "parent_id"))
    among = Q(run__parent_id__in={parent for parent in parents.values() if parent is not None})
    if None in parents.values():
        among |= Q(run__parent_id=None, run__isnull=False)
    conversation_id = next(iter(begun.values())).conversation_id
    rows = Message.objects.filter(among, conversation_id=conversation_id, role=Role.USER).order_by("seq")
    families: dict[UUID | None, dict[UUID, UUID]] = {}
    for run, message, parent in rows.values_list("run_id", "pk", "run__parent_id"):
        families.setdefault(parent, {})[run] = message
    found = ((run, families[parent]) for run, parent in parents.items())
    return {
        begun[run].pk: Versions(tuple(beside), tuple(beside.values()), [*beside].index(run) + 1)
        for run, beside in found
        if len(beside) > 1
    }


def begins_with(run_id: UUID) -> UUID:
    """Return the id of what the person said that the run begins with."""
    return Message.objects.values_list("pk", flat=True).get(run_id=run_id, role=Role.USER)


def hidden(conversation_id: UUID, turn_id: UUID) -> Hidden | None:
    """Return where the turn is, if it is one of the conversation's that are not shown."""
    turn = Message.objects.filter(pk=turn_id, conversation_id=conversation_id, run__shown=False)
    found = turn.first()
    if found is None or found.run_id is None:
        return None
    rows = Run.objects.filter(conversation_id=conversation_id, shown=False)
    parents, run = dict(rows.values_list("pk", "parent_id")), found.run_id
    while (parent := parents[run]) in parents:
        run = parent
    message = Message.objects.filter(run_id=run, role=Role.USER).first()
    return Hidden(found.run_id, versions([message]).get(message.pk) if message else None)


def _begun_with(locked: Conversation, run_id: UUID) -> Message:
    """Return what the person said that this run works on: one that tried again has the message of the run before it."""
    parents = dict(Run.objects.filter(conversation=locked).values_list("pk", "parent_id"))
    began = dict(Message.objects.filter(run__conversation=locked, role=Role.USER).values_list("run_id", "pk"))
    at: UUID | None = run_id if run_id in parents else None
    while at is not None and at not in began:
        at = parents[at]
    if at is None:
        raise NoSuchVersion
    return Message.objects.select_related("run__parent").get(pk=began[at])


def _show(locked: Conversation, tip: UUID) -> None:
    rows = Run.objects.filter(conversation=locked).values_list("pk", "parent_id", "shown")
    parents, shown = {pk: parent for pk, parent, _ in rows}, {pk for pk, _, is_shown in rows if is_shown}
    path: set[UUID] = set()
    at: UUID | None = tip
    while at is not None:
        path.add(at)
        at = parents[at]
    for pks, is_shown in ((shown - path, False), (path - shown, True)):
        changed = list(pks)
        for start in range(0, len(changed), AT_ONCE):
            Run.objects.filter(pk__in=changed[start : start + AT_ONCE]).update(shown=is_shown)

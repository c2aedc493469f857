"""Branches of a conversation: what is said in place of something else, and which of it is shown.

Runs are the nodes: each has the one before it as its parent. Those that began with a message of the person and have the
same parent are its versions. The model reads the shown branch alone; what the calls of another one did stays done.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext_noop

from hitlchat.agent import transcript
from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import ACTIVE, Conversation, Message, Role, Run
from hitlchat.agent.runs import Claim, RunActive, begin, hold_conversation, leave_out_images
from hitlchat.base.problems import NotFound


class NoSuchVersion(NotFound):
    """The run is not one of this conversation."""

    def __init__(self) -> None:
        super().__init__(gettext_noop("This version is gone. Reload the page."))


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
    try:
        with transaction.atomic():
            held = hold_conversation(conversation_id)
            last, said = held.tip, _said(held, run_id)
            assert said.run is not None
            before = list(said.attachments.all())
            rows = before if attached is None else keeping.claim(held, attached, of=said)
            run = begin(held, said.run.parent)
            _show(held, run)
            transcript.add_user(held, run, said.content if content is None else content, rows)
            if without_images:
                leave_out_images(held, run, last)
    except IntegrityError as error:
        raise RunActive from error
    return Claim(run.pk, conversation_id, run.owner)


def switch(conversation_id: UUID, run_id: UUID) -> None:
    """Show the branch of this run, as far as it was last gone on with. Raises: RunActive, NoSuchVersion, Gone."""
    with transaction.atomic():
        held = hold_conversation(conversation_id)
        if Run.objects.filter(conversation=held, status__in=ACTIVE).exists():
            raise RunActive
        tip = Run.objects.filter(conversation=held, pk=run_id).first()
        if tip is None:
            raise NoSuchVersion
        while (child := tip.children.order_by("-created_at", "-pk").first()) is not None:
            tip = child
        _show(held, tip)
        Conversation.objects.filter(pk=held.pk).update(tip=tip)


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
    return {begun[run].pk: _versions(beside, run) for run, beside in found if len(beside) > 1}


def _versions(beside: dict[UUID, UUID], run: UUID) -> Versions:
    return Versions(tuple(beside), tuple(beside.values()), [*beside].index(run) + 1)


def begins_with(run_id: UUID) -> UUID:
    """Return the id of what the person said that the run begins with."""
    return Message.objects.values_list("pk", flat=True).get(run_id=run_id, role=Role.USER)


@dataclass(frozen=True)
class Hidden:
    """A turn of a branch that is not shown: its run, and which version of a message leads there (None: none does)."""

    run_id: UUID
    versions: Versions | None


def hidden(conversation_id: UUID, turn_id: UUID) -> Hidden | None:
    """Return where the turn is, if it is one of the conversation's that are not shown."""
    turn = Message.objects.filter(pk=turn_id, conversation_id=conversation_id, run__shown=False)
    found = turn.select_related("run__parent").first()
    if found is None or found.run is None:
        return None
    run = found.run
    while run.parent is not None and not run.parent.shown:
        run = run.parent
    said = Message.objects.filter(run=run, role=Role.USER).first()
    return Hidden(found.run.pk, versions([said]).get(said.pk) if said else None)


def _said(held: Conversation, run_id: UUID) -> Message:
    """Return what the person said that this run works on: one that tried again has the message of the run before it."""
    run = Run.objects.filter(conversation=held, pk=run_id).first()
    while run is not None:
        said = Message.objects.filter(run=run, role=Role.USER).select_related("run__parent").first()
        if said is not None:
            return said
        run = run.parent
    raise NoSuchVersion


def _show(held: Conversation, tip: Run) -> None:
    parents = dict(Run.objects.filter(conversation=held).values_list("pk", "parent_id"))
    path: set[UUID] = set()
    at: UUID | None = tip.pk
    while at is not None:
        path.add(at)
        at = parents[at]
    Run.objects.filter(conversation=held, shown=True).exclude(pk__in=path).update(shown=False)
    Run.objects.filter(pk__in=path, shown=False).update(shown=True)

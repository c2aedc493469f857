"""The life of a run: started, claimed, parked while calls are open, woken, finished.

Only this file writes its status.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.agent import calls, routes, search, transcript
from hitlchat.agent.answer import Answer
from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import ACTIVE, Attachment, Conversation, Message, Role, Run, RunStatus, SentMessage, Titling
from hitlchat.base import canonical, database, lease
from hitlchat.base.background import attempt, background
from hitlchat.base.problems import Conflict, Invalid, NotFound, required
from hitlchat.base.statements import Rows, compiled
from hitlchat.gate import stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.submit import CallRequest

FAILED: Final = (RunStatus.FAILED, RunStatus.STOPPED)
BY_THE_PERSON = gettext_noop("the run was stopped")
KEPT: Final = timedelta(hours=24)
WITHOUT_IMAGES: Final = "This model does not accept images. From now on, only their names are sent."

_leases = lease.Leases()


class KeyReused(Invalid):
    field = "Idempotency-Key"

    sentence = gettext_noop(
        "This Idempotency-Key was sent with another message within the last 24 hours. Use a new one."
    )


class SaidBefore(Exception):
    """The same message came with its key before: `message`, which began the run `run_id`."""

    def __init__(self, message: Message) -> None:
        super().__init__(gettext_noop("This message was already sent."))
        assert message.run_id is not None
        self.message, self.run_id = message, message.run_id


class RunActive(Conflict):
    sentence = gettext_noop("The assistant is still working on the last message. Wait for it, or stop it first.")
    waiting = gettext_noop("A call waits for an answer. Once it is decided, or the run is stopped, try again.")


class NothingToRetry(Conflict):
    sentence = gettext_noop("Nothing to try again: the last answer is complete.")


class Gone(NotFound):
    sentence = gettext_noop("This conversation was deleted.")


class AgentsOwn(Conflict):
    sentence = gettext_noop("An agent works here for another conversation. Write there instead.")


class LostClaim(Exception):
    """Another process took the run over, or it was stopped: what this one was doing no longer counts."""


@dataclass(frozen=True)
class Claim:
    run_id: UUID
    conversation_id: UUID
    token: str

    def rows(self) -> Rows[Run]:
        return _owned(self.run_id, self.token)


def held_by(claim: Claim) -> Run | None:
    """Return the run with its conversation and all that a turn reads of it; None if another process took it over."""
    return _held(claim.run_id, claim.token).one()


def next_of(claim: Claim) -> list[CallRequest]:
    """Return the requests of held-back calls of the open turn that there is room for; none without the claim."""
    run = held_by(claim)
    return calls.next_of(run) if run is not None and run.turn_id is not None else []


def start(
    conversation: Conversation, content: str, key: str = "", attached: Sequence[UUID] = ()
) -> tuple[Message, Claim]:
    """Add the user's message and begin a run for it, claimed by this process. `attached`: files for it, not sent yet.

    Raises: RunActive if a run goes on; Gone if it was deleted; SaidBefore, KeyReused by the `key` of the message;
    BadAttachments.
    """
    digest = canonical.sha256([str(conversation.pk), content, *map(str, attached)])
    _require_new(conversation, key, digest)
    try:
        with holding(conversation.pk) as locked:
            run = begin(locked, locked.tip)
            message = say(locked, run, content, keeping.claim(locked, attached))
            if key:
                mine = SentMessage.objects.filter(owner_id=conversation.owner_id)
                mine.filter(made_at__lte=Now() - KEPT).delete()
                mine.create(owner_id=conversation.owner_id, key=key, digest=digest, message=message, made_at=Now())
    except RunActive:
        # The same may have been sent twice at once.
        _require_new(conversation, key, digest)
        raise
    return message, Claim(run.pk, conversation.pk, run.owner)


def say(locked: Conversation, run: Run, content: str, attached: Sequence[Attachment]) -> Message:
    """Add what begins `run`; the first message makes the title of its conversation."""
    message = transcript.add_user(locked, run, content, attached)
    if not locked.title:
        _take_title(locked, content or attached[0].name)
    return message


def retry(conversation: Conversation, *, without_images: bool = False) -> Claim:
    """Begin another run for what was said last, since the one before failed or was stopped; claimed by this process.

    What was written before an answer was cut off stays in the transcript, and the model does not read it again.
    `without_images`: the model of the conversation is sent none from now on.
    Raises: RunActive if a run goes on, Gone if the conversation was deleted, NothingToRetry.
    """
    with holding(conversation.pk, idle=True) as locked:
        last = locked.tip
        if last is None or last.status not in FAILED:
            raise NothingToRetry
        run = begin(locked, last)
        transcript.forget_cut(last)
        if without_images:
            leave_out_images(locked, run, last)
    return Claim(run.pk, conversation.pk, run.owner)


def leave_out_images(locked: Conversation, run: Run, last: Run | None) -> None:
    """Send the model of the conversation no images from `run` on, if it refused them in the `last` one."""
    if last is not None and last.refused_images:
        Conversation.objects.filter(pk=locked.pk).update(no_images_for=routes.name_of(locked))
        transcript.add_notice(locked.pk, run.pk, WITHOUT_IMAGES)


@contextmanager
def holding(conversation_id: UUID, *, idle: bool = False) -> Iterator[Conversation]:
    """Lock a person's conversation for one transaction; `idle`: in which no run goes on.

    Raises: Gone; AgentsOwn, if it is none of a person's; RunActive, also if a second run of it began.
    """
    rows = Conversation.objects.filter(pk=conversation_id, deleted_at=None).select_related("tip")
    with database.unique(partial(_active, conversation_id)):
        # Not its key: what a run that goes on stores meanwhile points to it, and must not wait in a circle.
        locked = required(rows.select_for_update(of=("self",), no_key=True).first(), Gone)
        if locked.call_id is not None:
            raise AgentsOwn
        if idle and locked.runs.filter(status__in=ACTIVE).exists():
            raise _active(conversation_id)
        yield locked


def _active(conversation_id: UUID) -> RunActive:
    waiting = Run.objects.filter(conversation=conversation_id, status=RunStatus.WAITING)
    return RunActive(RunActive.waiting if waiting.exists() else "")


def begin_task(conversation: Conversation, task: str) -> Claim:
    """Begin the one run of an agent, within the transaction that makes its conversation; claimed by this process."""
    run = begin(conversation, None)
    transcript.add_user(conversation, run, task)
    claim = Claim(run.pk, conversation.pk, run.owner)
    if not background.running:
        release(claim)
    return claim


def begin(locked: Conversation, parent: Run | None) -> Run:
    """Return a run that this process holds, the new end of the branch of `parent`.

    Within the transaction that holds the conversation. Raises: IntegrityError if a run of it goes on.
    """
    run = Run.objects.create(conversation=locked, parent=parent, owner=uuid4().hex, lease_until=lease.renewed())
    _conversation(locked.pk).update(tip=run.pk, updated_at=timezone.now())
    return run


def first_words(locked: Conversation) -> str:
    """Return what was said first in the branch that is shown, or the name of the file; empty: nothing was."""
    rows = Message.objects.shown().filter(conversation=locked, role=Role.USER).order_by("seq")
    first = rows.first()
    file = first.attachments.first() if first is not None and not first.content else None
    return file.name if file is not None else first.content if first is not None else ""


def retitle(locked: Conversation, before: str) -> None:
    """Take the title from what is said first now, if that is another than `before`, which the title was made from."""
    words = first_words(locked)
    is_from_before = locked.titling == Titling.MADE or (locked.titling != Titling.OWN and locked.title == short(before))
    if words and words != before and is_from_before:
        _take_title(locked, words)


def claim_lapsed(mine: Collection[str] = ()) -> list[Claim]:
    """Take over active, unparked runs whose process fell silent; not those of the tokens `mine`, which did not."""
    active = Run.objects.filter(status__in=ACTIVE, parked=False).exclude(owner__in=mine)
    found = []
    for pk, still_lapsed in _leases.lapsed(active, 50):
        # Another process may have taken it since: the condition is that of the first look.
        run = active.filter(still_lapsed, pk=pk).first()
        if run is None:
            continue
        token = uuid4().hex
        rows = Run.objects.filter(still_lapsed, pk=pk, owner=run.owner, status__in=ACTIVE, lease_until=run.lease_until)
        if rows.update(owner=token, lease_until=lease.renewed()) == 1:
            found.append(Claim(run.pk, run.conversation_id, token))
    return found


def wake(turn_id: UUID) -> Claim | None:
    """Claim the parked run that waits for this turn's calls, if they are all settled, or if there is room for one that
    was held back; None if there is none to wake.
    """
    with transaction.atomic():
        # Written, and so locked, whether parked or not: a park under way is waited for, so that it can't be missed.
        rows = _active_in(turn_id)
        run = rows.one() if rows.update(turn_id=turn_id) else None
        if run is None or not run.parked or (is_open(turn_id) and not calls.fits(run)):
            return None
        token = uuid4().hex
        _run(run.pk).update(parked=False, status=RunStatus.RUNNING, owner=token, lease_until=lease.renewed())
    return Claim(run.pk, run.conversation_id, token)


def park(claim: Claim, turn_id: UUID) -> bool:
    """Let go of the run until its open calls settle; False if it can go on at once: if they all are settled already, or
    if there is room for one that was held back.
    """
    with transaction.atomic():
        # The row is written first: a wake-up waits for this transaction and then finds the run parked.
        _update(claim, parked=True, owner="", lease_until=None)
        statuses = set(ToolCall.objects.filter(turn_id=turn_id).values_list("status", flat=True))
        run = Run.objects.select_related("conversation").get(pk=claim.run_id)
        is_held = calls.held_back(turn_id) > 0
        if (statuses <= SETTLED and not is_held) or calls.fits(run):
            transaction.set_rollback(True)
            return False
        status = RunStatus.WAITING if is_held or Status.WAITING in statuses else RunStatus.RUNNING
        Run.objects.filter(pk=claim.run_id).update(status=status)
    return True


def park_with(claim: Claim, statuses: Collection[str]) -> bool:
    """Let go of the run in the transaction that puts its calls on record, with these statuses: none of them can settle
    unseen. False if all are settled already.
    """
    if SETTLED.issuperset(statuses):
        return False
    status = RunStatus.WAITING if Status.WAITING in statuses else RunStatus.RUNNING
    _update(claim, parked=True, owner="", lease_until=None, status=status)
    return True


def refresh_status(turn_id: UUID) -> None:
    """A parked run is `waiting` only while one of its calls waits for a person, or an agent that it called does."""
    waits = _waiting_in(turn_id).exists() or _waiting_agents_in(turn_id).exists()
    before, after = (RunStatus.RUNNING, RunStatus.WAITING) if waits else (RunStatus.WAITING, RunStatus.RUNNING)
    _parked_in(turn_id, before).update(status=after)


def renew(claims: Collection[Claim]) -> set[UUID]:
    """Prolong the leases of these claims; returns the runs that nobody took from them. One that a claim has ended or
    parked itself is among them: it may still have something to tell.
    """
    own = Q(owner__in=[claim.token for claim in claims], status__in=ACTIVE)
    let_go = Q(owner="") & (Q(parked=True) | Q(status__in=(RunStatus.DONE, RunStatus.FAILED)))
    Run.objects.filter(own).update(lease_until=lease.renewed())
    rows = Run.objects.filter(own | let_go, pk__in=[claim.run_id for claim in claims])
    return set(rows.values_list("pk", flat=True))


def hold(claim: Claim, **columns: Any) -> None:
    """Write `columns` of a run that this process still holds, renewing the lease. LostClaim otherwise."""
    _update(claim, lease_until=lease.renewed(), **columns)


def release(claim: Claim) -> None:
    """Hand the run back at once, for any process to take over; for a clean shutdown."""
    claim.rows().update(lease_until=database.now())


def finish(claim: Claim, status: RunStatus, error: str = "", *, refused_images: bool = False) -> None:
    """End the run, and the call that an agent's run works for. LostClaim if it is not this process's to end."""
    over = {"owner": "", "lease_until": None, "turn_id": None, "retrying": "", "refused_images": refused_images}
    with transaction.atomic():
        _update(claim, status=status, error=error, finished_at=timezone.now(), **over)
        if status == RunStatus.DONE:
            calls.conclude_agent(claim.run_id)
        else:
            attempt(calls.conclude_agent, claim.run_id)


def stop(run_id: UUID, actor: Actor, *, written: Answer | None = None, why: str = BY_THE_PERSON) -> bool:
    """End a run at the user's wish: what waits is withdrawn, what executes is told to stop. False if it was over.

    Agents that it called are stopped within the same transaction, with all below them.

    `written` is the open answer as far as this process knows it, which may be more than is stored; `why` is what is
    said of the calls that are withdrawn.
    """
    with transaction.atomic():
        rows = Run.objects.filter(pk=run_id, status__in=ACTIVE)
        ended = rows.update(
            status=RunStatus.STOPPED, finished_at=timezone.now(), owner="", lease_until=None, parked=False
        )
        if ended != 1:
            return False
        run = Run.objects.select_related("conversation__owner").get(pk=run_id)
        transcript.keep_partial(run, written or Answer())
        leave_turn(run, actor, why)
        attempt(calls.conclude_agent, run_id)
    return True


def leave_turn(run: Run, actor: Actor, why: str) -> None:
    """Withdraw what waits of the open turn, stop what executes, and answer the model every call:
    else no model server would take the conversation again. `run` is read with its conversation and its owner.

    Each is done whatever becomes of the others: what made a run fail must not keep it from ending.
    """
    if run.turn_id is None:
        return
    stopping.withdraw_turn(run.turn_id, actor=actor, why=why)
    attempt(stopping.request_turn, run.turn_id, actor)
    attempt(calls.give_up, run)
    attempt(transcript.answer_calls, run.conversation, run, run.turn_id)
    Run.objects.filter(pk=run.pk).update(turn_id=None)


def is_open(turn_id: UUID) -> bool:
    """Return whether there is more to come of the turn's calls."""
    return _unsettled(turn_id).exists() or calls.held_back(turn_id) > 0


def held_back(conversation_id: UUID) -> list[UUID]:
    """Turns of this conversation's parked runs with a call that there is room for now."""
    return [run.turn_id for run in _parked(conversation_id) if run.turn_id and calls.fits(run)]


def parked_but_settled(since: datetime | None) -> list[UUID]:
    """Turns of parked runs that nobody woke: settled by a process without a server loop, or one that died just then.

    Those in whose conversation a call settled after `since`; None: whenever that was.
    """
    settled = ToolCall.objects.filter(conversation_id__isnull=False, status__in=SETTLED)
    if since is not None:
        settled = settled.filter(settled_at__gte=since)
    asked_in = settled.values("conversation_id")
    rows = Run.objects.filter(parked=True, status__in=ACTIVE, conversation_id__in=asked_in)
    return [turn_id for turn_id in rows.values_list("turn_id", flat=True) if turn_id]


def short(text: str) -> str:
    """Return `text` as a title: one line, cut between words."""
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:59].rsplit(" ", 1)[0] + "…"


def _require_new(conversation: Conversation, key: str, digest: str) -> None:
    """Let pass a message that comes for the first time; without a key, every one. Raises: SaidBefore, KeyReused."""
    if not key:
        return
    rows = SentMessage.objects.filter(owner_id=conversation.owner_id, key=key, made_at__gt=Now() - KEPT)
    if (before := rows.select_related("message").first()) is not None:
        raise SaidBefore(before.message) if before.digest == digest else KeyReused


def _take_title(locked: Conversation, content: str) -> None:
    title = short(content)
    titling = Titling.DUE if settings.CHAT_TITLES else Titling.OVER
    Conversation.objects.filter(pk=locked.pk).update(title=title, titling=titling)
    search.note_title(locked.pk, title)


@compiled
def _conversation(conversation_id: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.filter(pk=conversation_id)


@compiled
def _run(run_id: UUID) -> QuerySet[Run]:
    return Run.objects.filter(pk=run_id)


@compiled
def _owned(run_id: UUID, token: str) -> QuerySet[Run]:
    return Run.objects.filter(pk=run_id, owner=token, status__in=ACTIVE)


@compiled
def _held(run_id: UUID, token: str) -> QuerySet[Run]:
    rows = Run.objects.filter(pk=run_id, owner=token, status__in=ACTIVE)
    return rows.select_related("conversation__owner", "conversation__endpoint", "conversation__tool_set")


@compiled
def _active_in(turn_id: UUID) -> QuerySet[Run]:
    return Run.objects.filter(turn_id=turn_id, status__in=ACTIVE).select_related("conversation")


@compiled
def _unsettled(turn_id: UUID) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(~Q(status__in=SETTLED), turn_id=turn_id)


@compiled
def _waiting_in(turn_id: UUID) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(turn_id=turn_id, status=Status.WAITING)


@compiled
def _waiting_agents_in(turn_id: UUID) -> QuerySet[Run]:
    return Run.objects.filter(status=RunStatus.WAITING, conversation__call__turn_id=turn_id)


@compiled
def _parked_in(turn_id: UUID, status: str) -> QuerySet[Run]:
    return Run.objects.filter(turn_id=turn_id, parked=True, status=status)


@compiled
def _parked(conversation_id: UUID) -> QuerySet[Run]:
    rows = Run.objects.filter(conversation_id=conversation_id, parked=True, status__in=ACTIVE)
    return rows.select_related("conversation")


def _update(claim: Claim, **columns: Any) -> None:
    if claim.rows().update(**columns) != 1:
        raise LostClaim(f"run {claim.run_id} is no longer held")

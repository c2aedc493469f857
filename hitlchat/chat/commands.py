"""The commands of a page's websocket: frames are parsed strictly, then carried out as the signed-in person."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

from django.utils.translation import gettext as _

from hitlchat.accounts import sign_in
from hitlchat.accounts.sign_in import signed_in_user
from hitlchat.agent import conversations, queued, runner, unknown, writing
from hitlchat.agent.attachments.keeping import BadAttachments
from hitlchat.agent.branches import NoSuchVersion
from hitlchat.agent.compaction import NoSuchSummary
from hitlchat.agent.models import ACTIVE, LONGEST_MESSAGE, Conversation, Run
from hitlchat.agent.queued import QueueFull
from hitlchat.agent.runs import Gone, NothingToRetry, RunActive
from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.chat import fragments
from hitlchat.gate import batch, decide, editing, stopping
from hitlchat.gate.actor import Actor, actor_in
from hitlchat.gate.attention import Looked, claimed
from hitlchat.gate.batch import Item
from hitlchat.gate.decide import BadEdit
from hitlchat.gate.deciders import AlreadyCounted, NotEntitled
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.grants.scope import BadGrant, Scope
from hitlchat.gate.models import ToolCall

LONGEST_FRAME = 512 * 1024
VERDICTS = ("approve", "decline")


class BadFrame(ValueError):
    """The frame is not one that a page of ours sends; the message is for the person who looks at it."""


@dataclass(frozen=True)
class Say:
    content: str
    attached: tuple[UUID, ...] = ()


@dataclass(frozen=True)
class Decide:
    approval: UUID
    verdict: Literal["approve", "decline"]
    digest: str
    reason: str
    # JSON text, and the digest of the changed call as it was shown; None if nothing was changed.
    edited: str | None = None
    shown: str = ""
    grant: Scope | None = None
    # Whether folded text was opened, as the page claims.
    opened: bool | None = None


@dataclass(frozen=True)
class DecideAll:
    """Calls of one tool, answered together."""

    verdict: Literal["approve", "decline"]
    items: tuple[Item, ...]
    opened: bool | None = None


@dataclass(frozen=True)
class TakeBack:
    """An approval, while its call has not started."""

    call: UUID


@dataclass(frozen=True)
class RevokeGrant:
    grant: UUID


@dataclass(frozen=True)
class Stop:
    pass


@dataclass(frozen=True)
class Retry:
    without_images: bool = False


@dataclass(frozen=True)
class Instead:
    """Another message in place of what the run began with, or the same once more; with these files, or the same."""

    run: UUID
    content: str | None = None
    attached: tuple[UUID, ...] | None = None


@dataclass(frozen=True)
class Switch:
    """A branch that is to be shown, by one of its runs."""

    run: UUID


@dataclass(frozen=True)
class Undo:
    """A summary whose messages the model is to read themselves again; not `undone`: it is to read the summary."""

    message: UUID
    undone: bool = True


@dataclass(frozen=True)
class SendQueued:
    """The first message that waits, though the last run failed or was stopped."""


@dataclass(frozen=True)
class Unqueue:
    """A message that waits, back into the composer."""

    message: UUID


@dataclass(frozen=True)
class StopCall:
    call: UUID


@dataclass(frozen=True)
class Resolve:
    call: UUID
    outcome: Literal["done", "failed", "again"]


Lead = Say | SendQueued | Unqueue | Stop | Retry | Instead | Switch | Undo
Command = Lead | Decide | DecideAll | TakeBack | RevokeGrant | StopCall | Resolve

OF_THE_RUN: Final[dict[str, Callable[[], Command]]] = {
    "stop": Stop,
    "retry": Retry,
    "retry-without-images": partial(Retry, without_images=True),
    "send-queued": SendQueued,
}
# What says no more than which one is meant.
OF_ONE: Final[dict[str, tuple[Callable[[UUID], Command], str]]] = {
    "take-back": (TakeBack, "call"),
    "stop-call": (StopCall, "call"),
    "revoke-grant": (RevokeGrant, "grant"),
    "regenerate": (Instead, "run"),
    "switch": (Switch, "run"),
    "unqueue": (Unqueue, "message"),
    "undo-summary": (Undo, "message"),
    "redo-summary": (partial(Undo, undone=False), "message"),
}


def parse(frame: str) -> Command:
    """The command in `frame`; BadFrame otherwise."""
    fields = _fields(frame)
    match fields.get("type"):
        case "say":
            attached = _attached(fields)
            return Say(_content(fields, may_be_empty=bool(attached)), attached)
        case "decide":
            return _read_decide(fields)
        case "decide-all":
            return DecideAll(_one_of(fields, "verdict", VERDICTS), _items(fields), claimed(fields.get("opened")))
        case str(kind) if kind in OF_THE_RUN:
            return OF_THE_RUN[kind]()
        case "edit":
            attached = _attached(fields)
            return Instead(_uuid(fields, "run"), _content(fields, may_be_empty=bool(attached)), attached)
        case str(kind) if kind in OF_ONE:
            made, name = OF_ONE[kind]
            return made(_uuid(fields, name))
        case "resolve":
            return Resolve(_uuid(fields, "call"), _one_of(fields, "outcome", ("done", "failed", "again")))
        case _:
            raise BadFrame(_("The page sent something unknown. Reload it."))


def _read_decide(fields: dict[str, Any]) -> Decide:
    # Only these exact words: what is not "approve" to the letter is not a yes (SR-13).
    verdict = _one_of(fields, "verdict", VERDICTS)
    found = Decide(_uuid(fields, "approval"), verdict, _text(fields, "digest"), _reason(fields))
    found = replace(found, opened=claimed(fields.get("opened")))
    if "grant" in fields:
        return replace(found, grant=_grant(fields))
    if "edited" not in fields:
        return found
    return replace(found, edited=_text(fields, "edited"), shown=_text(fields, "shown"))


def _grant(fields: dict[str, Any]) -> Scope:
    if "edited" in fields:
        raise BadFrame(_("A grant is given with the call as it was asked. Nothing was decided."))
    try:
        return scope.read(_text(fields, "grant"))
    except BadGrant as error:
        raise BadFrame(f"{error} Nothing was decided.") from error


def _reason(fields: dict[str, Any]) -> str:
    try:
        return decide.checked_reason(_text(fields, "reason", ""))
    except decide.BadReason as error:
        raise BadFrame(f"{error} Nothing was decided.") from error


def _items(fields: dict[str, Any]) -> tuple[Item, ...]:
    items = fields.get("items")
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise BadFrame(_("The page sent no usable “items”. Nothing was decided. Reload it."))
    try:
        pairs = [item.split(":") for item in items]
        return tuple(Item(UUID(approval), digest) for approval, digest in pairs)
    except ValueError as error:
        raise BadFrame(_("The page sent no usable “items”. Nothing was decided. Reload it.")) from error


def _fields(frame: str) -> dict[str, Any]:
    if len(frame) > LONGEST_FRAME:
        raise BadFrame(_("That was too long to be sent."))
    try:
        fields = canonical.loads(frame)
    except canonical.NotJson as error:
        raise BadFrame(_("The page sent something unreadable ({why}). Reload it.").format(why=error)) from error
    if not isinstance(fields, dict):
        raise BadFrame(_("The page sent something unreadable. Reload it."))
    return fields


def _attached(fields: dict[str, Any]) -> tuple[UUID, ...]:
    """Return the ids of the files: a form sends one as it is, and several as a list."""
    given = fields.get("attachments", [])
    each = [given] if isinstance(given, str) else given
    try:
        return tuple(UUID(one) for one in each)
    except (AttributeError, TypeError, ValueError) as error:
        raise BadFrame(_("The page sent no usable “{name}”. Reload it.").format(name="attachments")) from error


def _content(fields: dict[str, Any], *, may_be_empty: bool = False) -> str:
    content = _text(fields, "content").strip()
    if not content and not may_be_empty:
        raise BadFrame(_("Write something first."))
    if len(content) > LONGEST_MESSAGE:
        raise BadFrame(
            _("The message has {many} characters; at most {most} can be sent.").format(
                many=f"{len(content):,}", most=f"{LONGEST_MESSAGE:,}"
            )
        )
    return content


def _text(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or value != storable(value):
        raise BadFrame(_("The page sent no usable “{name}”. Reload it.").format(name=name))
    return value


def _one_of(fields: dict[str, Any], name: str, words: tuple[str, ...]) -> Any:
    value = fields.get(name)
    if value not in words or not isinstance(value, str):
        raise BadFrame(_("The page sent no usable “{name}”. Nothing was decided. Reload it.").format(name=name))
    return value


def _uuid(fields: dict[str, Any], name: str) -> UUID:
    try:
        return UUID(_text(fields, name))
    except ValueError as error:
        raise BadFrame(_("The page sent no usable “{name}”. Reload it.").format(name=name)) from error


def owns(user_id: int, conversation_id: UUID) -> bool:
    return conversations.own(user_id).filter(pk=conversation_id).exists()


def act(session: Any, conversation_id: UUID, command: Command) -> str:
    """Returns a fragment for the page that sent the command, or nothing: what changed is announced to all of them."""
    user = signed_in_user(session.session_key)
    if user is None:
        return fragments.flash(_("You are signed out. Sign in again in another tab, then reload this page."))
    conversation = conversations.own(user).filter(pk=conversation_id).first()
    if conversation is None:
        return fragments.flash(_("This conversation was deleted."))
    actor = actor_in(sign_in.stored(session.session_key), user)
    match command:
        case Say() | SendQueued() | Unqueue() | Stop() | Retry() | Instead() | Switch() | Undo():
            return _lead(conversation, command, actor)
        case Decide() | DecideAll() | TakeBack() | RevokeGrant():
            return _answer(conversation.pk, command, actor)
        case StopCall(call_id):
            return _stop_call(call_id, actor)
        case Resolve():
            return _resolve(conversation, command, actor, user.get_username())


def _lead(conversation: Conversation, command: Lead, actor: Actor) -> str:
    match command:
        case Say(content, attached):
            return say(conversation, content, attached)
        case SendQueued():
            return _send_queued(conversation)
        case Unqueue(message_id):
            return _unqueue(conversation, message_id)
        case Stop():
            return stop(conversation, actor)
        case Retry(without_images):
            return retry(conversation, without_images=without_images)
        case Instead() | Switch():
            return _turn_to(conversation, command)
        case Undo(message_id, undone):
            return _undo(conversation, message_id, undone=undone)


def say(conversation: Conversation, content: str, attached: Sequence[UUID] = ()) -> str:
    try:
        runner.say(conversation, content, attached=attached)
    except RunActive:
        return _queue(conversation, content, attached)
    except (BadAttachments, Gone) as error:
        return fragments.flash(str(error))
    return fragments.composed()


def _queue(conversation: Conversation, content: str, attached: Sequence[UUID]) -> str:
    try:
        runner.queue(conversation, content, attached)
    except (BadAttachments, QueueFull, Gone) as error:
        return fragments.flash(translatable(f"{error} Your text is kept."))
    return fragments.composed()


def _send_queued(conversation: Conversation) -> str:
    if runner.go_on(conversation.pk, whatever=True):
        return fragments.flash("")
    return fragments.queued(conversation.pk) + fragments.flash(_("Nothing was sent: the assistant works already."))


def _unqueue(conversation: Conversation, message_id: UUID) -> str:
    taken = queued.take_back(conversation.pk, message_id)
    if taken is None:
        return fragments.queued(conversation.pk) + fragments.flash(_("This message was sent already."))
    writing.tell_soon(conversation.pk, "queued")
    return fragments.refilled(taken)


def retry(conversation: Conversation, *, without_images: bool = False) -> str:
    try:
        runner.retry(conversation, without_images=without_images)
    except (RunActive, NothingToRetry, Gone) as error:
        return fragments.flash(str(error))
    return fragments.flash("")


def _turn_to(conversation: Conversation, command: Instead | Switch) -> str:
    try:
        if isinstance(command, Switch):
            runner.switch(conversation, command.run)
        else:
            runner.instead(conversation, command.run, command.content, command.attached)
    except RunActive as error:
        return fragments.flash(translatable(f"{error} Wait for it, or stop it first."))
    except (BadAttachments, NoSuchVersion, Gone) as error:
        return fragments.flash(str(error))
    return fragments.flash("")


def _undo(conversation: Conversation, message_id: UUID, *, undone: bool) -> str:
    try:
        runner.undo_summary(conversation, message_id, undone=undone)
    except RunActive as error:
        return fragments.flash(translatable(f"{error} Wait for it, or stop it first."))
    except (NoSuchSummary, Gone) as error:
        return fragments.flash(str(error))
    return fragments.flash("")


def stop(conversation: Conversation, actor: Actor) -> str:
    run = Run.objects.filter(conversation=conversation, status__in=ACTIVE).first()
    if run is not None:
        runner.stop(run.pk, conversation.pk, actor)
    return ""


def _stop_call(call_id: UUID, actor: Actor) -> str:
    try:
        told = stopping.request(call_id, actor)
    except stopping.NoSuchCall as error:
        return fragments.flash(str(error))
    return "" if told else fragments.flash(_("This call does not execute any more: there is nothing to stop."))


def _answer(conversation_id: UUID, command: Decide | DecideAll | TakeBack | RevokeGrant, actor: Actor) -> str:
    match command:
        case Decide():
            return _decide(conversation_id, command, actor)
        case DecideAll():
            return _decide_all(conversation_id, command, actor)
        case TakeBack(call_id):
            return _take_back(call_id, actor)
        case RevokeGrant(grant_id):
            return _revoke(conversation_id, grant_id, actor)


def _decide(conversation_id: UUID, command: Decide, actor: Actor) -> str:
    looked = Looked(command.opened)
    try:
        if command.verdict == "decline":
            decide.decline(command.approval, actor, reason=command.reason, looked=looked)
        elif command.edited is None:
            decide.approve(command.approval, actor, digest=command.digest, grant=command.grant, looked=looked)
        else:
            yes = {"digest": command.digest, "edited": command.edited, "shown": command.shown}
            editing.approve(command.approval, actor, **yes, looked=looked)
    except decide.AlreadySettled as late:
        return fragments.too_late(conversation_id, actor, late.call)
    except decide.OtherDigest as error:
        return fragments.asks(conversation_id, actor) + fragments.flash(str(error))
    except (decide.NoSuchApproval, BadEdit, BadGrant, NotEntitled, AlreadyCounted) as error:
        return fragments.flash(str(error))
    return ""


def _decide_all(conversation_id: UUID, command: DecideAll, actor: Actor) -> str:
    try:
        outcomes = batch.answer(command.items, command.verdict, actor, opened=command.opened)
    except (batch.NotTogether, decide.NoSuchApproval, NotEntitled) as error:
        return fragments.asks(conversation_id, actor) + fragments.flash(str(error))
    return fragments.asks(conversation_id, actor) + fragments.outcomes(outcomes)


def _take_back(call_id: UUID, actor: Actor) -> str:
    try:
        decide.take_back(call_id, actor)
    except (decide.TooLate, decide.NoSuchApproval) as error:
        return fragments.flash(str(error))
    return ""


def _revoke(conversation_id: UUID, grant_id: UUID, actor: Actor) -> str:
    try:
        giving.revoke(grant_id, actor)
    except giving.NoSuchGrant as error:
        return fragments.flash(str(error))
    return fragments.grants(conversation_id)


def _resolve(conversation: Conversation, command: Resolve, actor: Actor, name: str) -> str:
    if command.outcome == "again":
        return _again(conversation, command.call, actor, name)
    try:
        unknown.mark(command.call, command.outcome, actor)
    except (decide.NoSuchApproval, decide.AlreadySettled) as error:
        return fragments.flash(str(error))
    return ""


def _again(conversation: Conversation, call_id: UUID, actor: Actor, name: str) -> str:
    old = ToolCall.objects.filter(pk=call_id, caller_id=actor.user_id, conversation_id=conversation.pk).first()
    if old is None or old.turn_id is None:
        return fragments.flash(_("Only a call with unknown outcome can be run again."))
    try:
        unknown.again(old, actor, name)
    except unknown.NotAgain as error:
        return fragments.flash(str(error))
    return ""

"""The commands of a page's websocket: frames are parsed strictly, then carried out as the signed-in person.

What a command refuses is a problem with a sentence, which its page shows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

from django.utils.translation import gettext as _

from hitlchat.accounts import sign_in
from hitlchat.accounts.sign_in import signed_in_user
from hitlchat.agent import conversations, queued, runner, unknown, writing
from hitlchat.agent.attachments.keeping import BadAttachments
from hitlchat.agent.models import ACTIVE, LONGEST_MESSAGE, Conversation, Run
from hitlchat.agent.queued import QueueFull
from hitlchat.agent.runs import Gone, RunActive
from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Problem
from hitlchat.base.sentences import translatable
from hitlchat.chat import fragments
from hitlchat.gate import batch, decide, editing, stopping
from hitlchat.gate.actor import Actor, actor_in
from hitlchat.gate.attention import Looked, claimed
from hitlchat.gate.batch import Item
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.grants.scope import BadGrant, Scope
from hitlchat.gate.models import ToolCall

LONGEST_FRAME = 512 * 1024
VERDICTS = ("approve", "decline")


class BadFrame(ValueError):
    """The frame is not one that a page of ours sends; the message is for the person who looks at it."""


class Command:
    """What a page wants of its conversation."""

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        """Return a fragment for that page, or nothing: what changed is announced to all pages. Raises: Problem."""
        raise NotImplementedError


@dataclass(frozen=True)
class Say(Command):
    content: str
    attached: tuple[UUID, ...] = ()

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002 - as every command has it
        try:
            runner.say(conversation, self.content, attached=self.attached)
        except RunActive:
            self._queue(conversation)
        return fragments.composed()

    def _queue(self, conversation: Conversation) -> None:
        try:
            runner.queue(conversation, self.content, self.attached)
        except (BadAttachments, QueueFull, Gone) as error:
            raise Problem(translatable(f"{error} Your text is kept.")) from error


@dataclass(frozen=True)
class SendQueued(Command):
    """The first message that waits, though the last run failed or was stopped."""

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        if runner.go_on(conversation.pk, whatever=True):
            return fragments.flash("")
        said = fragments.flash(_("Nothing was sent: the assistant works already."))
        return fragments.queued(conversation.pk) + said


@dataclass(frozen=True)
class Unqueue(Command):
    """A message that waits, back into the composer."""

    message: UUID

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        taken_back = queued.take_back(conversation.pk, self.message)
        if taken_back is None:
            return fragments.queued(conversation.pk) + fragments.flash(_("This message was sent already."))
        writing.tell_soon(conversation.pk, "queued")
        return fragments.refilled(taken_back)


@dataclass(frozen=True)
class Stop(Command):
    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        run = Run.objects.filter(conversation=conversation, status__in=ACTIVE).first()
        if run is not None:
            runner.stop(run.pk, conversation.pk, actor)
        return ""


@dataclass(frozen=True)
class Retry(Command):
    without_images: bool = False

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        runner.retry(conversation, without_images=self.without_images)
        return fragments.flash("")


@dataclass(frozen=True)
class BetweenRuns(Command):
    """What can be done only while no run goes on."""

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        try:
            self.change(conversation)
        except RunActive as error:
            raise Problem(translatable(f"{error} Wait for it, or stop it first.")) from error
        return fragments.flash("")

    def change(self, conversation: Conversation) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Instead(BetweenRuns):
    """Another message in place of what the run began with, or the same once more; with these files, or the same."""

    run: UUID
    content: str | None = None
    attached: tuple[UUID, ...] | None = None

    def change(self, conversation: Conversation) -> None:
        runner.instead(conversation, self.run, self.content, self.attached)


@dataclass(frozen=True)
class Switch(BetweenRuns):
    """A branch that is to be shown, by one of its runs."""

    run: UUID

    def change(self, conversation: Conversation) -> None:
        runner.switch(conversation, self.run)


@dataclass(frozen=True)
class Undo(BetweenRuns):
    """A summary whose messages the model is to read themselves again; not `undone`: it is to read the summary."""

    message: UUID
    undone: bool = True

    def change(self, conversation: Conversation) -> None:
        runner.undo_summary(conversation, self.message, undone=self.undone)


@dataclass(frozen=True)
class Decide(Command):
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

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        looked = Looked(self.opened)
        try:
            if self.verdict == "decline":
                decide.decline(self.approval, actor, reason=self.reason, looked=looked)
            elif self.edited is None:
                decide.approve(self.approval, actor, digest=self.digest, grant=self.grant, looked=looked)
            else:
                yes = {"digest": self.digest, "edited": self.edited, "shown": self.shown}
                editing.approve(self.approval, actor, **yes, looked=looked)
        except decide.AlreadySettled as late:
            return fragments.too_late(conversation.pk, actor, late.call)
        except decide.OtherDigest as error:
            return fragments.asks(conversation.pk, actor) + fragments.flash(str(error))
        return ""


@dataclass(frozen=True)
class DecideAll(Command):
    """Calls of one tool, answered together."""

    verdict: Literal["approve", "decline"]
    items: tuple[Item, ...]
    opened: bool | None = None

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        try:
            said = fragments.outcomes(batch.answer(self.items, self.verdict, actor, opened=self.opened))
        except Problem as error:
            said = fragments.flash(str(error))
        return fragments.asks(conversation.pk, actor) + said


@dataclass(frozen=True)
class TakeBack(Command):
    """An approval, while its call has not started."""

    call: UUID

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        decide.take_back(self.call, actor)
        return ""


@dataclass(frozen=True)
class RevokeGrant(Command):
    grant: UUID

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        giving.revoke(self.grant, actor)
        return fragments.grants(conversation.pk)


@dataclass(frozen=True)
class StopCall(Command):
    call: UUID

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        if stopping.request(self.call, actor):
            return ""
        return fragments.flash(_("This call does not execute any more: there is nothing to stop."))


@dataclass(frozen=True)
class Resolve(Command):
    """The end of a call whose outcome is unknown."""

    call: UUID
    outcome: Literal["done", "failed", "again"]

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        if self.outcome != "again":
            unknown.mark(self.call, self.outcome, actor)
            return ""
        rows = ToolCall.objects.filter(caller_id=actor.user_id, conversation_id=conversation.pk, turn_id__isnull=False)
        old = rows.filter(pk=self.call).first()
        if old is None:
            return fragments.flash(_("Only a call with unknown outcome can be run again."))
        unknown.again(old, actor, conversation.owner.get_username())
        return ""


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


def owns(user_id: int, conversation_id: UUID) -> bool:
    return conversations.own(user_id).filter(pk=conversation_id).exists()


def act(session: Any, conversation_id: UUID, command: Command) -> str:
    """Return a fragment for the page that sent the command, or nothing: what changed is announced to all of them."""
    user = signed_in_user(session.session_key)
    if user is None:
        return fragments.flash(_("You are signed out. Sign in again in another tab, then reload this page."))
    conversation = conversations.own(user).select_related("owner").filter(pk=conversation_id).first()
    if conversation is None:
        return fragments.flash(_("This conversation was deleted."))
    try:
        return command.carry_out(conversation, actor_in(sign_in.stored(session.session_key), user))
    except Problem as error:
        return fragments.flash(str(error))


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

"""The commands of a page's websocket: frames are parsed strictly, then carried out as the signed-in person.

What a command refuses is a problem with a sentence, which its page shows.
"""

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from django.utils.translation import gettext as _
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from hitlchat.accounts import sign_in
from hitlchat.agent import branches, compaction, conversations, runner, unknown, writing
from hitlchat.agent.attachments.keeping import BadAttachments
from hitlchat.agent.models import ACTIVE, LONGEST_MESSAGE, Conversation, Run
from hitlchat.agent.runner import QueueFull
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
# Fields without which there is no decision.
DECIDING = ("verdict", "items", "outcome")


class BadFrame(ValueError):
    """The frame is not one that a page of ours sends; the message is for the person who looks at it."""


def _storable(text: str) -> str:
    if text != storable(text):
        raise ValueError("The value cannot be stored.")
    return text


def _content(text: str, info: ValidationInfo) -> str:
    content = text.strip()
    if not content and not info.data.get("attachments"):
        raise BadFrame(_("Write something first."))
    if len(content) > LONGEST_MESSAGE:
        message = _("The message has {many} characters; at most {most} can be sent.")
        raise BadFrame(message.format(many=f"{len(content):,}", most=f"{LONGEST_MESSAGE:,}"))
    return content


def _grant(text: object) -> Scope:
    if not isinstance(text, str):
        raise ValueError("The value is not text.")  # noqa: TRY004 - as pydantic takes it
    return scope.read(_storable(text))


def _item(text: object) -> Item:
    if not isinstance(text, str):
        raise ValueError("The value is not text.")  # noqa: TRY004 - as pydantic takes it
    approval, digest = text.split(":")
    return Item(UUID(approval), digest)


Text = Annotated[str, AfterValidator(_storable)]
Content = Annotated[Text, AfterValidator(_content)]
# A form sends one file as it is, and several as a list.
Attachments = Annotated[tuple[UUID, ...], BeforeValidator(lambda sent: [sent] if isinstance(sent, str) else sent)]
Verdict = Literal["approve", "decline"]
Opened = Annotated[bool | None, PlainValidator(claimed)]


class Command(BaseModel):
    """A frame of a page, named by its `type`. A page may send more fields than a command has."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        """Return a fragment for that page, or nothing: what changed is announced to all pages. Raises: Problem."""
        raise NotImplementedError


class Say(Command):
    type: Literal["say"]
    attachments: Attachments = ()
    content: Content

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002 - as every command has it
        try:
            runner.say(conversation, self.content, attached=self.attachments)
        except RunActive:
            try:
                runner.queue(conversation, self.content, self.attachments)
            except (BadAttachments, QueueFull, Gone) as error:
                raise Problem(translatable(f"{error} Your text is still here.")) from error
        return fragments.composed()


class SendQueued(Command):
    """The first message that waits, though the last run failed or was stopped."""

    type: Literal["send-queued"]

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        if runner.go_on(conversation.pk, whatever=True):
            return fragments.flash("")
        html = fragments.flash(_("Not sent: the assistant is still working."))
        return fragments.queued(conversation.pk) + html


class Unqueue(Command):
    """A message that waits, back into the composer."""

    type: Literal["unqueue"]
    message: UUID

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        taken_back = runner.take_back(conversation.pk, self.message)
        if taken_back is None:
            return fragments.queued(conversation.pk) + fragments.flash(_("This message was already sent."))
        writing.tell_soon(conversation.pk, "queued")
        return fragments.refilled(taken_back)


class Stop(Command):
    type: Literal["stop"]

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        run = Run.objects.filter(conversation=conversation, status__in=ACTIVE).first()
        if run is not None:
            runner.stop(run.pk, conversation.pk, actor)
        return ""


class Retry(Command):
    type: Literal["retry", "retry-without-images"]

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        runner.retry(conversation, without_images=self.type == "retry-without-images")
        return fragments.flash("")


class BetweenRuns(Command):
    """What can be done only while no run goes on."""

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        self.change(conversation)
        return fragments.flash("")

    def change(self, conversation: Conversation) -> None:
        raise NotImplementedError


class Edit(BetweenRuns):
    """Another message in place of what the run began with, with these files."""

    type: Literal["edit"]
    run: UUID
    attachments: Attachments = ()
    content: Content

    def change(self, conversation: Conversation) -> None:
        runner.instead(conversation, self.run, self.content, self.attachments)


class Regenerate(BetweenRuns):
    """The same message once more, with the same files."""

    type: Literal["regenerate"]
    run: UUID

    def change(self, conversation: Conversation) -> None:
        runner.instead(conversation, self.run, None)


class Switch(BetweenRuns):
    """A branch that is to be shown, by one of its runs."""

    type: Literal["switch"]
    run: UUID

    def change(self, conversation: Conversation) -> None:
        branches.switch(conversation.pk, self.run)


class Undo(BetweenRuns):
    """A summary whose messages the model is to read themselves again; or redone: it is to read the summary."""

    type: Literal["undo-summary", "redo-summary"]
    message: UUID

    def change(self, conversation: Conversation) -> None:
        compaction.undo(conversation.pk, self.message, undone=self.type == "undo-summary")


class Decide(Command):
    """An answer to one call. Only these exact words: what is not "approve" to the letter is not a yes (SR-13)."""

    type: Literal["decide"]
    verdict: Verdict | Literal["suggest", "answer"]
    approval: UUID
    digest: Text
    reason: Annotated[Text, AfterValidator(decide.checked_reason)] = ""
    answer: Text = ""
    # Whether folded text was opened, as the page claims.
    opened: Opened = None
    # The value that a card may ask for, and the tick for the caution of a second model.
    typed: Text = ""
    caution_read: Literal["", "yes"] = ""
    grant: Annotated[Scope | None, PlainValidator(_grant)] = None
    # JSON text, and the digest of the changed call as it was shown; only sent if something was changed.
    edited: Text = ""
    shown: Text = ""

    @property
    def is_edited(self) -> bool:
        return "edited" in self.model_fields_set

    @model_validator(mode="after")
    def fits(self) -> "Decide":
        if self.is_edited and self.grant is not None:
            raise BadFrame(_("A grant covers the call only as requested. Nothing was decided."))
        if self.is_edited and "shown" not in self.model_fields_set:
            raise BadFrame(_unusable("shown"))
        return self

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        looked = Looked(self.opened, typed=self.typed, caution_read=bool(self.caution_read))
        try:
            if self.verdict == "answer":
                decide.answer(self.approval, actor, self.answer, looked=looked)
            elif self.verdict != "approve":
                suggests = self.verdict == "suggest"
                decide.decline(self.approval, actor, reason=self.reason, suggests=suggests, looked=looked)
            elif not self.is_edited:
                reason, grant = self.reason, self.grant
                decide.approve(self.approval, actor, digest=self.digest, grant=grant, reason=reason, looked=looked)
            else:
                yes = {"digest": self.digest, "reason": self.reason, "edited": self.edited, "shown": self.shown}
                editing.approve(self.approval, actor, **yes, looked=looked)
        except decide.AlreadySettled as late:
            return fragments.too_late(conversation.pk, actor, late.call)
        except (decide.OtherDigest, decide.CautionUnread) as error:
            return fragments.asks(conversation.pk, actor) + fragments.flash(str(error))
        except decide.OtherValue as error:
            return fragments.asks(conversation.pk, actor) + fragments.matter(self.approval, actor, str(error))
        return ""


class DecideAll(Command):
    """Calls of one tool, answered together."""

    type: Literal["decide-all"]
    verdict: Verdict
    items: list[Annotated[Item, PlainValidator(_item)]]
    opened: Opened = None

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        try:
            html = fragments.outcomes(batch.answer(self.items, self.verdict, actor, opened=self.opened, on_page=True))
        except Problem as error:
            html = fragments.flash(str(error))
        return fragments.asks(conversation.pk, actor) + html


class TakeBack(Command):
    """An approval, while its call has not started."""

    type: Literal["take-back"]
    call: UUID

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        decide.take_back(self.call, actor)
        return ""


class RevokeGrant(Command):
    type: Literal["revoke-grant"]
    grant: UUID

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        giving.revoke(self.grant, actor)
        return fragments.grants(conversation.pk)


class StopCall(Command):
    type: Literal["stop-call"]
    call: UUID

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:  # noqa: ARG002
        if stopping.request(self.call, actor):
            return ""
        return fragments.flash(_("This call is no longer running: there is nothing to stop."))


class Resolve(Command):
    """The end of a call whose outcome is unknown."""

    type: Literal["resolve"]
    call: UUID
    outcome: Literal["done", "failed", "again"]

    def carry_out(self, conversation: Conversation, actor: Actor) -> str:
        if self.outcome != "again":
            unknown.mark(self.call, self.outcome, actor)
            return ""
        rows = ToolCall.objects.filter(caller_id=actor.user_id, conversation_id=conversation.pk, turn_id__isnull=False)
        old = rows.filter(pk=self.call).first()
        if old is None:
            return fragments.flash(_("Only a call with an unknown outcome can be run again."))
        unknown.again(old, actor, conversation.owner.get_username())
        return ""


Frame = (
    Say | SendQueued | Unqueue | Stop | Retry | Edit | Regenerate | Switch | Undo  # what is said
    | Decide | DecideAll | TakeBack | RevokeGrant | StopCall | Resolve  # what happens to calls
)  # fmt: skip
FRAMES: Final[TypeAdapter[Command]] = TypeAdapter(Annotated[Frame, Field(discriminator="type")])


def parse(frame: str) -> Command:
    """The command in `frame`; BadFrame otherwise."""
    if len(frame) > LONGEST_FRAME:
        raise BadFrame(_("Not sent: the message is too long."))
    try:
        return FRAMES.validate_python(canonical.loads(frame))
    except canonical.NotJson as why:
        raise BadFrame(_("The page sent something unreadable ({why}). Reload it.").format(why=why)) from why
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        error = first.get("ctx", {}).get("error")
        if isinstance(error, BadFrame):
            raise error from invalid
        if isinstance(error, decide.BadReason | BadGrant):
            raise BadFrame(f"{error} Nothing was decided.") from invalid
        if first["loc"]:
            raise BadFrame(_unusable(str(first["loc"][1]))) from invalid
        if first["type"].startswith("union_tag_"):
            raise BadFrame(_("The page sent an unknown command. Reload it.")) from invalid
        raise BadFrame(_("The page sent something unreadable. Reload it.")) from invalid


def owns(user_id: int, conversation_id: UUID) -> bool:
    return conversations.own(user_id).filter(pk=conversation_id).exists()


def act(session: Any, conversation_id: UUID, command: Command) -> str:
    """Return a fragment for the page that sent the command, or nothing: what changed is announced to all of them."""
    stored = sign_in.stored(session.session_key)
    user = sign_in.signed_in_user(stored)
    if user is None:
        return fragments.flash(_("You are signed out. Sign in again in another tab, then reload this page."))
    conversation = conversations.owned(conversation_id, user.pk).one()
    if conversation is None:
        return fragments.flash(_("This conversation was deleted."))
    try:
        return command.carry_out(conversation, actor_in(stored, user))
    except Problem as error:
        return fragments.flash(str(error))


def _unusable(name: str) -> str:
    if name in DECIDING:
        return _("The page sent no valid “{name}”. Nothing was decided. Reload it.").format(name=name)
    return _("The page sent no valid “{name}”. Reload it.").format(name=name)

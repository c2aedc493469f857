"""Posts of a client: its messages, of which only the one that says something new is read, and its answers.

Clients keep the conversation too, and send all of it along: none of that is believed, as it may have been changed.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from ninja.errors import ValidationError
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, TypeAdapter
from pydantic import ValidationError as BadFields
from pydantic.alias_generators import to_camel

from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import LONGEST_MESSAGE, Conversation
from hitlchat.api.approvals import Reason
from hitlchat.api.contract import STORABLE, Body, Object
from hitlchat.base import canonical
from hitlchat.base.ids import uuid_of

LONGEST_ID: Final = 100
# Up to here JavaScript knows whole numbers exactly.
EXACT: Final = 2**53

Id = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID, pattern="^[!-~]+$")]


class Posted(BaseModel):
    """A part of the protocol, which grows: unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class PostedApproval(Posted):
    id: str
    approved: StrictBool | None = None
    reason: str | None = None
    signature: str | None = None


class PostedPart(Posted):
    type: str
    state: str = ""
    text: str = ""
    url: str = ""
    filename: str = ""
    tool_call_id: str = ""
    input: Any = None
    output: Any = None
    error_text: str = ""
    approval: PostedApproval | None = None


class PostedMessage(Posted):
    id: Id
    role: Literal["user", "assistant"]
    parts: list[PostedPart]

    @property
    def content(self) -> str:
        text = "\n\n".join(part.text for part in self.parts if part.type == "text").strip()
        return checked(CONTENT, text, "text")

    @property
    def files(self) -> list[PostedPart]:
        return [part for part in self.parts if part.type == "file"]

    @property
    def tools(self) -> list[PostedPart]:
        return [part for part in self.parts if part.type == "dynamic-tool" or part.type.startswith("tool-")]


class PostedChat(Posted):
    """The body of `sendMessages`; front ends may add fields of their own."""

    id: UUID = Field(description="The conversation's id. Create one with POST /api/conversations first.")
    messages: list[Object] = Field(min_length=1, description="UI messages; the last one is enough.")
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: Id | None = None

    @property
    def message(self) -> PostedMessage:
        """Return the message that is new: the one named by `message_id`, else the last."""
        place = len(self.messages) - 1
        if self.trigger == "submit-message" and self.message_id is not None:
            named = [at for at, each in enumerate(self.messages) if each.get("id") == self.message_id]
            place = named[-1] if named else place
        try:
            return PostedMessage.model_validate(self.messages[place])
        except BadFields as error:
            at = ("body", "body", "messages", place)
            found = [{"type": one["type"], "msg": one["msg"], "loc": (*at, *one["loc"])} for one in error.errors()]
            raise ValidationError(found) from error


class ApprovalResponse(Body):
    """`signature` is that of the request: with it only what was shown is approved."""

    kind: Literal["approval-response"]
    approval_id: str = Field(description="The id from the request, `{run}::{call}`, or the approval's id.")
    approved: bool
    reason: Reason | None = None
    signature: str | None = None
    tool_call_id: str | None = None
    session_id: str | None = None


class ClientResult(Body):
    """The answer of a client to a call that is its own to answer: `output`, or `errorText` if it will not."""

    kind: Literal["tool-result"]
    tool_call_id: str
    output: Any = None
    error_text: Reason | None = None
    session_id: str | None = None


def attached(conversation: Conversation, files: Sequence[PostedPart]) -> list[UUID]:
    """Return the ids of a message's files. Those that came along as data are stored first."""
    ids: list[UUID] = []
    for place, part in enumerate(files):
        if part.url.startswith("data:"):
            ids.append(keeping.add(conversation, part.filename or f"file-{place + 1}", _data(place, part.url)).pk)
        elif (file_id := uuid_of(part.url.rstrip("/").rpartition("/")[2])) is not None:
            ids.append(file_id)
        else:
            why = "Expected a data URL, or /api/attachments/… of a file that was sent ahead."
            raise refused("files", why, place)
    return ids


def _data(place: int, url: str) -> bytes:
    head, comma, text = url.partition(",")
    keeping.require_size("", len(text) * 3 // 4)
    try:
        if comma and head.endswith(";base64"):
            return base64.b64decode(text, validate=True)
    except binascii.Error:
        pass
    raise refused("files", "Expected a data URL in base64.", place)


CONTENT: Final = TypeAdapter(Annotated[str, StringConstraints(max_length=LONGEST_MESSAGE), STORABLE])
REASON: Final = TypeAdapter(Reason)


def checked(kind: TypeAdapter[str], given: str, name: str) -> str:
    """Return a text if it is valid, else raise a `ValidationError`. Only texts that are read are checked."""
    try:
        return kind.validate_python(given)
    except BadFields as error:
        raise refused(name, error.errors()[0]["msg"].removeprefix("Value error, ")) from error


def refused(name: str, words: str, *place: int | str) -> ValidationError:
    return ValidationError([{"type": "refused", "loc": ("body", "body", name, *place), "msg": words}])


@dataclass(frozen=True)
class Answer:
    """A person's decision about one call. `shown`: the arguments as their page had them, if it sent them."""

    name: str
    approved: bool
    reason: str = ""
    signature: str | None = None
    shown: Object | None = None


@dataclass(frozen=True)
class Result:
    """The output of a client for a call that is its own to answer; `error`: why it has none."""

    call: str
    output: Any = None
    error: str = ""
    is_error: bool = False


def answers(message: PostedMessage) -> Iterator[Answer]:
    """Yield the decisions in a message. Only true is a yes and only false a no; anything else is refused."""
    for part in message.tools:
        if part.state != "approval-responded":
            continue
        if part.approval is None or part.approval.approved is None:
            raise refused("approved", "Expected true or false as the answer.")
        given = part.approval
        reason = checked(REASON, given.reason or "", "reason")
        shown = part.input if isinstance(part.input, dict) else {}
        yield Answer(given.id, given.approved is True, reason, given.signature, shown)


def results(message: PostedMessage) -> Iterator[Result]:
    """Yield the outputs that a client sends for calls, also for those that are not its own to answer."""
    for part in message.tools:
        if part.state in ("output-available", "output-error"):
            yield Result(part.tool_call_id, part.output, part.error_text, is_error=part.state == "output-error")


def is_as_shown(shown: Object, arguments: Object) -> bool:
    """Return whether a page in JavaScript, which knows one kind of number, would show `arguments` like this."""
    try:
        return canonical.dumps(_as_in_javascript(shown)) == canonical.dumps(_as_in_javascript(arguments))
    except canonical.NotJson:
        return False


def _as_in_javascript(value: Any) -> Any:
    match value:
        case bool():
            return value
        case float() if value.is_integer() and abs(value) < EXACT:
            return int(value)
        case dict():
            return {name: _as_in_javascript(each) for name, each in value.items()}
        case list():
            return [_as_in_javascript(each) for each in value]
    return value

"""A question as a page shows it: the server's words in boxes of their own, and what the person may fill in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from hitlchat.base import database
from hitlchat.base.visible import Seen, see
from hitlchat.gate.status import Status
from hitlchat.upstreams.elicitation.fields import LARGEST_INTEGER, LONGEST_TEXT, Field, Value, fields_of
from hitlchat.upstreams.elicitation.judging import Link, link
from hitlchat.upstreams.models import QuestionState, UpstreamQuestion

MOST_RADIOS = 6
LONGEST_LINE = 200
SHOWN_OF_RECORD = 300
_INPUTS = {"email": "email", "uri": "url", "date": "date"}
_EXAMPLES = {"date-time": "such as 2027-01-31T18:00:00Z", "uri": "a whole address", "email": "an e-mail address"}


@dataclass(frozen=True)
class Choice:
    value: str
    title: Seen
    is_chosen: bool


@dataclass(frozen=True)
class FieldView:
    """`name` is what the form sends it as: the server's own name might be one of ours."""

    name: str
    title: Seen
    description: Seen | None
    hint: str
    widget: str
    input: str
    text: str
    choices: tuple[Choice, ...]
    required: bool
    error: str

    @property
    def described_by(self) -> tuple[str, ...]:
        """Endings of the ids of what explains it."""
        parts = {"about": self.description, "hint": self.hint, "error": self.error}
        return tuple(name for name, part in parts.items() if part)


@dataclass(frozen=True)
class QuestionCard:
    id: str
    call_id: str
    conversation_id: str
    tool_name: Seen
    server: Seen
    message: Seen
    fields: tuple[FieldView, ...]
    link: Link | None
    link_warnings: tuple[str, ...]
    asked_at: datetime
    deadline: datetime
    is_open: bool
    state: str
    # What became of it, once it is no longer open.
    outcome: str
    agreed_error: str = ""

    @property
    def errors(self) -> int:
        return sum(bool(field.error) for field in self.fields) + bool(self.agreed_error)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about the message and all that the fields say, each sentence once."""
        texts = [self.message, *(field.title for field in self.fields)]
        texts += [field.description for field in self.fields if field.description]
        return tuple(dict.fromkeys(warning for seen in texts for warning in seen.warnings))


def field_name(index: int) -> str:
    return f"f{index}"


def card(
    question: UpstreamQuestion,
    typed: Sequence[Sequence[str]] | None = None,
    errors: Mapping[str, str] | None = None,
    agreed_error: str = "",
) -> QuestionCard:
    """`question` with its call. `typed`: what stood in the form, with what is wrong with it by the fields' names."""
    call, is_open = question.call, is_answerable(question)
    fields = fields_of(question.schema) if is_open and not question.url else ()
    texts = typed if typed is not None else [_prefilled(field) for field in fields]
    views = [
        _field(index, field, given, (errors or {}).get(field.name, ""))
        for index, (field, given) in enumerate(zip(fields, texts, strict=True))
    ]
    leads = link(question.url) if is_open and question.url else None
    return QuestionCard(
        id=str(question.pk),
        call_id=str(call.pk),
        conversation_id=str(call.conversation_id or ""),
        tool_name=see(call.tool_name),
        server=see(question.server_name),
        message=see(question.message if is_open else _cut(question.message)),
        fields=tuple(views),
        link=leads,
        link_warnings=see(leads.address).warnings if leads else (),
        asked_at=question.asked_at,
        deadline=question.deadline,
        is_open=is_open,
        state=question.state,
        outcome="" if is_open else _outcome(question),
        agreed_error=agreed_error,
    )


def is_answerable(question: UpstreamQuestion) -> bool:
    """Open as the row says, and somebody is there who waits for it."""
    open_now = question.state == QuestionState.OPEN and question.deadline > database.now()
    return open_now and question.call.status == Status.EXECUTING


def _field(index: int, field: Field, given: Sequence[str], error: str) -> FieldView:
    return FieldView(
        name=field_name(index),
        title=see(field.title),
        description=see(field.description) if field.description else None,
        hint=_hint(field),
        widget=_widget(field),
        input=_INPUTS.get(field.format, "text"),
        text=given[-1] if given else "",
        choices=_choices(field, given),
        required=field.required,
        error=error,
    )


def _widget(field: Field) -> str:
    match field.kind:
        case "boolean":
            return "radios"
        case "one":
            return "radios" if len(field.options) <= MOST_RADIOS else "select"
        case "many":
            return "boxes"
        case "integer" | "number":
            return "number"
        case "text":
            is_long = field.most is None or field.most > LONGEST_LINE
            return "lines" if is_long and not field.format else "line"


def _choices(field: Field, given: Sequence[str]) -> tuple[Choice, ...]:
    if field.kind == "boolean":
        pairs = [("yes", "Yes"), ("no", "No")]
    else:
        pairs = [(option.value, option.title) for option in field.options]
    chosen = set(given)
    found = [Choice(value, see(title), value in chosen) for value, title in pairs]
    if pairs and field.kind != "many" and not field.required:
        found.append(Choice("", see("No answer"), not chosen - {""}))
    return tuple(found)


def _prefilled(field: Field) -> list[str]:
    """The server's own suggestion, in plain sight."""
    value: Value | None = field.default
    match value:
        case None:
            return []
        case bool():
            return ["yes" if value else "no"]
        case list():
            return value
        case _:
            return [str(value)]


def _hint(field: Field) -> str:
    """Return what is expected, in our own words."""
    match field.kind:
        case "text":
            said = [_EXAMPLES.get(field.format, ""), _range(field, "characters", LONGEST_TEXT)]
        case "integer" | "number":
            said = ["a whole number" if field.kind == "integer" else "a number", _range(field, "", LARGEST_INTEGER)]
        case "many":
            said = ["any number of them" if field.least is None else "", _range(field, "of them", len(field.options))]
        case _:
            said = []
    return ", ".join(filter(None, said))


def _range(field: Field, what: str, largest: int) -> str:
    least, most = field.least, None if field.most is None or field.most >= largest else field.most
    if least and most:
        said = f"{least:g} to {most:g}"
    elif least is not None and (least or not what):
        said = f"at least {least:g}"
    else:
        said = "" if most is None else f"at most {most:g}"
    return f"{said} {what}".strip() if said else ""


def _outcome(question: UpstreamQuestion) -> str:
    who = question.answered_by.get_username() if question.answered_by else ""
    match QuestionState(question.state):
        case QuestionState.ANSWERED if question.url:
            return f"{who} agreed to go to {urlsplit(question.url).netloc}."
        case QuestionState.ANSWERED:
            named = ", ".join(question.fields)
            return f"Answered by {who}{f': {_cut(named)}' if named else ''}. The values are not kept."
        case QuestionState.DECLINED if who:
            return f"{who} did not answer it, and the server was told so."
        case QuestionState.DECLINED:
            return f"Declined by itself. {question.note}"
        case QuestionState.EXPIRED:
            return "Nobody answered in time, and the server was told so."
        case QuestionState.GONE | QuestionState.OPEN:
            return question.note or "It was taken back: nobody waits for the answer any more."


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_OF_RECORD else f"{text[: SHOWN_OF_RECORD - 1]}…"

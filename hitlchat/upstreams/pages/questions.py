"""A server's question as pages show it: its words in boxes of their own, and what the person may fill in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_noop

from hitlchat.accounts.access import HtmxRequest, person, signed_in
from hitlchat.base import database, forms
from hitlchat.base.forms import BadAnswer, FieldView, field_name, read
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import Seen, see
from hitlchat.gate.actor import actor_of
from hitlchat.gate.status import Status
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.elicitation.screening import Link, fields_of, link
from hitlchat.upstreams.models import QuestionState, UpstreamQuestion

SHOWN_OF_RECORD = 300
AGREE = "Tick this once you have opened the address, or choose “Don't answer”."


@dataclass(frozen=True)
class QuestionCard:
    """A question with its call in `row`; its form if it is open, and else its outcome in words."""

    row: UpstreamQuestion
    is_open: bool
    message: Seen
    fields: tuple[FieldView, ...]
    link: Link | None
    outcome: str
    agreed_error: str

    @property
    def id(self) -> UUID:
        return self.row.pk

    @property
    def link_warnings(self) -> tuple[str, ...]:
        return see(self.link.address).warnings if self.link else ()

    @property
    def errors(self) -> int:
        return sum(bool(field.error) for field in self.fields) + bool(self.agreed_error)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about the message and all that the fields say, each sentence once."""
        texts = [self.message, *(field.title for field in self.fields)]
        texts += [field.description for field in self.fields if field.description]
        return tuple(dict.fromkeys(warning for seen in texts for warning in seen.warnings))


def card(
    question: UpstreamQuestion,
    typed: Sequence[Sequence[str]] | None = None,
    errors: Mapping[str, str] | None = None,
    agreed_error: str = "",
) -> QuestionCard:
    """`question` with its call. `typed`: what stood in the form, with what is wrong with it by the fields' names."""
    is_open = is_answerable(question)
    fields = fields_of(question.schema) if is_open and not question.url else ()
    texts = typed if typed is not None else [forms.prefilled(field) for field in fields]
    return QuestionCard(
        row=question,
        is_open=is_open,
        message=see(question.message if is_open else _cut(question.message)),
        fields=forms.views(fields, texts, errors),
        link=link(question.url) if is_open and question.url else None,
        outcome="" if is_open else _outcome(question),
        agreed_error=agreed_error,
    )


def is_answerable(question: UpstreamQuestion) -> bool:
    """Return whether a question is open in its row, and a process still waits for its answer."""
    open_now = question.state == QuestionState.OPEN and question.deadline > database.now()
    return open_now and question.call.status == Status.EXECUTING


def _outcome(question: UpstreamQuestion) -> str:
    who = question.answered_by.get_username() if question.answered_by else ""
    match QuestionState(question.state):
        case QuestionState.ANSWERED if question.url:
            return translatable(f"{who} agreed to go to {urlsplit(question.url).netloc}.")
        case QuestionState.ANSWERED:
            if not (named := ", ".join(question.fields)):
                return translatable(f"Answered by {who}. The values are not kept.")
            return translatable(f"Answered by {who}: {_cut(named)}. The values are not kept.")
        case QuestionState.DECLINED if who:
            return translatable(f"{who} did not answer, and the server was informed.")
        case QuestionState.DECLINED:
            why = question.note
            return translatable(f"Declined automatically. {why}")
        case QuestionState.EXPIRED:
            return gettext_noop("Nobody answered in time, and the server was informed.")
        case QuestionState.GONE | QuestionState.OPEN:
            return question.note or gettext_noop("Withdrawn: nobody is waiting for the answer any more.")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_OF_RECORD else f"{text[: SHOWN_OF_RECORD - 1]}…"


@signed_in.reads
def listed(request: HttpRequest, template: str) -> HttpResponse:
    """Show the questions that wait for the person, and the last others: as a page, or for the page that is open."""
    user_id = person(request).pk
    still_open = list(questions.open_for(user_id))
    closed = questions.asked_of(user_id).exclude(pk__in=[each.pk for each in still_open]).order_by("-asked_at", "-pk")
    context = {
        "section": "questions",
        "open": [card(each) for each in still_open],
        "closed": [card(each) for each in closed[:20]],
    }
    return render(request, template, context)


@signed_in.reads
def question(request: HttpRequest, question_id: UUID) -> HttpResponse:
    return _page(request, card(questions.find(question_id, actor_of(request))))


@signed_in.posts
def answer(request: HtmxRequest, question_id: UUID) -> HttpResponse:
    found = questions.find(question_id, actor_of(request))
    if not is_answerable(found):
        return _late(request, found)
    if found.url and request.POST.getlist("agreed") != ["yes"]:
        return _answered(request, card(found, agreed_error=AGREE))
    fields = () if found.url else fields_of(found.schema)
    typed = [request.POST.getlist(field_name(index)) for index, _ in enumerate(fields)]
    try:
        return _closed(request, questions.answer(found.pk, actor_of(request), read(fields, typed)))
    except BadAnswer as refused:
        return _answered(request, card(found, typed, refused.errors))
    except questions.NotOpen as late:
        return _late(request, late.question)


@signed_in.posts
def decline(request: HtmxRequest, question_id: UUID) -> HttpResponse:
    found = questions.find(question_id, actor_of(request))
    try:
        return _closed(request, questions.decline(found.pk, actor_of(request)))
    except questions.NotOpen as late:
        return _late(request, late.question)


def _closed(request: HtmxRequest, found: UpstreamQuestion) -> HttpResponse:
    return _answered(request, card(found)) if request.htmx else redirect("servers:question", found.pk)


def _late(request: HtmxRequest, found: UpstreamQuestion) -> HttpResponse:
    return _answered(request, card(found), "This question is no longer open. Your answer was not sent.")


def _answered(request: HtmxRequest, shown: QuestionCard, note: str = "") -> HttpResponse:
    if request.htmx:
        return render(request, "servers/questions/_question.html", {"question": shown, "note": note})
    return _page(request, shown, note, status=409 if note else 422 if shown.errors else 200)


def _page(request: HttpRequest, shown: QuestionCard, note: str = "", status: int = 200) -> HttpResponse:
    context = {"question": shown, "note": note, "section": "questions"}
    return render(request, "servers/questions/question.html", context, status=status)

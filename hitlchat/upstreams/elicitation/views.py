"""The pages on which a person answers a server's question, for calls that come from no conversation too.

Nothing here changes anything on GET. The fragment for htmx is the question as it stands now.
"""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from hitlchat.accounts.access import person
from hitlchat.gate.actor import actor_of
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.elicitation.card import QuestionCard, card, field_name, is_answerable
from hitlchat.upstreams.elicitation.fields import BadAnswer, fields_of, read
from hitlchat.upstreams.models import UpstreamQuestion

MOST_CLOSED = 20
AGREE = "Tick this once you have opened the address, or choose “Don't answer”."


@login_required
@require_GET
def listed(request: HttpRequest) -> HttpResponse:
    """Every question that waits for the person, and how the last ones ended."""
    return render(request, "servers/questions/page.html", _all(request))


@login_required
@require_GET
def waiting(request: HttpRequest) -> HttpResponse:
    """The same as a fragment, for the page that has it open."""
    return render(request, "servers/questions/_all.html", _all(request))


@login_required
@require_GET
def question(request: HttpRequest, question_id: UUID) -> HttpResponse:
    return _page(request, card(_find(request, question_id)))


@login_required
@require_POST
def answer(request: HttpRequest, question_id: UUID) -> HttpResponse:
    found = _find(request, question_id)
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


@login_required
@require_POST
def decline(request: HttpRequest, question_id: UUID) -> HttpResponse:
    found = _find(request, question_id)
    try:
        return _closed(request, questions.decline(found.pk, actor_of(request)))
    except questions.NotOpen as late:
        return _late(request, late.question)


def _find(request: HttpRequest, question_id: UUID) -> UpstreamQuestion:
    try:
        return questions.find(question_id, actor_of(request))
    except questions.NoSuchQuestion as error:
        raise Http404(str(error)) from error


def _closed(request: HttpRequest, found: UpstreamQuestion) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return _answered(request, card(found))
    return redirect("servers:question", found.pk)


def _late(request: HttpRequest, found: UpstreamQuestion) -> HttpResponse:
    return _answered(request, card(found), "This question is no longer open. Your answer was not sent.")


def _answered(request: HttpRequest, shown: QuestionCard, note: str = "") -> HttpResponse:
    if request.headers.get("HX-Request"):
        return render(request, "servers/questions/_question.html", {"question": shown, "note": note})
    return _page(request, shown, note, status=409 if note else 422 if shown.errors else 200)


def _page(request: HttpRequest, shown: QuestionCard, note: str = "", status: int = 200) -> HttpResponse:
    context = {"question": shown, "note": note, "section": "questions"}
    return render(request, "servers/questions/question.html", context, status=status)


def _all(request: HttpRequest) -> dict[str, object]:
    user_id = person(request).pk
    still_open = list(questions.open_for(user_id))
    closed = questions.asked_of(user_id).exclude(pk__in=[each.pk for each in still_open]).order_by("-asked_at", "-pk")
    return {
        "section": "questions",
        "open": [card(each) for each in still_open],
        "closed": [card(each) for each in closed[:MOST_CLOSED]],
    }

"""One question and its answer: a page's form, parsed strictly, changed arguments, the time left, and the outcome.

Changing arguments keeps and decides nothing: that is shown first, and then answered like the question itself.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from django_htmx.http import reswap, retarget

from hitlchat.accounts.access import HtmxRequest, person, signed_in
from hitlchat.agent import why as asking
from hitlchat.base import canonical, moments
from hitlchat.base.forms import BadAnswer, read
from hitlchat.base.ids import uuid_of
from hitlchat.base.problems import Conflict, Forbidden, Invalid, required
from hitlchat.base.sentences import translatable, translated
from hitlchat.base.visible import is_hidden
from hitlchat.gate import attention, decide, deciders, editing, handling, question, queue
from hitlchat.gate import why as whys
from hitlchat.gate.actor import actor_of
from hitlchat.gate.attention import Looked, claimed
from hitlchat.gate.batch import MOST_TOGETHER
from hitlchat.gate.card import as_shown, card, key
from hitlchat.gate.decide import BadEdit
from hitlchat.gate.grants import scope
from hitlchat.gate.grants.scope import BadGrant
from hitlchat.gate.models import Approval, CallerKind, Decision, Verdict
from hitlchat.gate.question import Asking
from hitlchat.gate.schema import with_defaults
from hitlchat.gate.status import Status
from hitlchat.gate.who import how, name, stance_of
from tools_studio import argument_form
from tools_studio.argument_form import BadInput, Field

NEITHER: Final = _("Nothing was decided: the answer was neither approve nor decline.")
HEADINGS: Final = {
    Status.WAITING: _("A call needs your answer"),
    Status.EXPIRED: _("Nobody answered this call in time"),
    Status.WITHDRAWN: _("This call was withdrawn"),
}
OTHERS: Final = _("This call waits for others")
# Where a page shows the time: on a card, on the line of a call in a transcript, in the list.
PLACES: Final = ("card", "line", "list")
# Whoever answered reads why it did not count.
DID_NOT_COUNT: Final = (Conflict, Forbidden, Invalid)
UNFIT: Final = _("You can change these arguments only as JSON text.")

Schema = dict[str, Any]
Arguments = dict[str, Any]


@dataclass(frozen=True)
class EditForm:
    """A form as it is shown.

    `fields` is None when it shows `json`. A `problem` is at the field `at`, if that is set.
    """

    fields: list[Field] | None
    json: str
    problem: str = ""
    at: str = ""
    can_be_fields: bool = True


@signed_in.reads
def approval(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    return _page(request, approval_for(request, approval_id))


@signed_in.posts
def answer(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Approve, with changed arguments or without, or decline. The fragment for htmx is the call as it stands now."""
    actor, sent, note = actor_of(request), request.POST, ""
    looked = Looked(claimed(sent.get("opened")), typed=sent.get("typed", ""), caution_read="caution_read" in sent)
    grants = sent.getlist("grant")
    try:
        # One verdict and one digest: of two, nobody can say which was meant (SR-13).
        match sent.getlist("verdict"), sent.getlist("digest"), sent.getlist("edited"), sent.getlist("shown"):
            case ["approve"], [str(digest)], [], []:
                if len(grants) > 1:
                    raise BadGrant({"grant": "Expected one grant."})
                grant = scope.read(grants[0]) if grants else None
                reason = decide.checked_reason(sent.get("reason", ""))
                decide.approve(approval_id, actor, digest=digest, grant=grant, reason=reason, looked=looked)
            case ["approve"], [str(digest)], [str(edited)], [str(shown)] if not grants:
                editing.approve(approval_id, actor, digest=digest, edited=edited, shown=shown, looked=looked)
            case ["decline" | "suggest" as word], _, _, _:
                reason = decide.checked_reason(sent.get("reason", ""))
                decide.decline(approval_id, actor, reason=reason, suggests=word == "suggest", looked=looked)
            case ["answer"], _, _, _:
                decide.answer(approval_id, actor, sent.get("answer", ""), looked=looked)
            case _:
                note = str(NEITHER)
    except decide.OtherValue as error:
        return _answered(request, approval_id, problem=str(error))
    except DID_NOT_COUNT as error:
        note = translatable(f"{error} Your answer was not recorded.")
    return _answered(request, approval_id, note)


@signed_in.posts
def reply(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Answer the question that a call asks. What does not fit comes back with its errors, and nothing is decided."""
    found = approval_for(request, approval_id)
    if not question.is_one(found.call):
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    arguments = found.disclosure["arguments"]
    typed = [request.POST.getlist(name) for name in question.typed_names(arguments)]
    digest, looked = request.POST.get("digest", ""), Looked(claimed(request.POST.get("opened")))
    try:
        given = {question.ANSWER: read(question.fields(arguments), typed)}
        decide.approve(approval_id, actor_of(request), digest=digest, edited=given, looked=looked)
    except BadAnswer as error:
        return _form_again(request, found, question.asking_of(arguments, typed, error.errors))
    except DID_NOT_COUNT as error:
        return _replied(request, found, f"{error} Your answer was not recorded.")
    return _replied(request, found)


@signed_in.posts
def take_back(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    note = ""
    try:
        decide.take_back_approval(approval_id, actor_of(request))
    except decide.TooLate as error:
        note = str(error)
    return _answered(request, approval_id, note)


@signed_in.reads
def outcome(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Show the fragment again to a page that waits for the call to settle; with `settled`, 204 while it waits.

    With `cautioned` the page has what a second model has to say of it; one that lacks that gets it.
    """
    found = approval_for(request, approval_id)
    has_news = "cautioned" not in request.GET and found.call.caution_takes_tick is not None
    if "settled" in request.GET and found.call.status == Status.WAITING and not has_news:
        return HttpResponse(status=204)
    return _fragment(request, found)


@signed_in.reads
def who(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Show the fragment again once others have said yes or decided; 204 while it is as it was `seen`.

    With `alone` the part of a card that says who decides, for as long as it waits.
    """
    found = approval_for(request, approval_id)
    seen, alone = request.GET.get("seen", ""), "alone" in request.GET
    if found.call.status != Status.WAITING:
        return HttpResponse(status=204) if alone else _fragment(request, found)
    now = stance_of(found, actor_of(request))
    if now.mark == seen:
        return HttpResponse(status=204)
    if alone:
        return render(request, "approvals/_who.html", {"card": card(found, actor_of(request)), "oob": False})
    return _fragment(request, found, stays=now.stance == seen.partition(".")[0])


@signed_in.posts
def on_it(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Say that the person is on it, or with `let_go` no longer; the part of the card that says who decides, as it is
    then.
    """
    note = ""
    try:
        (handling.let_go if "let_go" in request.POST else handling.take_up)(approval_id, actor_of(request))
    except DID_NOT_COUNT as error:
        note = str(error)
    found = approval_for(request, approval_id)
    if not request.htmx:
        return _page(request, found, note) if note else redirect("approval", approval_id)
    if found.call.status != Status.WAITING:
        return HttpResponse(status=204)
    shown = card(found, actor_of(request))
    return render(request, "approvals/_who.html", {"card": shown, "oob": False, "note": note})


@signed_in.form
def why(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Ask the model about the call, with no words the same `again` after no answer, or show what it says once that is
    not what was `seen`: the part of the card that has both.
    """
    note, typed = "", request.POST.get("question", "")
    if request.method == "POST":
        try:
            asking.ask(approval_id, actor_of(request), typed.strip() or request.POST.get("again", ""))
        except DID_NOT_COUNT as error:
            note = str(error)
    found = approval_for(request, approval_id)
    if not request.htmx:
        return _page(request, found, note) if note else redirect("approval", approval_id)
    card_now = card(found, actor_of(request)) if found.call.status == Status.WAITING else None
    if card_now is None or card_now.whys is None or card_now.whys.mark == request.GET.get("seen"):
        return HttpResponse(status=204)
    # What was typed there stays, unless it was sent.
    sent = request.method == "POST"
    context = {"card": card_now, "oob": False, "note": note, "sent": sent, "typed": typed if note else ""}
    return render(request, "approvals/_why.html", context)


@signed_in.posts
def shown(request: HttpRequest) -> HttpResponse:
    """Note that the `items` are on the page, each an approval's id and its digest; 204 whatever comes of it.

    What the person may not see, or what is another question by now, is passed over, as is what makes no sense.
    """
    sent = (each.partition(":") for each in request.POST.getlist("items")[:MOST_TOGETHER])
    items = {pk: digest for named, _colon, digest in sent if (pk := uuid_of(named))}
    actor = actor_of(request)
    for found in deciders.seen_by(person(request).pk, items):
        if found.digest == items[found.pk]:
            attention.shown(found, actor)
    return HttpResponse(status=204)


@signed_in.reads
def left(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Show the time that is left; 204 if the page has it already (`was`), or if the question is over."""
    found = approval_for(request, approval_id)
    if moments.read(request.GET.get("was", "")) == found.call.deadline or found.call.status != Status.WAITING:
        return HttpResponse(status=204)
    return _left(request, found, request.GET.get("place", ""))


@signed_in.posts
def extend(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Put the deadline off if this is the question's last minute; the time as it is then, and why if it was not."""
    note, seen = "", moments.read(request.POST.get("deadline", ""))
    try:
        if seen is None:
            note = gettext_noop("The page sent no valid deadline. Reload it.")
        else:
            editing.extend(approval_id, actor_of(request), seen=seen)
    except (decide.AlreadySettled, editing.NotNow) as error:
        note = str(error)
    if not request.htmx:
        return redirect("approval", approval_id)
    return _left(request, approval_for(request, approval_id), request.POST.get("place", ""), note)


@signed_in.form
def edit(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Show the form as fields or as JSON, or what a yes to its content would mean."""
    found = approval_for(request, approval_id)
    if found.call.status != Status.WAITING or found.call.tool is None:
        return _edit_page(request, found, {"gone": str(decide.AlreadySettled(found.call))})
    try:
        decide.require(actor_of(request), found)
    except deciders.NotEntitled as others:
        return _edit_page(request, found, {"gone": str(others)})
    schema, original = found.call.tool.input_schema, found.disclosure["arguments"]
    if request.method != "POST":
        return _edit_page(request, found, {"form": _edit_form(schema, original)})
    step = request.POST.get("step", "")
    try:
        if "json" in request.POST:
            arguments = editing.read(_json(request.POST))
        else:
            arguments = argument_form.arguments(schema, request.POST, original)
        if step == "review":
            # Back leads to what was typed: to JSON from JSON, and to fields from fields.
            back = "json" if "json" in request.POST else "fields"
            return _edit_page(request, found, {"review": editing.review(found, arguments), "back": back})
        form = _edit_form(schema, arguments, as_json=step == "json")
        if step == "fields" and form.fields is None:
            form = EditForm(None, form.json, str(UNFIT), "json")
    except (BadInput, BadEdit) as error:
        form = _edit_again(schema, request.POST, original, error)
    return _edit_page(request, found, {"form": form})


def approval_for(request: HttpRequest, approval_id: UUID) -> Approval:
    """Return the approval if this person may see it, or the page that says there is none."""
    return required(deciders.one_seen_by(person(request).pk, approval_id), Http404)


def over(sent: QueryDict) -> str:
    """Return whether a card's answer goes over its page's websocket or over HTTP."""
    return "ws" if sent.get("over") == "ws" else "http"


def card_context(request: HttpRequest, found: Approval, note: str = "") -> dict[str, object]:
    waiting = found.call.status == Status.WAITING
    shown = card(found, actor_of(request)) if waiting else None
    others = shown is not None and shown.who is not None and shown.who.stance != "may"
    decisions = list(found.decisions.select_related("person"))
    edited = [decision.edited_arguments for decision in decisions if decision.edited_arguments is not None]
    return {
        "approval": found,
        "call": found.call,
        "card": replace(shown, times=queue.times([found])[found.pk]) if shown else None,
        "was": None if waiting else as_shown(found),
        "changed": canonical.pretty(edited[-1], indent=2) if edited else "",
        "for_client": found.call.caller_kind == CallerKind.MCP,
        "moving": found.call.status in (Status.APPROVED, Status.EXECUTING),
        "note": note,
        "whys": None if waiting else whys.of(found),
        "grants": [] if waiting else [(each, scope.sentence(each, translated)) for each in found.grants.all()],
        "decisions": [
            (_decided(each, found), each.decided_at, attention.words(each, found.disclosure)) for each in decisions
        ],
        "heading": OTHERS if others else HEADINGS.get(Status(found.call.status), _("This call has been answered")),
    }


def _form_again(request: HtmxRequest, found: Approval, asks: Asking, note: str = "") -> HttpResponse:
    shown = replace(card(found, actor_of(request)), asks=asks)
    context = {"card": shown, "over": over(request.POST), "note": note}
    if request.htmx:
        return render(request, "approvals/_question_form.html", context)
    page = card_context(request, found) | {"card": shown, "section": "approvals", "whole": True}
    return render(request, "approvals/page.html", page, status=422)


def _replied(request: HtmxRequest, found: Approval, note: str = "") -> HttpResponse:
    """Show the call as it stands now in place of its card; a conversation's pages hear of it over their own socket."""
    if over(request.POST) == "ws":
        asks = question.asking_of(found.disclosure["arguments"])
        return _form_again(request, found, asks, note) if note else HttpResponse(status=204)
    answer = _answered(request, found.pk, note)
    return retarget(reswap(answer, "innerHTML"), "closest [data-card-slot]") if request.htmx else answer


def _answered(request: HtmxRequest, approval_id: UUID, note: str = "", *, problem: str = "") -> HttpResponse:
    """Show the call as it stands now; `problem`: of the value that its card asks for."""
    found = approval_for(request, approval_id)
    if request.htmx:
        return _fragment(request, found, note, problem=problem)
    return _page(request, found, note or problem) if note or problem else redirect("approval", approval_id)


def _fragment(
    request: HtmxRequest, found: Approval, note: str = "", *, stays: bool = False, problem: str = ""
) -> HttpResponse:
    """Return the card, for the Studio's page too, which has a heading of its own. `stays`: the page keeps the card."""
    shown_on = urlsplit(request.htmx.current_url or "").path
    on_its_page = shown_on == reverse("approval", args=[found.pk])
    context = card_context(request, found, note) | {"on_its_page": on_its_page, "whole": on_its_page, "who_anew": stays}
    context["problem"] = problem
    return render(request, "approvals/_answered.html", context)


def _page(request: HttpRequest, found: Approval, note: str = "") -> HttpResponse:
    context = {"section": "approvals", "whole": True, **card_context(request, found, note)}
    return render(request, "approvals/page.html", context, status=409 if note else 200)


def _decided(decision: Decision, found: Approval) -> str:
    if decision.verdict == Verdict.ANSWER:
        sentence = gettext("Answered in the tool's place by {name}, {how}.")
    elif decision.verdict != Verdict.APPROVE:
        sentence = gettext("Declined by {name}, {how}.")
    elif question.is_one(found.call):
        sentence = gettext("Answered by {name}, {how}.")
    else:
        sentence = gettext("Approved by {name}, {how}.")
    return sentence.format(name=translated(name(decision)), how=translated(how(decision)))


def _left(request: HttpRequest, found: Approval, place: str, note: str = "") -> HttpResponse:
    context = {
        "id": found.pk,
        "key": key(found.pk, found.call.round),
        "deadline": found.call.deadline,
        "place": place if place in PLACES else PLACES[0],
        "note": note,
        "added": request.method == "POST" and not note,
    }
    return render(request, "approvals/_left.html", context)


def _edit_page(request: HtmxRequest, found: Approval, what: dict[str, Any]) -> HttpResponse:
    context = {"card": card(found, actor_of(request)), "over": over(request.GET), **what}
    return render(request, "approvals/_edit.html" if request.htmx else "approvals/edit.html", context)


def _edit_form(schema: Schema, arguments: Arguments, *, as_json: bool = False) -> EditForm:
    """Return the form with these arguments in it; as fields if those can say all of them."""
    fields = argument_form.fields(schema, arguments) if _fits(schema, arguments) and not as_json else None
    # In JSON every character can be seen.
    text = canonical.pretty(arguments, indent=2)
    seen = "".join(json.dumps(char)[1:-1] if is_hidden(char) else char for char in text)
    return EditForm(fields, seen, can_be_fields=_has_fields(schema))


def _edit_again(schema: Schema, typed: QueryDict, original: Arguments, error: BadInput | BadEdit) -> EditForm:
    problem = str(error)
    if "json" in typed:
        return EditForm(None, _json(typed), problem, "json", can_be_fields=_has_fields(schema))
    fields = [field.typed(typed) for field in argument_form.fields(schema, original)]
    at = error.html_name if isinstance(error, BadInput) else f"{argument_form.PREFIX}{error.argument}"
    return EditForm(fields, "", problem, at if at in {field.html_name for field in fields} else "")


def _json(typed: QueryDict) -> str:
    return str(typed["json"]).replace("\r\n", "\n")


def _fits(schema: Schema, arguments: Arguments) -> bool:
    """Return whether fields can hold the arguments as they are, and a person can see them in there."""
    if not _has_fields(schema) or any(map(is_hidden, canonical.pretty([arguments, list(schema["properties"])]))):
        return False
    typed = QueryDict(mutable=True)
    for field in argument_form.fields(schema, arguments):
        typed.update({field.html_name: field.value, field.empty_name: field.empty})
    try:
        made = argument_form.arguments(schema, typed, arguments)
    except BadInput:
        return False
    # As text: to Python, `1`, `1.0` and `True` would be equal.
    texts = {canonical.dumps(with_defaults(schema, each)) for each in (made, arguments)}
    return len(texts) == 1


def _has_fields(schema: Schema) -> bool:
    parts = schema.get("properties", {})
    return bool(parts) and all(isinstance(part, dict) for part in parts.values())

"""The pages of all calls and of one, with its events as sentences; the file of a filter; unknown outcomes settled."""

import mimetypes
from collections.abc import Sequence
from copy import copy
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts.access import person, signed_in
from hitlchat.accounts.roles import may_administer
from hitlchat.agent import conversations, unknown
from hitlchat.approvals.history import listing
from hitlchat.approvals.history.listing import Filters
from hitlchat.base.download import download, stored
from hitlchat.base.ids import uuid_of
from hitlchat.base.moments import between
from hitlchat.base.sentences import translated
from hitlchat.gate import attention, contents, decide, deciders, disclosure, editing, question, why
from hitlchat.gate.actor import actor_of
from hitlchat.gate.card import as_shown
from hitlchat.gate.decide import AlreadySettled
from hitlchat.gate.grants import scope
from hitlchat.gate.history import changes, finding
from hitlchat.gate.history.finding import FORMATS, approval_of, decisions_of, needed
from hitlchat.gate.models import Approval, AuditEvent, CallerKind, Decision, Tool, ToolCall, Verdict
from hitlchat.gate.settling import BadRemark
from hitlchat.gate.status import Status
from hitlchat.gate.who import how

MOST_TOOLS: Final = 500
CHANGES_AT_ONCE: Final = 50
LONGEST_ID: Final = 19
UNCLEAR: Final = gettext_noop("Nothing was done. Choose done, failed or run again.")
MOST_EVENTS: Final = 200
# Sentences about events, by their names. One without a full stop goes on with the reason, where there is one.
WORDS: Final = {
    "call.waiting": gettext_noop("Asked"),
    "call.allowed": gettext_noop("Let run without asking"),
    "call.refused": gettext_noop("Refused by a policy"),
    "call.rejected": gettext_noop("Rejected, and nobody was asked"),
    "call.approved": gettext_noop("Approved."),
    "call.declined": gettext_noop("Declined"),
    "call.answered": gettext_noop("Answered by a person in the tool's place."),
    "call.shown": gettext_noop("First shown."),
    "call.expired": gettext_noop("Expired: nobody answered in time."),
    "call.withdrawn": gettext_noop("Withdrawn"),
    "call.queued": gettext_noop("All workers were busy: the call waits for a free one."),
    "call.executing": gettext_noop("Started."),
    "call.succeeded": gettext_noop("Succeeded."),
    "call.failed": gettext_noop("Failed."),
    "call.unknown": gettext_noop("Lost: it may or may not have happened"),
    "call.counted": gettext_noop("Approved: {given} of {needed} people."),
    "call.yes_taken_back": gettext_noop("An approval was withdrawn."),
    "call.passed_on": gettext_noop("Now the group “{group}” is asked."),
    "call.stop_requested": gettext_noop("Stop requested."),
    "call.extended": gettext_noop("Given more time to answer."),
    "call.looked_back": gettext_noop("Looked back: it was fine that nobody was asked."),
    "call.cautioned": gettext_noop("A second model cautioned"),
    "call.taken_up": gettext_noop("A person said that they are on it."),
    "call.let_go": gettext_noop("A person is no longer on it."),
    "call.asked_why": gettext_noop("The model was asked why."),
    "call.why_answered": gettext_noop("The model said why. Nothing checked it."),
    "call.question_asked": gettext_noop("The server asked a question."),
    "call.question_answered": gettext_noop("The server question was answered."),
    "call.question_declined": gettext_noop("The server question was declined"),
    "call.question_expired": gettext_noop("The server question expired: nobody answered in time."),
    "call.question_withdrawn": gettext_noop("The server question was withdrawn."),
    "call.run_again": gettext_noop("Run again, as call {call}."),
    "record.exported": gettext_noop("A receipt was exported."),
    "grant.given": gettext_noop("A grant was given with the approval."),
    "grant.used": gettext_noop("Ran on a grant."),
    "grant.given_back": gettext_noop("The use of a grant was returned, because the call was asked about after all."),
    "grant.used_up": gettext_noop("The grant was used up with it."),
}
# Other sentences about those whose data has something under a name.
VARIANTS: Final = {
    "call.waiting": ("before", gettext_noop("Asked about again")),
    "call.refused": ("nobodyAsked", gettext_noop("Nobody could be asked")),
    "call.approved": ("edited", gettext_noop("Approved with changed arguments.")),
    "call.looked_back": ("shouldAsk", gettext_noop("Looked back: it should have been asked about.")),
    "call.why_answered": ("trouble", gettext_noop("The model did not say why.")),
    "call.succeeded": ("marked", gettext_noop("Marked as done.")),
    "call.failed": ("marked", gettext_noop("Marked as failed.")),
}
# A yes to a question is its answer.
ANSWERED: Final = gettext_noop("Answered.")
# Their reasons are words of others, and no sentences of ours.
DECLINED: Final = frozenset({"call.declined", "call.question_declined", "call.cautioned"})

Data = dict[str, Any]


@signed_in.reads
def page(request: HttpRequest) -> HttpResponse:
    """Show calls, the newest first, from `before` on; 422 with what is wrong at each field."""
    user, form = person(request), Filters(request.GET)
    is_valid = form.is_valid()
    before = None
    if text := request.GET.get("before"):
        if (call_id := uuid_of(text)) is None:
            raise Http404("“before” names no call.")
        before = get_object_or_404(finding.one(user, call_id))
    lines, more = listing.page(user, form.wanted, before) if is_valid else ([], False)
    is_first = is_valid and not form.query and before is None
    unknown, how_many = listing.unknown(user) if is_first else ([], 0)
    context = {
        "section": "history",
        "form": form,
        "chips": [*form.chips] if is_valid else [],
        "query": form.query.urlencode(),
        "sent": form.query,
        "lines": lines,
        "more": more,
        "is_older": before is not None,
        "unknown": unknown,
        "how_many_unknown": how_many,
        "most_counted": listing.MOST_COUNTED,
        "sees_all": may_administer(user),
        "tools": Tool.objects.values_list("name", flat=True)[:MOST_TOOLS],
    }
    return render(request, "history/page.html", context, status=200 if is_valid else 422)


@signed_in.reads
def changed(request: HttpRequest) -> HttpResponse:
    """List what made the gate ask less or differently, the newest first; for administrators, others get 404."""
    if not may_administer(person(request)):
        raise Http404
    area, before = request.GET.get("area", ""), request.GET.get("before", "")
    rows = changes.rows(area)
    if before.isdecimal() and len(before) < LONGEST_ID:
        rows = rows.filter(pk__lt=int(before))
    events = list(rows[: CHANGES_AT_ONCE + 1])
    context = {
        "section": "history",
        "area": area if area in changes.AREAS else "",
        "areas": [(key, label) for key, (label, _) in changes.AREAS.items()],
        "changes": [changes.change(event) for event in events[:CHANGES_AT_ONCE]],
        "more": len(events) > CHANGES_AT_ONCE,
        "is_older": bool(before),
    }
    return render(request, "history/changes.html", context)


@signed_in.reads
def call(request: HttpRequest, call_id: UUID) -> HttpResponse:
    return _page(request, call_id)


@signed_in.reads
def attachment(request: HttpRequest, call_id: UUID, digest: str) -> HttpResponse:
    """Send the bytes of one content block: pictures and sounds for the page, anything else to be saved."""
    found = get_object_or_404(finding.one(person(request), call_id))
    block = next((each for each in contents.attached(found) if each["sha256"] == digest), None)
    data = contents.data(found).get(digest) if block else None
    if block is None or data is None:
        raise Http404("This call has no such attachment.")
    media_type = str(block.get("mimeType", ""))
    name = f"{found.tool_name}-{digest[:8]}{mimetypes.guess_extension(media_type) or ''}"
    return stored(data, name=name, media_type=media_type, is_shown=media_type in contents.SHOWN)


@signed_in.posts
def export(request: HttpRequest) -> HttpResponseBase:
    """Export the calls that a filter finds, once that is on record; 422 with what is wrong."""
    form = Filters(request.POST)
    chosen = next((each for each in FORMATS if each == request.POST.get("format")), None)
    if not form.is_valid() or chosen is None:
        errors: dict[str, Any] = dict(form.errors)
        if chosen is None:
            errors["format"] = [_("Expected one of {values}.").format(values=", ".join(FORMATS))]
        return render(request, "history/no_export.html", {"section": "history", "errors": errors}, status=422)
    pieces = finding.export(finding.ways(person(request)), form.wanted, chosen, actor_of(request))
    return download(request, pieces, name=f"calls.{chosen}", kind=FORMATS[chosen])


@signed_in.posts
def settle(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """Settle an unknown outcome; 404 to strangers, 409 if it is known by now, 422 for a note that cannot be kept."""
    remark, problem, status = request.POST.get("note", ""), _(UNCLEAR), 422
    try:
        match request.POST.getlist("outcome"):
            case ["done" | "failed" as outcome]:
                unknown.mark(call_id, outcome, actor_of(request), remark=remark)
                marked = _("Marked as done.") if outcome == "done" else _("Marked as failed.")
                messages.success(request, marked + " " + _("Recorded with your name."))
                return redirect("history-call", call_id)
            case ["again"]:
                user = person(request)
                old = get_object_or_404(finding.one(user, call_id))
                new = unknown.again(old, actor_of(request), user.get_username(), remark=remark)
                asks = _("The call asks again: answer it like any other.")
                submitted = _("Submitted again as a new call.")
                messages.success(request, asks if new.status == Status.WAITING else submitted)
                return redirect("history-call", new.pk)
    except AlreadySettled as late:
        word = _(Status(late.call.status).label)
        problem = _("The outcome is already known: {status}. Nothing was changed.").format(status=word.lower())
        status = 409
    except unknown.NotAgain as error:
        problem, status = str(error), 409
    except BadRemark as error:
        problem = str(error)
    return _page(request, call_id, problem=problem, typed=remark, status=status)


def _page(
    request: HttpRequest, call_id: UUID, *, problem: str = "", typed: str = "", status: int = 200
) -> HttpResponse:
    """Show one call; `problem`: why nothing was done about it, `typed`: the note that came with that."""
    user = person(request)
    rows = needed(finding.one(user, call_id)).defer(None).select_related("grant", "grant__person", "tool")
    found = get_object_or_404(rows)
    context = {"section": "history", "problem": problem, "typed": typed, **_context(user, found)}
    return render(request, "history/call.html", context, status=status)


def _context(user: User, call: ToolCall) -> dict[str, Any]:
    """Return the context of `history/call.html`, for this viewer: all that is on record about one call."""
    approval = approval_of(call)
    is_question = question.is_one(call)
    events = list(AuditEvent.objects.filter(call=call).select_related("actor")[: MOST_EVENTS + 1])
    (line,) = listing.lines(user, [call])
    grant = call.grant
    # Of somebody else's chat nobody reads more than the call.
    chats = conversations.of(user).filter(pk=call.conversation_id) if call.conversation_id else None
    return {
        "call": call,
        "line": line,
        "approval": approval,
        "may_open": approval is not None and deciders.seen_by(user.pk, [approval.pk]).exists(),
        "has_chat": call.caller_kind == CallerKind.CHAT and chats is not None and chats.exists(),
        "rounds": _rounds(approval, events) if approval else [],
        "grant": grant
        and {
            "id": grant.pk,
            "sentence": scope.sentence(grant, translated),
            "is_earned": grant.is_earned,
            "may_open": (grant.person_id == user.pk and not grant.is_earned) or may_administer(user),
        },
        "whys": why.of(approval) if approval else None,
        "given": [(each, scope.sentence(each, translated)) for each in approval.grants.all()] if approval else [],
        "spoke": next((each.data["spoke"] for each in events if each.data.get("spoke")), []),
        "executed": between(call.started_at, call.settled_at),
        "timeline": [_moment(each, is_question=is_question) for each in events[:MOST_EVENTS]],
        "more_events": len(events) > MOST_EVENTS,
    }


def _moment(event: AuditEvent, *, is_question: bool) -> Data:
    """Return an event in words; `who` is empty where hitlchat itself did it, `note` is what a person wrote."""
    who = ""
    if event.actor is not None:
        by = _("for {name}") if event.means == "system" else _("by {name}")
        who = (_("to {name}") if event.name == "call.shown" else by).format(name=event.actor.get_username())
    return {
        "at": event.at,
        "name": event.name,
        "sentence": _sentence(event.name, event.data, is_question=is_question),
        "who": who,
        "note": str(event.data.get("remark") or ""),
    }


def _sentence(name: str, data: Data, *, is_question: bool) -> str:
    # An event that has no words here is shown by its name.
    words = WORDS.get(name, f"{name.replace('.', ': ').replace('_', ' ').capitalize()}.")
    key, others = VARIANTS.get(name, ("", ""))
    if is_question and name == "call.approved":
        words = ANSWERED
    elif key and data.get(key):
        words = others
    if words.endswith("."):
        return _(words).format(
            given=data.get("yes"), needed=data.get("quorum"), call=data.get("as"), group=data.get("group")
        )
    reason = str(data.get("reason") or "")
    shown = decide.shown_reason if name in DECLINED else translated
    return f"{_(words)}: {shown(reason)}" if reason else f"{_(words)}."


def _rounds(approval: Approval, events: Sequence[AuditEvent]) -> list[Data]:
    """Return each time that it was put before people, the last first.

    The events of asking again have what was shown before.
    """
    times = [each for each in events if each.name == "call.waiting"]
    earlier = [each.data["before"] for each in times if "before" in each.data]
    found: list[Data] = []
    for number, shown in enumerate([*earlier, approval.disclosure], 1):
        asked_at = times[number - 1].at if 1 < number <= len(times) else approval.created_at
        put, digest = copy(approval), disclosure.digest(shown)
        put.disclosure = shown
        put.digest = approval.digest if shown is approval.disclosure else digest
        answers = [_answer(each, asked_at, shown) for each in decisions_of(approval.call) if each.round == number]
        found.append(
            {
                "number": number,
                "asked_at": asked_at,
                "approval": put,
                "shown": as_shown(put),
                "answers": answers,
                # On record is something else than the digest was made of.
                "altered": digest != put.digest,
            }
        )
    return found[::-1]


def _answer(decision: Decision, asked_at: datetime, shown: Data) -> Data:
    """`took`: from the question; `looked`: what is known of how they read it."""
    edited: Data | None = decision.edited_arguments
    return {
        "decision": decision,
        "approved": decision.verdict == Verdict.APPROVE,
        "how": how(decision),
        "took": between(asked_at, decision.decided_at),
        "looked": attention.words(decision, shown, timed=True),
        "changes": () if edited is None else editing.changes(shown["arguments"], edited, shown["fields"]),
    }

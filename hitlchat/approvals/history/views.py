"""The page of all calls, the page of one, the file of what a filter finds, and the desk for unknown outcomes."""

import mimetypes
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_POST, require_safe

from hitlchat.accounts.access import person
from hitlchat.accounts.roles import may_administer
from hitlchat.agent import unknown
from hitlchat.approvals.history import detail, listing
from hitlchat.approvals.history.listing import Filters
from hitlchat.base.download import download, stored
from hitlchat.base.ids import uuid_of
from hitlchat.gate import contents
from hitlchat.gate.actor import actor_of
from hitlchat.gate.decide import AlreadySettled
from hitlchat.gate.history import changes, finding
from hitlchat.gate.history.finding import FORMATS
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import BadRemark
from hitlchat.gate.status import Status

MOST_TOOLS: Final = 500
CHANGES_AT_ONCE: Final = 50
LONGEST_ID: Final = 19
UNCLEAR: Final = gettext_noop("Nothing was done: expected to be told one of done, failed and again.")


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show calls, the newest first, from `before` on; 422 with what is wrong at each field."""
    user, form = person(request), Filters(request.GET)
    is_valid = form.is_valid()
    before = _before(user, text) if (text := request.GET.get("before")) else None
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


@login_required
@require_safe
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


@login_required
@require_safe
def call(request: HttpRequest, call_id: UUID) -> HttpResponse:
    return _page(request, call_id)


@login_required
@require_safe
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


@login_required
@require_POST
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


@login_required
@require_POST
def settle(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """Settle an unknown outcome; 404 to strangers, 409 if it is known by now, 422 for a note that cannot be kept."""
    remark = request.POST.get("note", "")
    try:
        match request.POST.getlist("outcome"):
            case ["done" | "failed" as outcome]:
                unknown.mark(call_id, outcome, actor_of(request), remark=remark)
                marked = _("Marked as done.") if outcome == "done" else _("Marked as failed.")
                messages.success(request, marked + " " + _("That is on record, with your name."))
                return redirect("history-call", call_id)
            case ["again"]:
                return _again(request, call_id, remark)
    except AlreadySettled as late:
        word = _(Status(late.call.status).label)
        late_words = _("Its outcome is not unknown any more: {status}. Nothing was changed.").format(
            status=word.lower()
        )
        return _page(request, call_id, problem=late_words, typed=remark, status=409)
    except unknown.NotAgain as error:
        return _page(request, call_id, problem=str(error), typed=remark, status=409)
    except BadRemark as error:
        return _page(request, call_id, problem=str(error), typed=remark, status=422)
    return _page(request, call_id, problem=_(UNCLEAR), typed=remark, status=422)


def _page(
    request: HttpRequest, call_id: UUID, *, problem: str = "", typed: str = "", status: int = 200
) -> HttpResponse:
    """Show one call; `problem`: why nothing was done about it, `typed`: the note that came with that."""
    user = person(request)
    found = get_object_or_404(detail.rows(finding.one(user, call_id)))
    context = {"section": "history", "problem": problem, "typed": typed, **detail.of(user, found)}
    return render(request, "history/call.html", context, status=status)


def _before(user: User, text: str) -> ToolCall:
    """Return the last call of the page before; 404 for what is none, or nothing for this person."""
    call_id = uuid_of(text)
    if call_id is None:
        raise Http404("“before” names no call.")
    return get_object_or_404(finding.one(user, call_id))


def _again(request: HttpRequest, call_id: UUID, remark: str) -> HttpResponse:
    user = person(request)
    old = get_object_or_404(finding.one(user, call_id))
    new = unknown.again(old, actor_of(request), user.get_username(), remark=remark)
    asks = new.status == Status.WAITING
    messages.success(
        request, _("It asks again: answer it like any other.") if asks else _("Submitted again as a new call.")
    )
    return redirect("history-call", new.pk)

"""The page of the record, for administrators: its seals, verifying, exporting, checking a file, receipts."""

import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _

from hitlchat.accounts.access import administrators_only
from hitlchat.base import moments
from hitlchat.base.download import download
from hitlchat.base.ids import uuid_of
from hitlchat.base.moments import about
from hitlchat.gate.actor import Actor, actor_of
from hitlchat.gate.models import AuditEvent, Seal
from hitlchat.gate.transition import note
from hitlchat.record import exporting, keys, sealing
from hitlchat.record.checking import check, checked_words
from hitlchat.record.exporting import NothingThere
from hitlchat.record.keys import BadKey, OtherKey
from hitlchat.record.proofs import spaced, unspaced
from hitlchat.record.report import Report
from hitlchat.record.sealing import BadMark
from hitlchat.record.verifying import steps

VERIFIED: Final = "record.verified"
LINES: Final = "application/x-ndjson"
MOST_SEALS, MOST_FINDINGS = 10, 50
# A verification that is older says little of the record as it stands.
GOOD_FOR: Final = timedelta(days=7)
PIECE = 64 * 1024

Write = Callable[[Path], Any]

_administrators_only = administrators_only("Only administrators may see, verify and export the record.")


@_administrators_only.reads
def page(request: HttpRequest) -> HttpResponse:
    return _page(request)


@_administrators_only.posts
def verify(request: HttpRequest) -> HttpResponseBase:
    """Stream the progress, a line each, for the page's script; others are sent back to the page once it is over."""
    key, seal = (unspaced(request.POST.get(name, "")) for name in ("key", "expect"))
    pieces = _verifying(actor_of(request), key=key, seal=seal)
    if LINES in request.headers.get("Accept", ""):
        return download(request, pieces, name="verification.jsonl", kind=LINES)
    last: dict[str, Any] = {}
    for piece in pieces:
        last = json.loads(piece)
    return _page(request, problem=last["error"]) if "error" in last else redirect("record:page")


@_administrators_only.posts
def check_file(request: HttpRequest) -> HttpResponse:
    given, noted = request.FILES.get("file"), unspaced(request.POST.get("key", ""))
    if given is None or given.file is None:
        return _page(request, problem=_("Choose a file first."), status=422)
    found = check(given.file, noted)
    return _page(request, checked=found, checked_words=checked_words(found, noted), checked_name=given.name)


@_administrators_only.posts
def export(request: HttpRequest) -> HttpResponseBase:
    try:
        since = _moment(request.POST.get("from", ""), moments.beginning)
        until = _moment(request.POST.get("to", ""), moments.end)
    except ValueError:
        return _page(request, problem=_("Write a day as 2026-01-31."), status=422)
    span = {"since": since, "until": until}
    actor = actor_of(request)
    return _file(request, "record.jsonl", lambda to: exporting.export(to, actor, **span))


@_administrators_only.posts
def receipt(request: HttpRequest) -> HttpResponseBase:
    call = uuid_of(request.POST.get("call", "").strip())
    if call is None:
        problem = _("Not a call id. A call's page shows its id.")
        return _page(request, problem=problem, status=422)
    return _file(request, f"call-{call}.jsonl", lambda to: exporting.receipt(to, call, actor_of(request)))


def _page(request: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    last = AuditEvent.objects.filter(name=VERIFIED).select_related("actor").order_by("-pk").first()
    result = last.data if last is not None and isinstance(last.data, dict) else {}
    unsealed, key = sealing.unsealed_seconds(), keys.current()
    shown = {
        "section": "record",
        "seals": Seal.objects.select_related("drop").order_by("-number")[:MOST_SEALS],
        "batches": Seal.objects.count(),
        "unsealed": about(unsealed) if unsealed else "",
        "overdue": sealing.is_overdue(unsealed),
        "key": spaced(key.pk) if key else "",
        "last": last,
        "is_old": last is not None and timezone.now() - last.at > GOOD_FOR,
        "result": result,
        "uncovered_until": datetime.fromisoformat(until) if (until := result.get("uncoveredUntil")) else None,
        "call": request.GET.get("call", ""),
    }
    return render(request, "record/page.html", shown | more, status=status)


def _verifying(actor: Actor, **noted: str) -> Iterator[str]:
    """Yield the progress; the findings go on record."""
    report = Report()
    try:
        for done, every in steps(report, **noted):
            yield f"{json.dumps({'done': done, 'of': every})}\n"
    except (BadKey, BadMark) as error:
        yield f"{json.dumps({'error': str(error)})}\n"
        return
    fields = {name: value for name, value in report.as_json.items() if name not in {"findings", "dropped", "notes"}}
    words = [each.words for each in report.findings[:MOST_FINDINGS]]
    note(None, VERIFIED, actor=actor, data={**fields, "findings": words, "found": len(report.findings)})
    yield f"{json.dumps({'whole': report.is_whole})}\n"


def _file(request: HttpRequest, name: str, write: Write) -> HttpResponseBase:
    """Return the file that `write` writes, as a download that leaves nothing behind."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            to = Path(folder) / "file"
            write(to)
            # Still open once its name is gone.
            file = to.open(encoding="ascii", newline="")
    except (NothingThere, BadKey, OtherKey, OSError) as error:
        return _page(request, problem=str(error), status=422)

    def pieces() -> Iterator[str]:
        with file:
            while piece := file.read(PIECE):
                yield piece

    return download(request, pieces(), name=name, kind=LINES)


def _moment(text: str, of_day: Callable[[date], datetime]) -> datetime | None:
    """Return the moment that `of_day` gives for a written day; None for an empty text. Raises: ValueError"""
    return of_day(date.fromisoformat(text.strip())) if text.strip() else None


app_name = "record"

urlpatterns = [
    path("", page, name="page"),
    path("verify", verify, name="verify"),
    path("check", check_file, name="check"),
    path("export", export, name="export"),
    path("receipt", receipt, name="receipt"),
]

"""The risk of a server while its form is being filled in."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from hitlchat.base import canonical
from hitlchat.upstreams import drafts, values
from hitlchat.upstreams.access import administrator_only
from hitlchat.upstreams.drafts import ServerDraft, draft_of
from hitlchat.upstreams.judge.grade import Assessment
from hitlchat.upstreams.models import Transport, UpstreamServer
from hitlchat.upstreams.pages import standing
from hitlchat.upstreams.pages.form import ServerForm
from hitlchat.upstreams.values import Kept


@dataclass(frozen=True)
class Risk:
    """`assessment` None: what was typed is not enough to tell. `supposed`: nobody has seen its tools yet."""

    assessment: Assessment | None
    supposed: bool

    @property
    def mark(self) -> str:
        found = self.assessment
        told = [found.level, list(found.reasons)] if found else None
        return canonical.sha256([told, self.supposed])[:16]


@administrator_only
@require_POST
def risk(request: HttpRequest) -> HttpResponse:
    """The risk of what is typed, or nothing if the page shows it."""
    found = risk_of_form(form_of(request))
    if found.mark == request.POST.get("risk-mark"):
        return HttpResponse(status=204)
    return render(request, "servers/_risk.html", {"risk": found})


def form_of(request: HttpRequest) -> ServerForm:
    """What is typed, for a server that is saved (`of`) or not."""
    saved = UpstreamServer.objects.filter(name=request.POST.get("of", "")).first()
    return ServerForm(request, draft=draft_of(saved) if saved else None, standing=saved, bound=True)


def risk_of_form(form: ServerForm) -> Risk:
    draft, saved = form.typed(), form.standing
    supposed = saved is None or saved.listed_at is None
    where = "command" if draft.transport == Transport.STDIO else "url"
    if {"transport", where} & drafts.problems(draft).keys():
        return Risk(None, supposed)
    return Risk(standing.risk_of(_as_row(draft, saved)), supposed)


def _as_row(draft: ServerDraft, saved: UpstreamServer | None) -> UpstreamServer:
    """To be judged and never kept: nothing of it was checked, and no header has its value."""
    row = UpstreamServer(
        transport=draft.transport,
        url=draft.url,
        headers=values.written(Kept(each.name, "", each.secret) for each in draft.headers),
        trust=draft.trust,
        docs_url=draft.docs_url,
        docs_adequate=draft.docs_adequate,
        created_at=timezone.now(),
    )
    if saved is not None:
        row.pk, row.created_at, row.used_at, row.writes = saved.pk, saved.created_at, saved.used_at, saved.writes
    return row

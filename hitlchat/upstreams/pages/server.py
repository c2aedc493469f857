"""The pages of all servers and of one: its state, risk, tools, settings, a test of its connection, what is done."""

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Case, IntegerField, Q, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from hitlchat.base import canonical
from hitlchat.base.sentences import translated
from hitlchat.gate.actor import actor_of
from hitlchat.secrets.values import Stored
from hitlchat.upstreams import connections, endpoint, exposure, gallery, server_draft, servers
from hitlchat.upstreams.models import ComposedTool, ServerState, ToolState, Transport, UpstreamServer
from hitlchat.upstreams.pages import sign_in, summary
from hitlchat.upstreams.pages.form import ServerForm, confirmed_in
from hitlchat.upstreams.pages.ledger import LOOKS
from hitlchat.upstreams.pages.summary import administrator_only, server_named
from hitlchat.upstreams.server_draft import BadServer, ServerDraft, draft_of
from hitlchat.upstreams.servers import NotConfirmed

# Seconds between two looks of a page, while something is about to happen and while nothing is.
SOON, AT_LEISURE = 2, 5
HAS_WITHHELD = "has-withheld"
MOST_NAMED = 12
TOOLS_ON_A_PAGE = 100
# In the order of the page: what needs a person comes first.
_ORDER = (
    ToolState.WITHHELD,
    ToolState.EXPOSED,
    ToolState.NEW,
    ToolState.HIDDEN,
    ToolState.UNFIT,
    ToolState.GONE,
)


@dataclass(frozen=True)
class Filters:
    """Filters of the list; `state` is "" for all, and may be HAS_WITHHELD."""

    q: str = ""
    state: str = ""

    @classmethod
    def of(cls, request: HttpRequest) -> "Filters":
        state = request.GET.get("state", "")
        q = request.GET.get("q", "").strip().replace("\x00", "")[:200]
        return cls(q, state if state in {*ServerState.values, HAS_WITHHELD} else "")

    @property
    def any(self) -> bool:
        return bool(self.q or self.state)

    @property
    def condition(self) -> Q:
        found = Q(name__icontains=self.q) | Q(url__icontains=self.q) | Q(command__icontains=self.q) if self.q else Q()
        if self.state == HAS_WITHHELD:
            return found & Q(pk__in=ComposedTool.objects.filter(state=ToolState.WITHHELD).values("server"))
        return found & Q(state=self.state) if self.state else found


@administrator_only.reads
def servers_page(request: HttpRequest) -> HttpResponse:
    return render(request, "servers/list.html", context(request))


def context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of `servers/list.html`, and of the pages that stand over it."""
    states = [*ServerState.choices, (HAS_WITHHELD, "Has withheld tools")]
    return _found(request) | {"section": "servers", "states": states}


@administrator_only.reads
def status(request: HttpRequest) -> HttpResponse:
    """Return the rows again, or nothing if none has changed since the page has them."""
    found = _found(request)
    if found["mark"] == request.GET.get("mark"):
        return HttpResponse(status=204)
    return render(request, "servers/_rows.html", found)


def _found(request: HttpRequest) -> dict[str, Any]:
    filters = Filters.of(request)
    lines = summary.summaries(UpstreamServer.objects.filter(filters.condition))
    return {
        "filters": filters,
        "lines": lines,
        "total": UpstreamServer.objects.count() if filters.any else len(lines),
        "mark": summary.mark(lines),
        "every": SOON if any(line.is_moving for line in lines) else AT_LEISURE,
    }


@administrator_only.posts
def risk(request: HttpRequest) -> HttpResponse:
    """Return the risk of what is typed, or nothing if the page shows it."""
    found = risk_of_form(form_of(request))
    if found["mark"] == request.POST.get("risk-mark"):
        return HttpResponse(status=204)
    return render(request, "servers/_risk.html", {"risk": found})


def form_of(request: HttpRequest) -> ServerForm:
    """Return what is typed, for a server that is saved (`of`) or not."""
    saved = UpstreamServer.objects.filter(name=request.POST.get("of", "")).first()
    return ServerForm(request, draft=draft_of(saved) if saved else None, saved=saved, bound=True)


def risk_of_form(form: ServerForm) -> dict[str, Any]:
    """Return the risk of what is typed; `assessment` None: nobody can tell. `supposed`: nobody has seen its tools."""
    draft, saved = form.typed(), form.saved
    where = "command" if draft.transport == Transport.STDIO else "url"
    # Never stored: nothing of it was checked, and no header has its value.
    row = UpstreamServer(
        transport=draft.transport,
        url=draft.url,
        headers=server_draft.stored_values(Stored(each.name, "", each.secret) for each in draft.headers),
        trust=draft.trust,
        docs_url=draft.docs_url,
        docs_adequate=draft.docs_adequate,
        created_at=timezone.now(),
    )
    if saved is not None:
        row.pk, row.created_at, row.used_at, row.writes = saved.pk, saved.created_at, saved.used_at, saved.writes
    is_wrong = {"transport", where} & server_draft.problems(draft).keys()
    found = None if is_wrong else summary.risk_of(row)
    supposed = saved is None or saved.listed_at is None
    mark = canonical.sha256([found and [found.level, list(found.reasons)], supposed])[:16]
    return {"assessment": found, "supposed": supposed, "mark": mark}


def live_parts(request: HttpRequest, server: UpstreamServer) -> dict[str, Any]:
    found = summary.summary_of(server)
    order = Case(*(When(state=state, then=Value(at)) for at, state in enumerate(_ORDER)), output_field=IntegerField())
    rows = server.tools.select_related("tool").order_by(order, "name")
    page = Paginator(rows, TOOLS_ON_A_PAGE).get_page(request.GET.get("page"))
    names = exposure.proposals(page)
    lines = []
    for row in page:
        look, icon = LOOKS[ToolState(row.state)]
        lines.append({"row": row, "alias": names[row.pk], "look": look, "icon": icon})
    return {
        "server": found.server,
        "line": found,
        "calls": summary.open_calls(server),
        "mark": summary.mark([found]),
        "every": SOON if found.is_moving else AT_LEISURE,
        "asks_for_sign_in": found.server.state == ServerState.SIGN_IN,
        "page": page,
        "tools": lines,
    }


@administrator_only.form
def new(request: HttpRequest) -> HttpResponse:
    form = ServerForm(request, draft=_suggested(request), bound=request.method == "POST")
    saved, to_confirm = _save(request, form)
    if saved:
        return redirect("servers:server", saved.name)
    context = {"section": "servers", "form": form, "entry": gallery.find(form.entry_id), "risk": risk_of_form(form)}
    context["to_confirm"] = to_confirm
    return render(request, "servers/new.html", context, status=422 if form.errors or to_confirm else 200)


@administrator_only.form
def server(request: HttpRequest, name: str) -> HttpResponse:
    found = server_named(name)
    form = ServerForm(request, draft=draft_of(found), saved=found, bound=request.method == "POST")
    saved, to_confirm = _save(request, form)
    if saved:
        return redirect("servers:server", saved.name)
    context = {"section": "servers", "form": form, "risk": risk_of_form(form), "to_confirm": to_confirm}
    context |= live_parts(request, found) | {"sign_in": sign_in.state_of(found)}
    return render(request, "servers/server.html", context, status=422 if form.errors or to_confirm else 200)


@administrator_only.reads
def live(request: HttpRequest, name: str) -> HttpResponse:
    """Return what has changed by itself since the page was made, if anything has."""
    context = live_parts(request, server_named(name))
    if context["mark"] == request.GET.get("mark"):
        return HttpResponse(status=204)
    return render(request, "servers/_live.html", context | {"is_live": True})


def _suggested(request: HttpRequest) -> ServerDraft | None:
    if not (entry_id := request.GET.get("from", "")):
        return None
    if (entry := gallery.find(entry_id)) is None:
        raise Http404("The gallery has no such entry.")
    draft = entry.draft
    # With a number, if a server has the name.
    used = {each.lower() for each in UpstreamServer.objects.values_list("name", flat=True)}
    numbered = (f"{draft.name}-{number}" for number in range(2, len(used) + 3))
    return replace(draft, name=next(each for each in (draft.name, *numbered) if each.lower() not in used))


def _save(request: HttpRequest, form: ServerForm) -> tuple[UpstreamServer | None, str]:
    """Save a valid form: return the server, or the command line to confirm. What else is wrong is put at its field."""
    if not (form.is_bound and form.is_valid()):
        return None, ""
    try:
        return (_change(request, form.saved, form) if form.saved else _create(request, form)), ""
    except NotConfirmed as error:
        return None, error.command_line
    except BadServer as error:
        form.show(error.errors)
        return None, ""


def _create(request: HttpRequest, form: ServerForm) -> UpstreamServer:
    made = servers.create(form.draft(), actor_of(request), confirmed=confirmed_in(request))
    sentence = _("{server} is saved. It is disabled: nothing connects to it.")
    if made.enabled:
        sentence = _("{server} is saved and connecting. Its tools are not exposed until you expose them.")
    messages.success(request, sentence.format(server=made.name))
    return made


def _change(request: HttpRequest, saved: UpstreamServer, form: ServerForm) -> UpstreamServer | None:
    with transaction.atomic():
        # Locked, so that nobody saves between the comparison and the saving.
        now = UpstreamServer.objects.select_for_update().get(pk=saved.pk)
        if form.cleaned_data["made_from"] not in {"", now.updated_at.isoformat()}:
            form.overtaken(now.updated_at)
            return None
        before = summary.open_calls(now)
        changed = servers.change(now.pk, form.draft(), actor_of(request), confirmed=confirmed_in(request))
        withdrawn = before.not_started - summary.open_calls(changed).not_started
    messages.success(request, _changed(now, changed) + summary.withdrawn_calls(withdrawn))
    return changed


def _changed(before: UpstreamServer, after: UpstreamServer) -> str:
    if after.revision == before.revision:
        return _("Saved.")
    if not after.enabled:
        return _("Saved. The server is disabled: its tools have left the catalog.")
    if endpoint.connection_of(before).identity() == endpoint.connection_of(after).identity():
        return _("Saved. Connecting with these settings; the tools return once it is connected.")
    return _(
        "Saved. The address is different now, so the tools have left the catalog. Exposed tools are "
        "withheld when they return, until you accept them again."
    )


@administrator_only.posts
def reconnect(request: HttpRequest, name: str) -> HttpResponse:
    found = server_named(name)
    try:
        servers.reconnect(found.pk, actor_of(request))
    except BadServer as error:
        messages.warning(request, translated(str(error)))
    else:
        messages.success(request, _("A new connection was requested. Its state is shown below."))
    return redirect("servers:server", name)


@administrator_only.posts
def enable(request: HttpRequest, name: str) -> HttpResponse:
    found, enabled = server_named(name), request.POST.get("enabled") == "yes"
    with transaction.atomic():
        before = summary.open_calls(found)
        changed = servers.enable(found.pk, enabled, actor_of(request))
        withdrawn = before.not_started - summary.open_calls(changed).not_started
    sentence = (
        _("The server is enabled. The state of its connection is shown below.")
        if enabled
        else _("The server is disabled, and its tools have left the catalog.")
    )
    messages.success(request, sentence + summary.withdrawn_calls(withdrawn))
    return redirect("servers:server", name)


@administrator_only.form
def delete(request: HttpRequest, name: str) -> HttpResponse:
    found = server_named(name)
    calls = summary.open_calls(found)
    if request.method == "POST":
        servers.delete(found.pk, actor_of(request))
        deleted = _("{server} is deleted, with its tools.").format(server=found.name)
        messages.success(request, deleted + summary.withdrawn_calls(calls.not_started))
        return redirect("servers:list")
    context = {"section": "servers", "line": summary.summary_of(found), "server": found, "calls": calls}
    return render(request, "servers/delete.html", context)


@administrator_only.posts
def test(request: HttpRequest) -> HttpResponse:
    """Test a connection, for up to half a minute; the live one is not touched."""
    if request.POST.get("saved"):
        return _tried(request, server_named(request.POST.get("of", "")))
    form = form_of(request)
    form.fields["name"].required = False
    try:
        row = _row(request, form) if form.is_valid() else None
    except NotConfirmed as error:
        again = json.dumps({"confirmed": error.command_line})
        context = {"to_confirm": error.command_line, "again": again, "hints": form.argument_hints}
        return render(request, "servers/_test.html", context)
    except BadServer as error:
        form.show(error.errors)
    else:
        if row is not None:
            return _tried(request, row)
    return render(request, "servers/_test.html", {"form": form})


def _row(request: HttpRequest, form: ServerForm) -> UpstreamServer:
    """Return what would be saved. BadServer, NotConfirmed."""
    draft = form.draft()
    servers.check_program(draft, actor_of(request), confirmed_in(request), form.saved)
    row = UpstreamServer(**server_draft.columns(draft, form.saved))
    saved = form.saved
    if saved and endpoint.connection_of(saved).identity() == endpoint.connection_of(row).identity():
        # As it is signed in; whoever else is there gets nothing of that.
        row.pk = saved.pk
    return row


def _tried(request: HttpRequest, row: UpstreamServer) -> HttpResponse:
    trial = connections.attempt(row)
    tools = trial.listing.tools if trial.listing else ()
    context = {
        "trial": trial,
        "took": summary.duration(trial.latency_ms),
        "tools": tools,
        "named": tools[:MOST_NAMED],
        "more": len(tools) - MOST_NAMED,
        "notes": list(map(summary.note_of, trial.notes)),
        "is_saved": "of" in request.POST,
    }
    return render(request, "servers/_test.html", context)


@administrator_only.reads
def gallery_page(request: HttpRequest) -> HttpResponse:
    wanted = gallery.wanted(request.GET)
    servers_by_entry: dict[str, list[str]] = defaultdict(list)
    for server in UpstreamServer.objects.exclude(gallery_entry=""):
        entry = gallery.find(server.gallery_entry)
        # One that leads elsewhere by now is another one.
        if entry and entry.is_where(draft_of(server)):
            servers_by_entry[entry.id].append(server.name)
    # A program may not be allowed to be started.
    programs = bool(settings.MCP_ALLOW_STDIO)
    context = {
        "section": "servers", "wanted": wanted, "total": len(gallery.ALL),
        "cards": [
            {"entry": each, "servers": servers_by_entry[each.id], "startable": programs or each.kind == "remote"}
            for each in gallery.found(wanted)
        ],
        "categories": gallery.CATEGORIES, "kinds": gallery.KINDS.items(), "auths": gallery.AUTHS.items(),
        "tags": gallery.TAGS,
    }  # fmt: skip
    return render(request, "servers/gallery/gallery.html", context)

"""A new server, and the page of one that exists."""

from dataclasses import replace

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from hitlchat.gate.actor import actor_of
from hitlchat.upstreams import reaching, servers
from hitlchat.upstreams.access import administrator_only, server_named
from hitlchat.upstreams.drafts import BadServer, ServerDraft, draft_of
from hitlchat.upstreams.gallery import entries
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.pages import page, standing, telling
from hitlchat.upstreams.pages.form import ServerForm, confirmed_in
from hitlchat.upstreams.servers import NotConfirmed


class Stale(Exception):
    """Somebody else saved the server while its page was open."""


@administrator_only
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    form = ServerForm(request, draft=_suggested(request), bound=request.method == "POST")
    to_confirm = ""
    if form.is_bound and form.is_valid():
        try:
            made = servers.create(form.draft(), actor_of(request), confirmed=confirmed_in(request))
        except NotConfirmed as asked:
            to_confirm = asked.command_line
        except BadServer as error:
            form.show(error.errors)
        else:
            telling.tell(request, _told_of_new(made))
            return redirect("servers:server", made.name)
    context = page.of_new(form) | {"to_confirm": to_confirm}
    return render(request, "servers/new.html", context, status=_status(form, to_confirm))


@administrator_only
@require_http_methods(["GET", "POST"])
def server(request: HttpRequest, name: str) -> HttpResponse:
    found = server_named(name)
    form = ServerForm(request, draft=draft_of(found), standing=found, bound=request.method == "POST")
    to_confirm = ""
    if form.is_bound and form.is_valid():
        try:
            return redirect("servers:server", _save(request, found, form).name)
        except Stale:
            form.overtaken(server_named(name).updated_at)
        except NotConfirmed as asked:
            to_confirm = asked.command_line
        except BadServer as error:
            form.show(error.errors)
    context = page.of(request, found, form) | {"to_confirm": to_confirm}
    return render(request, "servers/server.html", context, status=_status(form, to_confirm))


@administrator_only
@require_GET
def live(request: HttpRequest, name: str) -> HttpResponse:
    """What has changed by itself since the page was made, if anything has."""
    context = page.live(request, server_named(name))
    if context["mark"] == request.GET.get("mark"):
        return HttpResponse(status=204)
    return render(request, "servers/_live.html", context | {"is_live": True})


def _suggested(request: HttpRequest) -> ServerDraft | None:
    """From the gallery, if it was asked for."""
    if not (entry_id := request.GET.get("from", "")):
        return None
    if (entry := entries.find(entry_id)) is None:
        raise Http404("The gallery has no such entry.")
    draft = entry.draft()
    return replace(draft, name=_free(draft.name))


def _free(name: str) -> str:
    """The name, or the name with a number, whichever no server has."""
    taken = {each.lower() for each in UpstreamServer.objects.values_list("name", flat=True)}
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each.lower() not in taken)


def _save(request: HttpRequest, found: UpstreamServer, form: ServerForm) -> UpstreamServer:
    """Stale, NotConfirmed, BadServer."""
    with transaction.atomic():
        # Locked, so that nobody saves between the comparison and the saving.
        now = UpstreamServer.objects.select_for_update().get(pk=found.pk)
        if form.cleaned_data["made_from"] not in {"", now.updated_at.isoformat()}:
            raise Stale
        before = standing.open_calls(now)
        changed = servers.change(now.pk, form.draft(), actor_of(request), confirmed=confirmed_in(request))
        withdrawn = before.not_started - standing.open_calls(changed).not_started
    telling.tell(request, _told_of_change(now, changed) + telling.calls(withdrawn, "withdrawn"))
    return changed


def _told_of_new(server: UpstreamServer) -> str:
    if not server.enabled:
        return f"{server.name} is saved. It is disabled: nothing connects to it."
    return f"{server.name} is saved, and is being connected. Nothing of it is exposed until you expose it."


def _told_of_change(before: UpstreamServer, after: UpstreamServer) -> str:
    if after.revision == before.revision:
        return "Saved."
    if not after.enabled:
        return "Saved. It is disabled: its tools have left the catalog."
    if reaching.connection_of(before).identity() == reaching.connection_of(after).identity():
        return "Saved. It is being connected with these settings; its tools are back once it is."
    return (
        "Saved. It leads elsewhere now, so its tools have left the catalog. What was exposed is withheld when it comes"
        " back, until you accept it once more."
    )


def _status(form: ServerForm, to_confirm: str) -> int:
    return 422 if form.errors or to_confirm else 200

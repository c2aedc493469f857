"""What is done to a server beside changing its settings: connected anew, switched off and on, removed."""

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from hitlchat.gate.actor import actor_of
from hitlchat.upstreams import servers
from hitlchat.upstreams.access import administrator_only, server_named
from hitlchat.upstreams.drafts import BadServer
from hitlchat.upstreams.pages import standing, telling


@administrator_only
@require_POST
def reconnect(request: HttpRequest, name: str) -> HttpResponse:
    found = server_named(name)
    try:
        servers.reconnect(found.pk, actor_of(request))
    except BadServer as error:
        telling.tell(request, str(error), caution=True)
    else:
        telling.tell(request, "It is being connected anew.")
    return redirect("servers:server", name)


@administrator_only
@require_POST
def enable(request: HttpRequest, name: str) -> HttpResponse:
    found, enabled = server_named(name), request.POST.get("enabled") == "yes"
    with transaction.atomic():
        before = standing.open_calls(found)
        changed = servers.enable(found.pk, enabled, actor_of(request))
        withdrawn = before.not_started - standing.open_calls(changed).not_started
    said = "It is being connected." if enabled else "It is disabled, and its tools have left the catalog."
    telling.tell(request, said + telling.calls(withdrawn, "withdrawn"))
    return redirect("servers:server", name)


@administrator_only
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, name: str) -> HttpResponse:
    found = server_named(name)
    calls = standing.open_calls(found)
    if request.method == "POST":
        servers.delete(found.pk, actor_of(request))
        told = f"{found.name} is deleted, with its tools." + telling.calls(calls.not_started, "withdrawn")
        telling.tell(request, told)
        return redirect("servers:list")
    context = {"section": "servers", "line": standing.standing_of(found), "server": found, "calls": calls}
    return render(request, "servers/delete.html", context)

"""Test connection: of what is typed, or of a server as it is saved."""

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from hitlchat.gate.actor import actor_of
from hitlchat.upstreams import connections, reaching, servers
from hitlchat.upstreams.access import administrator_only, server_named
from hitlchat.upstreams.client import Trial
from hitlchat.upstreams.drafts import BadServer
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.pages import standing
from hitlchat.upstreams.pages.form import ServerForm, argument_hints, confirmed_in
from hitlchat.upstreams.pages.server import form_of
from hitlchat.upstreams.servers import NotConfirmed

MOST_NAMED = 12


@dataclass(frozen=True)
class Reached:
    """The finding of a test, for the page."""

    trial: Trial

    @property
    def ok(self) -> bool:
        return not self.trial.error

    @property
    def names(self) -> list[str]:
        found = self.trial.listing
        return [tool.name for tool in found.tools[:MOST_NAMED]] if found else []

    @property
    def count(self) -> int:
        return len(self.trial.listing.tools) if self.trial.listing else 0

    @property
    def more(self) -> int:
        return self.count - len(self.names)

    @property
    def took(self) -> str:
        return standing.duration(self.trial.latency_ms)

    @property
    def is_not_there(self) -> bool:
        return self.trial.http_status == 404

    @property
    def notes(self) -> list[standing.Note]:
        return standing.notes(self.trial.notes)

    @property
    def wants_sign_in(self) -> bool:
        return self.trial.http_status == 401


@administrator_only
@require_POST
def test(request: HttpRequest) -> HttpResponse:
    """The live connection is not touched. Takes up to half a minute."""
    if request.POST.get("saved"):
        return _tried(request, server_named(request.POST.get("of", "")))
    form = form_of(request)
    form.fields["name"].required = False
    try:
        row = _row(request, form) if form.is_valid() else None
    except NotConfirmed as asked:
        again = json.dumps({"confirmed": asked.command_line})
        hints = argument_hints(form.arguments)
        return _answer(request, {"to_confirm": asked.command_line, "again": again, "hints": hints})
    except BadServer as error:
        form.show(error.errors)
    else:
        if row is not None:
            return _tried(request, row)
    return _answer(request, {"form": form})


def _row(request: HttpRequest, form: ServerForm) -> UpstreamServer:
    """Return what would be saved. BadServer, NotConfirmed."""
    draft = form.draft()
    servers.check_program(draft, actor_of(request), confirmed_in(request), form.standing)
    row = connections.unsaved(draft, form.standing)
    saved = form.standing
    if saved and reaching.connection_of(saved).identity() == reaching.connection_of(row).identity():
        # As it is signed in; whoever else is there gets nothing of that.
        row.pk = saved.pk
    return row


def _tried(request: HttpRequest, row: UpstreamServer) -> HttpResponse:
    return _answer(request, {"reached": Reached(connections.attempt(row)), "is_saved": "of" in request.POST})


def _answer(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    return render(request, "servers/_test.html", context)

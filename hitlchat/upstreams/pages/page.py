"""What the page of one server shows: how it stands, its tools, its settings."""

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Case, IntegerField, Value, When
from django.http import HttpRequest

from hitlchat.upstreams import naming
from hitlchat.upstreams.gallery import entries
from hitlchat.upstreams.models import ComposedTool, ServerState, ToolState, UpstreamServer
from hitlchat.upstreams.pages import listing, standing, telling
from hitlchat.upstreams.pages.form import ServerForm
from hitlchat.upstreams.pages.risk import risk_of_form
from hitlchat.upstreams.signing_in import shown

TOOLS_ON_A_PAGE = 100
# What needs a person comes first.
_ORDER = (
    ToolState.WITHHELD, ToolState.EXPOSED, ToolState.NEW, ToolState.HIDDEN, ToolState.UNFIT, ToolState.GONE,
)  # fmt: skip
_LOOKS = {
    ToolState.WITHHELD: ("unknown", "alert"),
    ToolState.EXPOSED: ("succeeded", "check"),
    ToolState.UNFIT: ("failed", "x"),
}


@dataclass(frozen=True)
class ToolLine:
    """One tool of a server; `alias` is the one that it would get, if it has none."""

    row: ComposedTool
    alias: str
    look: str
    icon: str

    @property
    def label(self) -> str:
        return ToolState(self.row.state).label


def of_new(form: ServerForm) -> dict[str, Any]:
    return {"section": "servers", "form": form, "entry": entries.find(form.entry_id), "risk": risk_of_form(form)}


def of(request: HttpRequest, server: UpstreamServer, form: ServerForm) -> dict[str, Any]:
    told = {"section": "servers", "form": form, "risk": risk_of_form(form), "told": telling.take(request)}
    return told | live(request, server) | shown.block(server)


def live(request: HttpRequest, server: UpstreamServer) -> dict[str, Any]:
    """What changes by itself."""
    found = standing.standing_of(server)
    return {
        "server": found.server,
        "line": found,
        "calls": standing.open_calls(server),
        "mark": standing.mark([found]),
        "every": listing.SOON if found.is_moving else listing.AT_LEISURE,
        "asks_for_sign_in": found.server.state == ServerState.SIGN_IN,
        "page": (page := _tools(request, server)),
        "tools": _lines(page),
    }


def _tools(request: HttpRequest, server: UpstreamServer) -> "Page[ComposedTool]":
    order = Case(*(When(state=state, then=Value(at)) for at, state in enumerate(_ORDER)), output_field=IntegerField())
    rows = server.tools.select_related("tool", "server").order_by(order, "name")
    return Paginator(rows, TOOLS_ON_A_PAGE).get_page(request.GET.get("page"))


def _lines(page: "Page[ComposedTool]") -> list[ToolLine]:
    rows = list(page.object_list)
    names = naming.proposals(rows)
    return [ToolLine(row, names[row.pk], *_LOOKS.get(ToolState(row.state), ("", "ban"))) for row in rows]

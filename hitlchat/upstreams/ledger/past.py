"""Events of the ledger as pages show them: the newest first, a page at a time."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import QueryDict

from hitlchat.upstreams.ledger.words import PINNING, Line
from hitlchat.upstreams.models import ComposedTool, ToolEvent

AT_A_TIME = 25


@dataclass(frozen=True)
class Page:
    """`older`: the id before which to go on, None at the end."""

    lines: tuple[Line, ...]
    older: int | None


def page_of(events: QuerySet[ToolEvent], asked: QueryDict) -> Page:
    """As far as `before` in `asked` says."""
    before = asked.get("before", "")
    if before.isascii() and before.isdigit():
        events = events.filter(pk__lt=int(before[:18]))
    related = events.select_related("actor", "tool__server").defer("record", "tool__seen", "tool__pinned")
    rows = list(related.order_by("-pk")[: AT_A_TIME + 1])
    shown = rows[:AT_A_TIME]
    return Page(tuple(map(Line, shown)), shown[-1].pk if len(rows) > AT_A_TIME else None)


def of_tool(row: ComposedTool) -> QuerySet[ToolEvent]:
    return ToolEvent.objects.filter(tool=row)


def accepted_before(event: ToolEvent) -> ToolEvent | None:
    """The last event before this one at which somebody, or a newer fingerprint, fixed the tool's record."""
    own = Q(tool=event.tool_id) if event.tool_id else Q(server_name=event.server_name, tool_name=event.tool_name)
    found = ToolEvent.objects.filter(own, name__in=PINNING, record__isnull=False, pk__lt=event.pk)
    return found.order_by("-pk").first()

"""The pages of upstream tools: one tool as it stands, and the history of tools in words, a page at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, QueryDict

from hitlchat.gate.models import HitlMode
from hitlchat.upstreams import judging
from hitlchat.upstreams.ledger.becoming import becoming, fields, has_changed, is_intact
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState
from hitlchat.upstreams.pages import standing

PINNING = ("tool.exposed", "tool.accepted", "tool.pinned_anew")
WORDS = {
    "tool.exposed": "Exposed",
    "tool.hidden": "No longer exposed",
    "tool.returned": "Back in the catalog",
    "tool.changed": "Withheld: its server changed its definition",
    "tool.withheld": "Withheld",
    "tool.unfit": "Withheld: it cannot be offered as it is",
    "tool.gone": "Gone from its server's list",
    "tool.accepted": "Accepted as it is now",
    "tool.configured": "Settings changed",
    "tool.pinned_anew": "Fingerprint made anew, by newer rules: the same definition",
    "tool.deleted": "Its server was removed",
}
SETTINGS = {
    "alias": "Alias",
    "hitl_mode": "HITL mode",
    "prompt_template": "Approval prompt",
    "condition": "Condition",
    "deadline_seconds": "Seconds to answer",
    "signed_in_only": "A signed-in person must decide",
    "description": "Description",
}
_MEANS = {"session": "in the browser", "token": "with a token", "console": "at the console", "elicitation": "over MCP"}
_LINKS = {"tool.changed": "What changed", "tool.accepted": "What changed", "tool.exposed": "Definition"}
_ITSELF = "hitlchat, by itself"


@dataclass(frozen=True)
class Setting:
    """One setting that was changed; empty texts where there was none."""

    words: str
    before: str
    after: str


@dataclass(frozen=True)
class Line:
    """One event, in words."""

    event: ToolEvent

    @property
    def words(self) -> str:
        return WORDS.get(self.event.name, self.event.name)

    @property
    def link(self) -> str:
        """Return what the event's own page shows that a line of a list has no room for; empty if there is nothing."""
        return _LINKS.get(self.event.name, "")

    @property
    def who(self) -> str:
        if self.event.actor is None:
            return _ITSELF
        return self.event.actor.get_username()

    @property
    def means(self) -> str:
        if self.event.actor is None:
            return ""
        return _MEANS.get(self.event.means, "by a program in their name")

    @property
    def reason(self) -> str:
        """Return where the words of the event do not say it already."""
        said = self.event.data.get("reason", "")
        return "" if self.event.name in {"tool.changed", "tool.gone"} else str(said)

    @property
    def settings(self) -> tuple[Setting, ...]:
        return tuple(self._settings())

    def _settings(self) -> Iterator[Setting]:
        if self.event.name not in {"tool.configured", "tool.exposed"}:
            return
        # Whoever exposes a tool settles the rest of it in the same moment.
        data = self.event.data if self.event.name == "tool.configured" else self.event.data.get("settings") or {}
        before, after = (data.get(key) or {} for key in ("before", "after"))
        for name, words in SETTINGS.items():
            one, other = (_told(name, str(each.get(name, ""))) for each in (before, after))
            if one != other:
                yield Setting(words, one, other)


def _told(name: str, value: str) -> str:
    if name == "hitl_mode" and value in HitlMode.values:
        return str(HitlMode(value).label)
    if name == "deadline_seconds" and value == "None":
        return ""
    if name == "signed_in_only":
        return "Yes" if value == "True" else "No"
    return value


AT_A_TIME = 25


@dataclass(frozen=True)
class Page:
    """`older`: the id before which to go on, None at the end."""

    lines: tuple[Line, ...]
    older: int | None


def page_of(events: QuerySet[ToolEvent], asked: QueryDict) -> Page:
    """Return the page as far as `before` in `asked` says."""
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


LOOKS = {
    ToolState.NEW: ("", "clock"),
    ToolState.HIDDEN: ("", "ban"),
    ToolState.EXPOSED: ("succeeded", "check"),
    ToolState.WITHHELD: ("unknown", "alert"),
    ToolState.GONE: ("failed", "x"),
    ToolState.UNFIT: ("refused", "alert"),
}


def of(request: HttpRequest, row: ComposedTool, problems: list[str]) -> dict[str, Any]:
    """The context of `servers/ledger/tool.html`; `problems`: why it was not done what was asked."""
    changed = has_changed(row)
    accepted = row.pinned if row.pinned_digest else None
    found = becoming(row) if changed else None
    look, icon = LOOKS[ToolState(row.state)]
    return {
        "section": "servers", "row": row, "server": row.server, "tool": row.tool, "look": look, "look_icon": icon,
        "problems": problems, "told": standing.take(request), "becoming": found,
        "reasons": dict.fromkeys(row.risk_reasons),
        "accepted": accepted is not None, "intact": accepted is None or is_intact(accepted, row.pinned_digest),
        "fields": fields(accepted or row.seen),
        "listed_fields": fields(row.seen) if changed else (),
        "warnings": [each for each in judging.findings_of(row.warnings) if not found or each not in found.new_warnings],
        "history": page_of(of_tool(row), request.GET),
    }  # fmt: skip

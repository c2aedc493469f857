"""What the page of one upstream tool shows."""

from typing import Any

from django.http import HttpRequest

from hitlchat.upstreams import judging
from hitlchat.upstreams.ledger import words
from hitlchat.upstreams.ledger.becoming import becoming, fields, has_changed, is_intact
from hitlchat.upstreams.models import ComposedTool, ToolState
from hitlchat.upstreams.pages import standing

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
        "history": words.page_of(words.of_tool(row), request.GET),
    }  # fmt: skip

"""What waits, a line each."""

from collections.abc import Sequence

from hitlchat.approvals.console import printing
from hitlchat.approvals.console.facts import left
from hitlchat.approvals.console.showing import Style
from hitlchat.approvals.console.text import one_line, printable
from hitlchat.gate import disclosure
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Approval, CallerKind

COLUMNS = ("Approval", "Tool", "Asked by", "Risk", "Time left")
NOTHING = "Nothing waits for an answer."


def told(rows: Sequence[Approval], limit: int, style: Style) -> str:
    if not rows:
        return NOTHING
    more = f"\nMore wait than these {limit}: raise --limit, or narrow it down." if len(rows) > limit else ""
    lines = [_line(row) for row in rows[:limit]]
    if style.plain:
        return printable("\n".join("\t".join(line) for line in lines)) + more
    return printing.listed(COLUMNS, lines, colours=style.colours) + more


def _line(row: Approval) -> tuple[str, ...]:
    call = row.call
    assert call.deadline is not None
    who = f"{CallerKind(call.caller_kind).label} for {one_line(call.caller.get_username())}"
    level = disclosure.said(row)
    return str(row.pk), one_line(call.tool_name), who, f"L{level} {RISK_LABELS[level]}", left(call.deadline)

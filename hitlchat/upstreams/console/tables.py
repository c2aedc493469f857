"""What the command `servers` prints: plain tables, with everything that servers say made visible and on one line."""

import io
import shutil
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hitlchat.base.visible import see
from hitlchat.upstreams import judging, naming, reaching, values
from hitlchat.upstreams.judge.difference import difference
from hitlchat.upstreams.judge.rubric import assess_server
from hitlchat.upstreams.models import ComposedTool, UpstreamServer
from hitlchat.upstreams.servers import draft_of
from hitlchat.upstreams.wire import Trial

# Of what goes into a file or another program.
WIDE = 200
SEALED = "(secret, kept)"

Row = Sequence[object]


def servers(rows: Iterable[UpstreamServer]) -> str:
    """`rows` with their counts of exposed tools."""
    heads = ("name", "address", "transport", "state", "tools", "exposed", "risk", "reason")
    return _table(heads, map(_server, rows))


def _server(row: UpstreamServer) -> Row:
    exposed = row.exposed_count  # type: ignore[attr-defined]  # annotated by the command
    risk = f"L{assess_server(reaching.facts_of(row, writes=row.writes)).level}"
    tools = "" if row.tool_count is None else row.tool_count
    return row.name, reaching.place_of(row), row.transport, row.state, tools, exposed, risk, row.reason


def server(row: UpstreamServer) -> str:
    """Everything of one server but its secrets."""
    risk = assess_server(reaching.facts_of(row, writes=row.writes))
    facts: list[Row] = [
        ("name", row.name),
        ("transport", row.get_transport_display()),
        *((("command", draft_of(row).command_line),) if row.command else (("url", row.url),)),
        *(("header", _value(each)) for each in values.read(row.headers)),
        *(("env", _value(each)) for each in values.read(row.env)),
        ("private address", "allowed" if row.allow_private else "only if the address itself is one"),
        ("seconds for a call", row.call_seconds),
        ("documentation", row.docs_url),
        ("state", row.get_state_display()),
        ("reason", row.reason),
        ("last error", _last_error(row)),
        ("latency", "" if row.latency_ms is None else f"{row.latency_ms:.0f} ms"),
        ("says it is", f"{row.told_name} {row.told_version}".strip()),
        ("protocol", row.protocol_version + (", the older one by choice" if row.older_protocol else "")),
        ("tools", "" if row.tool_count is None else row.tool_count),
        ("left out", row.listing_note),
        *(("note", note) for note in row.notes),
        ("risk", f"L{risk.level}"),
        *(("", reason) for reason in risk.reasons),
    ]
    return _table(("", ""), (fact for fact in facts if str(fact[1])))


def _value(kept: values.Kept) -> str:
    shown = kept.shown()
    return f"{shown.name}: {SEALED if shown.value is None else shown.value}"


def _last_error(row: UpstreamServer) -> str:
    at = f" (at {row.last_error_at:%Y-%m-%d %H:%M:%S} UTC)" if row.last_error_at else ""
    return f"{row.last_error}{at}" if row.last_error else ""


def trial(found: Trial) -> str:
    """Of one that was successful."""
    tools = found.listing.tools if found.listing else ()
    facts: list[Row] = [
        ("says it is", f"{found.server_name} {found.server_version}".strip()),
        ("protocol", found.protocol_version),
        ("latency", f"{found.latency_ms or 0:.0f} ms"),
        ("tools", len(tools)),
        *(("", tool.name) for tool in tools),
    ]
    return _table(("", ""), facts)


def tools(rows: Iterable[ComposedTool]) -> str:
    """With their servers and their rows in the gate loaded."""
    found = list(rows)
    aliases = naming.proposals(found)
    heads = ("tool", "alias", "state", "HITL", "risk", "warnings", "reason")
    return _table(heads, (_tool(row, aliases[row.pk]) for row in found))


def _tool(row: ComposedTool, alias: str) -> Row:
    mode = row.tool.hitl_mode if row.tool else "REQUIRED"
    risk = f"L{row.risk_inherent} → L{row.risk_effective}"
    return row.name, alias, row.state, mode, risk, len(row.warnings) or "", row.reason


def warnings(row: ComposedTool) -> str:
    found = judging.findings_of(row.warnings)
    return _table(("warning", "where", "text"), ((each.sentence, each.where, each.excerpt) for each in found))


def changes(row: ComposedTool) -> str:
    """From what was accepted to what is listed now."""
    found = difference(row.pinned or {}, row.seen)
    shown = (
        (each.where, each.before.plain if each.before else "", each.after.plain if each.after else "") for each in found
    )
    return _table(("where", "accepted", "now"), shown)


def plain(text: object) -> str:
    """On one line, and nothing in it that a terminal would obey."""
    return " ".join(see(str(text)).plain.split())


def _table(heads: Sequence[str], rows: Iterable[Row]) -> str:
    table = Table(box=None, pad_edge=False, show_header=any(heads), header_style="")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
    written = io.StringIO()
    Console(file=written, width=width, highlight=False, no_color=True).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())

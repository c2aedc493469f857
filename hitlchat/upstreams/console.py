"""The command `servers`: its options, and the plain tables that it prints."""

import argparse
import getpass
import io
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import CommandError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hitlchat.base.visible import see
from hitlchat.gate.models import HitlMode
from hitlchat.secrets.values import Stored, Value
from hitlchat.upstreams import endpoint, exposure, gallery, server_draft
from hitlchat.upstreams.client.connection import Trial
from hitlchat.upstreams.models import ComposedTool, ToolState, UpstreamServer
from hitlchat.upstreams.risk.fingerprint import difference
from hitlchat.upstreams.risk.rubric import assess_server
from hitlchat.upstreams.risk.scan import findings_of
from hitlchat.upstreams.server_draft import ServerDraft, draft_of

# Of what goes into a file or another program.
WIDE = 200
Row = Sequence[object]
WITH_A_SERVER = {
    "show": "show everything about a server except its secrets",
    "test": "test the connection, without touching the live one",
    "enable": "connect a server",
    "disable": "disconnect a server; its tools leave the catalog",
    "reconnect": "close a server's connection and open a new one",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", default="", help="the administrator who acts; required if there are several")
    found = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    found.add_parser("list", help="list all servers")
    for name, meaning in WITH_A_SERVER.items():
        found.add_parser(name, help=meaning).add_argument("name")
    deleting = found.add_parser("delete", help="remove a server with its tools")
    deleting.add_argument("name")
    deleting.add_argument("--yes", action="store_true", help="do not ask")
    _add_adding(found.add_parser("add", help="add a server"))
    tools = found.add_parser("tools", help="list a server's tools")
    tools.add_argument("name")
    tools.add_argument("--state", choices=ToolState.values, default="")
    exposing = found.add_parser("expose", help="offer a tool")
    hiding = found.add_parser("hide", help="stop offering a tool")
    accepting = found.add_parser("accept", help="accept a changed tool as its server lists it now")
    for parser in (exposing, hiding, accepting):
        parser.add_argument("name")
        parser.add_argument("tool", help="the tool's name on its server")
    exposing.add_argument("--alias", help="the name to offer the tool under")
    exposing.add_argument("--description", help="replaces the server's own description")
    exposing.add_argument("--mode", choices=HitlMode.values, help="when calls need approval (default: REQUIRED)")
    exposing.add_argument("--prompt", help="the title of the approval card")
    exposing.add_argument("--condition", help="for CONDITIONAL: a Python expression; where it is true, the call asks")
    exposing.add_argument("--less-oversight", action="store_true", help="confirm that it may ask less than before")
    accepting.add_argument(
        "--digest",
        default="",
        help="digest of the definition you reviewed; without it, the definition is shown and you are asked",
    )
    accepting.add_argument("--keep-mode", action="store_true", help="even if the tool does not ask every time")
    for parser in (exposing, accepting):
        parser.add_argument("--warnings-read", action="store_true", help="confirm that you have read its warnings")


def _add_adding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name")
    parser.add_argument("url", nargs="?", default="", help="the server's URL")
    parser.add_argument("--sse", action="store_true", help="use the older HTTP+SSE transport")
    parser.add_argument("--program", default="", help="start this program on this machine instead (stdio)")
    parser.add_argument(
        "--args",
        dest="program_args",
        nargs=argparse.REMAINDER,
        default=[],
        help="everything after this is passed to the program",
    )
    for kind, what in (("header", "a header"), ("env", "a variable for the program")):
        secret = f"{what}, secret; without =VALUE, you are prompted, or a line of standard input is read"
        parser.add_argument(f"--{kind}", action="append", default=[], metavar="NAME[=VALUE]", help=secret)
        plain = f"{what}, not secret"
        parser.add_argument(f"--plain-{kind}", action="append", default=[], metavar="NAME=VALUE", help=plain)
    parser.add_argument(
        "--allow-private", action="store_true", help="allow the host name to resolve to a private address"
    )
    parser.add_argument("--call-seconds", type=int, default=60, help="time limit for one call, in seconds")
    parser.add_argument(
        "--older-protocol",
        action="store_true",
        help="use the older revision of MCP: the server's newest one is broken",
    )
    parser.add_argument("--docs", default="", help="the URL of the server's documentation")
    parser.add_argument("--disabled", action="store_true", help="do not connect yet")
    parser.add_argument("--confirm", default="", metavar="COMMAND-LINE", help="confirm this exact command line")


def described(options: dict[str, Any]) -> ServerDraft:
    """Return the draft that the options describe. Raises: CommandError"""
    if bool(options["url"]) == bool(options["program"]):
        raise CommandError("Expected either a URL or --program.")
    draft = ServerDraft(
        name=options["name"],
        transport="stdio" if options["program"] else "sse" if options["sse"] else "http",
        url=options["url"],
        command=options["program"],
        headers=_values("header", options),
        env=_values("env", options),
        args=tuple(options["program_args"]),
        allow_private=options["allow_private"],
        call_seconds=options["call_seconds"],
        older_protocol=options["older_protocol"],
        docs_url=options["docs"],
        enabled=not options["disabled"],
    )
    return gallery.vouched(draft, "")


def _values(kind: str, options: dict[str, Any]) -> tuple[Value, ...]:
    found = []
    for text in options[kind]:
        name, given, value = text.partition("=")
        if not given:
            value = getpass.getpass(f"{name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        found.append(Value(name, value))
    for text in options[f"plain_{kind}"]:
        name, given, value = text.partition("=")
        if not given:
            raise CommandError(f"--plain-{kind}: expected NAME=VALUE.")
        found.append(Value(name, value, secret=False))
    return tuple(found)


def servers(rows: Iterable[UpstreamServer]) -> str:
    """`rows` with their counts of exposed tools."""
    heads = ("name", "address", "transport", "state", "tools", "exposed", "risk", "reason")
    found: list[Row] = []
    for row in rows:
        exposed = row.exposed_count  # type: ignore[attr-defined]  # annotated by the command
        risk = f"L{assess_server(endpoint.facts_of(row, writes=row.writes)).level}"
        tools = "" if row.tool_count is None else row.tool_count
        found.append((row.name, endpoint.place_of(row), row.transport, row.state, tools, exposed, risk, row.reason))
    return _table(heads, found)


def server(row: UpstreamServer) -> str:
    risk = assess_server(endpoint.facts_of(row, writes=row.writes))
    error_at = f" (at {row.last_error_at:%Y-%m-%d %H:%M:%S} UTC)" if row.last_error_at else ""
    facts: list[Row] = [
        ("name", row.name),
        ("transport", row.get_transport_display()),
        *((("command", draft_of(row).command_line),) if row.command else (("url", row.url),)),
        *(("header", _value(each)) for each in server_draft.read_values(row.headers)),
        *(("env", _value(each)) for each in server_draft.read_values(row.env)),
        ("private address", "allowed" if row.allow_private else "only if the address itself is private"),
        ("seconds for a call", row.call_seconds),
        ("documentation", row.docs_url),
        ("state", row.get_state_display()),
        ("reason", row.reason),
        ("last error", f"{row.last_error}{error_at}" if row.last_error else ""),
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


def _value(stored: Stored) -> str:
    shown = stored.shown()
    return f"{shown.name}: {'(secret, kept)' if shown.value is None else shown.value}"


def trial(found: Trial) -> str:
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
    loaded = list(rows)
    aliases = exposure.proposals(loaded)
    found: list[Row] = []
    for row in loaded:
        mode = row.tool.hitl_mode if row.tool else "REQUIRED"
        risk = f"L{row.risk_inherent} → L{row.risk_effective}" + ("" if row.standing_vouch else ", unknown")
        found.append((row.name, aliases[row.pk], row.state, mode, risk, len(row.warnings) or "", row.reason))
    return _table(("tool", "alias", "state", "HITL", "risk", "warnings", "reason"), found)


def warnings(row: ComposedTool) -> str:
    found = findings_of(row.warnings)
    return _table(("warning", "where", "text"), ((each.sentence, each.where, each.excerpt) for each in found))


def changes(row: ComposedTool) -> str:
    found = difference(row.pinned or {}, row.seen)
    shown = (
        (each.where, each.before.plain if each.before else "", each.after.plain if each.after else "") for each in found
    )
    return _table(("where", "accepted", "now"), shown)


def plain(text: object) -> str:
    """Return a text on one line, with nothing in it that a terminal would obey."""
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

"""The command `servers`, with the plain tables that it prints."""

import argparse
import getpass
import io
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser
from django.db.models import Count, Q, QuerySet
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hitlchat.base.problems import required
from hitlchat.base.visible import see
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import HitlMode
from hitlchat.management.console import QuickCommand
from hitlchat.secrets.values import Stored, Value
from hitlchat.upstreams import connections, endpoint, exposure, gallery, server_draft, servers
from hitlchat.upstreams.changes import Change, Refused
from hitlchat.upstreams.changes import NotConfirmed as LessOversight
from hitlchat.upstreams.models import ComposedTool, ToolState, UpstreamServer
from hitlchat.upstreams.risk.fingerprint import difference
from hitlchat.upstreams.risk.rubric import assess_server
from hitlchat.upstreams.risk.scan import findings_of
from hitlchat.upstreams.server_draft import BadServer, ServerDraft, draft_of
from hitlchat.upstreams.servers import NotConfirmed, OnlyAdministrators

Options = dict[str, Any]
Row = Sequence[object]
# Of what goes into a file or another program.
WIDE = 200
WITH_A_SERVER = {
    "show": "show everything about a server except its secrets",
    "test": "test the connection, without touching the live one",
    "enable": "connect a server",
    "disable": "disconnect a server; its tools leave the catalog",
    "reconnect": "close a server's connection and open a new one",
}


class Command(QuickCommand):
    help = (
        "List, add and change upstream servers, and choose which of their tools to offer. On failure, prints "
        "the reason and exits with code 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
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
        tools.add_argument("--state", choices=ToolState.values, default="", help="only tools in this state")
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
        exposing.add_argument(
            "--condition", help="for CONDITIONAL: a Python expression; where it is true, the call asks"
        )
        exposing.add_argument("--less-oversight", action="store_true", help="confirm that it may ask less than before")
        accepting.add_argument(
            "--digest",
            default="",
            help="digest of the definition you reviewed; without it, the definition is shown and you are asked",
        )
        accepting.add_argument("--keep-mode", action="store_true", help="even if the tool does not ask every time")
        for parser in (exposing, accepting):
            parser.add_argument("--warnings-read", action="store_true", help="confirm that you have read its warnings")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['what']}")(options)
        except (BadServer, LookupError, OnlyAdministrators, Refused) as error:
            raise CommandError(_plain(error)) from error

    # -- Servers ------------------------------------------------------------------------------------------------------

    def _list(self, options: Options) -> None:
        rows = UpstreamServer.objects.annotate(exposed_count=Count("tools", filter=Q(tools__state=ToolState.EXPOSED)))
        heads = ("name", "address", "transport", "state", "tools", "exposed", "risk", "reason")
        found: list[Row] = []
        for row in rows:
            risk = f"L{assess_server(endpoint.facts_of(row, writes=row.writes)).level}"
            tools = "" if row.tool_count is None else row.tool_count
            place = endpoint.place_of(row)
            found.append((row.name, place, row.transport, row.state, tools, row.exposed_count, risk, row.reason))
        self.stdout.write(_table(heads, found))

    def _show(self, options: Options) -> None:
        row = _server(options)
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
        self.stdout.write(_table(("", ""), (fact for fact in facts if str(fact[1]))))

    def _test(self, options: Options) -> None:
        found = connections.attempt(_server(options))
        if found.error:
            raise CommandError(_plain("\n".join([f"No connection: {found.error}", *found.notes])))
        tools = found.listing.tools if found.listing else ()
        facts: list[Row] = [
            ("says it is", f"{found.server_name} {found.server_version}".strip()),
            ("protocol", found.protocol_version),
            ("latency", f"{found.latency_ms or 0:.0f} ms"),
            ("tools", len(tools)),
            *(("", tool.name) for tool in tools),
        ]
        self.stdout.write(_table(("", ""), facts))

    def _add(self, options: Options) -> None:
        draft, actor = _described(options), _actor(options)
        try:
            made = servers.create(draft, actor, confirmed=options["confirm"])
        except NotConfirmed as program:
            shown = see(program.command_line).plain
            self._ask(f"This program would be started on this machine:\n  {shown}\nStart it?", "--confirm")
            made = servers.create(draft, actor, confirmed=program.command_line)
        self.stdout.write(f"{made.name} is added. None of its tools is exposed yet.")

    def _enable(self, options: Options) -> None:
        enabled = options["what"] == "enable"
        found = servers.enable(_server(options).pk, enabled, _actor(options))
        self.stdout.write(f"{found.name} is {'enabled' if enabled else 'disabled'}.")

    _disable = _enable

    def _reconnect(self, options: Options) -> None:
        found = servers.reconnect(_server(options).pk, _actor(options))
        self.stdout.write(f"{found.name} is reconnecting.")

    def _delete(self, options: Options) -> None:
        found, actor = _server(options), _actor(options)
        if not options["yes"]:
            self._ask(f"Remove {found.name} with its tools, and withdraw their waiting calls?", "--yes")
        servers.delete(found.pk, actor)
        self.stdout.write(f"{found.name} is removed. Its calls and history stay on the record.")

    # -- Tools --------------------------------------------------------------------------------------------------------

    def _tools(self, options: Options) -> None:
        rows = _server(options).tools.select_related("server", "tool").defer("pinned")
        loaded = list(rows.filter(state=options["state"]) if options["state"] else rows)
        aliases = exposure.proposals(loaded)
        found: list[Row] = []
        for row in loaded:
            mode = row.tool.hitl_mode if row.tool else "REQUIRED"
            risk = f"L{row.risk_inherent} → L{row.risk_effective}" + ("" if row.standing_vouch else ", unknown")
            found.append((row.name, aliases[row.pk], row.state, mode, risk, len(row.warnings) or "", row.reason))
        self.stdout.write(_table(("tool", "alias", "state", "HITL", "risk", "warnings", "reason"), found))

    def _expose(self, options: Options) -> None:
        row = _tool(options)
        change = Change(
            row.pk,
            exposed=True,
            alias=options["alias"],
            description=options["description"],
            hitl_mode=options["mode"],
            prompt_template=options["prompt"],
            condition=options["condition"],
            digest=row.seen_digest,
            warnings_read=options["warnings_read"],
        )
        if row.warnings:
            self.stderr.write(_warnings(row))
        actor = _actor(options)
        try:
            (exposed,) = exposure.apply([change], actor, confirmed="")
        except LessOversight as loosening:
            if not options["less_oversight"]:
                self._ask("The tool could run with less oversight than now. Continue?", "--less-oversight")
            (exposed,) = exposure.apply([change], actor, confirmed=loosening.digest)
        assert exposed.tool is not None
        mode = exposed.tool.get_hitl_mode_display().lower()
        self.stdout.write(f"{_plain(row.name)} is exposed as {exposed.tool.name} ({mode}).")

    def _hide(self, options: Options) -> None:
        row = _tool(options)
        exposure.apply([Change(row.pk, exposed=False)], _actor(options), confirmed="")
        self.stdout.write(f"{_plain(row.name)} is no longer exposed.")

    def _accept(self, options: Options) -> None:
        row, actor = _tool(options), _actor(options)
        digest = options["digest"]
        if not digest:
            shown: list[Row] = [
                (each.where, each.before.plain if each.before else "", each.after.plain if each.after else "")
                for each in difference(row.pinned or {}, row.seen)
            ]
            self.stdout.write(_table(("where", "accepted", "now"), shown))
            if row.warnings:
                self.stdout.write(_warnings(row))
            self._ask("Accept the tool as it is now?", f"--digest {row.seen_digest}")
            digest = row.seen_digest
        keep, was_read = options["keep_mode"], options["warnings_read"]
        exposure.accept(row.pk, digest, actor, keep_mode=keep, warnings_read=was_read)
        self.stdout.write(f"{_plain(row.name)} is accepted as it is now.")

    def _ask(self, question: str, instead: str) -> None:
        """CommandError unless the person at the terminal says yes; `instead` says so where nobody sits there."""
        self.stdout.write(question)
        if not sys.stdin.isatty():
            raise CommandError(f"Nothing was changed. Confirm with {instead}.")
        if input("Type yes: ").strip().lower() != "yes":
            raise CommandError("Nothing was changed.")


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


def _described(options: Options) -> ServerDraft:
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


def _values(kind: str, options: Options) -> tuple[Value, ...]:
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


def _server(options: Options) -> UpstreamServer:
    found = UpstreamServer.objects.filter(name=options["name"]).first()
    return required(found, CommandError(f"There is no server named {options['name']!r}."))


def _tool(options: Options) -> ComposedTool:
    rows: QuerySet[ComposedTool] = _server(options).tools.select_related("server", "tool")
    found = rows.filter(name=options["tool"]).first()
    return required(found, CommandError(f"{options['name']} has no tool named {options['tool']!r}."))


def _actor(options: Options) -> Actor:
    name = options["user"]
    users = User.objects.filter(is_superuser=True, is_active=True)
    found = list(users.filter(username=name) if name else users)
    if name and not found:
        raise CommandError(f"There is no active administrator named {name!r}.")
    if len(found) != 1:
        raise CommandError("Name the administrator with --user NAME, before the command.")
    return Actor(found[0].pk, "console")


def _value(stored: Stored) -> str:
    shown = stored.shown()
    return f"{shown.name}: {'(secret, kept)' if shown.value is None else shown.value}"


def _warnings(row: ComposedTool) -> str:
    found = findings_of(row.warnings)
    return _table(("warning", "where", "text"), ((each.sentence, each.where, each.excerpt) for each in found))


def _plain(text: object) -> str:
    """Return a text on one line, with nothing in it that a terminal would obey."""
    return " ".join(see(str(text)).plain.split())


def _table(heads: Sequence[str], rows: Iterable[Row]) -> str:
    table = Table(box=None, pad_edge=False, show_header=any(heads), header_style="")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_plain(cell)) for cell in row))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
    written = io.StringIO()
    Console(file=written, width=width, highlight=False, no_color=True).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())

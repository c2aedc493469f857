import sys
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser
from django.db.models import Count, Q, QuerySet

from hitlchat.base.visible import see
from hitlchat.gate.actor import Actor
from hitlchat.management.console import ConsoleCommand
from hitlchat.upstreams import connections, console, exposure, servers
from hitlchat.upstreams.changes import Change, Refused
from hitlchat.upstreams.changes import NotConfirmed as LessOversight
from hitlchat.upstreams.models import ComposedTool, ToolState, UpstreamServer
from hitlchat.upstreams.server_draft import BadServer
from hitlchat.upstreams.servers import NotConfirmed, OnlyAdministrators

Options = dict[str, Any]


class Command(ConsoleCommand):
    help = (
        "List, add and change upstream servers, and choose which of their tools to offer. On failure, prints "
        "the reason and exits with code 1."
    )
    # The other checks import every page.
    requires_system_checks = ("hitlchat",)

    def add_arguments(self, parser: CommandParser) -> None:
        console.add(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['what']}")(options)
        except (BadServer, LookupError, OnlyAdministrators, Refused) as error:
            raise CommandError(console.plain(error)) from error

    # -- Servers ------------------------------------------------------------------------------------------------------

    def _list(self, options: Options) -> None:
        rows = UpstreamServer.objects.annotate(exposed_count=Count("tools", filter=Q(tools__state=ToolState.EXPOSED)))
        self.stdout.write(console.servers(rows))

    def _show(self, options: Options) -> None:
        self.stdout.write(console.server(_server(options)))

    def _test(self, options: Options) -> None:
        found = connections.attempt(_server(options))
        if found.error:
            raise CommandError(console.plain("\n".join([f"No connection: {found.error}", *found.notes])))
        self.stdout.write(console.trial(found))

    def _add(self, options: Options) -> None:
        draft, actor = console.described(options), _actor(options)
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
        self.stdout.write(console.tools(rows.filter(state=options["state"]) if options["state"] else rows))

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
            self.stderr.write(console.warnings(row))
        actor = _actor(options)
        try:
            (exposed,) = exposure.apply([change], actor, confirmed="")
        except LessOversight as loosening:
            if not options["less_oversight"]:
                self._ask("The tool could run with less oversight than now. Continue?", "--less-oversight")
            (exposed,) = exposure.apply([change], actor, confirmed=loosening.digest)
        assert exposed.tool is not None
        mode = exposed.tool.get_hitl_mode_display().lower()
        self.stdout.write(f"{console.plain(row.name)} is exposed as {exposed.tool.name} ({mode}).")

    def _hide(self, options: Options) -> None:
        row = _tool(options)
        exposure.apply([Change(row.pk, exposed=False)], _actor(options), confirmed="")
        self.stdout.write(f"{console.plain(row.name)} is no longer exposed.")

    def _accept(self, options: Options) -> None:
        row, actor = _tool(options), _actor(options)
        digest = options["digest"]
        if not digest:
            self.stdout.write(console.changes(row))
            if row.warnings:
                self.stdout.write(console.warnings(row))
            self._ask("Accept the tool as it is now?", f"--digest {row.seen_digest}")
            digest = row.seen_digest
        keep, was_read = options["keep_mode"], options["warnings_read"]
        exposure.accept(row.pk, digest, actor, keep_mode=keep, warnings_read=was_read)
        self.stdout.write(f"{console.plain(row.name)} is accepted as it is now.")

    def _ask(self, question: str, instead: str) -> None:
        """CommandError unless the person at the terminal says yes; `instead` says so where nobody sits there."""
        self.stdout.write(question)
        if not sys.stdin.isatty():
            raise CommandError(f"Nothing was changed. Confirm with {instead}.")
        if input("Type yes: ").strip().lower() != "yes":
            raise CommandError("Nothing was changed.")


def _server(options: Options) -> UpstreamServer:
    found = UpstreamServer.objects.filter(name=options["name"]).first()
    if found is None:
        raise CommandError(f"There is no server named {options['name']!r}.")
    return found


def _tool(options: Options) -> ComposedTool:
    rows: QuerySet[ComposedTool] = _server(options).tools.select_related("server", "tool")
    found = rows.filter(name=options["tool"]).first()
    if found is None:
        raise CommandError(f"{options['name']} has no tool named {options['tool']!r}.")
    return found


def _actor(options: Options) -> Actor:
    """Return the administrator as whom the operator at this console acts."""
    name = options["user"]
    users = User.objects.filter(is_superuser=True, is_active=True)
    found = list(users.filter(username=name) if name else users)
    if name and not found:
        raise CommandError(f"There is no active administrator named {name!r}.")
    if len(found) != 1:
        raise CommandError("Name the administrator with --user NAME, before the command.")
    return Actor(found[0].pk, "console")

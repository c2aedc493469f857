"""The shared parts of server pages: who may see them, and a server in words, with its tools, risk and open calls."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Lower
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from hitlchat.accounts.access import administrators_only
from hitlchat.base import canonical
from hitlchat.base.sentences import translated
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import NOT_STARTED
from hitlchat.upstreams import endpoint
from hitlchat.upstreams.connections import COUNTS_FOR
from hitlchat.upstreams.models import AWAY, ComposedTool, ServerState, ToolState, UpstreamServer
from hitlchat.upstreams.risk.rubric import OF_SERVER, OF_TOOL, Assessment, assess_server

administrator_only = administrators_only("Only administrators may see and change upstream servers.")
SHORT_TRANSPORT = {
    "http": gettext_noop("Streamable HTTP"),
    "stdio": gettext_noop("Program (stdio)"),
    "sse": gettext_noop("HTTP with SSE"),
}
# What a connection that is open is silent for at most, and then some.
SILENT_FOR = COUNTS_FOR + timedelta(seconds=15)
_LOOKS = {
    ServerState.NEW: ("executing", "clock"),
    ServerState.CONNECTING: ("executing", "clock"),
    ServerState.UP: ("succeeded", "check"),
    ServerState.DOWN: ("failed", "failed"),
    ServerState.SIGN_IN: ("waiting", "ask"),
    ServerState.UNUSABLE: ("unknown", "alert"),
    ServerState.DISABLED: ("", "ban"),
}


@dataclass(frozen=True)
class Connection:
    label: str
    look: str
    icon: str
    reason: str = ""


@dataclass(frozen=True)
class ServerSummary:
    server: UpstreamServer
    connection: Connection
    risk: Assessment
    exposed: int
    withheld: int
    listed: int

    @property
    def address(self) -> str:
        return endpoint.place_of(self.server)

    @property
    def latency(self) -> str:
        return duration(self.server.latency_ms if self.server.state == ServerState.UP else None)

    @property
    def notes(self) -> list[tuple[str, datetime | None]]:
        return list(map(note_of, self.server.notes))

    @property
    def transport(self) -> str:
        return SHORT_TRANSPORT[self.server.transport]

    @property
    def is_moving(self) -> bool:
        return self.server.state in {ServerState.NEW, ServerState.CONNECTING}


@dataclass(frozen=True)
class OpenCalls:
    """Calls of a server's tools: `waiting` for an answer, `cleared` but not started, `executing`."""

    waiting: int
    cleared: int
    executing: int

    @property
    def not_started(self) -> int:
        return self.waiting + self.cleared


def note_of(line: str) -> tuple[str, datetime | None]:
    """Return the text of a line that a server wrote, and its time; None if it was stored without."""
    at, _, text = line.partition(" ")
    try:
        return text, datetime.fromisoformat(at)
    except ValueError:
        return line, None


def server_named(name: str) -> UpstreamServer:
    """The server of this name, or the page that says there is none."""
    return get_object_or_404(UpstreamServer, name=name)


def count() -> int:
    """Withheld tools, and servers that don't answer: one query."""
    away = UpstreamServer.objects.filter(enabled=True, state__in=AWAY).order_by().values_list("pk")
    withheld = ComposedTool.objects.filter(state=ToolState.WITHHELD).order_by().values_list("pk")
    return withheld.union(away, all=True).count()


def withdrawn_calls(count: int) -> str:
    """“1 call was withdrawn.”; empty if there was none."""
    if not count:
        return ""
    sentence = ngettext(" {count} call was {words}.", " {count} calls were {words}.", count)
    return sentence.format(count=number_format(count, force_grouping=True), words=_("withdrawn"))


def duration(milliseconds: float | None) -> str:
    """Return a duration such as “12 ms” or “1.3 s”; empty if it is not known."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    return f"{milliseconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def summaries(servers: QuerySet[UpstreamServer]) -> list[ServerSummary]:
    """Return servers by name, with how many of their tools are exposed, withheld and listed."""
    counted = servers.annotate(
        exposed_tools=Count("tools", filter=Q(tools__state=ToolState.EXPOSED)),
        withheld_tools=Count("tools", filter=Q(tools__state=ToolState.WITHHELD)),
        listed_tools=Count("tools", filter=Q(tools__listed=True)),
    ).order_by(Lower("name"))
    found = []
    for each in counted:
        counts = each.exposed_tools, each.withheld_tools, each.listed_tools
        found.append(ServerSummary(each, connection_of(each), risk_of(each), *counts))
    return found


def summary_of(server: UpstreamServer) -> ServerSummary:
    return summaries(UpstreamServer.objects.filter(pk=server.pk))[0]


def connection_of(server: UpstreamServer) -> Connection:
    state = ServerState(server.state)
    is_silent = server.reported_at is None or timezone.now() - server.reported_at > SILENT_FOR
    if state == ServerState.UP and is_silent:
        silence = gettext_noop("No process has reported on the server for a while.")
        return Connection(gettext_noop("No news"), "unknown", "alert", silence)
    look, icon = _LOOKS[state]
    reason = "" if state in {ServerState.UP, ServerState.DISABLED} else server.reason
    return Connection(state.label, look, icon, reason)


def risk_of(server: UpstreamServer) -> Assessment:
    return assess_server(endpoint.facts_of(server, writes=server.writes))


def risk_reason(reason: str) -> str:
    """Return a stored reason in the language of the page, with whose it is."""
    whose = next((each for each in (OF_SERVER, OF_TOOL) if reason.startswith(each)), "")
    return translated(whose) + translated(reason.removeprefix(whose))


def open_calls(server: UpstreamServer) -> OpenCalls:
    calls = ToolCall.objects.filter(tool__composed__server=server, status__in=[*NOT_STARTED, Status.EXECUTING])
    statuses = list(calls.values_list("status", flat=True))
    waiting, executing = statuses.count(Status.WAITING), statuses.count(Status.EXECUTING)
    return OpenCalls(waiting, len(statuses) - waiting - executing, executing)


def mark(found: Iterable[ServerSummary]) -> str:
    """Return a mark that changes when a page about these servers has to be drawn again."""
    drawn = [
        [
            str(each.server.pk), each.server.name, each.address, each.connection.label, each.connection.reason,
            each.server.last_error, each.risk.level, [each.exposed, each.withheld, each.listed],
            [each.server.listing_note, each.server.told_name, each.server.told_version, each.server.notes],
        ]
        for each in found
    ]  # fmt: skip
    return canonical.sha256(drawn)[:16]

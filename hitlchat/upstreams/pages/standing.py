"""A server's standing in words: its connection, its tools, its risk, and the calls that depend on it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Lower
from django.http import HttpRequest
from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.withdraw import NOT_STARTED
from hitlchat.upstreams import reaching
from hitlchat.upstreams.connections import COUNTS_FOR
from hitlchat.upstreams.models import ComposedTool, ServerState, ToolState, UpstreamServer
from hitlchat.upstreams.risk.server import Assessment, assess_server

_AWAY = (ServerState.DOWN, ServerState.SIGN_IN, ServerState.UNUSABLE)


def count() -> int:
    """Withheld tools, and servers that don't answer: one query."""
    away = UpstreamServer.objects.filter(enabled=True, state__in=_AWAY).order_by().values_list("pk")
    withheld = ComposedTool.objects.filter(state=ToolState.WITHHELD).order_by().values_list("pk")
    return withheld.union(away, all=True).count()


@dataclass(frozen=True)
class Told:
    """A sentence, and whether it is a caution."""

    text: str
    caution: bool


def tell(request: HttpRequest, text: str, *, caution: bool = False) -> None:
    messages.add_message(request, messages.WARNING if caution else messages.SUCCESS, text)


def take(request: HttpRequest) -> list[Told]:
    """All that was not told yet, which is then told."""
    return [Told(str(each), each.level == messages.WARNING) for each in messages.get_messages(request)]


def calls(count: int, words: str) -> str:
    """“1 call was withdrawn.”; empty if there was none."""
    if not count:
        return ""
    return f" {count:,} {'call' if count == 1 else 'calls'} {'was' if count == 1 else 'were'} {words}."


SHORT_TRANSPORT = {"http": "Streamable HTTP", "stdio": "Program (stdio)", "sse": "HTTP with SSE"}
# What a connection that is open is silent for at most, and then some.
SILENT_FOR = COUNTS_FOR + timedelta(seconds=15)
# So many milliseconds, and they are told in seconds.
MS_SHOWN = 1000
MOVING = {ServerState.NEW, ServerState.CONNECTING}
_LOOKS = {
    ServerState.NEW: ("executing", "clock"),
    ServerState.CONNECTING: ("executing", "clock"),
    ServerState.UP: ("succeeded", "check"),
    ServerState.DOWN: ("failed", "x"),
    ServerState.SIGN_IN: ("waiting", "ask"),
    ServerState.UNUSABLE: ("unknown", "alert"),
    ServerState.DISABLED: ("", "ban"),
}


@dataclass(frozen=True)
class Connection:
    """The mark of a server: its words and its look."""

    label: str
    look: str
    icon: str
    reason: str = ""


@dataclass(frozen=True)
class Standing:
    """One server with what is to be said of it; `server` has the counts of `counted`."""

    server: UpstreamServer
    connection: Connection
    risk: Assessment
    exposed: int
    withheld: int
    listed: int

    @property
    def address(self) -> str:
        return reaching.place_of(self.server)

    @property
    def latency(self) -> str:
        return duration(self.server.latency_ms if self.server.state == ServerState.UP else None)

    @property
    def notes(self) -> "list[Note]":
        return notes(self.server.notes)

    @property
    def transport(self) -> str:
        return SHORT_TRANSPORT[self.server.transport]

    @property
    def is_moving(self) -> bool:
        return self.server.state in MOVING


@dataclass(frozen=True)
class OpenCalls:
    """Calls of a server's tools: `waiting` for an answer, `cleared` but not started, `executing`."""

    waiting: int
    cleared: int
    executing: int

    @property
    def not_started(self) -> int:
        return self.waiting + self.cleared


@dataclass(frozen=True)
class Note:
    """A line that a server wrote; `at` None: kept without its time."""

    text: str
    at: datetime | None = None


def notes(lines: Iterable[str]) -> list[Note]:
    return [_note(line) for line in lines]


def _note(line: str) -> Note:
    at, _, text = line.partition(" ")
    try:
        return Note(text, datetime.fromisoformat(at))
    except ValueError:
        return Note(line)


def duration(milliseconds: float | None) -> str:
    """Return a duration such as “12 ms” or “1.3 s”; empty if it is not known."""
    if milliseconds is None:
        return ""
    return f"{milliseconds:.0f} ms" if milliseconds < MS_SHOWN else f"{milliseconds / 1000:.1f} s"


def counted(servers: QuerySet[UpstreamServer]) -> QuerySet[Any]:
    """Return servers by name, with how many of their tools are listed, exposed and withheld."""
    return servers.annotate(
        listed_tools=Count("tools", filter=Q(tools__listed=True)),
        exposed_tools=Count("tools", filter=Q(tools__state=ToolState.EXPOSED)),
        withheld_tools=Count("tools", filter=Q(tools__state=ToolState.WITHHELD)),
    ).order_by(Lower("name"))


def standings(servers: QuerySet[UpstreamServer]) -> list[Standing]:
    return [
        Standing(
            server,
            connection_of(server),
            risk_of(server),
            exposed=server.exposed_tools,
            withheld=server.withheld_tools,
            listed=server.listed_tools,
        )
        for server in counted(servers)
    ]


def standing_of(server: UpstreamServer) -> Standing:
    (found,) = standings(UpstreamServer.objects.filter(pk=server.pk))
    return found


def connection_of(server: UpstreamServer) -> Connection:
    state = ServerState(server.state)
    if state == ServerState.UP and _is_silent(server):
        return Connection("No news", "unknown", "alert", "No process has reported on it for a while.")
    look, icon = _LOOKS[state]
    reason = "" if state in {ServerState.UP, ServerState.DISABLED} else server.reason
    return Connection(state.label, look, icon, reason)


def risk_of(server: UpstreamServer) -> Assessment:
    return assess_server(reaching.facts_of(server, writes=server.writes))


def open_calls(server: UpstreamServer) -> OpenCalls:
    wanted = (*NOT_STARTED, Status.EXECUTING)
    statuses = list(
        ToolCall.objects.filter(tool__composed__server=server, status__in=wanted).values_list("status", flat=True)
    )
    waiting, executing = statuses.count(Status.WAITING), statuses.count(Status.EXECUTING)
    return OpenCalls(waiting, len(statuses) - waiting - executing, executing)


def mark(found: Iterable[Standing]) -> str:
    """The same as long as a page about these servers need not be shown anew."""
    told = [
        [
            str(each.server.pk), each.server.name, each.address, each.connection.label, each.connection.reason,
            each.server.last_error, each.risk.level, [each.exposed, each.withheld, each.listed],
            [each.server.listing_note, each.server.told_name, each.server.told_version, each.server.notes],
        ]
        for each in found
    ]  # fmt: skip
    return canonical.sha256(told)[:16]


def _is_silent(server: UpstreamServer) -> bool:
    return server.reported_at is None or timezone.now() - server.reported_at > SILENT_FOR

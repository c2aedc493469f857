"""Risk of an upstream server and of its tools, in points, floors and levels. A hint of a tool can only raise the level.

A server that needs no sign-in counts as much as one with a sign-in of its own kind, and whatever is not on this machine
is at least L2, since L1 means “no external access”. A host that is neither loopback nor clearly private counts as
public, a value that is not known as the worst of its kind.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal
from urllib.parse import urlsplit

from django.utils.translation import gettext_noop

from hitlchat.base.sentences import translatable
from hitlchat.outbound.addresses import Reach, reach
from hitlchat.upstreams.risk.fingerprint import Offered, Transport

LOWEST, HIGHEST = 1, 5
Auth = Literal["none", "key", "oauth", "own-oauth"]
Trust = Literal["vendor", "community", "known-host", "unknown"]

IDLE_DAYS = 90
_MOST_FOR_SERVER = 2
_MOST_FOR_TOOL = 3
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_LONGEST_READ = 20_000
_FOR_GOOD = re.compile(
    r"\b(?:irreversibl[ey]|permanently|(?:cannot|can't|can\s+not)\s+be\s+(?:undone|reversed|recovered))\b"
)
UNPROVEN = gettext_noop("Only the server itself could say that it changes nothing.")
UNPROVEN_READER = gettext_noop("Only the server itself says that it only reads.")
CREDIT = gettext_noop("Every call needs approval: one level lower.")
NO_CREDIT = gettext_noop("Every call needs approval, but the texts are suspicious: not lowered.")
OF_SERVER, OF_TOOL = gettext_noop("Server: "), gettext_noop("Tool: ")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

IRREVERSIBLE = {
    "delete", "drop", "purge", "wipe", "remove", "destroy", "erase", "truncate", "shred", "rm", "rmdir", "unlink",
}  # fmt: skip
_RUN_TOGETHER = ("delete", "purge", "wipe", "remove", "destroy", "erase", "truncate")
_OTHER_FORMS = {"d", "s", "r", "rs", "able", "ds"}
_FORCED = {("force", "push"), ("hard", "reset"), ("factory", "reset")}
_EXECUTING = {"exec", "execute", "eval", "shell", "bash", "zsh", "powershell", "terminal", "cmd", "sudo", "spawn"}
_RUNNABLE = {
    "command", "commands", "code", "script", "python", "javascript", "js", "sql", "query", "program", "process",
}  # fmt: skip
_STARTING = {"run", "evaluate"}
_READING = {
    "get", "list", "read", "search", "find", "fetch", "show", "describe", "count", "query", "lookup", "check", "view",
}  # fmt: skip
_ADMINISTERING = {
    "admin", "administrator", "permission", "permissions", "role", "roles", "grant", "revoke", "acl", "policy", "iam",
    "password", "credential", "credentials", "owner", "impersonate",
}  # fmt: skip
_WRITING = {
    "write", "create", "update", "set", "put", "post", "patch", "add", "insert", "edit", "modify", "move", "rename",
    "merge", "push", "commit", "upload", "save", "append", "replace", "change", "assign", "close", "cancel", "archive",
    "enable", "disable", "start", "stop", "restart", "deploy", "install", "pay", "transfer", "buy", "sell", "order",
    "book", "refund", "approve", "toggle", "trigger", "schedule", "import", "apply",
}  # fmt: skip
_SENDING = {
    "send", "email", "mail", "post", "publish", "share", "upload", "forward", "notify", "tweet", "message", "submit",
    "reply", "invite", "sms", "webhook",
}  # fmt: skip


@dataclass(frozen=True)
class Signal:
    """One thing that was noticed: what it adds to the score, and the reason for a person."""

    points: int
    reason: str


@dataclass(frozen=True)
class Floor:
    """A rule that sets the level by itself, whatever the points say. `id` is its name in records."""

    id: str
    level: int
    reason: str


@dataclass(frozen=True)
class Assessment:
    """The risk of a server or a tool: `level` is 1 to 5; `floor` the rule that set it, if one did."""

    signals: tuple[Signal, ...]
    floor: Floor | None = None
    least: int = LOWEST

    @property
    def score(self) -> int:
        return sum(signal.points for signal in self.signals)

    @property
    def level(self) -> int:
        return max(self.least, bucket(self.score), self.floor.level if self.floor else LOWEST)

    @property
    def reasons(self) -> tuple[str, ...]:
        heaviest = sorted(self.signals, key=lambda signal: -signal.points)
        of_floor = [self.floor.reason] if self.floor else []
        # A rule and a point may be made of the same.
        return tuple(dict.fromkeys([*of_floor, *(signal.reason for signal in heaviest)]))


def bucket(score: int) -> int:
    """0 points are L1, each one more is a level, from 4 points on L5."""
    return max(LOWEST, min(HIGHEST, LOWEST + score))


def worst(floors: Iterator[Floor]) -> Floor | None:
    """The highest of those that apply; of equal ones the first."""
    return max(floors, key=lambda floor: floor.level, default=None)


_REACH: dict[Reach, Signal] = {
    "local": Signal(0, "It runs on this machine."),
    "private": Signal(1, "It is on a private network and can reach other machines there."),
    "public": Signal(0, "It is on the public internet."),
}
_AUTH: dict[Auth, Signal] = {
    "oauth": Signal(0, "It uses standard OAuth sign-in."),
    "key": Signal(1, "It is used with a long-lived key or token."),
    "none": Signal(2, "It needs no sign-in: anyone can use it, and nothing proves its identity."),
    "own-oauth": Signal(2, "It uses a sign-in of its own."),
}
_TRUST: dict[Trust, Signal] = {
    "vendor": Signal(0, "It is in the gallery, from the vendor itself."),
    "community": Signal(1, "It is in the gallery, maintained by a community."),
    "known-host": Signal(1, "Its address was typed in; the host is one of the gallery's."),
    "unknown": Signal(2, "Nobody vouches for it: it is not in the gallery."),
}
_PRIVILEGED = re.compile(r"\badmin|write_all|\bdelete|[._:]all\b|[._:]admin\b|\bfull_access|^\*$", re.IGNORECASE)


@dataclass(frozen=True)
class ServerFacts:
    """Facts about a server. `url` is empty with stdio; `writes`: any of its tools says, by its name or by a hint,
    that it changes something; `documented`: there is a link; `adequate`: a person found what it leads to good enough,
    or has not looked; `idle_days`: since its last call, None if it is new.
    """

    transport: Transport
    url: str = ""
    auth: Auth = "none"
    trust: Trust = "unknown"
    scopes: tuple[str, ...] = ()
    writes: bool = True
    documented: bool = False
    adequate: bool = True
    idle_days: int | None = None

    @property
    def reach(self) -> Reach:
        if self.transport == "stdio":
            return "local"
        try:
            return reach(urlsplit(self.url).hostname or "")
        except ValueError:
            return "public"

    @property
    def remote(self) -> bool:
        return self.reach != "local"


def is_privileged(scope: str) -> bool:
    return _PRIVILEGED.search(scope) is not None


@lru_cache(maxsize=256)
def assess_server(server: ServerFacts) -> Assessment:
    signals = [_REACH[server.reach]]
    if server.remote:
        if not server.url.lower().startswith("https://"):
            signals.append(Signal(1, "The connection is not encrypted."))
        signals.append(_AUTH.get(server.auth, _AUTH["own-oauth"]))
    signals.append(_TRUST.get(server.trust, _TRUST["unknown"]))
    gaps = []
    if not server.documented:
        gaps.append(gettext_noop("There is no link to its documentation."))
    if not server.adequate:
        gaps.append(gettext_noop("Its documentation was found insufficient."))
    if server.idle_days is not None and server.idle_days >= IDLE_DAYS:
        gaps.append(translatable(f"It has not been used for {server.idle_days:,} days."))
    signals += [Signal(1 if index < _MOST_FOR_SERVER else 0, reason) for index, reason in enumerate(gaps)]
    return Assessment(tuple(signals), worst(_server_floors(server)), least=2 if server.remote else 1)


def _server_floors(server: ServerFacts) -> Iterator[Floor]:
    unguarded = server.remote and server.auth == "none"
    if unguarded and server.writes:
        yield Floor("no-auth-write", 5, "It is remote, needs no sign-in, and offers tools that change things.")
    if unguarded and server.trust not in {"vendor", "community", "known-host"}:
        yield Floor("no-auth-unknown", 5, "It is remote, needs no sign-in, and nobody vouches for its host.")
    if scope := next(filter(is_privileged, server.scopes), None):
        yield Floor("privileged-scope", 5, f"It has the right “{scope}”, which reaches far beyond a single task.")


def words(name: str) -> list[str]:
    """`deleteHTTPFile` → delete, http, file."""
    return [word.lower() for word in _WORD.findall(name)]


def irreversible(name: str) -> str | None:
    """The verb by which it says that what it does can't be undone."""
    found = words(name)
    pairs = set(pairwise(found))
    if pairs & _FORCED:
        return "_".join(next(iter(pairs & _FORCED)))
    # To drag and drop is a gesture.
    harmless = {"drop"} if pairs & {("and", "drop"), ("drag", "drop")} else set()
    return next((word for word in found if word not in harmless and _destroys(word)), None)


def _destroys(word: str) -> bool:
    run_together = (verb for verb in _RUN_TOGETHER if word.startswith(verb))
    return word in IRREVERSIBLE or any(word.removeprefix(verb) not in _OTHER_FORMS for verb in run_together)


def executes(name: str) -> str | None:
    """The word by which it says that it runs commands or code."""
    found = words(name)
    if word := next((word for word in found if word in _EXECUTING), None):
        return word
    starts = not _STARTING.isdisjoint(found)
    return next((f"run {word}" for word in found if starts and word in _RUNNABLE), None)


def writes(name: str) -> bool:
    return irreversible(name) is not None or _does(name, _WRITING | _SENDING | _ADMINISTERING)


def _does(name: str, doing: set[str]) -> bool:
    """Return whether it acts: not if it begins with a verb of reading, at most after a server's name: `get_post`."""
    found = words(name)
    only_reads = not _READING.isdisjoint(found[:2]) and "and" not in found
    return not only_reads and not doing.isdisjoint(found)


def assess_tool(tool: Offered, server: ServerFacts) -> Assessment:
    signals, left = list(_actions(tool, server)), _MOST_FOR_TOOL
    for gap in _gaps(tool) if server.trust not in {"vendor", "community"} else ():
        points = min(left, gap.points)
        left -= points
        signals.append(Signal(points, gap.reason))
    return Assessment(tuple(signals), worst(_tool_floors(tool)))


def says_it_writes(tool: Offered) -> bool:
    """Return whether it says so by its name, its title or a hint."""
    # Anything but a clear yes denies it.
    denies_reading = _hint(tool, "readOnlyHint") is not None and not _only_reads(tool)
    return any(map(writes, _names(tool))) or denies_reading or _claimed(tool, "destructiveHint")


def _actions(tool: Offered, server: ServerFacts) -> Iterator[Signal]:
    yield Signal(1, UNPROVEN_READER if _only_reads(tool) else UNPROVEN)
    if _claimed(tool, "destructiveHint"):
        yield Signal(2, "The server says that it can destroy data.")
    if _claimed(tool, "openWorldHint"):
        yield Signal(1, "The server says that it interacts with the outside world.")
    if any(_does(name, _SENDING) for name in _names(tool)):
        yield Signal(1, "Its name says that it sends data to others.")
    if server.remote and any(_does(name, _ADMINISTERING) for name in _names(tool)):
        yield Signal(2, "Its name says that it manages rights or accounts on a remote server.")
    elif server.remote and says_it_writes(tool):
        yield Signal(1, "It changes things on a remote server.")
    if odd := next((key for key in HINTS if not isinstance(_hint(tool, key), bool | None)), None):
        yield Signal(1, f"Its hint {odd} is neither true nor false.")
    elif _only_reads(tool) and (_claimed(tool, "destructiveHint") or any(map(writes, _names(tool)))):
        yield Signal(1, "The server says that it only reads, but its name or another hint says otherwise.")


def _gaps(tool: Offered) -> Iterator[Signal]:
    length = len((tool.description or "").strip())
    if not length:
        yield Signal(2, "It has no description.")
    elif length < 20:
        yield Signal(1, f"Its description has only {length} characters.")
    properties = tool.input_schema.get("properties")
    arguments = list(properties.values()) if isinstance(properties, Mapping) else []
    bare = [each for each in arguments if not (isinstance(each, Mapping) and each.get("description"))]
    if 2 * len(bare) > len(arguments):
        yield Signal(1, f"{len(bare)} of its {len(arguments)} arguments have no description.")


def _tool_floors(tool: Offered) -> Iterator[Floor]:
    names = _names(tool)
    if verb := next(filter(None, map(irreversible, names)), None):
        yield Floor("irreversible-name", 5, f"Its name says that it does something that cannot be undone (“{verb}”).")
    if _claimed(tool, "destructiveHint"):
        yield Floor("destructive", 5, "The server says that it can destroy data.")
    text = " ".join([*names, tool.description or ""])[:_LONGEST_READ].lower()
    if match := _FOR_GOOD.search(text):
        yield Floor("says-irreversible", 5, f"It says that its effect is permanent (“{match[0]}”).")
    if word := next(filter(None, map(executes, names)), None):
        yield Floor("executes", 4, f"Its name says that it runs commands or code (“{word}”).")
    if not (tool.description or "").strip():
        yield Floor("undocumented", 4, "It does not say what it does.")


def _names(tool: Offered) -> list[str]:
    named = [tool.name, tool.title, (tool.annotations or {}).get("title")]
    return [name[:_LONGEST_READ] for name in named if isinstance(name, str)]


def _only_reads(tool: Offered) -> bool:
    return _hint(tool, "readOnlyHint") is True


def _claimed(tool: Offered, key: str) -> bool:
    """Return whether the tool claims this; anything but a clear no counts as a yes."""
    value = _hint(tool, key)
    return value is not None and value is not False


def _hint(tool: Offered, key: str) -> Any:
    return (tool.annotations or {}).get(key)


@dataclass(frozen=True)
class Composed:
    """The levels (1 to 5), the floor that set the inherent one, if one did, and the reasons in sentences."""

    inherent: int
    effective: int
    floor: Floor | None
    reasons: tuple[str, ...]


def compose(
    server: Assessment, tool: Assessment, *, gated: bool, poisoned: bool, stated: int | None = None
) -> Composed:
    """Return the risk of a tool on its server. `gated`: every call is asked about. `poisoned`: the scan trips.
    `stated`: the level according to somebody who knows the tool, whatever the rules say.
    """
    floor = server.floor or tool.floor
    inherent = max(server.level, tool.level, bucket(server.score + tool.score))
    reasons = [f"{whose}{reason}" for whose, each in ((OF_SERVER, server), (OF_TOOL, tool)) for reason in each.reasons]
    if stated is not None:
        reasons.insert(
            0, translatable(f"An administrator states this level; estimated from what follows it is L{inherent}.")
        )
        floor, inherent = None, stated
    level = effective(inherent, floored=floor is not None, gated=gated, poisoned=poisoned)
    if level < inherent:
        reasons.append(CREDIT)
    elif gated and poisoned:
        reasons.append(NO_CREDIT)
    return Composed(inherent, level, floor, tuple(reasons))


def effective(inherent: int, *, floored: bool, gated: bool, poisoned: bool) -> int:
    """Return the level with which calls are asked about: one lower where each of them is. `floored`: one fact
    by itself set the level, and asking does not change it. What a yes needs goes by `inherent`, whatever this is.
    """
    return inherent - 1 if gated and not (poisoned or floored) and inherent > LOWEST else inherent

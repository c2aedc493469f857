"""Risk of an upstream's tool, by what it says of itself and by its server. A hint can only raise the level."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hitlchat.upstreams.risk.offered import Offered
from hitlchat.upstreams.risk.server import LOWEST, Assessment, Floor, ServerFacts, Signal, bucket, worst

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

IRREVERSIBLE = {
    "delete", "drop", "purge", "wipe", "remove", "destroy", "erase", "truncate", "shred", "rm", "rmdir", "unlink",
}  # fmt: skip
_RUN_TOGETHER = ("delete", "purge", "wipe", "remove", "destroy", "erase", "truncate")
_OTHER_FORMS = {"d", "s", "r", "rs", "able", "ds"}
_FORCED = {("force", "push"), ("hard", "reset"), ("factory", "reset")}
# To drag and drop is a gesture.
_GESTURES = {("and", "drop"), ("drag", "drop")}
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


def words(name: str) -> list[str]:
    """`deleteHTTPFile` → delete, http, file."""
    return [word.lower() for word in _WORD.findall(name)]


def irreversible(name: str) -> str | None:
    """The verb by which it says that what it does can't be undone."""
    found = words(name)
    pairs = set(pairwise(found))
    if pairs & _FORCED:
        return "_".join(next(iter(pairs & _FORCED)))
    gestures = pairs & _GESTURES
    return next((word for word in found if _destroys(word) and not (word == "drop" and gestures)), None)


def _destroys(word: str) -> bool:
    if word in IRREVERSIBLE:
        return True
    return any(word.startswith(verb) and word[len(verb) :] not in _OTHER_FORMS for verb in _RUN_TOGETHER)


def executes(name: str) -> str | None:
    """The word by which it says that it runs commands or code."""
    found = words(name)
    if word := next((word for word in found if word in _EXECUTING), None):
        return word
    starts = not _STARTING.isdisjoint(found)
    return next((f"run {word}" for word in found if starts and word in _RUNNABLE), None)


def administers(name: str) -> bool:
    return _does(name, _ADMINISTERING)


def sends(name: str) -> bool:
    return _does(name, _SENDING)


def writes(name: str) -> bool:
    return irreversible(name) is not None or _does(name, _WRITING | _SENDING | _ADMINISTERING)


def _does(name: str, doing: set[str]) -> bool:
    """Return whether it acts: not if it begins with a verb of reading, at most after a server's name: `get_post`."""
    found = words(name)
    only_reads = not _READING.isdisjoint(found[:2]) and "and" not in found
    return not only_reads and not doing.isdisjoint(found)


HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
SHORT_DESCRIPTION = 20
_MOST_FOR_DOCUMENTATION = 3
_LONGEST_READ = 20_000
_FOR_GOOD = re.compile(
    r"\b(?:irreversibl[ey]|permanently|(?:cannot|can't|can\s+not)\s+be\s+(?:undone|reversed|recovered))\b"
)


def assess_tool(tool: Offered, server: ServerFacts, *, vouched_read_only: bool = False) -> Assessment:
    """`vouched_read_only`: a person, or the gallery, says that the tool changes nothing; never the upstream."""
    signals = (*_actions(tool, server, vouched_read_only), *_documentation(tool, server))
    return Assessment(signals, worst(*_floors(tool)))


def says_it_writes(tool: Offered) -> bool:
    """Return whether it says so by its name, its title or a hint."""
    return any(map(writes, _names(tool))) or _denied(tool, "readOnlyHint") or _claimed(tool, "destructiveHint")


def _actions(tool: Offered, server: ServerFacts, vouched_read_only: bool) -> Iterator[Signal]:
    if not vouched_read_only:
        said = " It says that it only reads, but that is the server's own word." if _only_reads(tool) else ""
        yield Signal(1, f"Nobody but the server could say that it changes nothing.{said}")
    if _claimed(tool, "destructiveHint"):
        yield Signal(2, "The server says that it can destroy what is there.")
    if _claimed(tool, "openWorldHint"):
        yield Signal(1, "The server says that it reaches out to an open world.")
    if any(map(sends, _names(tool))):
        yield Signal(1, "By its name it sends data to others.")
    if server.remote and any(map(administers, _names(tool))):
        yield Signal(2, "By its name it manages rights or accounts on a remote server.")
    elif server.remote and says_it_writes(tool):
        yield Signal(1, "It changes things on a remote server.")
    if contradiction := _contradiction(tool):
        yield Signal(1, contradiction)


def _contradiction(tool: Offered) -> str | None:
    hints = tool.annotations or {}
    odd = next((key for key in HINTS if not isinstance(hints.get(key), bool | None)), None)
    if odd is not None:
        return f"Its hint {odd} is neither true nor false."
    if _only_reads(tool) and (_claimed(tool, "destructiveHint") or any(map(writes, _names(tool)))):
        return "The server says that it only reads, but its name or another hint says otherwise."
    return None


def _documentation(tool: Offered, server: ServerFacts) -> Iterator[Signal]:
    if server.trust in {"vendor", "community"}:
        return
    left = _MOST_FOR_DOCUMENTATION
    for signal in _gaps(tool):
        points = min(left, signal.points)
        left -= points
        yield Signal(points, signal.reason)


def _gaps(tool: Offered) -> Iterator[Signal]:
    length = len((tool.description or "").strip())
    if not length:
        yield Signal(2, "It has no description.")
    elif length < SHORT_DESCRIPTION:
        yield Signal(1, f"Its description has only {length} characters.")
    properties = tool.input_schema.get("properties")
    arguments = list(properties.values()) if isinstance(properties, Mapping) else []
    bare = [each for each in arguments if not (isinstance(each, Mapping) and each.get("description"))]
    if 2 * len(bare) > len(arguments):
        yield Signal(1, f"{len(bare)} of its {len(arguments)} arguments have no description.")


def _floors(tool: Offered) -> Iterator[Floor]:
    names = _names(tool)
    if verb := next(filter(None, map(irreversible, names)), None):
        yield Floor("irreversible-name", 5, f"By its name it does what cannot be undone (“{verb}”).")
    if _claimed(tool, "destructiveHint"):
        yield Floor("destructive", 5, "The server says that it can destroy what is there.")
    text = " ".join([*names, tool.description or ""])[:_LONGEST_READ].lower()
    if match := _FOR_GOOD.search(text):
        yield Floor("says-irreversible", 5, f"It says that what it does is for good (“{match[0]}”).")
    if word := next(filter(None, map(executes, names)), None):
        yield Floor("executes", 4, f"By its name it runs commands or code (“{word}”).")
    if not (tool.description or "").strip():
        yield Floor("undocumented", 4, "It does not say what it does.")


def _names(tool: Offered) -> list[str]:
    named = [tool.name, tool.title, (tool.annotations or {}).get("title")]
    return [name[:_LONGEST_READ] for name in named if isinstance(name, str)]


def _only_reads(tool: Offered) -> bool:
    return _hint(tool, "readOnlyHint") is True


def _denied(tool: Offered, key: str) -> bool:
    value = _hint(tool, key)
    return value is not None and value is not True


def _claimed(tool: Offered, key: str) -> bool:
    """Return whether the tool claims this; anything but a clear no counts as a yes."""
    value = _hint(tool, key)
    return value is not None and value is not False


def _hint(tool: Offered, key: str) -> Any:
    return (tool.annotations or {}).get(key)


CREDIT = "Every call needs approval: one level lower."


@dataclass(frozen=True)
class Composed:
    """The levels (1 to 5), the floor that set the inherent one, if one did, and the reasons in sentences."""

    inherent: int
    effective: int
    floor: Floor | None
    reasons: tuple[str, ...]

    def within(self, ceiling: int) -> bool:
        """Return whether a tool of this risk may be offered where `ceiling` is the highest level allowed."""
        return self.inherent <= ceiling


def compose(server: Assessment, tool: Assessment, *, gated: bool, poisoned: bool) -> Composed:
    """`gated`: every call is asked about. `poisoned`: the scan trips."""
    floor = server.floor or tool.floor
    inherent = max(server.level, tool.level, bucket(server.score + tool.score))
    level = effective(inherent, floored=floor is not None, gated=gated, poisoned=poisoned)
    return Composed(
        inherent=inherent,
        effective=level,
        floor=floor,
        reasons=(*_told("Server: ", server), *_told("Tool: ", tool), *_credit(gated, poisoned, level < inherent)),
    )


def effective(inherent: int, *, floored: bool, gated: bool, poisoned: bool) -> int:
    """The level with which calls are asked about: one lower than the inherent one where each of them is.

    `floored`: something that the tool does set the level. Then there is no credit, which would make a yes easier to
    click; it is for tools of which only too little is known.
    """
    return inherent - 1 if gated and not (poisoned or floored) and inherent > LOWEST else inherent


def _told(whose: str, assessment: Assessment) -> tuple[str, ...]:
    return tuple(f"{whose}{reason}" for reason in assessment.reasons)


def _credit(gated: bool, poisoned: bool, credited: bool) -> tuple[str, ...]:
    if credited:
        return (CREDIT,)
    if gated and poisoned:
        return ("Every call needs approval, but its texts are suspicious: not lower for that.",)
    return ()

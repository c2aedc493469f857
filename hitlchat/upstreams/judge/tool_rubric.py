"""How risky an upstream's tool is, by what it says of itself. A hint of the upstream can only raise the level.

| what | points |
|---|---|
| not known to only read | 1, unless a person vouched for it* |
| hint: destructive | 2 |
| hint: reaches an open world | 1 |
| writes, on a remote server | 1 |
| administers, on a remote server | 2 |
| sends data | 1 |
| hints that contradict each other or the name, or are no hints | 1* |
| documentation, at most 3 | no description 2, fewer than 20 characters 1*; most arguments without a description 1* |

The points for documentation are waived for servers of the gallery. Floors: `irreversible-name` L5 (a verb such as
delete, drop, purge, wipe, remove, force_push), `destructive` L5 (the hint), `says-irreversible` L5* (title or
description), `executes` L4* (runs commands or code), `undocumented` L4 (no description).

Where this differs from the table it comes from (the entries with *, and these): hints are claims of the upstream, so
`readOnlyHint: true` takes no point away, `idempotentHint: true` neither takes one away nor keeps a destructive tool
from its floor, and hints don't keep a tool without a description from `undocumented`. Verbs are looked for in every
word of the name and the title, not only as a prefix in snake_case.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hitlchat.upstreams.judge import verbs
from hitlchat.upstreams.judge.grade import Assessment, Floor, Signal, worst
from hitlchat.upstreams.judge.offered import Offered
from hitlchat.upstreams.judge.server_rubric import ServerFacts

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
    """By its name, its title or a hint."""
    return any(map(verbs.writes, _names(tool))) or _denied(tool, "readOnlyHint") or _claimed(tool, "destructiveHint")


def _actions(tool: Offered, server: ServerFacts, vouched_read_only: bool) -> Iterator[Signal]:
    if not vouched_read_only:
        said = " It says that it only reads, but that is the server's own word." if _only_reads(tool) else ""
        yield Signal(1, f"Nobody but the server could say that it changes nothing.{said}")
    if _claimed(tool, "destructiveHint"):
        yield Signal(2, "The server says that it can destroy what is there.")
    if _claimed(tool, "openWorldHint"):
        yield Signal(1, "The server says that it reaches out to an open world.")
    if any(map(verbs.sends, _names(tool))):
        yield Signal(1, "By its name it sends data to others.")
    if server.remote and any(map(verbs.administers, _names(tool))):
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
    if _only_reads(tool) and (_claimed(tool, "destructiveHint") or any(map(verbs.writes, _names(tool)))):
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
    if verb := next(filter(None, map(verbs.irreversible, names)), None):
        yield Floor("irreversible-name", 5, f"By its name it does what cannot be undone (“{verb}”).")
    if _claimed(tool, "destructiveHint"):
        yield Floor("destructive", 5, "The server says that it can destroy what is there.")
    text = " ".join([*names, tool.description or ""])[:_LONGEST_READ].lower()
    if match := _FOR_GOOD.search(text):
        yield Floor("says-irreversible", 5, f"It says that what it does is for good (“{match[0]}”).")
    if word := next(filter(None, map(verbs.executes, names)), None):
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
    """What is no clear no counts as a yes."""
    value = _hint(tool, key)
    return value is not None and value is not False


def _hint(tool: Offered, key: str) -> Any:
    return (tool.annotations or {}).get(key)

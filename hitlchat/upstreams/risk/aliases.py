"""The names under which upstream tools are offered, kept from being taken for others; and where a text names a tool.

Three rules hold for what is offered. R1: no two tools have the same name, nor names that a person could mistake for
each other, and none has a name that is ours. R2: no description sends the model to another tool on offer. R3: no
description speaks for another server.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from hitlchat.base.lookalikes import RESERVED, mistakable, shape
from hitlchat.base.sentences import translatable

_TOKEN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_NAME_LIKE = re.compile(r"[A-Za-z0-9][_.-][A-Za-z0-9]|[a-z][A-Z]|[A-Za-z][0-9]")
_QUOTES = {*"\"'`\u201c\u201d\u2018\u2019"}
_KINDS = {"tool", "tools", "function", "server", "servers", "mcp", "connector"}
_ORDER = re.compile(
    r"\b(?:call|use|using|invoke|run|execute|prefer|trigger|calling|invoking|pass\s+\w+\s+to|send\s+\w+\s+to"
    r"|instead\s+of|before|after|then)\b[^.!?\n]{0,40}\Z",
    re.IGNORECASE,
)
_LOOK_BACK = 60
LONGEST = 64
_FORM = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST}}}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")

Offer = tuple[str, str]
"""The names of a server and of one of its tools."""


@dataclass(frozen=True)
class Mention:
    """`name` as known; `ordered`: the text around it tells the reader to use it, or when."""

    name: str
    start: int
    end: int
    ordered: bool


def mentions(text: str, names: frozenset[str], own: str = "") -> Iterator[Mention]:
    """Yield where `text` names one of `names` but `own`, in any case, with `_`, `-` and `.` alike. A plain word
    (`search`, `time`) counts only in quotes, or before “tool”, “server” and the like.
    """
    index_of_names = _index(names)
    if not index_of_names:
        return
    tokens = list(_TOKEN.finditer(text))
    for index, token in enumerate(tokens):
        name, start, end = index_of_names.get(_key(token[0])), token.start(), token.end()
        if name is None or name == own:
            continue
        is_quoted = text[start - 1 : start] in _QUOTES and text[end : end + 1] in _QUOTES
        following = tokens[index + 1][0].lower() if index + 1 < len(tokens) else ""
        if _NAME_LIKE.search(name) or is_quoted or following in _KINDS:
            is_ordered = bool(_ORDER.search(text[max(0, start - _LOOK_BACK) : start]))
            yield Mention(name, start, end, is_ordered)


@lru_cache(maxsize=16)
def _index(names: frozenset[str]) -> dict[str, str]:
    """Return an index of names, cached since thousands of texts are searched for the same names."""
    return {_key(name): name for name in names if len(name) >= 3}


def _key(name: str) -> str:
    return name.replace("-", "_").replace(".", "_").lower()


def normal(server: str, tool: str) -> str:
    """Return `<server>_<tool>`, with what no name may have as `_`; shortened or empty, it ends in digits of a hash."""
    cleaned = [_NOT_IN_NAMES.sub("_", part).strip("_") for part in (server, tool)]
    name = "_".join(part for part in cleaned if part)
    if all(cleaned) and len(name) <= LONGEST:
        return name
    return _ending(name or "tool", _digest(server, tool))


def assign(offers: Iterable[Offer], in_use: Collection[str]) -> dict[Offer, str]:
    """Return an alias for each offer, like no other and none of `in_use`: with `_2`, `_3`, … in alphabetical order."""
    given: dict[Offer, str] = {}
    shapes = {shape(name) for name in (*in_use, *RESERVED)}
    for offer in sorted(set(offers)):
        given[offer] = next(name for name in _candidates(offer) if shape(name) not in shapes)
        shapes.add(shape(given[offer]))
    return given


def objection(alias: str, in_use: Collection[str]) -> str:
    """Return why an administrator cannot choose this alias, empty if they can. `in_use`: names of all other tools"""
    if not _FORM.fullmatch(alias):
        return translatable(f"Expected 1 to {LONGEST} letters (a to z), digits, “_” and “-”.")
    return mistakable(alias, in_use)


def speaking(description: str, tools: frozenset[str], servers: frozenset[str]) -> Iterator[str]:
    """R2 and R3. `tools` are the names of the tools on offer, `servers` those of the servers, both without its own."""
    if name := next((each.name for each in mentions(description, tools) if each.ordered), None):
        yield translatable(f"The description tells the model about using “{name}”, a tool from elsewhere.")
    if found := next(mentions(description, servers), None):
        yield translatable(f"The description speaks of “{found.name}”, another server.")


def _candidates(offer: Offer) -> Iterator[str]:
    name = normal(*offer)
    yield name
    for number in range(2, 100):
        yield _ending(name, str(number))
    # A server may have thousands of names that differ in nothing that can stay: counting would take for ever.
    for salt in count():
        yield _ending(name, _digest(*offer, str(salt)))


def _ending(name: str, end: str) -> str:
    return f"{name[: LONGEST - len(end) - 1].rstrip('_-')}_{end}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]

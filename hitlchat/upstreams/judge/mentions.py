"""Where a text names a tool or a server by its own name, and not merely by a word of the language."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_NAME_LIKE = re.compile(r"[A-Za-z0-9][_.-][A-Za-z0-9]|[a-z][A-Z]|[A-Za-z][0-9]")
_QUOTES = "\"'`\u201c\u201d\u2018\u2019"
_KINDS = {"tool", "tools", "function", "server", "servers", "mcp", "connector"}
_ORDER = re.compile(
    r"\b(?:call|use|using|invoke|run|execute|prefer|trigger|calling|invoking|pass\s+\w+\s+to|send\s+\w+\s+to"
    r"|instead\s+of|before|after|then)\b[^.!?\n]{0,40}\Z",
    re.IGNORECASE,
)
_LOOK_BACK = 60
SHORTEST = 3


@dataclass(frozen=True)
class Mention:
    """`name` as known; `ordered`: the text around it tells the reader to use it, or when."""

    name: str
    start: int
    end: int
    ordered: bool


def mentions(text: str, names: frozenset[str], own: str = "") -> Iterator[Mention]:
    """Where `text` names one of `names`, other than `own`.

    Names are compared without regard to case and to `_`, `-` and `.`. A name that could be a plain word (`search`,
    `time`) counts only in quotes, or before “tool”, “server” and the like.
    """
    known = _index(names)
    if not known:
        return
    tokens = list(_TOKEN.finditer(text))
    for index, token in enumerate(tokens):
        name = known.get(_key(token[0]))
        if name is not None and name != own and (_NAME_LIKE.search(name) or _set_off(text, tokens, index)):
            before = text[max(0, token.start() - _LOOK_BACK) : token.start()]
            yield Mention(name, token.start(), token.end(), bool(_ORDER.search(before)))


def _set_off(text: str, tokens: list[re.Match[str]], index: int) -> bool:
    token = tokens[index]
    quoted = text[token.start() - 1 : token.start()] in [*_QUOTES] and text[token.end() : token.end() + 1] in [*_QUOTES]
    following = tokens[index + 1][0].lower() if index + 1 < len(tokens) else ""
    return quoted or following in _KINDS


@lru_cache(maxsize=16)
def _index(names: frozenset[str]) -> dict[str, str]:
    """Kept, since the same thousands of names are looked for in thousands of texts."""
    return {_key(name): name for name in names if len(name) >= SHORTEST}


def _key(name: str) -> str:
    return name.replace("-", "_").replace(".", "_").lower()

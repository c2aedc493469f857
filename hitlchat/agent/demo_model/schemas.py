"""The tools of a request and their schemas, as the demo model sees them."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from hitlchat.agent.demo_model.language import FILLERS, canonical, parts, tokens

MONEY = frozenset(map(canonical, ("amount", "price", "total", "sum", "cost", "fee", "budget", "money", "refund")))
# Words that say nothing about which number or text is meant.
_GENERIC = frozenset(map(canonical, ("id", "number", "no", "nr", "name", "value", "code", "key", "the", "of", "ref")))
_LABELS = frozenset(
    map(canonical, ("id", "number", "no", "nr", "code", "key", "ref", "reference", "sku", "order", "invoice", "ticket"))
)
_RATES = frozenset(map(canonical, ("rate", "percent", "percentage", "interest", "share")))
_ALSO = {
    "start": "from since after begin",
    "end": "to until till before",
    "from": "from since start",
    "to": "to until till into",
    "amount": "price total sum",
    "count": "times top first last",
    "limit": "top first most",
    "day": "days",
}
_TRUE = frozenset({"true", "yes", "on", "y", "1"})
_FALSE = frozenset({"false", "no", "off", "n", "0"})
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# The one pattern that is read: a code of so many letters. Others could be made to keep this process busy.
_LETTERS = re.compile(r"\^\[A-Za-z\]\{(\d{1,4})(?:,(\d{1,4}))?\}\$")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

MOST_PARAMETERS = 40  # parameters of a tool, and values of a parameter, that are looked at
MISFIT: Final = object()


@dataclass(frozen=True)
class Param:
    """One parameter of a tool."""

    name: str
    types: frozenset[str]
    enum: tuple[Any, ...]
    form: str
    description: str
    required: bool
    schema: dict[str, Any]

    @property
    def own_words(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(canonical(part) for part in parts(self.name))

    @property
    def words(self) -> frozenset[str]:
        """The words that a value of this parameter may stand next to."""
        telling = self.own_words - _GENERIC or self.own_words
        return frozenset(telling | {canonical(other) for word in telling for other in _ALSO.get(word, "").split()})

    @property
    def is_number(self) -> bool:
        return bool(self.types & {"integer", "number"}) or self.form == "decimal"

    @property
    def is_money(self) -> bool:
        return self.form == "decimal" or bool(self.own_words & MONEY)

    @property
    def is_label(self) -> bool:
        """Whether a text of digits would be a usual value, as for an order number."""
        return bool(self.own_words & _LABELS)

    @property
    def is_rate(self) -> bool:
        return bool(self.own_words & _RATES)

    @property
    def is_text(self) -> bool:
        return not self.enum and self.form != "decimal" and ("string" in self.types or not self.types)


def params(schema: dict[str, Any]) -> list[Param]:
    """The parameters of a tool's input schema, in its order."""
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    return [
        _param(str(name), _resolved(raw, schema), name in names)
        for name, raw in islice(properties.items(), MOST_PARAMETERS)
    ]


def item(param: Param) -> Param:
    """What the elements of an array are."""
    return _param(param.name, _resolved(param.schema.get("items", {}), {}), required=False)


def _param(name: str, schema: dict[str, Any], required: bool) -> Param:
    branches = list(_branches(schema))
    enum = [value for branch in branches for value in _choices(branch)]
    return Param(
        name=name,
        types=frozenset(kind for branch in branches for kind in _types(branch)),
        enum=tuple(enum[:MOST_PARAMETERS]),
        form=next((str(branch["format"]) for branch in branches if "format" in branch), ""),
        description=str(schema.get("description") or ""),
        required=required,
        schema=next((branch for branch in branches if "items" in branch), schema),
    )


def _branches(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    nested = schema.get("anyOf") or schema.get("oneOf")
    yield from (branch for branch in nested if isinstance(branch, dict)) if isinstance(nested, list) else [schema]


def _choices(branch: dict[str, Any]) -> list[Any]:
    if "const" in branch:
        return [branch["const"]]
    return branch["enum"] if isinstance(branch.get("enum"), list) else []


def _types(branch: dict[str, Any]) -> list[str]:
    kind = branch.get("type", [])
    return [kind] if isinstance(kind, str) else [each for each in kind if isinstance(each, str)]


def _resolved(raw: Any, root: dict[str, Any]) -> dict[str, Any]:
    """`raw`, or what it refers to inside `root`; one step is all that is followed."""
    if not isinstance(raw, dict):
        return {}
    node: Any = root
    reference = raw.get("$ref")
    if not isinstance(reference, str):
        return raw
    for key in reference.removeprefix("#/").split("/"):
        node = node.get(key) if isinstance(node, dict) else None
    return {**node, **raw} if isinstance(node, dict) else raw


def fit(param: Param, text: str) -> Any:
    """`text` as a value of `param`, or MISFIT."""
    text = text.strip()
    value = _read(param, text)
    return MISFIT if value is MISFIT or not _within(param.schema, value) else value


def _within(schema: dict[str, Any], value: Any) -> bool:
    """Whether the limits of `schema` that are easy to check allow `value`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        too_low = isinstance(low, int | float) and value < low
        return not (too_low or (isinstance(high, int | float) and value > high))
    letters = _LETTERS.fullmatch(str(schema.get("pattern") or ""))
    if isinstance(value, str) and letters:
        most = int(letters[2] or letters[1])
        return int(letters[1]) <= len(value) <= most and value.isascii() and value.isalpha()
    return True


def _read(param: Param, text: str) -> Any:
    if param.enum:
        return next((value for value in param.enum if str(value).lower() == text.lower()), MISFIT)
    for kind in ("integer", "number", "boolean", "array", "object"):
        if kind in param.types and (value := _READERS[kind](text)) is not MISFIT:
            return value
    if "string" in param.types or not param.types:
        return _text(param.form, text)
    return MISFIT


def _text(form: str, text: str) -> Any:
    if form == "decimal":
        return text if _NUMBER.fullmatch(text) else MISFIT
    if form == "date-time" and _DAY.fullmatch(text):
        return f"{text}T00:00:00Z"
    if form == "date" and not _DAY.fullmatch(text):
        return MISFIT
    return text or MISFIT


def _integer(text: str) -> Any:
    return int(text) if _NUMBER.fullmatch(text) and "." not in text else MISFIT


def _number(text: str) -> Any:
    if not _NUMBER.fullmatch(text):
        return MISFIT
    value = float(text) if "." in text else int(text)
    return MISFIT if value in {math.inf, -math.inf} else value


def _boolean(text: str) -> Any:
    word = text.lower()
    return word in _TRUE if word in _TRUE | _FALSE else MISFIT


def _json(kind: type) -> Any:
    def read(text: str) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return MISFIT
        return value if isinstance(value, kind) else MISFIT

    return read


_READERS = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _json(list),
    "object": _json(dict),
}


MOST_TOOLS = 500
LONGEST_DESCRIPTION = 1_000


@dataclass(frozen=True)
class Tool:
    """One tool that may be called."""

    name: str
    description: str
    schema: dict[str, Any]

    @property
    def params(self) -> list[Param]:
        return params(self.schema)

    @property
    def title(self) -> str:
        """The first line of the description."""
        return self.description.strip().partition("\n")[0].strip()

    @property
    def squashed(self) -> str:
        return "".join(parts(self.name))

    @property
    def vocabulary(self) -> frozenset[str]:
        """All words that it tells of itself, of its parameters and of their fixed values."""
        texts = [self.description, *(param.description for param in self.params), *_fixed(self)]
        names = [part for name in (self.name, *(param.name for param in self.params)) for part in parts(name)]
        said = (token.text for text in texts for token in tokens(text))
        aliases = frozenset[str]().union(*(param.words for param in self.params))
        return frozenset(map(canonical, [*names, *said])) | aliases


def _fixed(tool: Tool) -> list[str]:
    return [str(value) for param in tool.params for value in param.enum]


def offered(request: dict[str, Any]) -> list[Tool]:
    """The tools of `request`; none if it forbids calls."""
    raw = request.get("tools")
    if request.get("tool_choice") == "none" or not isinstance(raw, list):
        return []
    functions = [
        entry["function"]
        for entry in raw[:MOST_TOOLS]
        if isinstance(entry, dict) and isinstance(entry.get("function"), dict)
    ]
    return [
        Tool(
            str(function["name"]),
            str(function.get("description") or "")[:LONGEST_DESCRIPTION],
            _schema(function.get("parameters")),
        )
        for function in functions
        if function.get("name")
    ]


def _schema(raw: Any) -> dict[str, Any]:
    return raw if isinstance(raw, dict) else {}


class Index:
    """How much each word says about which tool is meant: the fewer tools have it, the more."""

    def __init__(self, tools: list[Tool]) -> None:
        self.tools = tools
        self._names = {tool.name: _telling(parts(tool.name)) for tool in tools}
        self._titles = {tool.name: _telling(token.text for token in tokens(tool.title)) for tool in tools}
        self._asides = {tool.name: self._told_aside(tool) for tool in tools}
        self.name_words = frozenset[str]().union(*self._names.values())
        self._in_names = Counter(word for words in self._names.values() for word in words)
        self._in_titles = Counter(word for words in self._titles.values() for word in words)
        self._in_asides = Counter(word for words in self._asides.values() for word in words)

    def by_name(self, tool: Tool, said: list[str]) -> float:
        """How strongly the words `said` name `tool`; 1 and above is a match."""
        own = self._names[tool.name]
        heard = own & {canonical(word) for word in said}
        exact = set(parts(tool.name)) & {word.lower() for word in said} - FILLERS
        rarity = sum(2 / self._in_names[word] for word in heard)
        # rounded, because a sum of fractions depends on their order, and a set has another one in every process
        return round(rarity + len(heard) / (2 * len(own)) + len(exact) / 4, 6) if heard else 0

    def by_title(self, tool: Tool, said: list[str]) -> float:
        """How strongly they hint at its description."""
        heard = self._titles[tool.name] & {canonical(word) for word in said}
        aside = self._asides[tool.name] & {canonical(word) for word in said}
        hints = [0.6 / self._in_titles[word] for word in heard] + [0.6 / self._in_asides[word] for word in aside]
        return round(min(1.2, math.fsum(hints)), 6)

    def share(self, tool: Tool, said: list[str]) -> float:
        """How much of its name `said` has, from 0 to 1."""
        own = self._names[tool.name]
        return len(own & {canonical(word) for word in said}) / len(own) if own else 0

    def _told_aside(self, tool: Tool) -> frozenset[str]:
        """The words of its fixed values and, as of tags, of the lines below its title."""
        below = tool.description.strip().partition("\n")[2]
        said = (token.text for text in (below, *_fixed(tool)) for token in tokens(text))
        return _telling(said) - self._titles[tool.name]


def _telling(words: Any) -> frozenset[str]:
    return frozenset(canonical(word) for word in words if word.lower() not in FILLERS and len(word) > 1)

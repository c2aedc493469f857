"""Which tools a sentence asks for, with which arguments."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

from .arguments import fill
from .facts import find
from .history import Answer
from .shapes import MISFIT, Param, fit
from .tools import Index, Tool
from .words import calm, is_filler, meant, parts

MOST_CALLS, MOST_PIECES = 20, 60
CLEAR, ENOUGH, STARTS_CLAUSE, CLOSE = 1.0, 0.6, 1.5, 0.05

_HIDDEN = re.compile(
    r"""
    (?<![\w-])[\w-]+=(?:"[^"]*"|\[[^\]]*\]|\S*)  # name=value
  | (?<![\w-])[\w-]+:(?=[\s\d])                 # name:
  | "[^"]*" | “[^”]*” | `[^`\s]*\s[^`]*` | (?<!\w)'[^']*'(?!\w)
  | \{ | \bbecause\b.*
    """,
    re.DOTALL | re.VERBOSE,
)
# For texts that are `calm`: white space comes one at a time, and no part can be matched in two ways.
_BREAK = re.compile(r"\s?[;\n]\s?|\s?[,.]?\s(?:and\s(?:then|also)|then|and|plus)\s|\s?[,.]\s", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:don['\u2019]?t|do\snot|never)\b", re.IGNORECASE)
_HOW_MANY = re.compile(
    r"\bhow (?:many|much) ([^\W\d]+) (?:are (?:there )?in|is in|are|is|in|make) (-?\d[\d.,]*) ?([^\W\d]+)",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"(?<!\w)(?:and|then|also|plus)$", re.IGNORECASE)
_STATE = re.compile(r"\b(?:which|what)\b.*\bare (?:(?:still|not|yet|already) )*([a-z]+)[?.!]?\s?$", re.IGNORECASE)
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True)
class Call:
    """One call to make, or to ask about: `missing` are the required arguments that nobody gave."""

    tool: Tool
    arguments: dict[str, Any]
    missing: list[Param]
    rivals: tuple[Tool, ...] = ()  # that may be meant just as well


def calls(text: str, tools: list[Tool], answers: Sequence[Answer] = ()) -> list[Call]:
    """The calls that `text` asks for, in its order, completed from `answers`.

    None if it names no tool or says not to.
    """
    text = _HOW_MANY.sub(r"convert \2 \3 to \1", calm(text))
    index = Index(tools)
    found: list[Call] = []
    for clause in clauses(text, index)[:MOST_CALLS]:
        if not _NEGATED.search(hidden(clause)) and (call := _call(clause, index)):
            call = _unclear(call, clause)
            for answer in answers:
                call = _completed(call, clause, answer)
            found += _each(_inherit(call, found), clause)
    return found[:MOST_CALLS]


def clauses(text: str, index: Index) -> list[str]:
    """`text` cut where a new call begins; what comes before the first one belongs to it."""
    masked = hidden(text)
    breaks = list(islice(_BREAK.finditer(masked), MOST_PIECES))
    starts, ends = [match.end() for match in breaks], [match.start() for match in breaks]
    bounds = list(zip([0, *starts], [*ends, len(text)], strict=True))
    beginnings = [start for start, end in bounds if _begins(masked[start:end], index)]
    cuts = [0, *beginnings[1:], len(text)]
    return [_trimmed(text[start:end]) for start, end in pairwise(cuts)]


def begins(text: str, tools: list[Tool]) -> bool:
    """Whether `text` clearly names a tool."""
    return _begins(hidden(calm(text)), Index(tools))


def _trimmed(clause: str) -> str:
    """Without the conjunction that led to the next clause."""
    clause = clause.rstrip(" ,;\n")
    while match := _CONJUNCTION.search(clause[-MOST_PIECES:]):
        clause = clause[: len(clause) - len(match[0])].rstrip(" ,;\n")
    return clause


def _begins(masked: str, index: Index) -> bool:
    said = meant(masked)
    return bool(named(masked, index.tools)) or any(index.by_name(tool, said) >= STARTS_CLAUSE for tool in index.tools)


def named(text: str, tools: list[Tool]) -> Tool | None:
    """The tool whose whole name stands in `text`, in any spelling of its words; the first, and the longest there."""
    squashed = {tool.squashed: tool for tool in tools if len(parts(tool.name)) > 1}
    exact = {tool.name: tool for tool in tools}
    for match in _WORD.finditer(text):
        tool = exact.get(match[0]) or squashed.get("".join(parts(match[0])))
        if tool:
            return tool
    return None


def hidden(text: str) -> str:
    """`text` with the same length, but nothing in quotes, in JSON, or behind `because`."""
    last, end, shown = text.rfind("}"), 0, ""
    while match := _HIDDEN.search(text, end):
        shown += text[end : match.start()]
        end = max(match.end(), last + 1) if match[0] == "{" else match.end()
        shown += "·" * (end - match.start())
    return shown + text[end:]


def _call(clause: str, index: Index) -> Call | None:
    masked = hidden(clause)
    tool = named(masked, index.tools)
    if tool:
        return Call(tool, *fill(tool.name, tool.schema, clause.replace(tool.name, " " * len(tool.name), 1), named=True))
    said = meant(masked)
    ranked = [
        (_rank(call, index, said, clause), -number, call)
        for number, tool in enumerate(index.tools)
        if index.by_name(tool, said) or index.by_title(tool, said)
        for call in [Call(tool, *fill(tool.name, tool.schema, clause, named=False))]
    ]
    accepted = [entry for entry in ranked if index.by_name(entry[2].tool, said) >= CLEAR or entry[0] >= ENOUGH]
    if not accepted:
        return None
    best, _, call = max(accepted, key=lambda entry: entry[:2])
    rivals = tuple(other.tool for rank, _, other in accepted if other is not call and best - rank < CLOSE)
    return replace(call, rivals=rivals)


def _denies(clause: str, value: object) -> bool:
    pattern = rf"(?<!\w)(?:un|non-?|not |not yet ){re.escape(str(value))}(?!\w)"
    return bool(value) and bool(re.search(pattern, clause, re.IGNORECASE))


def _unclear(call: Call, clause: str) -> Call:
    """`unpaid`, `not paid` and `late` are none of the fixed values: ask, instead of leaving them out without a word."""
    state = _STATE.search(clause)
    for param in call.tool.params:
        denied = any(_denies(clause, value) for value in param.enum)
        left_out = param.name not in call.arguments and state and not is_filler(state[1])
        if param.enum and (denied or left_out) and param not in call.missing:
            arguments = {name: value for name, value in call.arguments.items() if name != param.name}
            return replace(call, arguments=arguments, missing=[*call.missing, param])
    return call


def _rank(call: Call, index: Index, said: list[str], clause: str) -> float:
    """A tool that could be called right away is more likely meant."""
    paid = any(fact.kind == "money" for fact in find(clause))
    fits = paid and any(param.is_money and param.name in call.arguments for param in call.tool.params)
    return index.by_name(call.tool, said) + index.by_title(call.tool, said) - bool(call.missing) + fits / 2


def _completed(call: Call, clause: str, answer: Answer) -> Call:
    """`call` with what the answer gives of the arguments that are missing."""
    said = answer.said.strip().rstrip(".")
    read, _ = fill(call.tool.name, call.tool.schema, f"{clause}, {said}", named=False)
    values = {}
    for param in call.missing:
        whole = fit(param, said) if answer.asked == (param.name,) else MISFIT
        prefer_whole = param.is_text and not param.is_label
        found = whole if prefer_whole and whole is not MISFIT else read.get(param.name, whole)
        if found is not MISFIT:
            values[param.name] = found
    rest = [param for param in call.missing if param.name not in values]
    return replace(call, arguments={**call.arguments, **values}, missing=rest)


def _each(call: Call, clause: str) -> list[Call]:
    """One call for each number of a row: `cancel orders 4712 and 4713` are two."""
    for param in call.tool.params:
        value = str(call.arguments.get(param.name, ""))
        row = re.search(rf"(?<!\w){re.escape(value)}((?:\s?(?:,(?:\sand)?|and|&)\s?#?\d+(?![\w.,]*\d))+)", clause)
        if param.is_label and value.isdigit() and row:
            others = [fit(param, other) for other in re.findall(r"\d+", row[1])]
            return [call, *(replace(call, arguments={**call.arguments, param.name: other}) for other in others)]
    return [call]


def _inherit(call: Call, earlier: list[Call]) -> Call:
    """`get order 4711 and refund 10 EUR` means the same order: take what is missing from the calls before."""
    known = {name: value for other in earlier for name, value in other.arguments.items()}
    taken = {param.name: known[param.name] for param in call.missing if param.name in known}
    rest = [param for param in call.missing if param.name not in taken]
    return replace(call, arguments={**call.arguments, **taken}, missing=rest)

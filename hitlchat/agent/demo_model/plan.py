"""Which tools a sentence asks for, with which arguments."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

from hitlchat.agent.demo_model.arguments import CURRENCY, fill, leaves_out
from hitlchat.agent.demo_model.draft import Draft
from hitlchat.agent.demo_model.language import calm, find, is_filler, meant, parts
from hitlchat.agent.demo_model.schemas import MISFIT, Index, Param, Tool, fit
from hitlchat.agent.demo_model.wire import Answer

MOST_CALLS, MOST_PIECES, MOST_OFFERED = 20, 60, 4
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
_FIRM = re.compile(r"[;\n]|\bthen\b|\balso\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:don['\u2019]?t|do\snot|never)\b", re.IGNORECASE)
_CONJUNCTION = re.compile(r"(?<!\w)(?:and|then|also|plus)$", re.IGNORECASE)
_STATE = re.compile(r"\b(?:which|what)\b.*\bare (?:(?:still|not|yet|already) )*([a-z]+)[?.!]?\s?$", re.IGNORECASE)
_OTHER_DAY = re.compile(r"\b(?:tomorrow|yesterday)\b", re.IGNORECASE)
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True)
class Call:
    """One call to make, or to ask about: `missing` are the required arguments that nobody gave."""

    tool: Tool
    arguments: dict[str, Any]
    missing: list[Param]
    rivals: tuple[Tool, ...] = ()  # that may be meant just as well
    unclear: bool = False  # the request says something that this call leaves out


@dataclass(frozen=True)
class _Entry:
    """A tool that may be meant: how likely it is, and the call that it would be."""

    rank: float
    call: Call
    draft: Draft


def calls(text: str, tools: list[Tool], answers: Sequence[Answer] = ()) -> list[Call]:
    """The calls that `text` asks for, in its order, completed from `answers`.

    None if it names no tool or says not to.
    """
    text = plainly(calm(text))
    index = Index(tools)
    found: list[Call] = []
    for clause in clauses(text, index)[:MOST_CALLS]:
        if not _NEGATED.search(hidden(clause)) and (call := _call(clause, index)):
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
    firm = [bool(_FIRM.search(match[0])) for match in breaks]
    beside = [before or after for before, after in pairwise([False, *firm, False])]
    beginnings = [
        start
        for (start, end), alone in zip(bounds, beside, strict=True)
        if _begins(masked[start:end], index, CLEAR if alone else STARTS_CLAUSE)
    ]
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


def _begins(masked: str, index: Index, enough: float = STARTS_CLAUSE) -> bool:
    said = meant(masked)
    return bool(named(masked, index.tools)) or any(index.by_name(tool, said) >= enough for tool in index.tools)


def named(text: str, tools: list[Tool]) -> Tool | None:
    """The tool whose whole name stands in `text`, in any spelling of its words; the first, and the longest there."""
    found = _spelled(text, tools)
    return found[0] if found else None


def _spelled(text: str, tools: list[Tool]) -> tuple[Tool, str] | None:
    """The tool that is `named`, and its name as it stands there."""
    squashed = {tool.squashed: tool for tool in tools if len(parts(tool.name)) > 1}
    exact = {tool.name: tool for tool in tools}
    for match in _WORD.finditer(text):
        tool = exact.get(match[0]) or squashed.get("".join(parts(match[0])))
        if tool:
            return tool, match[0]
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
    if found := _spelled(masked, index.tools):
        tool, spelled = found
        at, gap = masked.index(spelled), " " * len(spelled)
        call, draft = _drafted(tool, clause[:at] + gap + clause[at + len(spelled) :], named=True)
        unclear = leaves_out(draft, tool, masked.replace(spelled, gap, 1), 1, index.name_words)
        return replace(_unstated(call, clause), unclear=unclear)
    said = meant(masked)
    ranked = _ranked(index, said, clause)
    accepted = [entry for entry in ranked if index.by_name(entry.call.tool, said) >= CLEAR or entry.rank >= ENOUGH]
    if not accepted:
        return _hinted(ranked, index, said)
    best, *others = accepted
    asking = _unstated(best.call, clause)
    if asking is not best.call:
        return asking
    share = index.share(best.call.tool, said)
    if leaves_out(best.draft, best.call.tool, masked, share, index.name_words) or _is_money(best, ranked):
        near = tuple(entry.call.tool for entry in ranked if entry is not best and entry.rank > 0)
        return replace(best.call, rivals=near[: MOST_OFFERED - 1], unclear=True)
    return replace(best.call, rivals=tuple(each.call.tool for each in others if best.rank - each.rank < CLOSE))


def _hinted(ranked: list[_Entry], index: Index, said: list[str]) -> Call | None:
    """What to offer when only the description of a tool, and not its name, has what was said."""
    near = [entry.call for entry in ranked if index.by_title(entry.call.tool, said) >= ENOUGH]
    return replace(near[0], rivals=tuple(call.tool for call in near[1:MOST_OFFERED]), unclear=True) if near else None


def _drafted(tool: Tool, clause: str, *, named: bool) -> tuple[Call, Draft]:
    draft = fill(tool.name, tool.schema, clause, named=named)
    return Call(tool, draft.values, draft.missing()), draft


def _ranked(index: Index, said: list[str], clause: str) -> list[_Entry]:
    """The tools that `said` hints at, the likeliest first."""
    hinted = [tool for tool in index.tools if index.by_name(tool, said) or index.by_title(tool, said)]
    drafted = [_drafted(tool, clause, named=False) for tool in hinted]
    entries = [_Entry(_rank(call, index, said, clause), call, draft) for call, draft in drafted]
    return sorted(entries, key=lambda entry: -entry.rank)


def _is_money(best: _Entry, ranked: list[_Entry]) -> bool:
    """Whether the text has a sum of money that `best` has no use for, and another tool has one."""
    if not CURRENCY.search(best.draft.text) or any(param.is_money for param in best.draft.params):
        return False
    return any(param.is_money for entry in ranked for param in entry.draft.params if param.name in entry.draft.values)


def _denies(clause: str, value: object) -> bool:
    pattern = rf"(?<!\w)(?:un|non-?|not |not yet ){re.escape(str(value))}(?!\w)"
    return bool(value) and bool(re.search(pattern, clause, re.IGNORECASE))


def _unstated(call: Call, clause: str) -> Call:
    """Ask for what would be left out without a word.

    `unpaid`, `not paid` and `late` are none of the fixed values, and `yesterday` is no date.
    """
    state = _STATE.search(clause)
    for param in call.tool.params:
        denied = any(_denies(clause, value) for value in param.enum)
        left_out = param.name not in call.arguments and state and not is_filler(state[1])
        undated = param.form == "date" and param.name not in call.arguments and _OTHER_DAY.search(clause)
        if ((param.enum and (denied or left_out)) or undated) and param not in call.missing:
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
    read = fill(call.tool.name, call.tool.schema, f"{clause}, {said}", named=False).values
    values = {}
    for param in call.missing:
        whole = fit(param, said) if answer.asked == (param.name,) else MISFIT
        prefer_whole = param.is_text and not param.is_label
        # A list must not gather what stood in the request for something else.
        heard = _alone(param, said) if "array" in param.types else read
        found = whole if prefer_whole and whole is not MISFIT else heard.get(param.name, whole)
        if found is not MISFIT:
            values[param.name] = found
    rest = [param for param in call.missing if param.name not in values]
    return replace(call, arguments={**call.arguments, **values}, missing=rest)


def _alone(param: Param, said: str) -> dict[str, Any]:
    return fill("", {"properties": {param.name: param.schema}, "required": [param.name]}, said, named=False).values


def _each(call: Call, clause: str) -> list[Call]:
    """One call for each number of a row: `cancel orders 4712 and 4713` are two."""
    for param in call.tool.params:
        value = str(call.arguments.get(param.name, ""))
        row = re.search(rf"(?<!\w){re.escape(value)}((?:\s?(?:,(?:\sand)?|and|&)\s?#?\d+(?![\w.,]*\d))+)", clause)
        if param.is_label and value.isdigit() and row:
            several = bool(re.search(r"[^\W\d]s #?$", clause[: row.start()]))
            numbers = re.findall(r"\d+", row[1])
            kept = _without(call, param, numbers) if several else call
            used = [] if several else [str(given) for given in call.arguments.values()]
            others = [fit(param, other) for other in numbers if other not in used]
            return [kept, *(replace(kept, arguments={**kept.arguments, param.name: other}) for other in others)]
    return [call]


def _without(call: Call, row_of: Param, numbers: list[str]) -> Call:
    """`call`, but what its other arguments took from the row of `row_of` is to be asked for."""
    taken = [
        param for param in call.tool.params if param != row_of and str(call.arguments.get(param.name, "")) in numbers
    ]
    names = {param.name for param in taken}
    arguments = {name: value for name, value in call.arguments.items() if name not in names}
    return replace(call, arguments=arguments, missing=[*call.missing, *(param for param in taken if param.required)])


def _inherit(call: Call, earlier: list[Call]) -> Call:
    """`get order 4711 and refund 10 EUR` means the same order: take what is missing from the calls before."""
    known = {name: value for other in earlier for name, value in other.arguments.items()}
    taken = {param.name: known[param.name] for param in call.missing if param.name in known}
    rest = [param for param in call.missing if param.name not in taken]
    return replace(call, arguments={**call.arguments, **taken}, missing=rest)


_HOW_MANY = re.compile(
    r"\bhow (?:many|much) ([^\W\d]+) (?:are (?:there )?in|is in|are|is|in|make) (-?\d[\d.,]*) ?([^\W\d]+)",
    re.IGNORECASE,
)
_NUMBER = r"-?\d+(?:\.\d+)?"
_SHARE = re.compile(
    rf"^(?:what is |what's |how much is |work out |calculate )?({_NUMBER}) ?(?:%|percent) of ({_NUMBER})[?.!]*$",
    re.IGNORECASE,
)
_SUM = re.compile(
    r"^(?:what is|what's|how much is|work out) (?!\d{4}-\d\d-\d\d)(?=[^a-z]{0,200}?\d[ ()]{0,9}[+*/^-])"
    r"([\d ().+*/^-]{3,200})[?=]*$",
    re.IGNORECASE,
)
_MONEY = re.compile(
    rf"^(?:what is|what's|how much is|convert|change) ({_NUMBER}) ?((?-i:[A-Z]{{3}}))"
    r" (?:in|to|into) ((?-i:[A-Z]{3}))\b",
    re.IGNORECASE,
)


def plainly(text: str) -> str:
    """`text` with `how many miles are 10 km`, `15% of 240`, `3 + 4` and `10 USD in EUR` put as what is to be done."""
    text = _HOW_MANY.sub(r"convert \2 \3 to \1", text).strip()
    text = _SHARE.sub(r"calculate \1 / 100 * \2", text)
    text = _SUM.sub(r"calculate \1", text)
    return _MONEY.sub(r"exchange \1 \2 to \3", text)

"""The arguments of one call while they are being found: those spelled out, and which fact belongs where."""

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hitlchat.agent.demo_model.language import Fact, Token, canonical, find, leads_away, parts, tokens, unit
from hitlchat.agent.demo_model.schemas import MISFIT, Param, fit


@dataclass
class Draft:
    """What is known so far of a call that `text` asks for. Each place in the text gives at most one argument.

    `named`: the user wrote the tool's name. `complete`: and all of the arguments, so that nothing is to be asked for.
    """

    text: str
    params: list[Param]
    tool_words: frozenset[str]
    named: bool = False
    complete: bool = False
    guessed: str = ""  # the parameter that took the rest of the sentence
    in_order: list[Fact] = field(default_factory=list)  # quotes that went to a parameter by their order alone
    values: dict[str, Any] = field(default_factory=dict)
    _claimed: list[tuple[int, int]] = field(default_factory=list)

    def open(self) -> list[Param]:
        """The parameters that have no value yet."""
        return [param for param in self.params if param.name not in self.values]

    def missing(self) -> list[Param]:
        return [param for param in self.open() if param.required and not self.complete]

    def is_free(self, start: int, end: int) -> bool:
        return all(end <= first or start >= last for first, last in self._claimed)

    def claim(self, start: int, end: int) -> None:
        self._claimed.append((start, end))

    def facts(self) -> list[Fact]:
        return [fact for fact in find(self.text) if self.is_free(fact.start, fact.end)]

    def is_about_another(self, param: Param, word: Token) -> bool:
        """Whether `word` names a parameter other than `param`."""
        stem = canonical(word.text)
        return any(stem in other.own_words for other in self.params if other != param) and stem not in param.own_words

    def take(self, param: Param, text: str, start: int, end: int) -> bool:
        """Give `param` the value that `text` stands for, if it fits and the place is free."""
        value = fit(param, text)
        if value is MISFIT or not self.is_free(start, end):
            return False
        self.values[param.name] = value
        self.claim(start, end)
        return True


MOST_TRIES = 20
LONGEST_NAME = 80
_ASSIGNED = re.compile(r"[\w-](?:=|: ?)$")  # as in `schema={}`, which `pairs` reads
_GAPS = ", \n"
_END = re.compile(r"(?<=[\s,])(?:and|with)$", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "'": "'", "`": "`"}


def json_object(draft: Draft) -> None:
    """The first JSON object in the text: its keys are arguments, or else it is the one object that is wanted.

    With `draft.named`, as in `refund_order {"order_id": 7}`, it is passed on as it is, right or wrong.
    """
    end = 0
    for match in islice(re.finditer(r"\{", draft.text), MOST_TRIES):
        if match.start() < end:
            continue
        try:
            value, length = json.JSONDecoder().raw_decode(draft.text[match.start() :])
        except (ValueError, RecursionError):
            continue
        if _ASSIGNED.search(draft.text[: match.start()][-LONGEST_NAME:]):
            end = match.start() + length
            continue
        _take_object(draft, value)
        draft.claim(match.start(), match.start() + length)
        return


def _take_object(draft: Draft, value: dict[str, Any]) -> None:
    known = {param.name for param in draft.params}
    wanted = [param for param in draft.open() if "object" in param.types]
    if known & value.keys() or (draft.named and not wanted):
        draft.complete = draft.named
        draft.values |= value if draft.named else {key: value[key] for key in value if key in known}
    elif wanted:
        draft.values[wanted[0].name] = value


def pairs(draft: Draft) -> None:
    """Every `name=value` and `name: value`, also with the words of the name apart, as in `order id: 4711`."""
    marks = sorted(_marks(draft), key=lambda mark: mark[1])
    for number, (param, start, value_start) in enumerate(marks):
        limit = marks[number + 1][1] if number + 1 < len(marks) else len(draft.text)
        text, end = _value(param, draft.text, value_start, limit)
        value = fit(param, text)
        if param.name not in draft.values and text:
            # A value of another type is passed on: the user said so, and the gate says what is wrong with it.
            draft.values[param.name] = text if value is MISFIT else value
            draft.claim(start, end)


def _marks(draft: Draft) -> list[tuple[Param, int, int]]:
    found: dict[int, tuple[Param, int, int]] = {}
    for param in draft.params:
        name = r"[\s_-]?".join(map(re.escape, parts(param.name))) or re.escape(param.name)
        for match in re.finditer(rf"(?<![\w-]){name}\s*(?:=|:(?!//))\s*", draft.text, re.IGNORECASE):
            if draft.is_free(match.start(), match.end()):
                found[match.end()] = min(found.get(match.end(), (param, match.start(), match.end())),
                                         (param, match.start(), match.end()), key=lambda mark: mark[1])  # fmt: skip
    return list(found.values())


def _value(param: Param, text: str, start: int, limit: int) -> tuple[str, int]:
    """The value that starts at `start`, and where it ends."""
    closing = _QUOTES.get(text[start : start + 1])
    if closing and (end := text.find(closing, start + 1)) > 0:
        return text[start + 1 : end], end + 1
    if text[start : start + 1] in {"[", "{"}:
        try:
            _, length = json.JSONDecoder().raw_decode(text[start:])
        except (ValueError, RecursionError):
            pass
        else:
            return text[start : start + length], start + length
    rest = re.split(r"[;\n]", text[start:limit])[0]
    if text.rfind("(", 0, start) > text.rfind(")", 0, start):  # `(status: paid)`
        rest = rest.partition(")")[0]
    rest = _END.sub("", rest.rstrip(_GAPS)).rstrip(_GAPS)
    if not param.is_text or not re.search(r"\s", rest.split(",")[0].strip()):
        # One word: what follows the comma or the space is about something else.
        rest = re.split(r",(?:\s|$)", rest)[0]
        first = rest.split()[0] if rest.split() else ""
        rest = first if fit(param, rest) is MISFIT or (param.is_text and text[start - 1] == "=") else rest
    return rest.strip().rstrip("."), start + len(rest)


_REACH = 3
_KINDS = {
    "email": frozenset(map(canonical, ("email", "to", "recipient", "cc", "bcc", "sender", "from"))),
    "url": frozenset(map(canonical, ("url", "uri", "link", "endpoint", "website", "feed", "page"))),
    "zone": frozenset(map(canonical, ("timezone", "zone", "tz"))),
    "path": frozenset(map(canonical, ("path", "file", "filename", "folder", "directory", "dir"))),
}
_KINDS["date"] = _KINDS["moment"] = frozenset(
    map(canonical, ("date", "day", "deadline", "due", "until", "since", "when", "birthday", "start", "end", "time"))
)
_SPANS = frozenset(map(canonical, ("years", "months", "weeks", "days", "hours", "minutes", "seconds")))
_FORMS = {"email": "email", "uri": "url", "url": "url", "date": "date", "date-time": "moment"}


def assign(draft: Draft) -> None:
    """Give facts to parameters, the surest pair first; an optional parameter needs a good reason."""
    words = tokens(draft.text)
    facts = draft.facts()
    scored = [
        (-strength, number, fact.start, param, fact, near)
        for number, param in enumerate(draft.open())
        for fact in facts
        if not clashes(draft, param, fact)
        and (near := _nearness(param, fact, words, facts)) >= 0
        and (strength := _strength(param, fact, near)) > 0
    ]
    for _, _, _, param, fact, near in sorted(scored, key=lambda entry: entry[:3]):
        taken = param.name not in draft.values and draft.take(param, fact.value, fact.start, fact.end)
        if taken and fact.kind == "quoted" and not near:
            draft.in_order.append(fact)


def clashes(draft: Draft, param: Param, fact: Fact) -> bool:
    """Whether what a figure counts tells that it is meant for another parameter: `3 years at 5%`, `3 orders`."""
    counted = unit(draft.text, fact) if fact.kind in {"number", "money"} else ""
    word = canonical(counted)
    if not counted:
        return False
    if counted == "%":
        return not param.is_rate and any(other.is_rate for other in draft.params)
    if param.is_text:
        return word in param.words and counted.endswith("s") if param.is_label else not leads_away(counted)
    return word in _SPANS and word not in param.words and (param.is_rate or bool(param.words & _SPANS))


def _strength(param: Param, fact: Fact, near: float) -> float:
    if fit(param, fact.value) is MISFIT:
        return 0
    base = _number(param, fact) if param.is_number else _text(param, fact) if param.is_text else 0
    enough = base >= (1 if param.required else 4) or (base > 0 and near > 0)
    return base + near + param.required / 2 if enough else 0


def _number(param: Param, fact: Fact) -> float:
    if fact.kind == "money":
        return 6 if param.is_money else 2.5
    if fact.kind == "number":
        return 3 + (param.is_money and "." in fact.value)
    return 0


def _text(param: Param, fact: Fact) -> float:
    if fact.kind == "quoted":
        return 2 if param.is_label else 3
    if fact.kind in {"number", "code"}:
        return 3 if param.is_label and "." not in fact.value else 0.5
    if fact.kind == "money":
        return 4 if param.is_money else 0.5
    if _FORMS.get(param.form) == fact.kind or param.own_words & _KINDS[fact.kind]:
        return 4
    return 0 if param.form else 0.5


def _nearness(param: Param, fact: Fact, words: list[Token], facts: list[Fact]) -> float:
    """How close a word of the parameter is: up to three words before the fact, or right behind it."""
    wall = max((other.end for other in facts if other.end <= fact.start), default=0)
    before = [word for word in words if wall <= word.start and word.end <= fact.start][-_REACH:]
    found = [_REACH - back for back, word in enumerate(reversed(before)) if canonical(word.text) in param.words]
    behind = next((word for word in words if word.start >= fact.end), None)
    if behind and canonical(behind.text) in param.words:
        found.append(1)
    label = before and param.is_label and before[-1].text.lower() in {"for", "on"}
    return max(found, default=0) + (0.25 if label else 0)

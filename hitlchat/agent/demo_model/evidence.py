"""Which of the facts in a sentence belongs to which parameter: by type, by kind, and by the words around it."""

from hitlchat.agent.demo_model.draft import Draft
from hitlchat.agent.demo_model.facts import Fact, unit
from hitlchat.agent.demo_model.shapes import MISFIT, Param, fit
from hitlchat.agent.demo_model.words import Token, canonical, leads_away, tokens

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

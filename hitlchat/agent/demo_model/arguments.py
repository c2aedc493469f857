"""From a sentence to the arguments of a call: what is spelled out first, then what can be told by its kind."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hitlchat.agent.demo_model import draft
from hitlchat.agent.demo_model.draft import Draft, clashes
from hitlchat.agent.demo_model.language import MONTHS, PREPOSITIONS, Token, canonical, leads_away, parts, tokens, unit
from hitlchat.agent.demo_model.schemas import MISFIT, Param, Tool, fit, item, params

_REASONS = frozenset(map(canonical, ("reason", "why", "comment", "note", "cause", "explanation", "justification")))
_BECAUSE = re.compile(
    r"\b(?:because(?:\s+of)?|due\s+to|(?:for\s+(?:the|this)\s+|with\s+(?:the\s+)?)reason)\s+", re.IGNORECASE
)
_ZONES = {
    "amsterdam": "Europe/Amsterdam", "berlin": "Europe/Berlin", "chicago": "America/Chicago", "delhi": "Asia/Kolkata",
    "london": "Europe/London", "madrid": "Europe/Madrid", "new york": "America/New_York", "paris": "Europe/Paris",
    "rome": "Europe/Rome", "san francisco": "America/Los_Angeles", "sao paulo": "America/Sao_Paulo",
    "seoul": "Asia/Seoul", "shanghai": "Asia/Shanghai", "singapore": "Asia/Singapore", "sydney": "Australia/Sydney",
    "tokyo": "Asia/Tokyo", "vienna": "Europe/Vienna", "zurich": "Europe/Zurich",
}  # fmt: skip
_MONTH = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b", re.IGNORECASE)
_TOPICS = frozenset({"about", "for", "in", "of", "at", "on"})
_PROSE = frozenset(map(canonical, ("text", "body", "message", "content", "description", "comment")))
_LEADS = PREPOSITIONS - {"because", "than", "during", "except", "through", "without"}


def reason(draft: Draft) -> None:
    """What follows `because`, to the end of the sentence."""
    wanted = [param for param in draft.open() if param.is_text and param.words & _REASONS]
    match = _BECAUSE.search(draft.text)
    if wanted and match:
        draft.take(wanted[0], draft.text[match.end() :].strip().rstrip("."), match.start(), len(draft.text))


def choices(draft: Draft) -> None:
    """A parameter with fixed values takes the longest of them that stands in the text."""
    for param in draft.open():
        for value in sorted((str(value) for value in param.enum), key=len, reverse=True):
            match = re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", draft.text, re.IGNORECASE)
            if value and match and draft.take(param, value, match.start(), match.end()):
                break


def switches(draft: Draft) -> None:
    """`urgent` or `with details` is yes; `without details`, `not urgent` and `details off` is no."""
    for param in draft.open():
        name = r"[\s_-]?".join(map(re.escape, parts(param.name)))
        match = re.search(
            rf"(\b(?:without|no|not)\s+)?\b{name}\b(?:\s+(on|off|yes|no|true|false)\b)?", draft.text, re.IGNORECASE
        )
        if "boolean" in param.types and name and match and canonical(param.name) not in draft.tool_words:
            draft.take(param, match[2] or ("no" if match[1] else "yes"), match.start(), match.end())


def zones(draft: Draft) -> None:
    """The time zone of a city."""
    for param in draft.open():
        if param.is_text and {"timezone", "zone", "tz"} & {"".join(parts(param.name)), *parts(param.name)}:
            match = re.search(rf"\b(?:{'|'.join(_ZONES)})\b", draft.text, re.IGNORECASE)
            if match:
                draft.take(param, _ZONES[match[0].lower()], match.start(), match.end())


def lists(draft: Draft) -> None:
    """An array takes all the facts that fit its elements, or the words behind its name."""
    for param in draft.open():
        if "array" not in param.types:
            continue
        element = item(param)
        fitting = [
            fact for fact in draft.facts() if _suits(element, fact.kind) and fit(element, fact.value) is not MISFIT
        ]
        if len(fitting) == 1 and element.is_number and not _is_named(draft, param, fitting[0].start):
            continue  # one number is rarely a list: `among 3 people`
        values = [fit(element, fact.value) for fact in fitting]
        for fact in fitting:
            draft.claim(fact.start, fact.end)
        if not values and element.is_text and (found := _behind_name(draft, param)):
            values = [part for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found[0]) if part]
        if values:
            draft.values[param.name] = values


def _is_named(draft: Draft, param: Param, start: int) -> bool:
    before = [word for word in tokens(draft.text) if word.end <= start][-2:]
    return any(canonical(word.text) in param.words - draft.tool_words for word in before)


def _suits(element: Param, kind: str) -> bool:
    return kind in {"number", "money"} if element.is_number else element.is_text and kind not in {"number", "money"}


def _behind_name(draft: Draft, param: Param) -> tuple[str, int] | None:
    match = re.search(rf"\b{re.escape(param.name)}\s+([^.;]+)", draft.text, re.IGNORECASE)
    if match and draft.is_free(match.start(), match.end()):
        draft.claim(match.start(), match.end())
        return match[1].strip(), match.start()
    return None


def directions(draft: Draft) -> None:
    """`from Berlin to New York` and `10 km to miles`, for parameters such as `from_unit` and `to`."""
    for param in draft.open():
        lead = next((part for part in parts(param.name) if part in _LEADS), "")
        if not lead or not param.is_text:
            continue
        leads = {"to", "into", "in", "as"} if lead in {"to", "into"} else {lead}
        words = tokens(draft.text)
        starts = [number + 1 for number, word in enumerate(words) if word.text.lower() in leads]
        if lead == "from":
            starts += [number + 1 for number, word in enumerate(words) if re.fullmatch(r"-?[\d.,]*\d", word.text)]
        any(_take_words(draft, param, _until_figure(words[start:])) for start in starts)


def _until_figure(words: list[Token]) -> list[Token]:
    """The words before the next figure: `5 feet 3 inches` is not in `feet 3 inches`."""
    return words[: next((number for number, word in enumerate(words) if word.text[0].isdigit()), len(words))]


def _take_prose(draft: Draft, param: Param, words: list[Token]) -> bool:
    """All words to the end for a message of which nothing else is said, or else those up to the next filler."""
    others = any(not draft.is_free(word.start, word.end) or draft.is_about_another(param, word) for word in words)
    if others or not param.own_words & _PROSE or not param.required:
        return _take_words(draft, param, words)
    start, end = words[0].start, words[-1].end
    return draft.take(param, draft.text[start:end], start, end)


def months(draft: Draft) -> None:
    """The number of a month that is named, for a parameter that is called `month`."""
    for param in draft.open():
        match = _MONTH.search(draft.text)
        if match and param.is_number and parts(param.name) == ["month"]:
            draft.take(param, str(MONTHS.index(match[0].lower()) + 1), match.start(), match.end())


def lone_number(draft: Draft) -> None:
    """The only number goes to the only parameter that could still take it, if it counts that: `make 3 UUIDs`."""
    wanted = [param for param in draft.open() if param.is_number]
    found = [fact for fact in draft.facts() if fact.kind == "number"]
    if draft.missing() or not len(wanted) == len(found) == 1:
        return
    told = {canonical(word.text) for word in tokens(wanted[0].description)} | wanted[0].words | draft.tool_words
    if canonical(unit(draft.text, found[0])) in told and not clashes(draft, wanted[0], found[0]):
        draft.take(wanted[0], found[0].value, found[0].start, found[0].end)


def followers(draft: Draft) -> None:
    """A text whose parameter is named takes the words that follow: `city Paris`, `customer Ann Berg`."""
    words = tokens(draft.text)
    for param in (param for param in draft.open() if param.is_text):
        for number, word in enumerate(words):
            named = canonical(word.text) in param.words and canonical(word.text) not in draft.tool_words
            following = words[number + 1 : number + 2]
            telling = following and (param.required or following[0].text[0].isupper())
            if named and telling and _take_prose(draft, param, words[number + 1 :]):
                break


def leftovers(draft: Draft) -> None:
    """The first text that is still missing takes the rest of the sentence, without the words that chose the tool."""
    missing = [param for param in draft.missing() if param.is_text and not param.is_label and not param.form]
    words = [word for word in tokens(draft.text) if draft.is_free(word.start, word.end)]
    lead = next((number + 1 for number, word in enumerate(words) if word.text.lower() in _TOPICS), len(words))
    tool = next((number + 1 for number, word in enumerate(words) if canonical(word.text) in draft.tool_words), 0)
    for param in missing[:1]:
        if any(_take_rest(draft, param, rest) for rest in (words[lead:], words[tool:], words)):
            draft.guessed = param.name


def topic(draft: Draft) -> None:
    """What follows `about`, for a tool that can do without: `find my notes about tea`."""
    wanted = [param for param in draft.open() if param.is_text and not param.form]
    words = [word for word in tokens(draft.text) if draft.is_free(word.start, word.end)]
    about = next((number + 1 for number, word in enumerate(words) if word.text.lower() == "about"), len(words))
    if len(wanted) == 1 and not any(param.required for param in draft.params):
        _take_rest(draft, wanted[0], words[about:])


def _take_rest(draft: Draft, param: Param, words: list[Token]) -> bool:
    """The words from the first that says something, up to the next place that is about something else."""
    run: list[Token] = []
    for word in words:
        noise = leads_away(word.text) or _is_spent(draft, param, word)
        if run and not (draft.is_free(run[0].start, word.end) and not draft.is_about_another(param, word)):
            break
        if run or not noise:
            run.append(word)
    run = _without_tool(draft, param, run)
    while run and leads_away(run[-1].text):
        run.pop()
    if not run:
        return False
    start, end = _with_signs(draft.text, run[0].start, run[-1].end)
    return draft.take(param, draft.text[start:end], start, end)


def _is_spent(draft: Draft, param: Param, word: Token) -> bool:
    """Whether `word` chose the tool or names another parameter."""
    return canonical(word.text) in draft.tool_words or draft.is_about_another(param, word)


def _without_tool(draft: Draft, param: Param, run: list[Token]) -> list[Token]:
    """Without an end that belongs to what was asked for: the `in base64` of `encode hello in base64`."""
    end = len(run)
    while end and _is_spent(draft, param, run[end - 1]):
        end -= 1
    led = 1 < end < len(run) and leads_away(run[end - 1].text)
    return run[: end - 1] if led else run


def _with_signs(text: str, start: int, end: int) -> tuple[int, int]:
    """The same part of `text` with the brackets and signs that stand right at its ends: `(3 + 4) * -2`."""
    first, last = start, end
    while first and text[first - 1] in "([{+-":
        first -= 1
    while last < len(text) and text[last] in ")]}%!=":
        last += 1
    whole = text[first:last]
    paired = all(whole.count(opening) == whole.count(closing) for opening, closing in ("()", "[]", "{}"))
    return (first, last) if paired else (start, end)


def _take_words(draft: Draft, param: Param, words: list[Token]) -> bool:
    """The words up to the next one that leads somewhere else."""
    run: list[Token] = []
    for word in words:
        gap = draft.text[run[-1].end : word.start].strip() if run else ""
        elsewhere = leads_away(word.text) or draft.is_about_another(param, word)
        if gap or elsewhere or not draft.is_free(word.start, word.end):
            break
        run.append(word)
    return bool(run) and draft.take(param, draft.text[run[0].start : run[-1].end], run[0].start, run[-1].end)


CURRENCY = re.compile(r"[€$£]\s?\d|\d\s?(?:€|(?:EUR|USD|GBP|CHF|JPY|euros?|dollars?)\b)", re.IGNORECASE)
_MONEY = frozenset(map(canonical, ("eur", "usd", "gbp", "chf", "jpy", "euro", "dollar", "pound")))
_JOINED = re.compile(r"\b(?:with|by|in|into|to|from|for|of|as|on|at)\b", re.IGNORECASE)
# What people ask for anything with.
_ASKED_WITH = """
    add any anything call check create describe do fetch find get give know let look many make much need open print put
    read run say see show something take tell turn use want work write
"""
_ASKING = frozenset(map(canonical, _ASKED_WITH.split()))


def leaves_out(draft: Draft, tool: Tool, masked: str, share: float, others: frozenset[str]) -> bool:
    """Whether the call has no good place for a value, or for a word that says what is wanted.

    `masked` is the text without what is quoted; `share` says how much of the tool's name was heard, and `others` are
    the words that the names of all tools are made of.
    """
    if draft.complete:
        return False
    if draft.missing():
        return share < 1 and not draft.values and bool(_unused_words(draft, tool, masked))
    if _has_unused_facts(draft, tool) or _is_mixed_up(draft):
        return True
    if draft.guessed and share < 1 and _guesses_too_much(draft, share, others - tool.vocabulary - _ASKING):
        return True
    guessed = share < 1 or draft.guessed or not any(param.required for param in draft.params)
    return guessed and bool(_unused_words(draft, tool, masked))


def _guesses_too_much(draft: Draft, share: float, others: frozenset[str]) -> bool:
    """Whether the rest of the sentence, which became an argument, may well be about another tool."""
    chosen = any(param.enum and param.name in draft.values for param in draft.params)
    rest = " ".join(str(draft.values[param.name]) for param in draft.params if param.name == draft.guessed)
    return (not share and not chosen) or any(canonical(word.text) in others for word in tokens(rest))


def _is_mixed_up(draft: Draft) -> bool:
    """Whether quotes that were told apart only by their order are joined by words that may mean another order."""
    pairs = pairwise(sorted(draft.in_order, key=lambda fact: fact.start))
    return any(_JOINED.search(draft.text[first.end : second.start]) for first, second in pairs)


def _has_unused_facts(draft: Draft, tool: Tool) -> bool:
    """Whether a value in the text is no argument. The rest of a row of numbers will be calls of its own."""
    rows = any(param.is_label for param in draft.params)
    unused = [fact for fact in draft.facts() if not (rows and fact.kind == "number")]
    return any(canonical(draft.text[fact.start : fact.end]) not in tool.vocabulary for fact in unused)


def _unused_words(draft: Draft, tool: Tool, masked: str) -> list[str]:
    known = tool.vocabulary | _ASKING | _MONEY
    free = [word.text for word in tokens(masked) if draft.is_free(word.start, word.end)]
    return [word for word in free if not (leads_away(word) or word[0].isdigit() or canonical(word) in known)]


_STEPS: tuple[Callable[[Draft], None], ...] = (
    draft.json_object,
    draft.pairs,
    reason,
    choices,
    switches,
    zones,
    months,
    draft.assign,
    lists,
    directions,
    followers,
    leftovers,
    topic,
    lone_number,
)


def fill(name: str, schema: dict[str, Any], text: str, *, named: bool) -> Draft:
    """A draft of the call, with the arguments in the order of the schema."""
    tool_words = frozenset(canonical(part) for part in parts(name))
    draft = Draft(text, params(schema), tool_words, named)
    for step in _STEPS:
        step(draft)
    for param in draft.missing():
        if "default" in param.schema:
            draft.values[param.name] = param.schema["default"]
        elif len(param.enum) == 1:
            draft.values[param.name] = param.enum[0]
        elif "null" in param.types:
            draft.values[param.name] = None
    ordered = {param.name: draft.values[param.name] for param in draft.params if param.name in draft.values}
    draft.values = ordered | draft.values
    return draft

"""Arguments that are words: reasons, choices, yes and no, `from … to …`, and what is left of the sentence."""

import re

from .draft import Draft
from .shapes import MISFIT, Param, fit, item
from .words import PREPOSITIONS, Token, canonical, is_filler, leads_away, parts, tokens

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
_TOPICS = frozenset({"about", "for", "in", "of", "at"})
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
        values = [fit(element, fact.value) for fact in fitting]
        for fact in fitting:
            draft.claim(fact.start, fact.end)
        if not values and element.is_text and (found := _behind_name(draft, param)):
            values = [part for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found[0]) if part]
        if values:
            draft.values[param.name] = values


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
        any(_take_words(draft, param, words[start:]) for start in starts)


def followers(draft: Draft) -> None:
    """A text whose parameter is named takes the words that follow: `city Paris`, `customer Ann Berg`."""
    words = tokens(draft.text)
    for param in (param for param in draft.open() if param.is_text):
        for number, word in enumerate(words):
            named = canonical(word.text) in param.words and canonical(word.text) not in draft.tool_words
            following = words[number + 1 : number + 2]
            telling = following and (param.required or following[0].text[0].isupper())
            if named and telling and _take_words(draft, param, words[number + 1 :]):
                break


def leftovers(draft: Draft) -> None:
    """The first text that is still missing takes the rest of the sentence, without the words that chose the tool."""
    missing = [param for param in draft.missing() if param.is_text and not param.is_label and not param.form]
    words = [word for word in tokens(draft.text) if draft.is_free(word.start, word.end)]
    lead = next((number + 1 for number, word in enumerate(words) if word.text.lower() in _TOPICS), len(words))
    for param in missing[:1]:
        any(_take_rest(draft, param, rest) for rest in (words[lead:], words))


def _take_rest(draft: Draft, param: Param, words: list[Token]) -> bool:
    """The words from the first that says something, up to the next place that is about something else."""
    run: list[Token] = []
    for word in words:
        noise = is_filler(word.text) or canonical(word.text) in draft.tool_words
        if run and not (draft.is_free(run[0].start, word.end) and not draft.is_about_another(param, word)):
            break
        if run or not noise:
            run.append(word)
    while run and leads_away(run[-1].text):
        run.pop()
    return bool(run) and draft.take(param, draft.text[run[0].start : run[-1].end], run[0].start, run[-1].end)


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

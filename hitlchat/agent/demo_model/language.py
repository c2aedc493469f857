"""How the demo model reads words: light stemming, a few synonyms, and the facts that stand out in a sentence."""

import re
from dataclasses import dataclass
from itertools import islice

_FILLERS = """
    a all also am an and any are as at be been by can could d did do does for from had has have he her hers him his
    how i if in into is it its just let ll m me my now of off on or our out over please re s she should so some t than
    thank thanks that the their them then there these they this those to too under up us ve was we were what when
    where which who why will with would you your yours
"""
_PREPOSITIONS = """
    about as at because by during except for from in into of on since than through to until via with without
"""
FILLERS = frozenset(_FILLERS.split())
# They say when, or that a name follows; in the name of a tool they may still tell it from others.
_ASIDES = "called named titled today tomorrow yesterday still yet already like saying"
_FILLED = FILLERS | frozenset(_ASIDES.split())
PREPOSITIONS = frozenset(_PREPOSITIONS.split())
_SYNONYMS = {
    "get": "show display view read",
    "list": "all every",
    "delete": "remove erase",
    "create": "add make new",
    "update": "change edit modify",
    "search": "find look lookup",
    "email": "mail",
    "time": "clock",
    "cancel": "abort",
    "count": "quantity many",
    "refund": "reimburse repay payback",
}
_SUFFIXES = (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", ""))
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W_](?:[\w'\u2019/°-]*\w)?|°\w")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
SHORTEST_STEM = 3
LONGEST = 2_000  # characters of a text that are looked at
MOST_TOKENS = 400
_MONTHS = "january february march april may june july august september october november december"
MONTHS = tuple(_MONTHS.split())
_PHRASES = {
    "refund": re.compile(r"\b(?:giv|pay|paid|send|money|want|return)\w*\b.*\bback\b", re.IGNORECASE | re.DOTALL),
    "month": re.compile(rf"(?<!\d )(?<!\d\. )\b(?:{'|'.join(MONTHS)}) \d{{4}}\b", re.IGNORECASE),
}


@dataclass(frozen=True)
class Token:
    """A word where it stands in a text."""

    text: str
    start: int
    end: int


def calm(text: str) -> str:
    """The beginning of `text`, with every run of white space as one space or line break: no rule reads more."""
    flat = re.sub(r"\s+", lambda run: "\n" if "\n" in run[0] else " ", text[: 10 * LONGEST])
    return flat[:LONGEST]


def tokens(text: str) -> list[Token]:
    return [Token(match[0], match.start(), match.end()) for match in islice(_TOKEN.finditer(text), MOST_TOKENS)]


def meant(text: str) -> list[str]:
    """The words of `text`, and what a phrase of several stands for: `give … back` is a refund, `May 2026` a month."""
    said = [token.text for token in tokens(text)]
    return [*said, *(word for word, phrase in _PHRASES.items() if phrase.search(text))]


def parts(name: str) -> list[str]:
    """The words of a name, lower case: `refund_order`, `refund-order` and `refundOrder` have the same two."""
    return [part.lower() for part in _HUMP.split(name) if part]


def is_filler(word: str) -> bool:
    """Whether a word says nothing by itself: `the`, `What's`."""
    return re.split(r"['\u2019]", word.lower())[0] in _FILLED


def leads_away(word: str) -> bool:
    """Whether what comes next is not what was talked about: fillers and prepositions."""
    return is_filler(word) or word.lower() in PREPOSITIONS


def canonical(word: str) -> str:
    """What a word counts as: its stem, or that of the synonym it stands for."""
    stem = _stem(word.lower())
    return _CANONICAL.get(stem, stem)


def _stem(word: str) -> str:
    for ending, replacement in _SUFFIXES:
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= SHORTEST_STEM:
            word = word.removesuffix(ending) + replacement
            break
    doubled = len(word) > SHORTEST_STEM and word[-1] == word[-2]
    return word[:-1] if doubled else word


_CANONICAL = {_stem(word): _stem(head) for head, others in _SYNONYMS.items() for word in others.split()}


_PLAIN = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SUM = rf"\d+,\d{{1,2}}(?![\d,])|{_PLAIN}"
_CURRENCY = r"EUR|USD|GBP|CHF|JPY|euros?|dollars?|pounds?|€|\$|£"
_ENDINGS = "txt|md|csv|json|pdf|html?|xml|ya?ml|toml|ini|py|log|png|jpe?g|docx?|xlsx?|zip"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FACT = re.compile(
    rf"""
    (?P<quoted> "[^"]*" | “[^”]*” | „[^“”]*[“”] | `[^`]*` | (?<!\w)'[^']*'(?!\w) )
  | (?P<url> (?<!\w)https?://[^\s<>"']*[^\s<>"'.,;:!?)] )
  | (?P<email> (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+ )
  | (?P<moment> (?<!\d)\d{{4}}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)? )
  | (?P<date> (?<!\d)\d{{4}}-\d\d-\d\d(?!\d) )
  | (?P<path> (?<![\w./~])(?:~|\.{{1,2}})?/[\w.-][\w./-]*\w )
  | (?P<zone> \b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+ | \bUTC\b | \bGMT\b )
  | (?P<file> (?<![\w./~-])(?:[A-Za-z_][\w-]*/(?:[\w-]+/)*[\w-]+\.\w{{1,5}} | [A-Za-z_][\w-]*\.(?:{_ENDINGS}))(?!\w) )
  | (?P<money> (?:€|\$|£)\s?(?:{_SUM}) | (?<![\w.,-])-?(?:{_SUM})\s?(?:{_CURRENCY})(?!\w) )
  | (?P<code> (?<![\w-])(?:[A-Za-z]{{1,8}}-\d[\w-]* | [A-Z]{{1,4}}\d{{2,}}\w* | {_UUID})(?![\w-]) )
  | (?P<number> (?<![\w.])-?(?:{_PLAIN})(?=[A-Za-z°%]{{0,3}}(?!\w)) )
    """,
    re.VERBOSE,
)
MOST = 100
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_FIRST_DIGIT = re.compile(r"-?\d")
_LAST_DIGIT = re.compile(r"\d(?=\D*$)")
_COMMA_SUM = re.compile(r"-?\d+,\d{1,2}")


_BEHIND = re.compile(r"\s?(%|percent\b)|\s([^\W\d]{2,})")


@dataclass(frozen=True)
class Fact:
    """A value in a text; `value` is what it says, without quotes, signs of money and thousands separators."""

    kind: str
    value: str
    start: int
    end: int


def unit(text: str, fact: Fact) -> str:
    """What a figure counts: the word right behind it, `%` for a percentage, nothing if none is there."""
    behind = _BEHIND.match(text, fact.end)
    return "%" if behind and behind[1] else (behind[2].lower() if behind else "")


def find(text: str) -> list[Fact]:
    """The facts of `text`, from left to right, none inside another."""
    found = [_fact(match) for match in islice(_FACT.finditer(text), MOST)]
    figures = any(fact.kind in {"number", "money"} for fact in found)
    for match in islice(_NUMBER_WORD.finditer(text), MOST):
        number = _WORDS.index(match[0].lower())
        inside = any(fact.start <= match.start() < fact.end for fact in found)
        if not inside and (number > 1 or not figures):  # beside figures, "one" is seldom a number
            found.append(Fact("number", str(number), match.start(), match.end()))
    return sorted(found, key=lambda fact: fact.start)


def _fact(match: re.Match[str]) -> Fact:
    kind = match.lastgroup or ""
    text = match[0]
    if kind == "quoted":
        text = text[1:-1]
    elif kind == "file":
        kind = "path"
    elif kind in {"number", "money"}:
        return _figure(kind, match)
    return Fact(kind, text, match.start(), match.end())


def _figure(kind: str, match: re.Match[str]) -> Fact:
    """A number as JSON writes it: `1,000.50` and `12,50` have a comma that must go. The currency is not part of it."""
    first, last = (place.search(match[0]) for place in (_FIRST_DIGIT, _LAST_DIGIT))
    start, end = first.start() if first else 0, last.end() if last else 0
    text = match[0][start:end]
    value = text.replace(",", "." if _COMMA_SUM.fullmatch(text) and kind == "money" else "")
    return Fact(kind, value, match.start() + start, match.start() + end)

"""What stands out in a sentence: numbers, sums of money, quotes, addresses, dates, codes."""

import re
from dataclasses import dataclass
from itertools import islice

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

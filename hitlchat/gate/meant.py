"""What an argument's value means, in hitlchat's own words: lines beside the value, which stands raw in its box.

A pure function of the value, its name and its currency. The words are ours; what is read out of a value is shown in a
box of its own. The work is linear in the value's length: each character is decoded once at most, few lines are made.
"""

import base64
import binascii
import calendar
import json
import re
import socket
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import Seen, see

MOST_LINES: Final = 6
# Of what is decoded, so much stands on its line.
LONGEST: Final = 300
# A code longer than this is decoded up to here, and so many parts of an object or a list are looked at.
READ: Final = 4_096
MOST_PARTS: Final = 500
MOST_CHARACTERS: Final = 256 * 1024
# So many lines are looked at for other ones.
MOST_ALIKE: Final = 100
# A number from here on has its digits grouped.
LARGE: Final = 1_000_000
# Shorter ones are words more often than codes.
SHORTEST_CODE: Final = 16
READABLE: Final = 0.9

# What the rows of a card are sorted by if not all of them are in sight.
FLAG, ADDRESS, AMOUNT, RECIPIENT, OTHER, UNTOUCHED = range(6)

MORE: Final = gettext_noop("There is more in this value than these lines say.")

_URL: Final = re.compile(
    r"(?:(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,20}:[/\\]{2}|\A[/\\]{2}(?=[^\s/\\]*\.))[^\s<>\"]{1,2000}"
)
_SLASHES: Final = re.compile(r"[/\\]{2}")
_BEHIND_HOST: Final = re.compile(r"[/?#]")
_NUMERIC_HOST: Final = re.compile(r"(?:0[xX][0-9A-Fa-f]+|[0-9]+)(?:\.(?:0[xX][0-9A-Fa-f]+|[0-9]+)){0,3}\Z")
_CODE: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{SHORTEST_CODE},}}={{0,2}}")
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|U([0-9A-Fa-f]{8}))")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# What destroys in a shell and in SQL, wherever it stands in a value.
_COMMAND: Final = re.compile(
    r"(?:^|(?<=[\s;&|(`]))(?:rm\s+-\w|find\s[^\n;&|]{0,100}\s-delete\b|mkfs|shred\s)[^\n;&|]{0,100}"
    r"|\b(?:(?i:DROP\s+(?:TABLE|DATABASE|SCHEMA)|TRUNCATE\s+TABLE)|DELETE\s+FROM)\b[^\n;]{0,100}"
)
# A value, or a line of one, that speaks as the card does.
LIKE_A_CARD: Final = re.compile(
    r"^\W*(?:(?:approved|checked|confirmed|reviewed|verified)\s+by\b|risk\W+L?[0-5]\b|.{0,40}\bhitlchat\b).{0,100}",
    re.IGNORECASE | re.MULTILINE,
)
_MOST_WORDS: Final = 2
_OPEN: Final = {"anonymous", "anybody", "anyone", "everybody", "everyone", "internet", "public", "world"}
# So many empty lines, or spaces, push what is behind them out of sight.
_GAP: Final = re.compile(r"(?<!\s)\s{7,}+(?=\S)")
_GAP_LINES: Final = 6
_GAP_SPACES: Final = 60
_DATE: Final = re.compile(r"(?<![\w/-])(\d{1,2})([/-])(\d{1,2})\2(?:\d{4}|\d{2})(?![\w/-])")
_ZONE: Final = re.compile(r"\bEtc/GMT([+-])(\d{1,2})\b")
_THOUSANDS: Final = re.compile(r"([+-]?)(\d{1,3})[.,](\d{3})\Z")
_EXPONENT: Final = re.compile(r"[+-]?\d{1,20}(?:\.\d{1,20})?[eE][+-]?\d{1,2}\Z")
_ZERO: Final = re.compile(r"-0+(?:[.,]0+)?\Z")
_DIGITS: Final = re.compile(r"[+-]?\d{7,40}\Z")
_LONGEST_NUMBER: Final = 48

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_WORD: Final = 40
_ACT: Final = re.compile(
    r"\b(?:bypass|delete|destroy|disable|drop|erase|force|irreversible|kill|overwrite|permanent|permanently|purge|"
    r"recursive|remove|replace|reset|revoke|terminate|truncate|unsafe|wipe)\b"
)
_FLAG: Final = re.compile(rf"{_ACT.pattern}|\b(?:all|allow|everyone|everything|hard|ignore|no|public|root|skip|sudo)\b")
_ADDRESS: Final = re.compile(r"\b(?:callback|domain|endpoint|host|hostname|redirect|server|uri|url|webhook)\b")
_AMOUNT: Final = re.compile(
    r"\b(?:amount|balance|budget|charge|cost|credit|debit|discount|fee|pay|payment|payout|price|quantity|refund|salary|"
    r"sum|total)\b"
)
_RECIPIENT: Final = re.compile(
    r"\b(?:account|address|bcc|cc|emails?|iban|mail|members?|owner|payee|phone|recipients?|subscriber|target|to|"
    r"users?)\b"
)


@dataclass(frozen=True)
class Meaning:
    """A line: our words, and behind them what was read, if it is not among them, without its last `cut` characters.

    `caution`: what it says is easily overlooked, and a yes to it easily regretted.
    """

    words: str
    value: Seen | None = None
    cut: int = 0
    caution: bool = False

    @property
    def rest(self) -> str:
        return translatable(f"It goes on for about {self.cut:,} more characters.") if self.cut else ""


def meanings(value: Any, name: str = "", currency: str = "") -> tuple[Meaning, ...]:
    """Return the lines on `value`, an argument `name` whose schema tells its `currency`, if it does."""
    found: dict[Meaning, None] = {}
    for at, line in enumerate(_of_value(value, name, currency)):
        if at == MOST_ALIKE or (len(found) == MOST_LINES and line not in found):
            return (*found, Meaning(MORE))
        found[line] = None
    return tuple(found)


def weight(name: str, value: Any) -> int:
    """Return what the value of `name` is, the most important first: a flag that is set or a word that destroys, an
    address, an amount, who gets something, or anything else.
    """
    words, text = _words(name[:READ]), value[:READ] if isinstance(value, str) else ""
    if value is True or (len(text) <= _LONGEST_WORD and _ACT.search(_words(text))) or (value and _FLAG.search(words)):
        return FLAG
    if _URL.search(text) or _ADDRESS.search(words):
        return ADDRESS
    if _AMOUNT.search(words):
        return AMOUNT
    return RECIPIENT if _RECIPIENT.search(words) or "@" in text else OTHER


def grouped(number: float | Decimal) -> str:
    """Return a number with its digits grouped by spaces: a comma would be another number in other languages."""
    return f"{int(number) if number == int(number) else number:,}".replace(",", " ")


def _words(text: str) -> str:
    """Return the words in a name of any style, in lower case, with spaces between them."""
    return " ".join(_WORD.findall(text)).lower()


def _of_value(value: Any, name: str, currency: str) -> Iterator[Meaning]:
    parts = _parts(value)
    for part in islice(parts, MOST_PARTS):
        if isinstance(part, str):
            yield from _of_text(part[:MOST_CHARACTERS])
            if len(part) > MOST_CHARACTERS:
                yield Meaning(MORE)
        elif not isinstance(part, bool) and isinstance(part, int | float):
            yield from _of_number(part, name, currency)
    if next(parts, None) is not None:
        yield Meaning(MORE)


def _parts(value: Any) -> Iterator[Any]:
    """Yield every key, text and number in a value."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _parts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _parts(part)
    elif value is not None:
        yield value


def _of_number(number: float, name: str, currency: str) -> Iterator[Meaning]:
    if number == 0 and str(number).startswith("-"):
        yield Meaning(gettext_noop("Minus zero, the same as 0."))
    elif currency:
        yield Meaning(gettext_noop("By the tool's schema, an amount of"), see(f"{grouped(number)} {currency}"))
    elif abs(number) >= LARGE:
        yield _line(gettext_noop("With its digits grouped:"), grouped(number), 0)
    if number < 0 and (currency or weight(name, number) == AMOUNT):
        yield _caution(gettext_noop("A negative amount, below zero."))


def _of_text(text: str) -> Iterator[Meaning]:
    for match in _URL.finditer(text):
        yield from _of_url(match[0].rstrip(".,;:!?')"))
    yield from _decoded(text)
    yield from _looked_past(text)
    yield from _of_choice(text)
    for zone in _ZONE.finditer(text):
        words = f"UTC{'-' if zone[1] == '+' else '+'}{int(zone[2])}"
        yield _caution(gettext_noop("The sign of such a zone is the other way round. It is"), words)
    if len(text) <= _LONGEST_NUMBER:
        yield from _of_digits(text.strip())
    for match in _DATE.finditer(text):
        one, other = int(match[1]), int(match[3])
        if one != other and 1 <= one <= 12 and 1 <= other <= 12:
            month, month2 = calendar.month_name[other], calendar.month_name[one]
            words = translatable(
                f"Either {one} {month}, with the day first, or {month2} {other}, with the month first:"
            )
            yield _caution(words, match[0])


def _of_choice(text: str) -> Iterator[Meaning]:
    """Yield what a word or two choose, where that is a loss, or open to everybody."""
    words = _words(text).split() if len(text) <= _LONGEST_WORD else []
    if 0 < len(words) <= _MOST_WORDS and _ACT.search(" ".join(words)):
        yield _caution(gettext_noop("By this word something is deleted, replaced or forced."))
    if len(words) == 1 and words[0] in _OPEN:
        yield _caution(gettext_noop("By this word it is open to everybody."))


def _looked_past(text: str) -> Iterator[Meaning]:
    """Yield what a reader may look past, or take for ours: commands that delete, what stands far below the rest, and
    lines that read like a card's own.
    """
    if line := LIKE_A_CARD.search(text):
        yield _caution(gettext_noop("hitlchat has not written this:"), line[0])
    for command in _COMMAND.finditer(text):
        yield _caution(gettext_noop("A command that deletes:"), command[0])
    for gap in _GAP.finditer(text):
        if len(gap[0]) >= _GAP_SPACES or gap[0].count("\n") > _GAP_LINES:
            yield _caution(gettext_noop("Behind much empty space:"), text[gap.end() :][:LONGEST])


def _of_digits(text: str) -> Iterator[Meaning]:
    """Yield how a text that is a number can be read."""
    if _ZERO.match(text):
        yield Meaning(gettext_noop("Minus zero, the same as 0."))
    elif match := _THOUSANDS.match(text):
        sign, whole, rest = match.groups()
        number, number2 = f"{sign}{whole}.{rest}".rstrip("0").rstrip("."), f"{sign}{grouped(int(whole + rest))}"
        yield _caution(translatable(f"Either {number}, with decimals, or {number2}, with thousands set off."))
    elif _EXPONENT.match(text):
        yield _caution(gettext_noop("Written out:"), grouped(float(text)))
    elif _DIGITS.match(text):
        yield Meaning(gettext_noop("With its digits grouped:"), see(grouped(int(text))))


def _of_url(url: str) -> Iterator[Meaning]:
    behind = _SLASHES.split(url, maxsplit=1)[1]
    authority = _BEHIND_HOST.split(behind, maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    host = _host(host)
    plain = _plain(host)
    # Browsers take a backslash for a slash, others for a part of what is before the host.
    if "\\" in authority:
        words = gettext_noop("In a browser, which takes the backslash for a slash, it goes to host")
        yield _caution(words, _plain(_host(authority.partition("\\")[0].rpartition("@")[2])))
        yield _caution(gettext_noop("Elsewhere it goes to host"), plain)
    else:
        yield Meaning(gettext_noop("Goes to host"), _seen(plain))
    if at and "\\" not in authority:
        yield _caution(gettext_noop("Before the @ is a user name, not the host:"), _unescaped(user))
    if plain != host:
        yield _caution(gettext_noop("In the value, that host is written as"), host)
    if (letters := ".".join(map(_label, plain.split(".")))) != plain:
        yield _caution(gettext_noop("In letters, that host is"), letters)
    if (address := _address(plain)) not in (None, plain):
        yield _caution(gettext_noop("That number is the address"), str(address))
    path = behind[len(authority) :]
    if (spelled := _unescaped(path)) != path:
        leads_up = ".." in spelled and ".." not in path
        yield _line(gettext_noop("Behind the host, with percent escapes decoded:"), spelled, 0, caution=leads_up)


def _host(authority: str) -> str:
    """Return the host as it is written, without its port."""
    return f"{authority.partition(']')[0]}]" if authority.startswith("[") else authority.partition(":")[0]


def _plain(host: str) -> str:
    """Return the host as it is looked up: without escapes and wide letters."""
    return unicodedata.normalize("NFKC", _unescaped(host)).replace("\u3002", ".")


def _label(label: str) -> str:
    # No label may be longer, and decoding takes the square of its length.
    if not label.lower().startswith("xn--") or len(label) > 63:
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def _address(host: str) -> str | None:
    """Return the IP address that a number denotes, in any notation."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host)) if _NUMERIC_HOST.match(host) else None
    except OSError:
        return None


def _unescaped(text: str) -> str:
    return unquote(text, errors="replace")


def _decoded(text: str) -> Iterator[Meaning]:
    """Yield what is written in codes in a text: as JSON, in escapes, in base64."""
    if (shown := _json(text)) is not None:
        yield _line(gettext_noop("JSON, decoded:"), shown, 0, caution=True)
    elif first := _ESCAPE.search(text):
        # A line shows the first of them.
        at = first.start()
        part = text[0 if at < LONGEST // 2 else at :][:READ]
        yield _line(gettext_noop("With its escapes decoded:"), _without_escapes(part), 0, caution=True)
    for match in _CODE.finditer(text):
        if (shown := _from_base64(match[0])) is not None:
            inner = _from_base64(shown.strip()) if _CODE.fullmatch(shown.strip()) else None
            unread = max(0, len(match[0]) - READ) * 3 // 4
            yield _line(gettext_noop("Base64, decoded:"), inner or shown, unread, caution=True)


def _caution(words: str, read: str = "") -> Meaning:
    return Meaning(words, _seen(" ".join(read.split())) if read else None, caution=True)


def _line(words: str, shown: str, unread: int, *, caution: bool = False) -> Meaning:
    line = " ".join(shown.split())
    return Meaning(words, _seen(line), max(0, len(line) - LONGEST) + unread, caution)


def _seen(text: str) -> Seen:
    return see(text[:LONGEST])


def _json(text: str) -> str | None:
    """Return the JSON in a text on one line, where that reads otherwise than the text."""
    if len(text) > READ or "\\" not in text or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return canonical.pretty(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _without_escapes(text: str) -> str:
    spelled = _ESCAPE.sub(_character, text)
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), spelled)


def _character(escape: re.Match[str]) -> str:
    code = int(next(filter(None, escape.groups())), 16)
    return chr(code) if code <= 0x10FFFF else escape[0]


def _from_base64(code: str) -> str | None:
    """Decode the beginning of `code`; None if that is no readable text."""
    plain = code.rstrip("=")[:READ].translate({ord("-"): "+", ord("_"): "/"})
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4))
        # Where a code is cut, half a letter may be at its end.
        text = data.decode("utf-8", "strict" if len(code) < READ else "ignore")
    except (UnicodeError, binascii.Error):
        return None
    readable = sum(char.isprintable() or char in "\n\t\r" for char in text)
    return text if readable >= max(READABLE * len(text), SHORTEST_CODE // 2) else None

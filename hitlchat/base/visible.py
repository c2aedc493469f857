"""Text as it is, with everything that a reader cannot see made visible (SR-3).

Unicode's general categories decide (UAX #44): controls, formats, surrogates, private use, unassigned, and every
separator but the plain space are shown as U+XXXX. Line feeds and tabs stay: boxes keep them as they are.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple, Self

from django.utils.translation import gettext_noop

from hitlchat.base.lookalikes import BLANKS, lookalikes, script
from hitlchat.base.schemas import step
from hitlchat.base.sentences import translatable

HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
PLAIN = {" ", "\n", "\t"}
# From here on every character is unassigned, private use, a tag or a variation selector.
_UNSEEN_PLANES = 0x40000
# Beyond the overlays by combining class: circles that cross out what they enclose.
_MORE_OVERLAYS = {*"\u1abe\u20e0\u20e2\u20e3\u20e4"}
MIXABLE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}
MOST_MARKS = 2
MOST_CODES = 5
# A page can carry this many elements for escapes; behind the last of them the escapes stand in the text.
MOST_PIECES = 1000
MOST_WORDS = 3
LONGEST_NAMED = 60
# Ordinary in Chinese and Japanese, so no look-alikes beside their letters.
_WIDE = "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff5e"
_EAST_ASIAN = (
    rf"\u1100-\u11ff\u2e80-\u312f\u3131-\u318e\u31a0-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff{_WIDE}"
)
# Quotes, dashes and signs of ordinary texts, though they look like signs of ASCII; and letters of whole languages:
# the dotless i of Turkish, which makes hosts and addresses suspect all the same.
_TYPOGRAPHY = {
    *"\u00b4\u00b8\u02b9\u02bb\u02bc\u02bd\u02be\u02c6\u02c8\u02ca\u02cb\u02d0\u02dc\u2010\u2011\u2012\u2013"
}
_TYPOGRAPHY |= {*"\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u0131"}
# A minus, which programs don't take for one.
_MINUS = "\u2212"
# In pictures of Unicode's data only: nobody takes these Cyrillic letters for r, 6 and b where all around is Cyrillic.
_FAR = {*"\u0431\u0433\u044c"}
_SCRIPTS = {
    "ARABIC": gettext_noop("Arabic"),
    "ARMENIAN": gettext_noop("Armenian"),
    "CHEROKEE": gettext_noop("Cherokee"),
    "CYRILLIC": gettext_noop("Cyrillic"),
    "GREEK": gettext_noop("Greek"),
    "HEBREW": gettext_noop("Hebrew"),
}
# Between these and a letter or digit of ASCII, what stands is a part of one name or address.
_JOINTS = {*"_@.:/\\-+=\u3002"}
_EMOJI = (
    r"\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    r"\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_DIRECTION = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_RTL = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]")
# A line in which nothing but right-to-left letters has a direction of its own: no display order can mislead.
_RTL_LINE = re.compile(
    rf"(?:[\u0590-\u065f\u066e-\u06ef\u06fa-\u07bf\u07ca-\u08ff\ufb1d-\ufdff\ufe70-\ufefe{_EMOJI}]"
    r"|[ \t.,:;!?'\"\u2013\u2014\u2018\u2019\u201c\u201d\u2026\ufe0f\u200d-])*\Z"
)
_ASCII = re.compile(r"[\x20-\x7e\n\t]*\Z")
_LATIN = re.compile("[A-Za-z]")
_TIMES = re.compile("[A-Za-z]\xd7[A-Za-z]")
_PUNYCODE = re.compile(r"\bxn--[a-z0-9-]+", re.IGNORECASE)
_EAST_ASIAN_LETTER = re.compile(f"[{_EAST_ASIAN}]")
# The full stops of Chinese and Japanese, which browsers take for dots.
_WIDE_STOP = re.compile(r"[\u3002\uff61]")
_WIDE_STOPS = re.compile(r"[A-Za-z0-9.\u3002\uff61-]+")
_WIDE_ALONE = re.compile(rf"[{_WIDE}](?<![{_EAST_ASIAN}].)(?![{_EAST_ASIAN}])")


Kind = Literal["hidden", "marks", "direction", "right_to_left", "look_alike", "host", "address", "punycode"]

Verdict = Literal["", "mixed", "whole"]


@dataclass(frozen=True)
class Piece:
    """A stretch of text; `hidden` ones are escapes standing for characters that can't be seen."""

    text: str
    hidden: bool = False


class Warned(str):
    """A warning for a reader, in a sentence; programs go by its kind."""

    kind: Kind

    def __new__(cls, sentence: str, kind: Kind) -> Self:
        found = super().__new__(cls, sentence)
        found.kind = kind
        return found


@dataclass(frozen=True)
class Seen:
    """A text ready to be shown: its pieces, and warnings for a reader, in sentences."""

    pieces: tuple[Piece, ...]
    warnings: tuple[Warned, ...] = ()
    right_to_left: bool = False
    # To be shown in the order in which it is stored, because its display order could mislead.
    stored: bool = False

    @property
    def plain(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def suspect(self) -> bool:
        return bool(self.warnings)


def is_hidden(char: str) -> bool:
    return char not in PLAIN and (unicodedata.category(char) in HIDDEN_CATEGORIES or char in BLANKS)


def see(text: str, *, stored: bool = False) -> Seen:
    """`text` with hidden characters as escapes, and the warnings that belong to it; `stored` if it is a part of a text
    that is shown in stored order.
    """
    if _ASCII.match(text):
        return Seen((Piece(text),), _punycode(text), stored=stored)
    runs = [match for match in patterns().token.finditer(text) if match.lastgroup]
    right_to_left = bool(_RTL.search(text))
    misleads = any(_RTL.search(line) and not _RTL_LINE.match(line) for line in text.split("\n"))
    stored = stored or (right_to_left and (bool(runs) or misleads))
    warnings = (*_warnings(text, "".join(run[0] for run in runs), stored=stored and right_to_left), *_punycode(text))
    return Seen(tuple(_pieces(text, runs)), warnings, right_to_left, stored)


def warned(value: Any, path: str = "") -> Iterator[tuple[str, Warned]]:
    """Yield the warnings about texts within a JSON value, and about names of members, each with its place."""
    if isinstance(value, str):
        yield from ((path, found) for found in see(value).warnings)
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            inside = step(path, key)
            yield from ((inside, found) for found in see(str(key)).warnings)
            yield from warned(part, inside)


def pieces(text: str) -> tuple[Piece, ...]:
    """`text` with its hidden characters as escapes, without the warnings that belong to it."""
    if _ASCII.match(text):
        return (Piece(text),)
    return tuple(_pieces(text, [match for match in patterns().token.finditer(text) if match.lastgroup]))


def escaped(text: str) -> str:
    """`text` with each hidden character as plain U+ and code, where nothing can be marked as an escape."""
    if _ASCII.match(text):
        return text
    return patterns().token.sub(lambda match: _codes(match[0]) if match.lastgroup else match[0], text)


class _Patterns(NamedTuple):
    token: re.Pattern[str]
    hidden_run: re.Pattern[str]
    hostlike: re.Pattern[str]
    top_level: re.Pattern[str]
    word: re.Pattern[str]
    sign: re.Pattern[str]


@cache
def patterns() -> _Patterns:
    """Return the patterns that need the tables of Unicode. Making them takes a while: plain ASCII needs none."""
    chars = [*map(chr, range(_UNSEEN_PLANES))]
    marks = [char for char in chars if unicodedata.category(char) in {"Mn", "Me"} and char not in BLANKS]
    hidden = _ranges(filter(is_hidden, chars)) + rf"\U{_UNSEEN_PLANES:08x}-\U0010ffff"
    overlay = _ranges(filter(_is_overlay, marks))
    mark = _ranges(char for char in marks if not _is_overlay(char))
    emoji = rf"(?![{hidden}])[{_EMOJI}][\ufe0e\ufe0f]?"
    unseen, rest = rf"[{hidden}{overlay}]", rf"[{hidden}{overlay}{mark}]*"
    alike = sorted(lookalikes().items())
    letterlike = [char for char, plain in alike if plain.isalnum() and not char.isalnum()]
    signs = [
        char
        for char, plain in alike
        if not plain.isalnum() and char not in _TYPOGRAPHY and not (char.isdecimal() or is_hidden(char))
    ]
    # Either an emoji with its modifiers, or a run to be escaped: hidden characters, and marks that have enough of
    # their kind before them or nothing to stand on.
    token = re.compile(
        rf"{emoji}(?:\u200d{emoji})*|[0-9#*]\ufe0f\u20e3"
        rf"|(?![ -~\n\t])(?P<escaped>{unseen}{rest}|[{mark}](?<=[{mark}]{{{MOST_MARKS + 1}}}){rest}"
        rf"|[{mark}](?<![^\n{hidden}{overlay}].){rest})"
    )
    return _Patterns(
        token,
        re.compile(f"[{hidden}]+"),
        re.compile(rf"[\w.@+{mark}\u2010\u2011{_MINUS}-]+"),
        re.compile(rf"[^\W\d_][^\W\d_{mark}]*[^\W\d_]"),
        re.compile(rf"(?:(?!_)[\w{_ranges(letterlike)}{mark}])+"),
        re.compile(rf"(?<=[!-~])[{_ranges(signs)}]+(?=[!-~])"),
    )


def _ranges(chars: Iterable[str]) -> str:
    """The inside of a regular expression's [...] that matches `chars`, which are in order."""
    found: list[list[int]] = []
    for code in map(ord, chars):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in found)


def _is_overlay(char: str) -> bool:
    return unicodedata.combining(char) == 1 or char in _MORE_OVERLAYS


def _pieces(text: str, runs: list[re.Match[str]]) -> Iterator[Piece]:
    at = 0
    for run in runs[:MOST_PIECES]:
        if at < run.start():
            yield Piece(text[at : run.start()])
        yield Piece(_codes(run[0]), hidden=True)
        at = run.end()
    if len(runs) > MOST_PIECES:
        yield Piece(escaped(text[at:]), hidden=True)
    elif at < len(text):
        yield Piece(text[at:])


def _codes(run: str) -> str:
    codes = " ".join(f"U+{ord(char):04X}" for char in run[:MOST_CODES])
    return codes if len(run) <= MOST_CODES else f"{codes} +{len(run) - MOST_CODES:,} more"


def _warnings(text: str, escaped: str, *, stored: bool) -> Iterator[Warned]:
    if overrides := len(_DIRECTION.findall(escaped)):
        yield Warned(
            gettext_noop("Contains a direction override: elsewhere this text may look different."), "direction"
        )
    hidden = sum(map(len, patterns().hidden_run.findall(escaped)))
    marks = len(escaped) - hidden
    # One warning for each character.
    if hidden := hidden - overrides:
        one = gettext_noop("Contains an invisible character, shown as U+ and a code.")
        many = translatable(f"Contains {hidden:,} invisible characters, shown as U+ and a code.")
        yield Warned(many if hidden > 1 else one, "hidden")
    if marks:
        one = gettext_noop("Contains a mark that can overlap letters, shown as U+ and a code.")
        many = translatable(f"Contains {marks:,} marks that can overlap letters, shown as U+ and a code.")
        yield Warned(many if marks > 1 else one, "marks")
    if stored:
        sentence = gettext_noop("Contains right-to-left letters, shown in stored order, left to right.")
        yield Warned(sentence, "right_to_left")
    words = _suspect_words(text)
    for word in words[:MOST_WORDS]:
        yield Warned(_about(word), "look_alike")
    if more := len(words[MOST_WORDS:]):
        many = translatable(f"{more:,} more words have look-alikes of other letters.")
        yield Warned(
            many if more > 1 else gettext_noop("One more word has look-alikes of other letters."), "look_alike"
        )
    yield from _foreign_addresses(text)
    if twins := _named(_twins(text) - {char for word in words for char in _alike(word)}):
        yield Warned(translatable(f"Contains look-alikes of ordinary characters: {twins}."), "look_alike")


def _suspect_words(text: str) -> list[str]:
    """Return the words with look-alikes in them, each once; and those that are look-alikes altogether, unless what
    stands around is of the same script and cannot be mistaken for anything else.
    """
    found: dict[str, None] = {}
    # A single letter is a word of many languages, and a sign of Greek in any of them.
    single: dict[str, str] = {}
    scripts = {"GREEK"}
    for word, verdict, own, around in _placed(text):
        if verdict == "whole" and len(word) == 1 and (around or own == "GREEK"):
            single[word] = own
        elif verdict == "mixed" or (verdict == "whole" and own not in around):
            found[word] = None
        else:
            scripts.add(own)
    return [*found, *(word for word, own in single.items() if own not in scripts)]


def _placed(text: str) -> Iterator[tuple[str, Verdict, str, set[str]]]:
    """Yield each word as judged, with the scripts of the nearest words that are no look-alikes altogether; none within
    a name or address that has letters of ASCII, too.
    """
    waiting: list[tuple[re.Match[str], str, str]] = []
    before = ""
    for match in chain(patterns().word.finditer(text), [None]):
        verdict, own = _judged(match[0]) if match else ("", "")
        if match and verdict == "whole":
            waiting.append((match, own, before))
            continue
        if own or not match:
            for each, whole, earlier in waiting:
                yield each[0], "whole", whole, set() if _is_joined(text, each) else {earlier, own}
            waiting.clear()
            before = own
        if match:
            yield match[0], verdict, own, {before}


def _is_joined(text: str, match: re.Match[str]) -> bool:
    """Say whether the word is a part of a name or address with letters or digits of ASCII."""
    before, after = text[max(0, match.start() - 2) : match.start()][::-1], text[match.end() : match.end() + 2]
    return any(each[:1] in _JOINTS and each[1:].isascii() and each[1:].isalnum() for each in (before, after))


def _judged(word: str) -> tuple[Verdict, str]:
    return _remembered(word) if len(word) <= LONGEST_NAMED else _judge(word)


def _judge(word: str) -> tuple[Verdict, str]:
    """Say whether a word mixes look-alikes with what they look like, or is of look-alikes altogether; and its script,
    empty for none, as numbers have.
    """
    if word.isascii():
        return "", "LATIN" if _LATIN.search(word) else ""
    chars = set(word)
    scripts = {script(char) for char in chars} - {"COMMON", "INHERITED"}
    one = next(iter(scripts)) if len(scripts) == 1 else ""
    alike = _alike(word)
    digits = any(char.isascii() for char in chars if char.isdecimal())
    if (_LATIN.search(word) and alike) or len(scripts & MIXABLE) > 1:
        return "mixed", ""
    if digits and any(char.isdecimal() and not char.isascii() and not _twin(char) for char in chars):
        return "mixed", ""
    others = {char for char in chars - alike if not ("0" <= char <= "9")}
    is_whole = one not in {"", "LATIN"} and alike and not others and not chars & _FAR
    return "whole" if is_whole else "", one or "&".join(scripts)


_remembered = lru_cache(maxsize=4096)(_judge)


def _alike(word: str) -> set[str]:
    """Return the characters of a word that can be mistaken for ASCII letters and digits."""
    table = lookalikes()
    found = {char for char in word if table.get(char, "-").isalnum() and char not in _TYPOGRAPHY}
    if "\xd7" in found and not _TIMES.search(word):
        found.discard("\xd7")
    # A zero of Chinese and Japanese.
    if "\u3007" in found and _EAST_ASIAN_LETTER.search(word.replace("\u3007", "")):
        found.discard("\u3007")
    return found


def _about(word: str) -> str:
    verdict, found = _judged(word)
    plain = "".join(lookalikes().get(char, char) for char in word)[:LONGEST_NAMED]
    twins, word = _named(_alike(word)), word[:LONGEST_NAMED]
    if verdict == "whole":
        which = _SCRIPTS.get(found) or found.replace("_", " ").title()
        return translatable(f"“{word}” is written in {which} letters that look like “{plain}”: {twins}.")
    if twins:
        return translatable(f"“{word}” reads like “{plain}”, but has look-alikes: {twins}.")
    return translatable(f"Mixes look-alike letters of different alphabets in one word: “{word}”.")


def _foreign_addresses(text: str) -> Iterator[Warned]:
    address = host = ""
    for match in patterns().hostlike.finditer(text):
        if match[0].isascii():
            continue
        local, at, name = match[0].rpartition("@")
        name = name.strip(".-_")
        if at and "." in name and not local.isascii() and not _EAST_ASIAN_LETTER.search(local):
            address = address or match[0]
        if not name.isascii() and "." in name and patterns().top_level.match(name.rpartition(".")[2]):
            host = host or name
    host = host or _wide_host(text)
    if address := address[:LONGEST_NAMED]:
        yield Warned(
            translatable(
                f"“{address}” looks like an e-mail address, but has letters other than a to z: it may imitate another."
            ),
            "address",
        )
    if host := host[:LONGEST_NAMED]:
        yield Warned(
            translatable(
                f"“{host}” looks like a host name, but has letters other than a to z: it may imitate another."
            ),
            "host",
        )


def _wide_host(text: str) -> str:
    for run in _WIDE_STOPS.findall(text) if _WIDE_STOP.search(text) else ():
        *labels, last = _WIDE_STOP.sub(".", run).split(".")
        if not run.isascii() and labels[-1:] != [""] and last.islower() and len(last) > 1:
            return str(run)
    return ""


def _twins(text: str) -> set[str]:
    """Return the characters that are look-alikes wherever they stand, and signs between those of ASCII."""
    wide = set(_WIDE_ALONE.findall(text))
    found = {c for c in set(text) if not c.isascii() and _twin(c) and (c in wide or c not in _WIDE)}
    return found.union(*patterns().sign.findall(text))


def _named(chars: set[str]) -> str:
    found = sorted(chars)
    named = [f"{c} (U+{ord(c):04X}, like “{lookalikes().get(c) or _twin(c)}”)" for c in found[:MOST_CODES]]
    return ", ".join(named) + (f" and {len(found) - MOST_CODES:,} more" if len(found) > MOST_CODES else "")


@lru_cache(maxsize=4096)
def _twin(char: str) -> str | None:
    """The ASCII character that `char` may be mistaken for. Small raised and circled letters are not."""
    if char == _MINUS:
        return "-"
    plain = unicodedata.normalize("NFKC", char)
    is_distinct = unicodedata.category(char) in {"So", "No", "Lm", "Lo"} or is_hidden(char)
    return plain if len(plain) == 1 and "!" <= plain <= "~" and not is_distinct else None


def _punycode(text: str) -> tuple[Warned, ...]:
    if match := _PUNYCODE.search(text):
        sentence = translatable(f"Contains an encoded international host name: “{match.group()[:LONGEST_NAMED]}”.")
        return (Warned(sentence, "punycode"),)
    return ()

"""Where the values of a call come from: the person's messages, results of tools, text from outside, or the model.

Whoever submits a call hands in the texts of its conversation; the gate compares. Texts are compared word by word, so
that `12` is not found in `4712`: without regard to case, spaces and the spelling of numbers (129, 129.00 and 129,00),
but letter by letter, so that look-alikes differ. Each text is read once, and a bounded number of characters.

What the person's last message says otherwise is told, too: another choice, the other direction, the other place, in
English and German. Words are compared, not their sense: the person judges.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property
from itertools import islice
from typing import Any, Final, Literal

from hitlchat.base import schemas
from hitlchat.base.visible import Seen, see

From = Literal["person", "tool", "outside", "model"]
# As it is frozen in a disclosure: {path, from, source, partly?, unsure?, near?, wrote?}; `source` is {call, tool}, or
# null. It is `unsure` if the person is not known to have typed the value and not all of the conversation was looked
# through. `near` is a word of the conversation that a word of the model's own resembles. `wrote` are words of the
# person's last message that speak against the value, or, with an empty path, against the tool.
Origin = dict[str, Any]

# Of all texts of a conversation together, the latest first.
LONGEST: Final = 100_000
# More values than that are not told apart by eye either: the call counts as one with values from outside.
MOST_VALUES: Final = 500
# So many words in a row, taken over by a longer text, are no accident.
STRETCH: Final = 5
# What the person typed is theirs, whoever said it too; what came from outside stays so if a tool repeats it.
ORDER: Final[tuple[From, ...]] = ("person", "outside", "tool")
LOUDEST: Final[tuple[From, ...]] = ("outside", "tool", "person")

# From here on two names, addresses or numbers are mistaken for each other; so many of a conversation are compared with
# so many of a call.
CLOSE: Final = 0.72
MOST_HEARD: Final = 400
MOST_COMPARED: Final = 20
LONGEST_COMPARED: Final = 64

# Parts of one argument that come from the same place.
MOST_NAMED: Final = 8
_WORD: Final = re.compile(r"[^\s\"'`<>()\[\]{}|,;!?*=\u2018-\u201e\xab\xbb]+(?:[,'\u2019]\d+(?:\.\d+)*)*")
_EDGES: Final = ".:,"
_MARKS: Final = re.compile(r"[.,'\u2019]")
_NUMBER: Final = re.compile(r"[#€$£¥]?([-+\u2212]?)[#€$£¥]?(\d{1,30}(?:[.,'\u2019]\d{1,30})*)[€$£¥%]?")
_DAY: Final = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}")
_DIGITS: Final = re.compile(r"(?<![\d.,])\d{2,30}(?![\d.,])")
_SCHEMA_CHOICE: Final = 64

# What the person's last message says against a value: so much of it is read, and of a value in it.
READ: Final = 10_000
LONGEST_GIVEN: Final = 100
# Choices that are words of any sentence.
_EVERYDAY: Final = {
    *("all", "and", "any", "for", "from", "get", "new", "none", "not", "now", "off", "old", "one", "out", "the", "yes"),
    *("alle", "auf", "aus", "der", "die", "das", "ein", "eine", "nein", "neu", "nicht", "und", "von"),
}
SHORTEST_CHOICE: Final = 3
_TEST: Final = {"demo", "sandbox", "staging", "test", "testing", "testserver", "testsystem"}
_LIVE: Final = {"live", "prod", "production", "produktion", "produktiv"}
_LETTERS: Final = re.compile(r"[^\W_]+")
_OF_NAME: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_TO: Final = {"destination", "into", "payee", "recipient", "target", "to"}
_FROM: Final = {"from", "origin", "payer", "sender", "source"}
_ARTICLE: Final = r"(?:the|my|our|dem|der|das|den|mein\w*)\s+"
# What stands before a value, by the direction that an argument's name says it has not.
_BEFORE: Final = {
    "to": rf"(?:from|von|vom|aus)\s+(?:{_ARTICLE})?",
    "from": rf"(?:to|into|nach|an|auf|zu|zum|zur)\s+(?:{_ARTICLE})?",
}


@dataclass(frozen=True)
class Text:
    """Something that was said in a conversation; of what a call gave, which one.

    `given`: what the call was given. A tool that repeats it is no source of it.
    """

    text: str
    origin: From = "person"
    call: str = ""
    tool: str = ""
    given: str = ""

    @property
    def source(self) -> dict[str, str] | None:
        return {"call": self.call, "tool": self.tool} if self.call else None

    @cached_property
    def read(self) -> list[tuple[str, set[Decimal]]]:
        """Every word, with what it means if it is a number."""
        return [(word, set() if word.isalpha() else _amounts(word)) for word in _words(self.text)]

    @cached_property
    def words(self) -> list[str]:
        """Every word; a number in one spelling, without signs of currency and zeros that say nothing."""
        return [f"{next(iter(amounts)).normalize():f}" if len(amounts) == 1 else word for word, amounts in self.read]

    @cached_property
    def phrase(self) -> str:
        return f" {' '.join(self.words)} "

    @cached_property
    def own_words(self) -> frozenset[str]:
        return frozenset(self.words) - (self._before.own_words if self._before else frozenset())

    @cached_property
    def numbers(self) -> frozenset[Decimal]:
        found: set[Decimal] = set()
        for word, amounts in self.read:
            if amounts:
                found |= amounts
            elif not word.isalpha() and not _DAY.fullmatch(word):
                found.update(map(Decimal, _DIGITS.findall(word)))
        return frozenset(found) - (self._before.numbers if self._before else frozenset())

    @cached_property
    def stretches(self) -> frozenset[tuple[str, ...]]:
        found = frozenset(zip(*(self.words[at:] for at in range(STRETCH)), strict=False))
        return found - (self._before.stretches if self._before else frozenset())

    @cached_property
    def _before(self) -> "Text | None":
        return Text(self.given) if self.given else None

    def says(self, wanted: "Text") -> bool:
        """Return whether this text has all of `wanted`, and what the call was given has not."""
        if len(wanted.words) == 1:
            return wanted.words[0] in self.own_words
        return wanted.phrase in self.phrase and not (self._before and wanted.phrase in self._before.phrase)


Stretches = tuple[tuple[Seen, bool], ...]
"""A word in parts, each with whether the other word has something else there."""


@dataclass(frozen=True)
class Near:
    """A word of a value, and that of the conversation which it nearly is."""

    here: Stretches
    there: Stretches


@dataclass(frozen=True)
class Provenance:
    """Where values of one argument come from, for its row on a card; `parts`: which, if they are not all of it, with
    what they are where that needs a look; `call`: only if it may be looked at.
    """

    origin: From
    call: str = ""
    tool: Seen | None = None
    partly: bool = False
    unsure: bool = False
    parts: Seen | None = None
    near: Near | None = None
    wrote: Seen | None = None


@dataclass(frozen=True)
class Heard:
    """The texts of a conversation, the latest first, and no more of them than `LONGEST` characters; `is_whole` if they
    are all that the model could have read.
    """

    texts: tuple[Text, ...]
    is_whole: bool

    @classmethod
    def of(cls, texts: Iterable[Text], *, is_whole: bool = True) -> "Heard":
        found, left = [], LONGEST
        for each in texts:
            found.append(replace(each, text=each.text[:left], given=each.given[:left]))
            left -= len(each.text) + len(each.given)
            if left <= 0:
                break
        return cls(tuple(sorted(found, key=lambda each: ORDER.index(each.origin))), is_whole and left > 0)

    @property
    def message(self) -> str:
        """The person's last one."""
        return next((each.text for each in self.texts if each.origin == "person"), "")

    @cached_property
    def typed(self) -> frozenset[str]:
        """Every word of the person."""
        return frozenset().union(*(each.own_words for each in self.texts if each.origin == "person"))

    @cached_property
    def named(self) -> dict[str, None]:
        """Names, addresses and numbers, as they are spelled, the person's first."""
        words = (word for each in self.texts for word, _ in each.read if _is_comparable(word))
        return dict.fromkeys(islice(words, MOST_HEARD))


def of(arguments: dict[str, Any], heard: Heard | None, schema: dict[str, Any], place: str = "") -> list[Origin] | None:
    """Return where the values of `arguments` come from, each with its path as a JSON pointer; None: nobody can say.

    Not of booleans, of choices that the schema offers, of its defaults, and of empty texts, unless the person's last
    message speaks against them. Those that the person typed are told too. `place`: the names of the tool and of what
    it belongs to, against which that message may speak.
    """
    if heard is None:
        return None
    found: list[Origin] = []
    wrote = written(arguments, heard.message, schema, place)
    compared = 0
    for path, value in _values(arguments, schema, schema):
        if len(found) >= MOST_VALUES:
            found.append({"path": "", "from": "outside", "source": None})
            break
        origin = _origin(value, heard)
        unsure = {} if heard.is_whole or origin["from"] == "person" else {"unsure": True}
        near = ""
        if origin["from"] == "model":
            words = [word for word in _words(str(value)) if _is_comparable(word)][: MOST_COMPARED - compared]
            compared += len(words)
            near = next(filter(None, (_near(word, heard) for word in words)), "")
        more = {"near": near, "wrote": wrote.pop(path, "")}
        found.append({"path": path, **origin, **unsure, **{key: word for key, word in more.items() if word}})
    found += [{"path": path, "from": "model", "source": None, "wrote": words} for path, words in wrote.items()]
    # However the arguments are ordered: identical calls are identical here, too.
    return sorted(found, key=lambda each: str(each["path"]))


def left_by_edit(origins: list[Origin] | None, before: dict[str, Any], now: dict[str, Any]) -> list[Origin] | None:
    """Return those of values that an edit left as they were: the others are the editor's own."""
    if origins is None:
        return None
    old, new = dict(leaves(before)), dict(leaves(now))
    return [each for each in origins if not each["path"] or old.get(each["path"]) == new.get(each["path"], ...)]


def by_argument(
    origins: list[Origin], arguments: dict[str, Any], openable: Collection[str]
) -> dict[str, tuple[Provenance, ...]]:
    """Return what is said of each argument, by its name: of values that the person did not type, together by source.

    What comes from outside is said first. `openable`: the calls that the reader may look at.
    """
    values = dict(leaves(arguments)) if origins else {}
    found: dict[str, dict[tuple[Any, ...], list[str]]] = {}
    for each in sorted(origins, key=lambda each: [*LOUDEST, "model"].index(each["from"])):
        path, near, wrote = each["path"], each.get("near", ""), each.get("wrote", "")
        if (each["from"] == "person" and not wrote) or not path:
            continue
        source = each["source"] or {"call": "", "tool": ""}
        key = (each["from"], source["call"], source["tool"], each.get("partly", False), each.get("unsure", False))
        found.setdefault(schemas.keys(path)[0], {}).setdefault((*key, near, wrote), []).append(path)
    return {
        name: tuple(
            Provenance(
                origin,
                call if call in openable else "",
                see(tool) if tool else None,
                partly,
                unsure,
                _listed(paths, values if origin == "outside" or near or wrote else {}),
                _nearly(str(values.get(paths[0], "")), near),
                see(wrote) if wrote else None,
            )
            for (origin, call, tool, partly, unsure, near, wrote), paths in by_source.items()
        )
        for name, by_source in found.items()
    }


def is_from_outside(origins: list[Origin] | None) -> bool:
    """Return whether a value comes from outside, as far as anybody can say: what is not known may."""
    return origins is None or any(each["from"] == "outside" or each.get("unsure") for each in origins)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values within `value` that are no objects and no lists, each with its path."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, schemas.step(path, key))
    else:
        yield path, value


def in_one_text(value: Any) -> str:
    """Return all that a result says, one value a line."""
    if isinstance(value, dict):
        return "\n".join(f"{key} {in_one_text(part)}" for key, part in value.items())
    return "\n".join(map(in_one_text, value)) if isinstance(value, list) else str(value)


def written(arguments: dict[str, Any], message: str, schema: dict[str, Any], place: str = "") -> dict[str, str]:
    """Return, by JSON pointer, the words of `message` that speak against a value; those against `place` by "".

    `place`: the names of the tool and of what it belongs to.
    """
    message = message[:READ]
    phrase = _phrase(message)
    found = {"": _other_place(phrase, place)}
    properties = schema.get("properties") or {}
    for name, value in arguments.items():
        part = properties.get(name)
        choices = schemas.plain(part, schema).choices if isinstance(part, dict) else ()
        other = _other_choice(phrase, value, [choice for choice, _ in choices]) if choices else ""
        found[schemas.step("", name)] = other or _other_direction(message, name, value)
    return {path: words for path, words in found.items() if words}


def _values(value: Any, part: Any, root: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    plain = schemas.plain(part if isinstance(part, dict) else {}, root)
    if isinstance(value, dict):
        properties = plain.schema.get("properties") or {}
        for key, inner in value.items():
            yield from _values(inner, properties.get(key), root, schemas.step(path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _values(inner, plain.schema.get("items"), root, schemas.step(path, at))
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        is_choice = any(value == choice for choice, _ in plain.choices) and len(str(value)) <= _SCHEMA_CHOICE
        if not is_choice and ("default" not in plain.schema or plain.schema["default"] != value):
            yield path, value


def _origin(value: str | float, heard: Heard) -> Origin:
    wanted = Text(str(value))
    # What a number in a text means is open, if it can mean two things: then it has to be spelled the same.
    amounts = _amounts(value.strip().casefold()) if isinstance(value, str) else {Decimal(str(value))}
    if len(amounts) == 1:
        source = next((each for each in heard.texts if amounts & each.numbers), None)
    else:
        source = next((each for each in heard.texts if wanted.words and each.says(wanted)), None)
    if source is None and len(wanted.words) > 1:
        # Of a longer text what comes from somewhere else counts: the rest may be the model's own words.
        named = frozenset(filter(_names, wanted.words)) - heard.typed
        parts = (each for each in reversed(heard.texts) if named & each.own_words or wanted.stretches & each.stretches)
        source = min(parts, key=lambda each: LOUDEST.index(each.origin), default=None)
        if source is not None:
            return {"from": source.origin, "source": source.source, "partly": True}
    return {"from": source.origin if source else "model", "source": source.source if source else None}


def _listed(paths: list[str], values: dict[str, Any]) -> Seen | None:
    """Return which parts of an argument these are, with their `values`; None: all of it."""
    parts = {".".join(schemas.keys(path)[1:]): str(values.get(path, ""))[:LONGEST_COMPARED] for path in paths}
    if not any(parts):
        return None
    more = len(parts) - MOST_NAMED
    shown = [f"{part} = {value}" if value else part for part, value in islice(parts.items(), MOST_NAMED)]
    return see(", ".join([*shown, *([f"… (+{more})"] if more > 0 else [])]))


def _nearly(value: str, near: str) -> Near | None:
    """Return the word of `value` that is like `near`, with what differs in both; None without one."""
    words = [word for word in _words(value) if _is_comparable(word)][:MOST_COMPARED]
    here = next(iter(get_close_matches(near, words, 1, 0)), "") if near else ""
    if not here:
        return None
    stretches = SequenceMatcher(None, here, near, autojunk=False).get_opcodes()
    return Near(
        tuple((see(here[start:end]), tag != "equal") for tag, start, end, _, _ in stretches if start < end),
        tuple((see(near[start:end]), tag != "equal") for tag, _, _, start, end in stretches if start < end),
    )


def _names(word: str) -> bool:
    """Return whether a word names something: a number, an address, a host."""
    return len(word) > 2 and any(char.isdigit() or char in "@/._" for char in word)


def _is_comparable(word: str) -> bool:
    return (_names(word) or "-" in word) and len(word) <= LONGEST_COMPARED


def _near(word: str, heard: Heard) -> str:
    """Return what the word may have been mistaken for; empty if it is there itself, or nothing like it."""
    return "" if word in heard.named else next(iter(get_close_matches(word, heard.named, 1, CLOSE)), "")


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFC", text).casefold()
    return [word for found in _WORD.findall(folded) if (word := found.strip(_EDGES))]


def _amounts(word: str) -> set[Decimal]:
    """Return what a number can mean: `1.000` two things; nothing, if it is none."""
    found = _NUMBER.fullmatch(word)
    if found is None:
        return set()
    sign, digits = "-" if found[1] in {"-", "\u2212"} else "", found[2]
    marks, parts = _MARKS.findall(digits), _MARKS.split(digits)
    # Thousands come in threes, behind marks that are all the same.
    is_grouped = len(set(marks)) < 2 and all(len(part) == 3 for part in parts[1:])
    is_decimal = bool(marks) and marks[-1] in ".," and marks[-1] not in marks[:-1]
    whole, broken = "".join(parts), f"{''.join(parts[:-1])}.{parts[-1]}"
    return {Decimal(sign + text) for text, holds in ((whole, is_grouped), (broken, is_decimal)) if holds}


def _other_choice(phrase: str, value: Any, choices: list[Any]) -> str:
    """Return the choice that the message names if it names another than `value`, and not that one."""
    telling = (each for each in choices if isinstance(each, str) and SHORTEST_CHOICE <= len(each) <= LONGEST_GIVEN)
    named = [each for each in telling if each.casefold() not in _EVERYDAY and _phrase(each) in phrase]
    return "" if value in named or (isinstance(value, str) and _phrase(value) in phrase) else next(iter(named), "")


def _other_direction(message: str, name: str, value: Any) -> str:
    """Return where the message has the value of `name` if that is the other way round, and nowhere the right one."""
    text = str(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not 2 <= len(text) <= LONGEST_GIVEN:
        return ""
    words = {*map(str.lower, _OF_NAME.findall(name))}
    for way, other, its in (("to", "from", _TO), ("from", "to", _FROM)):
        if words & its:
            wrong, right = (
                re.search(rf"\b{_BEFORE[each]}{re.escape(text)}(?!\w)", message, re.IGNORECASE) for each in (way, other)
            )
            return wrong[0] if wrong and not right else ""
    return ""


def _other_place(phrase: str, place: str) -> str:
    """Return the word for a test if the message has it and `place` is the real thing, and the other way round."""
    words, there = phrase.split(), _phrase(place).split()
    for these, those in ((_TEST, _LIVE), (_LIVE, _TEST)):
        if those.intersection(there) and not these.intersection(there) and not those.intersection(words):
            return next((word for word in words if word in these), "")
    return ""


def _phrase(text: str) -> str:
    return f" {' '.join(word[0].casefold() for word in _LETTERS.finditer(text))} "

"""Regular expressions of schemas, within bounds: what one costs is estimated from its text before it is compiled.

The linear engine writes every counted repetition out in full, and a class of Unicode is hundreds of ranges each time:
a dozen characters can take it a second. A step stands for about a microsecond of compiling.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from hitlchat.base.schemas import subschemas

LONGEST = 500
MOST_STEPS = 20_000
# Of groups within groups.
MOST_LEVELS = 100
# Opening brackets: of the class itself, and of one in it.
MOST_IN_CLASS = 2
# Of all patterns of one schema together.
MOST_PATTERNS = 50
MOST_STEPS_IN_SCHEMA = 20_000

_LETTERS, _DIGITS, _WIDE, _PLAIN = 300, 30, 4, 1
_ESCAPES = dict.fromkeys("wWpP", _LETTERS) | dict.fromkeys("dDsS", _DIGITS) | dict.fromkeys("bBAzZ", _WIDE)
_ESCAPED = r"\\(?:[pPxuU]\{[^}]*\}|[pP].|b\{[a-z-]+\}|.)"
_ESCAPE = re.compile(_ESCAPED, re.DOTALL)
_PIECE = re.compile(rf"(?P<escape>{_ESCAPED})|.", re.DOTALL)
# A class is one, with the classes in it.
_INNER = rf"\[\^?\]?(?:{_ESCAPED}|[^\]\\])*\]?"
_ATOM = re.compile(
    rf"{_ESCAPED}|\[\^?\]?(?:{_ESCAPED}|{_INNER}|[^\]\\])*\]?"
    r"|\{\s*(?P<least>\d*)\s*(?P<more>,?)\s*(?P<most>\d*)\s*\}|.",
    re.DOTALL,
)
_IGNORES_CASE = re.compile(r"\(\?[A-Za-z]*i")
# What stands where is another question then.
_IGNORES_SPACES = re.compile(r"\(\?[A-Za-z]*x")


@lru_cache(maxsize=2048)
def is_costly(pattern: str) -> bool:
    """Return whether compiling it could take longer than anyone should wait."""
    return len(pattern) > LONGEST or steps(pattern) > MOST_STEPS


@lru_cache(maxsize=2048)
def compiled(pattern: str) -> SchemaValidator | None:
    """Return a validator of texts that the pattern matches.

    None: it is costly, or the linear engine lacks it (look-around).
    """
    if is_costly(pattern):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def matches(pattern: str, text: str) -> bool | None:
    """Return whether a pattern matches a text; None if it is costly, or in a dialect that nothing here reads."""
    if is_costly(pattern):
        return None
    if (linear := compiled(pattern)) is not None:
        return linear.isinstance_python(text)
    try:
        return re.search(pattern, text) is not None
    except (re.error, OverflowError, RecursionError):
        return None


def steps(pattern: str) -> int:
    """A bound for the work of compiling it, in time linear in its length; what the engine refuses counts as letters."""
    if _IGNORES_SPACES.search(pattern):
        return MOST_STEPS + 1
    spellings = _WIDE if _IGNORES_CASE.search(pattern) else 1
    # `last` is apart, for the repetition that may follow; so is what stands before each open group.
    total, last, groups = 0, 0, list[int]()
    for atom in _ATOM.finditer(pattern):
        text = atom[0]
        if atom["least"] is not None:
            last *= max(int(atom["least"] or 0) + bool(atom["more"]), int(atom["most"] or 0), 1)
        elif text == "(":
            groups.append(total + last)
            total, last = 0, _PLAIN
        elif text == ")" and groups:
            total, last = groups.pop(), total + last
        elif text in "*+?":
            last *= 2
        elif text.count("[") > MOST_IN_CLASS:
            return MOST_STEPS + 1
        else:
            escapes = sum(_ESCAPES.get(each[1], _WIDE * spellings) for each in _ESCAPE.findall(text))
            wide = sum(each > "\x7f" for each in text) + (text == ".") + text.startswith("[^")
            total, last = total + last, escapes + spellings * (_PLAIN + _WIDE * wide)
    return total + last + sum(groups)


def costly_patterns(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the schema in it (a JSON pointer), and why, for each pattern with which `schema` takes long to compile."""
    spent, count = 0, 0
    for inner in subschemas(schema):
        if not isinstance(pattern := inner.schema.get("pattern"), str):
            continue
        if is_costly(pattern):
            why = f"its pattern is too costly: expected at most {LONGEST} characters and fewer repetitions"
            yield inner.where, why
            continue
        spent, count = spent + steps(pattern), count + 1
        if count > MOST_PATTERNS or spent > MOST_STEPS_IN_SCHEMA:
            yield (
                inner.where,
                f"its pattern is one too many: expected at most {MOST_PATTERNS} in a schema, or simpler ones",
            )


def broken(pattern: str) -> str:
    """Return why a text is a pattern in no dialect; empty if it is one in some, whether it is read here or not."""
    depth, is_in_class = 0, False
    for piece in _PIECE.finditer(pattern):
        one = "" if piece["escape"] else piece[0]
        if is_in_class:
            is_in_class = one != "]"
        elif one == "[":
            is_in_class = True
        else:
            depth += (one == "(") - (one == ")")
        if depth < 0:
            return "has a closing parenthesis without an opening one"
        if depth > MOST_LEVELS:
            return "is nested too deeply"
        if one == "\\":
            return "ends in a backslash"
    if is_in_class:
        return "has a bracket that is not closed"
    return "has a parenthesis that is not closed" if depth else ""


def is_ambiguous(pattern: str) -> bool:
    """Return whether its classes have what one dialect takes for characters, and another one for sets of them."""
    is_in_class, before = False, ""
    for piece in _PIECE.finditer(pattern):
        one = "" if piece["escape"] else piece[0]
        if is_in_class and (one == "[" or (one in {"&", "-", "~"} and one == before)):
            return True
        is_in_class = one != "]" if is_in_class else one == "["
        before = one
    return False

"""The question in one plain sentence, made from the tool's prompt template."""

import re
from collections.abc import Iterator
from typing import Any

from hitlchat.base import canonical

_PLACEHOLDER = re.compile(r"\{(toolName|args|args\.([^{}]{1,100}))\}")
_SIMPLE = re.compile(r"[\w.@:/-]+\Z")
_NO_QUOTES = str.maketrans("“”„", '"""')
LONGEST_VALUE = 200
LONGEST_PIECE = 60
NOT_GIVEN = "(not given)"

# A stretch of the sentence, and whether it was filled in: then it is shown in a box of its own.
Piece = tuple[str, bool]


class BadTemplate(ValueError):
    """The template has a placeholder that can never be filled; the message names it."""


def render(template: str, tool_name: str, arguments: dict[str, Any]) -> str:
    """`template` with {toolName}, {args} and {args.NAME} filled in as plain text; long values are cut and the cut is
    counted, and texts that could go on with the sentence are quoted.
    """

    def fill(match: re.Match[str]) -> str:
        if match[1] == "toolName":
            return tool_name
        if match[1] == "args":
            return _short(_text(arguments))
        if match[2] not in arguments:
            return NOT_GIVEN
        value = arguments[match[2]]
        if not isinstance(value, str) or _SIMPLE.match(value):
            return _short(_text(value))
        return _quoted(value, inside=template[: match.start()].endswith("“"))

    return _PLACEHOLDER.sub(fill, template)


def pieces(template: str, tool_name: str, arguments: dict[str, Any]) -> list[Piece]:
    """The same sentence for the card, which shows what was filled in apart from the template's own words."""
    found: list[Piece] = []
    at = 0
    for match in _PLACEHOLDER.finditer(template):
        found.append((template[at : match.start()], False))
        found.extend(_filled(match, tool_name, arguments))
        at = match.end()
    found.append((template[at:], False))
    return [piece for piece in found if piece != ("", False)]


def check(template: str, properties: dict[str, Any]) -> None:
    """BadTemplate when a {…} in `template` is no known placeholder or names no argument."""
    for found in re.findall(r"\{[^{}]*\}", template):
        match = _PLACEHOLDER.fullmatch(found)
        if match is None or (match[2] and match[2] not in properties):
            raise BadTemplate(f"{found} is unknown here; use {{toolName}}, {{args}} or {{args.NAME}} of an argument.")


def _filled(match: re.Match[str], tool_name: str, arguments: dict[str, Any]) -> Iterator[Piece]:
    if match[1] == "toolName":
        yield tool_name, not _SIMPLE.match(tool_name)
    elif match[1] == "args":
        yield from _boxed(_text(arguments))
    elif match[2] in arguments:
        yield from _boxed(_text(arguments[match[2]]))
    else:
        yield NOT_GIVEN, False


def _boxed(text: str) -> Iterator[Piece]:
    hidden = len(text) - LONGEST_PIECE
    shown = text[:LONGEST_PIECE] + ("…" if hidden > 0 else "")
    yield shown.replace("\n", " ⏎ "), True
    if hidden > 0:
        yield f" (and {hidden:,} more {'character' if hidden == 1 else 'characters'})", False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical.pretty(value)


def _quoted(text: str, *, inside: bool) -> str:
    """`text` between quotation marks, which it cannot close itself; `inside` marks that are there already."""
    text = _short(text.translate(_NO_QUOTES))
    return text if inside else f"“{text}”"


def _short(text: str) -> str:
    hidden = len(text) - LONGEST_VALUE
    return text if hidden <= 0 else f"{text[:LONGEST_VALUE]}… (and {hidden:,} more characters)"

"""A call in one plain sentence, which is also the question about it: made from the tool's prompt template if it has
one, else from its title, its server and the arguments.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from hitlchat.base import canonical

_PLACEHOLDER = re.compile(r"\{(toolName|args|args\.([^{}]{1,100}))\}")
_SIMPLE = re.compile(r"[\w.@:/-]+\Z")
_NO_QUOTES = str.maketrans("“”„", '"""')
LONGEST_VALUE = 200
LONGEST_PIECE = 60
NOT_GIVEN = "(not given)"
# What follows the name of its server in the origin of a tool.
ON_SERVER: Final = " (MCP server)"
# Without a template. What is left out stands in the boxes of the card.
LONGEST_TITLE: Final = 80
MOST_ARGUMENTS: Final = 3
_BETWEEN_WORDS: Final = re.compile(r"[_-]+|(?<=[a-z])(?=[A-Z])")

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
            return short(_text(arguments), LONGEST_VALUE)
        if match[2] not in arguments:
            return NOT_GIVEN
        value = arguments[match[2]]
        if not isinstance(value, str) or _SIMPLE.match(value):
            return short(_text(value), LONGEST_VALUE)
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


def usual(tool_name: str, title: str, origin: str, arguments: dict[str, Any]) -> list[Piece]:
    """The sentence of a tool without a template: "Draw a chart on mail: title x". Its title may be a stranger's."""
    server = origin.removesuffix(ON_SERVER) if origin.endswith(ON_SERVER) else ""
    words = _cut(" ".join(title.split()), LONGEST_TITLE).rstrip(" .:!?")
    if not words:
        words = _BETWEEN_WORDS.sub(" ", tool_name.removeprefix(f"{server}_")).strip() or tool_name
    found = [(words[:1].upper() + words[1:], False)]
    if server:
        found += [(" on ", False), (server, True)]
    for number, (name, value) in enumerate(islice(arguments.items(), MOST_ARGUMENTS)):
        shown = _cut(name.replace("\n", " ⏎ "), LONGEST_PIECE)
        found += [(", " if number else ": ", False), (shown, not _SIMPLE.match(shown)), (" ", False)]
        found.append((_cut(_text(value).replace("\n", " ⏎ "), LONGEST_PIECE), True))
    if (more := len(arguments) - MOST_ARGUMENTS) > 0:
        found.append((f" and {more:,} more", False))
    return found


def plain(sentence: Sequence[Piece]) -> str:
    """Return the sentence as text; a filled-in value is quoted if it could be read as part of the sentence."""
    return "".join(_quoted(text) if is_value and not _SIMPLE.match(text) else text for text, is_value in sentence)


def check(template: str, properties: dict[str, Any]) -> None:
    """BadTemplate when a {…} in `template` is no known placeholder or names no argument."""
    for found in re.findall(r"\{[^{}]*\}", template):
        match = _PLACEHOLDER.fullmatch(found)
        if match is None or (match[2] and match[2] not in properties):
            raise BadTemplate(f"{found} is unknown here; use {{toolName}}, {{args}} or {{args.NAME}} of an argument.")


def short(text: str, most: int) -> str:
    hidden = len(text) - most
    return text if hidden <= 0 else f"{text[:most]}… (and {hidden:,} more characters)"


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


def _quoted(text: str, *, inside: bool = False) -> str:
    """`text` between quotation marks, which it cannot close itself; `inside` marks that are there already."""
    text = short(text.translate(_NO_QUOTES), LONGEST_VALUE)
    return text if inside else f"“{text}”"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"

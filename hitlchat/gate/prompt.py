"""The question in one plain sentence, made from the tool's prompt template."""

import re
from typing import Any

from hitlchat.gate import canonical

_PLACEHOLDER = re.compile(r"\{(toolName|args|args\.([^{}]{1,100}))\}")
LONGEST_VALUE = 200


class BadTemplate(ValueError):
    """The template has a placeholder that can never be filled; the message names it."""


def render(template: str, tool_name: str, arguments: dict[str, Any]) -> str:
    """`template` with {toolName}, {args} and {args.NAME} filled in; long values are cut and the cut is counted."""

    def fill(match: re.Match[str]) -> str:
        if match[1] == "toolName":
            return tool_name
        if match[1] == "args":
            return _short(_text(arguments))
        return _short(_text(arguments[match[2]])) if match[2] in arguments else "(not given)"

    return _PLACEHOLDER.sub(fill, template)


def check(template: str, properties: dict[str, Any]) -> None:
    """BadTemplate when a {…} in `template` is no known placeholder or names no argument."""
    for found in re.findall(r"\{[^{}]*\}", template):
        match = _PLACEHOLDER.fullmatch(found)
        if match is None or (match[2] and match[2] not in properties):
            raise BadTemplate(f"{found} is unknown here; use {{toolName}}, {{args}} or {{args.NAME}} of an argument.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical.pretty(value)


def _short(text: str) -> str:
    hidden = len(text) - LONGEST_VALUE
    return text if hidden <= 0 else f"{text[:LONGEST_VALUE]}… (and {hidden:,} more characters)"

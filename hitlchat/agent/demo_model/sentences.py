"""Calls in a message: by the names of tools, or in the words of their approval prompts.

`refund_order order_id=4711 amount=12.00` calls by name, with a JSON object or with values that are JSON or bare words;
`refund_order(order_id: 4711, amount: 12.00)` is the same.
“Refund 12.00 EUR for order 4711” calls the tool whose prompt template is “Refund {args.amount} EUR for order
{args.order_id}”. All rules read a text once, from left to right.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hitlchat.gate.prompt import NOT_GIVEN

LONGEST, MOST_CALLS, MOST_TOOLS, LONGEST_TITLE = 2_000, 20, 500, 200
FEWEST_LETTERS = 3  # of a template's own words, for a sentence to be known by them
_ENDS = ".!? "
# Quotes first, so that nothing inside of them ends a call.
_BREAK = re.compile(r'"[^"\n]*"|“[^”]*”|(?P<end>\s*[;\n]\s*|,?\s(?:and\s)?then\s)')
_CALLED = re.compile(r"(?:please\s)?(?:call\s)?([\w.-]+)[!?.:]?(?=[\s({]|$)\s*(?:with\s)?", re.IGNORECASE)
_NAME = re.compile(r"[\s,]*([\w.-]+)\s*[=:]\s*")
_BARE = re.compile(r"[^\s,]*")
_PLACEHOLDER = re.compile(r"\{args\.([^{}]+)\}")
_REASON = re.compile(r"\sbecause\s", re.IGNORECASE)
_NUMBER_SIGN = re.compile(r"^#(?=\d+$)")  # as in order #4711
_CLOSING = {"“": "”", '"': '"'}
_CLOSING_OF_VALUES = {"“": "”", "'": "'"}
_JSON = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Prompt:
    """The approval prompt template of a tool, and arguments to try it with."""

    template: str
    example: dict[str, Any] | None = None


@dataclass(frozen=True)
class Tool:
    name: str
    title: str
    schema: dict[str, Any]
    prompt: Prompt | None = None

    @property
    def properties(self) -> dict[str, Any]:
        found = self.schema.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def required(self) -> list[str]:
        found = self.schema.get("required")
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


@dataclass(frozen=True)
class Call:
    """A call to make; if arguments are `missing`, one to ask about."""

    tool: Tool
    arguments: dict[str, Any]

    @property
    def missing(self) -> list[str]:
        return [name for name in self.tool.required if name not in self.arguments]


def offered(request: dict[str, Any], prompts: Mapping[str, Prompt]) -> list[Tool]:
    """Return the tools of `request`; none if it forbids calls."""
    raw = request.get("tools")
    if request.get("tool_choice") == "none" or not isinstance(raw, list):
        return []
    functions = [entry.get("function") for entry in raw[:MOST_TOOLS] if isinstance(entry, dict)]
    return [_tool(each, prompts) for each in functions if isinstance(each, dict) and each.get("name")]


def calls_in(text: str, tools: list[Tool]) -> list[Call]:
    """Return the calls that `text` asks for, in its order; none unless every part of it asks for one."""
    parts = [part for part in _parts(text[:LONGEST]) if part]
    found = [_named(part, tools) or _worded(part, tools) for part in parts[:MOST_CALLS]]
    return [call for call in found if call] if all(found) else []


def _tool(function: dict[str, Any], prompts: Mapping[str, Prompt]) -> Tool:
    name, schema = str(function["name"]), function.get("parameters")
    title = str(function.get("description") or "").strip().partition("\n")[0][:LONGEST_TITLE].rstrip(".")
    return Tool(name, title, schema if isinstance(schema, dict) else {}, prompts.get(name))


def _parts(text: str) -> Iterator[str]:
    at = 0
    for match in _BREAK.finditer(text):
        if match["end"]:
            yield text[at : match.start()].strip()
            at = match.end()
    yield text[at:].strip()


def _named(part: str, tools: list[Tool]) -> Call | None:
    """Return the call of a part that begins with a tool's name."""
    match = _CALLED.match(part)
    wanted = match[1].rstrip(".") if match else ""
    tool = next((tool for tool in tools if tool.name == wanted), None)
    if match is None or tool is None:
        return None
    given = _spelled_out(part[match.end() :])
    return None if given is None else Call(tool, {name: _typed(tool, name, value) for name, value in given.items()})


def _spelled_out(text: str) -> dict[str, Any] | None:
    """Return the arguments of `name=value …` or a JSON object, in brackets or not; None if there is anything else."""
    if text.startswith("("):
        text, closing, behind = text[1:].rpartition(")")
        if not closing or behind.strip(_ENDS):
            return None
        text = text.strip()
    if text.startswith("{"):
        given, end = _value(text, 0)
        return given if isinstance(given, dict) and not text[end:].strip(" .!") else None
    found: dict[str, Any] = {}
    at = 0
    while match := _NAME.match(text, at):
        found[match[1]], at = _value(text, match.end())
    return None if text[at:].strip(" ,.!") else found


def _value(text: str, at: int) -> tuple[Any, int]:
    """Return the value that begins at `at`, and where it ends."""
    if text[at : at + 1] in {'"', "[", "{"}:
        try:
            return _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            pass  # then it is a bare word
    closing = _CLOSING_OF_VALUES.get(text[at : at + 1])
    if closing and (end := text.find(closing, at + 1)) > 0:
        return text[at + 1 : end], end + 1
    word = _BARE.match(text, at)
    return (word[0], word.end()) if word else ("", at)


def _typed(tool: Tool, name: str, value: Any) -> Any:
    """Return a bare word as the JSON that its parameter wants, where it is that."""
    schema = tool.properties.get(name)
    kinds = schema.get("type") if isinstance(schema, dict) else None
    is_text = "string" in kinds if kinds else not str(value).startswith(("{", "["))
    if is_text or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _worded(part: str, tools: list[Tool]) -> Call | None:
    """Return the call of the tool whose prompt has most of the part's words."""
    found: list[tuple[int, Call]] = []
    for tool in tools:
        if tool.prompt and (given := _filled(tool.prompt.template.replace("{toolName}", tool.name), part, tool)):
            words, values = given
            found.append((words, Call(tool, {name: _typed(tool, name, value) for name, value in values.items()})))
    return max(found, key=lambda each: each[0], default=(0, None))[1]


def _filled(template: str, part: str, tool: Tool) -> tuple[int, dict[str, str]] | None:
    """Return how many characters of `part` are the template's own, and what stands in its placeholders."""
    values: dict[str, str] = {}
    if "reason" in tool.properties and "{args.reason}" not in template:
        part, *behind = _REASON.split(part, maxsplit=1)
        values = {"reason": behind[0].rstrip(_ENDS)} if behind else {}
    template, part = template.rstrip(_ENDS), part.rstrip(_ENDS)
    own, names = _PLACEHOLDER.split(template)[::2], _PLACEHOLDER.findall(template)
    words = sum(map(str.isalpha, "".join(own)))
    found = _search(own[0], part, 0, last=not names)
    if words < FEWEST_LETTERS or "{args}" in template or found is None or found.start() > 0:
        return None
    for number, name in enumerate(names, start=1):
        begin = found.end()
        # A value in quotation marks ends behind the closing one at the earliest.
        closing = _CLOSING.get(part[begin : begin + 1])
        least = max(part.find(closing, begin + 1) + 1, begin) if closing else begin
        found = _search(own[number], part, least, last=number == len(names))
        if found is None:
            return None
        value = part[begin : found.start()].strip()
        if value and value != NOT_GIVEN:
            is_quoted = len(value) > 1 and _CLOSING.get(value[0]) == value[-1]
            values[name] = value[1:-1] if is_quoted else _NUMBER_SIGN.sub("", value)
    return words, values


def _search(piece: str, part: str, begin: int, *, last: bool) -> re.Match[str] | None:
    """Return where a piece of a template stands in `part`: the next place, for its last piece the end."""
    return re.compile(re.escape(piece) + (r"\Z" if last else ""), re.IGNORECASE).search(part, begin)

"""The texts of the demo model that are not about a result."""

import json
import re
from typing import Any

from hitlchat.agent.demo_model.language import canonical, parts
from hitlchat.agent.demo_model.outcome import code, text
from hitlchat.agent.demo_model.plan import Call
from hitlchat.agent.demo_model.schemas import MISFIT, Param, Tool, fit, item

MOST_SHOWN, MOST_SUGGESTED = 8, 4
NOTHING = "I found no tool for that."
MOST_WORDS = 20_000
DEFAULT_WORDS = 200
SENTENCES_IN_PARAGRAPH = 5

_COUNTED = re.compile(r"\b(\d{1,6})[\s-]+words?\b", re.IGNORECASE)
_LONG = re.compile(
    r"\b(?:write|tell|stream|compose|give)\b.*\b(?:essay|story|poem|long\s+(?:text|answer|message)|text)\b",
    re.IGNORECASE,
)
_SUCH_AS = re.compile(r"^[^,]*,? such as ([^;,]{1,60}?)(?= or | and |[;,.]?$|[;,.]\s)")
_WHO = "the quiet gardener|a patient editor|the night train|an old lighthouse|the small team|a careful reader"
_DOES = "follows|remembers|crosses|describes|repairs|visits|watches"
_WHAT = "the long road to the sea|a letter from the north|the map on the wall|every page of the book|the river"
_WHEN = "before the rain begins|while the city is still asleep|with a steady hand|and takes all the time it needs"


def words_wanted(said: str) -> int:
    """How many words of text the user asks for, 0 if none."""
    counted = _COUNTED.search(said)
    if counted:
        return min(int(counted[1]), MOST_WORDS)
    return DEFAULT_WORDS if _LONG.search(said) else 0


def filler(count: int) -> str:
    """Exactly `count` words of plain sentences in short paragraphs."""
    words: list[str] = []
    number = 0
    while len(words) < count:
        sentence = " ".join(
            _pick(group, number, step) for group, step in ((_WHO, 1), (_DOES, 3), (_WHAT, 2), (_WHEN, 5))
        )
        number += 1
        end = ".\n\n" if number % SENTENCES_IN_PARAGRAPH == 0 else "."
        words += f"{sentence[0].upper()}{sentence[1:]}{end}".split(" ")
    cut = " ".join(words[:count]).rstrip(".\n")
    return f"{cut}." if cut else ""


def _pick(group: str, number: int, step: int) -> str:
    choices = group.split("|")
    return choices[(number * step + number // len(choices)) % len(choices)]


def nothing(tools: list[Tool], *, again: bool) -> str:
    """That no tool was found, with a few to try; the second time without what was said before."""
    if not again:
        return f"{NOTHING}\n\n{introduction(tools, MOST_SUGGESTED)}"
    tries = " or ".join(code(example(tool)) for tool in tools[:MOST_SUGGESTED])
    return f"{NOTHING} Try {tries}." if tries else NOTHING


def which(call: Call) -> str:
    """Ask which of several tools is meant that fit equally well."""
    offered = (call.tool, *call.rivals)[:MOST_SUGGESTED]
    shown = "\n".join(f"- {code(example(tool))}: {text(tool.title)}" for tool in offered)
    if not call.rivals:
        return f"I am not sure that you mean this. If so, please say it in this way:\n\n{shown}"
    return f"I am not sure which of these you mean. Please say it in one of these ways:\n\n{shown}"


def introduction(tools: list[Tool], most: int = MOST_SHOWN) -> str:
    """Who answers here, and what can be tried."""
    lead = (
        "I am the **demo model**: a few rules that match your words to tools, so that everything can be tried "
        "without a language model. To talk to a real one, set `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL`."
    )
    if not tools:
        return f"{lead}\n\nThere is no tool that I may call here. I can write some text: try *write 200 words*."
    shown = "\n".join(
        f"- {code(tool.name)}: {text(tool.title or tool.name)}  \n  Try: {code(example(tool))}" for tool in tools[:most]
    )
    more = f"\n\nand {len(tools) - most} more." if len(tools) > most else ""
    return (
        f"{lead}\n\nYou can ask me for:\n\n{shown}{more}\n\nSeveral calls at once work too: join them with *and then*."
    )


def described(tool: Tool) -> str:
    """What one tool does and takes."""
    lines = [
        f"- {code(param.name)}{'' if param.required else ' (optional)'}: {text(_about(param))}" for param in tool.params
    ]
    takes = "It takes no arguments." if not lines else "\n".join(lines)
    return f"{code(tool.name)}: {text(tool.title or 'no description')}\n\n{takes}\n\nTry: {code(example(tool))}"


def question(calls: list[Call]) -> str:
    """Ask for what is missing, instead of calling with a guess."""
    return "\n\n".join(_ask(call) for call in calls if call.missing)


def _ask(call: Call) -> str:
    names = [code(param.name) for param in call.missing]
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]
    about = "\n".join(f"- {code(param.name)}: {text(_about(param))}" for param in call.missing)
    return (
        f"To call {code(call.tool.name)} I still need {listed}.\n\n{about}\n\nFor example: {code(example(call.tool))}"
    )


def _about(param: Param) -> str:
    kind = (
        f"one of {', '.join(map(str, param.enum))}"
        if param.enum
        else param.form or " or ".join(sorted(param.types)) or "anything"
    )
    return f"{param.description} ({kind})" if param.description else kind


def example(tool: Tool) -> str:
    """A sentence that makes the demo model call `tool` with all it needs."""
    said = " ".join(parts(tool.name)) if len(parts(tool.name)) > 1 else tool.name
    pieces = [_piece(param, said) for param in tool.params if param.required]
    joined = ", ".join(piece for piece in pieces if piece)
    lead = said if not joined or joined.startswith("#") else f"{said},"
    return f"{lead} {joined}".strip().replace(" #", " ")


def _piece(param: Param, said: str) -> str:
    nouns = {canonical(part) for part in said.split()[-1:]}
    if param.is_label and param.is_text and param.words <= nouns:
        return "#4711"
    return f"{param.name}={_sample(param)}"


def _sample(param: Param) -> Any:
    such = _SUCH_AS.search(param.description)
    if such and (param.is_number or param.is_text) and fit(param, such[1]) is not MISFIT:
        return json.dumps(such[1], ensure_ascii=False) if re.search(r"[\s=]", such[1]) else such[1]
    given = param.enum or param.schema.get("examples")
    if isinstance(given, list | tuple) and given:
        return json.dumps(given[0]) if isinstance(given[0], list | dict) else given[0]
    if "array" in param.types:
        return _elements(param)
    kind = next((kind for kind in _KINDS if kind in param.types), "")
    if low := _lowest(param):
        return low
    last = param.name.rpartition("_")[2]
    return _SAMPLES.get(param.form) or _KINDS.get(kind) or _SAMPLES.get(param.name) or _SAMPLES.get(last, '"some text"')


def _lowest(param: Param) -> int | float | None:
    """The least allowed number, where the usual sample is too small."""
    low = param.schema.get("minimum")
    usual = _KINDS["integer"] if "integer" in param.types else _KINDS["number"]
    return low if param.is_number and isinstance(low, int | float) and low > usual else None


def _elements(param: Param) -> str:
    element = item(param)
    if "object" in element.types:
        return '[{"name": "Ann", "count": 3}, {"name": "Ben", "count": 5}]'
    return "[1, 2]" if element.is_number else '["one", "two"]'


_KINDS: dict[str, Any] = {"integer": 3, "number": 10, "boolean": "yes", "object": "{}"}
_SAMPLES = {
    "decimal": "129.00", "date": "2026-01-31", "date-time": "2026-01-31T10:00:00Z", "email": "ann@example.com",
    "uri": "https://example.com", "url": "https://example.com", "unit": "km", "city": "Paris", "id": "4711",
    "timezone": "UTC", "amount": "129.00", "to_unit": "miles", "to_city": "Rome", "expression": "(3+4)*2",
    "country": "IE",
}  # fmt: skip

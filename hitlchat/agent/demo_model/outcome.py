"""Results in the demo model's words: the truth about its calls, as Markdown in which values do nothing."""

import json
import re
from typing import Any

LONGEST_CELL = 200
LONGEST_BLOCK = 4000
MOST_ROWS, MOST_COLUMNS = 20, 8
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&!#$])|(?<=\w)(:)(?=//)|(?<=\bwww)(\.)|(@)")
_SENTENCES = {
    "declined": "You declined {name}, so it was not run.",
    "expired": "Nobody answered in time whether {name} may run, so it was not run.",
    "withdrawn": "{name} was withdrawn before it started, so it was not run.",
    "refused": "A policy refused {name}, so it was not run.",
    "rejected": "{name} was rejected, so it was not run.",
    "failed": "{name} failed.",
    "unknown": "The outcome of {name} is unknown: it may or may not have happened. I will not repeat it.",
    "executing": "{name} has not come back yet: its outcome is not known. I will not repeat it.",
    "unanswered": "There is no result of {name}: I do not know whether it ran.",
}
# Of what failed, whether it had run by then, where that is known.
_FAILED = {True: "{name} was run and failed.", False: "{name} was not run."}
_EMPTY: dict[type, str] = {list: "an empty list", dict: "an empty object"}
_WHY = ("reason_given_by_the_user", "reason", "error")


def report(came: list[tuple[str, str | None]]) -> str:
    """Return one paragraph for each call, in the order of the calls: of its name, and the text of its tool message."""
    return "\n\n".join(_paragraph(code(name), content) for name, content in came)


def text(value: object) -> str:
    """`value` on one line, with everything escaped that Markdown would read."""
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(written.split())
    hidden = len(flat) - LONGEST_CELL
    shown = _SPECIAL.sub(lambda match: "\\" + match[0], flat[:LONGEST_CELL])
    return f"{shown} … ({hidden} more characters)" if hidden > 0 else shown


def code(name: str) -> str:
    """A name as inline code."""
    flat = " ".join(name.split())
    ticks = "`" * (_longest_run(flat) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{space}{flat}{space}{ticks}"


def fence(content: str, language: str = "") -> str:
    """`content` as a code block that it cannot end itself."""
    ticks = "`" * max(3, _longest_run(content) + 1)
    hidden = len(content) - LONGEST_BLOCK
    cut = f"\n… ({hidden} more characters)" if hidden > 0 else ""
    return f"{ticks}{language}\n{content[:LONGEST_BLOCK]}{cut}\n{ticks}"


def block(value: Any) -> str:
    """A JSON value in the plainest form that shows all of it: a line, a list, a table, or a code block."""
    if (
        isinstance(value, dict)
        and value
        and all(_is_plain(each) for each in value.values())
        and len(value) <= MOST_ROWS
    ):
        return "\n".join(f"- {code(str(key))}: {text(each)}" for key, each in value.items())
    if isinstance(value, list) and 0 < len(value) <= MOST_ROWS:
        if all(_is_plain(each) for each in value):
            return "\n".join(f"- {text(each)}" for each in value)
        if table := _table(value):
            return table
    if isinstance(value, str):
        return text(value) if "\n" not in value.strip() and len(value) <= LONGEST_CELL else fence(value)
    return text(value) if _is_plain(value) else fence(json.dumps(value, indent=2, ensure_ascii=False), "json")


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_CELL
    return value is None or isinstance(value, bool | int | float) or value in ([], {})


def _table(rows: list[Any]) -> str:
    """Return rows with the same few plain columns as a table; empty if they are not such."""
    if not all(isinstance(row, dict) and row and row.keys() == rows[0].keys() for row in rows):
        return ""
    if len(rows[0]) > MOST_COLUMNS or not all(_is_plain(cell) for row in rows for cell in row.values()):
        return ""
    lines = [
        [text(key) for key in rows[0]],
        ["---"] * len(rows[0]),
        *([text(cell) for cell in row.values()] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _longest_run(content: str) -> int:
    return max(map(len, re.findall(r"`+", content)), default=0)


def _paragraph(name: str, content: str | None) -> str:
    facts = {"status": "unanswered"} if content is None else _facts(content)
    status = facts.get("status")
    if status == "succeeded":
        lead = f"{name} was run. The result:"
        if arguments := facts.get("arguments"):
            lead = f"You changed the arguments before you approved. {name} was run with:\n\n{block(arguments)}"
            lead += "\n\nThe result:"
        return f"{lead}\n\n{block(facts.get('result'))}"
    if status in _SENTENCES:
        executed = facts.get("executed")
        sentence = _FAILED[executed] if status == "failed" and isinstance(executed, bool) else _SENTENCES[status]
        return sentence.format(name=name) + _why(facts)
    return _result(name, content or "")


def _facts(content: str) -> dict[str, Any]:
    """Return what the gate says about a call that did not simply succeed; empty if `content` is a tool's own result."""
    value = _json(content)
    if isinstance(value, dict):
        is_of_gate = value.get("status") in {*_SENTENCES, "succeeded"} and isinstance(value.get("message"), str)
        return value if is_of_gate else {}
    # The facts come first, and are there also where the rest was cut off.
    cut_off = re.match(r'\{"status": "(\w+)", .*"executed": false', content, re.DOTALL)
    if cut_off and cut_off[1] in _SENTENCES:
        return {"status": cut_off[1]}
    is_text = isinstance(value, str) or value is None
    return {"status": "unknown"} if is_text and re.search("may or may not|outcome is unknown", content.lower()) else {}


def _why(facts: dict[str, Any]) -> str:
    why = next((facts[key] for key in _WHY if facts.get(key)), None)
    if why is None:
        return ""
    if isinstance(why, str):
        why = why.removeprefix("Not run: ").removeprefix("It was not run: ")
    line = f" (line {facts['line']})" if isinstance(facts.get("line"), int) else ""
    is_of_tool = facts["status"] == "failed" and facts.get("executed") is not False
    lead = "Your reason" if facts["status"] == "declined" else "It says" if is_of_tool else "Reason"
    return f" {lead}: {text(why)}{line}"


def _result(name: str, content: str) -> str:
    # A text such as `120.00` is not read: as a number it would lose its last digit.
    looks_like_json = content.lstrip()[:1] in {"{", "[", '"'} or content.strip() == "null"
    value = _json(content) if looks_like_json else content
    if value is None and content.strip() != "null":
        value = content
    if value in (None, "", [], {}):
        return f"{name} was run. It returned {_EMPTY.get(type(value), 'nothing')}."
    shown = fence(content) if isinstance(value, str) and content.lstrip()[:1] in {"{", "["} else block(value)
    return f"{name} was run. The result:\n\n{shown}"


def _json(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None

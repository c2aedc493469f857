"""What the demo model says when its calls have come back: the truth, with every outcome told apart."""

import json
import re
from typing import Any

from hitlchat.agent.demo_model.history import Came
from hitlchat.agent.demo_model.markdown import block, code, fence, text

_WORDS = {
    "declined": re.compile(r"\bdeclined\b"),
    "expired": re.compile(r"\bexpired\b|nobody answered"),
    "withdrawn": re.compile(r"\bwithdrawn\b"),
    "refused": re.compile(r"\brefused\b"),
    "rejected": re.compile(r"\brejected\b"),
    "unknown": re.compile(r"may or may not|outcome is unknown"),
}
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


def told(calls: list[Came]) -> str:
    """One paragraph for each call, in the order of the calls."""
    return "\n\n".join(_one(call) for call in calls)


def _one(call: Came) -> str:
    name = code(call.name)
    if call.content is None:
        return _SENTENCES["unanswered"].format(name=name)
    facts = _facts(call.content)
    status = facts.get("status")
    if status == "succeeded":
        return f"{_changed(name, facts)}\n\n{block(facts.get('result'))}"
    if status in _SENTENCES:
        return _sentence(status, facts).format(name=name) + _why(facts)
    return _result(name, call.content)


def _facts(content: str) -> dict[str, Any]:
    """What the gate says about a call that did not simply succeed; empty if `content` is a tool's own result."""
    value = _json(content)
    if isinstance(value, dict):
        known = value.get("status") in {*_SENTENCES, "succeeded"} and isinstance(value.get("message"), str)
        return value if known else {}
    plain = content.lower()
    said = isinstance(value, str) or value is None
    if said and re.search(r"not (?:executed|run)\b|may or may not|outcome is unknown|nobody answered", plain):
        return next(({"status": status} for status, words in _WORDS.items() if words.search(plain)), {})
    return {}


def _sentence(status: str, facts: dict[str, Any]) -> str:
    executed = facts.get("executed")
    return _FAILED[executed] if status == "failed" and isinstance(executed, bool) else _SENTENCES[status]


def _why(facts: dict[str, Any]) -> str:
    why = next((facts[key] for key in _WHY if facts.get(key)), None)
    if why is None:
        return ""
    if isinstance(why, str):
        why = why.removeprefix("Not run: ").removeprefix("It was not run: ")
    line = f" (line {facts['line']})" if isinstance(facts.get("line"), int) else ""
    said_by_tool = facts["status"] == "failed" and facts.get("executed") is not False
    lead = "Your reason" if facts["status"] == "declined" else "It says" if said_by_tool else "Reason"
    return f" {lead}: {text(why)}{line}"


def _changed(name: str, facts: dict[str, Any]) -> str:
    arguments = facts.get("arguments")
    if not arguments:
        return f"{name} was run. The result:"
    return f"You changed the arguments before you approved. {name} was run with:\n\n{block(arguments)}\n\nThe result:"


def _result(name: str, content: str) -> str:
    value = _told_as(content)
    if value in (None, "", [], {}):
        return f"{name} was run. It returned {_EMPTY.get(type(value), 'nothing')}."
    if isinstance(value, str) and content.lstrip()[:1] in {"{", "["}:
        return f"{name} was run. The result:\n\n{fence(content)}"
    return f"{name} was run. The result:\n\n{block(value)}"


def _told_as(content: str) -> Any:
    """What a result is shown as. A text such as `120.00` is not read: as a number it would lose its last digit."""
    looks_like_json = content.lstrip()[:1] in {"{", "[", '"'} or content.strip() == "null"
    value = _json(content) if looks_like_json else content
    return content if value is None and content.strip() != "null" else value


def _json(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None

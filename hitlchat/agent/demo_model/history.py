"""What the messages of a request say: the user's words, the calls that were made, and what came back."""

import re
from dataclasses import dataclass
from typing import Any

from hitlchat.agent.demo_model.words import LONGEST, calm

NOTE = "[Note from hitlchat]"
_QUESTION = re.compile(r"To call `[^`]+` I still need ((?:`[^`]+`(?:, | and )?)+)")

MOST_ANSWERS = 10
LONGEST_RESULT = 200_000

Message = dict[str, Any]


@dataclass(frozen=True)
class Came:
    """A call of the last turn and the text of its tool message, None if there is none."""

    name: str
    content: str | None


def messages(request: dict[str, Any]) -> list[Message]:
    return _dicts(request.get("messages"))


def _dicts(raw: Any) -> list[dict[str, Any]]:
    return [each for each in raw if isinstance(each, dict)] if isinstance(raw, list) else []


def text_of(message: Message) -> str:
    """The text of a message, whether it is one string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text") or "") for part in content[:100] if isinstance(part, dict))
    return str(content or "")[:LONGEST_RESULT]


def _name(call: dict[str, Any]) -> str:
    function = call.get("function")
    return str(function.get("name") or "the tool") if isinstance(function, dict) else "the tool"


def is_from_user(message: Message) -> bool:
    return message.get("role") == "user" and not text_of(message).startswith(NOTE)


def since_user(history: list[Message]) -> list[Message]:
    """What came after the user's last message."""
    last = max((number for number, message in enumerate(history) if is_from_user(message)), default=-1)
    return history[last + 1 :]


def came_back(history: list[Message]) -> list[Came]:
    """The calls made since the user's last message, each with its result, in the order of the calls."""
    recent = since_user(history)
    results = {
        str(message.get("tool_call_id")): text_of(message) for message in recent if message.get("role") == "tool"
    }
    return [
        Came(_name(call), results.get(str(call.get("id"))))
        for message in recent
        if message.get("role") == "assistant"
        for call in _dicts(message.get("tool_calls"))
    ]


@dataclass(frozen=True)
class Answer:
    """What the user said when asked for the arguments `asked`."""

    asked: tuple[str, ...]
    said: str


def wanted(history: list[Message]) -> tuple[str, list[Answer]]:
    """What the user asks for; if the last messages answer questions of ours, the request before and those answers."""
    spoken = [message for message in history if message.get("role") == "assistant" or is_from_user(message)]
    while spoken and not is_from_user(spoken[-1]):
        spoken.pop()
    answers: list[Answer] = []
    while len(spoken) > 2 and len(answers) < MOST_ANSWERS and (asked := _asked(spoken[-2])):
        answers.insert(0, Answer(asked, calm(text_of(spoken[-1]))))
        del spoken[-2:]
    return (calm(text_of(spoken[-1])) if spoken else ""), answers


def told_before(history: list[Message], beginning: str) -> bool:
    """Whether an earlier answer began like this."""
    return any(message.get("role") == "assistant" and text_of(message).startswith(beginning) for message in history)


def _asked(message: Message) -> tuple[str, ...]:
    question = _QUESTION.match(text_of(message)[:LONGEST]) if message.get("role") == "assistant" else None
    return tuple(re.findall(r"`([^`]+)`", question[1])) if question else ()

"""The tools that ship, as requests offer them to the demo model, and a way to read its answers."""

import json
from collections.abc import Mapping
from typing import Any

from hitlchat.agent.demo_model.sentences import Prompt
from hitlchat.agent.demo_model.server import answer
from tools_studio.language.signature import read
from tools_studio.library.catalogue import TOOLS

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def tool(
    name: str, description: str, required: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    schema = {"type": "object", "properties": required | (optional or {}), "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def shipped() -> list[dict[str, Any]]:
    signatures = {each.name: read(each.source) for each in TOOLS}
    return [
        {
            "type": "function",
            "function": {"name": name, "description": found.description, "parameters": found.input_schema},
        }
        for name, found in signatures.items()
    ]


SHIPPED = shipped()
PROMPTS = {each.name: Prompt(each.prompt_template, each.example) for each in TOOLS}

Calls = list[tuple[str, dict[str, Any]]]


def say(text: str, tools: list[dict[str, Any]], history: tuple[dict[str, Any], ...] = ()) -> tuple[str, Calls]:
    """The text and the calls of the answer to `text`."""
    return reply_to({"messages": [*history, {"role": "user", "content": text}], "tools": tools})


def reply_to(request: dict[str, Any], prompts: Mapping[str, Prompt] = PROMPTS) -> tuple[str, Calls]:
    """The answer put together from its chunks."""
    text = ""
    found: dict[int, list[str]] = {}
    for chunk in answer(request, prompts):
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls", []):
                call = found.setdefault(part["index"], ["", ""])
                call[0] += part["function"].get("name", "")
                call[1] += part["function"]["arguments"]
    return text, [(name, json.loads(arguments)) for name, arguments in found.values()]

"""Which tools the model is told of in a turn: all that there are, or where they are too many, those that matter here.

Model servers take so many and no more (large providers 128), and models choose badly among many.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from math import log
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Max

from hitlchat.agent.models import Message, Role
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.tools import tools_for

TOLD: Final = (
    " You are told of {some} of {all} tools in this turn, those that the conversation points to. If none of them fits, "
    "ask the user to say in other words what is to be done."
)
# What was said lately: so many messages, so much of each.
MESSAGES, CHARACTERS = 6, 4000
# What the person says counts for more than what the model says, and a tool's name for more than its description.
PERSON, NAME = 2, 3
_WORD = re.compile(r"[^\W_]{2,}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Of a word so many letters count: "refunds" and "refunded" are one.
_STEM = 5


def offered(caller: Caller, among: Collection[str] | None, conversation_id: UUID) -> tuple[list[Tool], int]:
    """Return the tools that the model is told of, by name, and how many there are."""
    tools = list(tools_for(caller, among).order_by("name"))
    most = settings.MODEL_TOOLS
    if len(tools) <= most:
        return tools, len(tools)
    called = _called(conversation_id)
    scores = _scores(tools, _wanted(conversation_id))
    # What was used here first: its results are being talked about.
    ranked = sorted(tools, key=lambda tool: (called.get(tool.name, most) >= most // 2, -scores[tool.name], tool.name))
    return sorted(ranked[:most], key=lambda tool: tool.name), len(tools)


def _called(conversation_id: UUID) -> dict[str, int]:
    """The tools that were called in the conversation, the last one as 0."""
    rows = ToolCall.objects.filter(conversation_id=conversation_id).order_by().values("tool_name")
    names = rows.annotate(last=Max("created_at")).order_by("-last").values_list("tool_name", flat=True)
    return {name: place for place, name in enumerate(names[: settings.MODEL_TOOLS])}


def _wanted(conversation_id: UUID) -> dict[str, int]:
    """The words of the last messages, with what each counts for."""
    rows = Message.objects.filter(conversation_id=conversation_id, role__in=[Role.USER, Role.ASSISTANT])
    found: dict[str, int] = {}
    for role, content in rows.order_by("-seq").values_list("role", "content")[:MESSAGES]:
        for word in _words(content[:CHARACTERS]):
            found[word] = max(found.get(word, 0), PERSON if role == Role.USER else 1)
    return found


def _scores(tools: Iterable[Tool], wanted: dict[str, int]) -> dict[str, float]:
    """How much each tool has of what is wanted; a word that few tools have says more than one of many."""
    names = {tool.name: _words(tool.name) for tool in tools}
    texts = {tool.name: names[tool.name] | _words(f"{tool.description} {_parameters(tool)}") for tool in tools}
    spread = Counter(word for text in texts.values() for word in text)

    def score(tool: str, word: str) -> float:
        return wanted[word] * (NAME if word in names[tool] else 1) * log(len(texts) / spread[word])

    return {tool: sum(score(tool, word) for word in text & wanted.keys()) for tool, text in texts.items()}


def _parameters(tool: Tool) -> str:
    properties = tool.input_schema.get("properties")
    return " ".join(properties) if isinstance(properties, dict) else ""


def _words(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(_HUMP.sub(" ", text).casefold())}

"""Picks the tools of which the model is told in a turn, where the catalog has more than fit.

It is told of those that are talked about, and of `find_tools`, with which it looks for others: what that finds it is
told of from the next turn on. All of it is found by words alone, so that nothing of a conversation goes elsewhere.
"""

import logging
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import inf, log
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Max, QuerySet
from django.utils.translation import gettext_noop

from hitlchat.agent import asking, endpoints, tool_sets, usage
from hitlchat.agent.models import Conversation, Message, ModelEndpoint, Role
from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.gate import tools as catalog
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import HitlMode, Tool, ToolCall
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import Status
from hitlchat.gate.tools import SEARCH, Reach, definition, tools_for

NAME: Final = "find_tools"
DESCRIPTION: Final = (
    "Find more tools by a few words about what is to be done, such as “refund order”. You can call what it finds from "
    "your next turn on."
)
INPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"query": {"type": "string", "minLength": 1, "maxLength": 200}},
    "required": ["query"],
    "additionalProperties": False,
}
COLUMNS: Final = asking.built_in(
    name=NAME,
    description=DESCRIPTION,
    input_schema=INPUT_SCHEMA,
    source=SEARCH,
    origin=gettext_noop("Built in: finds tools in the catalog by words, and nothing else runs."),
    hitl_mode=HitlMode.DISABLED.value,
    prompt_template="Find tools for {args.query}",
)
TOLD: Final = (
    " You are told of {some} of {all} tools in this turn. If none of them fits, find others with find_tools before you "
    "say that something cannot be done."
)
ASK_ANEW: Final = (
    " You are told of {some} of {all} tools in this turn, those that the conversation points to. If none of them fits, "
    "ask the user to say in other words what is to be done."
)
NONE_AT_ALL: Final = " You have no tools in this turn: {why}"
# Of one search so many are found, each with so many characters of its description; the last searches count.
FOUND, DESCRIBED, SEARCHES = 8, 300, 4
# Of the model's context the tools of a turn may fill so much.
SHARE: Final = 0.25
# So many are guessed from what was said.
GUESSED: Final = 16
# What was said lately: so many messages, so much of each.
MESSAGES, CHARACTERS = 6, 4000
# What the person says counts for more than what the model says.
PERSON: Final = 2
# A tool's name counts for more than its description.
NAMED: Final = 3
# Of a word so many letters count: "refunds" and "refunded" are one.
STEM: Final = 5
_WORD: Final = re.compile(r"[^\W_]{2,}")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Offer:
    """The tools of which the model is told in a turn, by name. `notice`: what it reads of there being others."""

    tools: list[Tool]
    notice: str = ""


class CatalogSource:
    """Searches the tools of the conversation for its model."""

    async def execute(self, call: ToolCall) -> ToolResult:
        return await in_db(_search)(call)


def fit(tools: QuerySet[Tool] | list[Tool], endpoint: ModelEndpoint | None) -> bool:
    """Return whether a model at this endpoint is told of all of them: they are few, and small. None: that of the
    environment.
    """
    first, room = tools[: settings.MODEL_TOOLS + 1], _room(endpoint)
    return len(first) <= settings.MODEL_TOOLS and (room == inf or sum(map(_size, first)) <= room)


def offered(
    caller: Caller, reach: Reach, conversation_id: UUID, *, endpoint: ModelEndpoint | None = None, whole: bool = False
) -> Offer:
    """Return all tools in reach or, of more than fit, those that are talked about and the search for others.

    `endpoint`: of the model; None: that of the environment. `whole`: all of them, however many.
    """
    if reach.why:
        return Offer([], NONE_AT_ALL.format(why=reach.why))
    tools = list(reach.within(tools_for(caller)).order_by("name"))
    most = settings.MODEL_TOOLS
    if whole or fit(tools, endpoint):
        return Offer(tools)
    # Clients, and agents that they call, have nothing that is built in.
    finder = catalog.built_in(COLUMNS) if caller.kind == "chat" else None
    if finder is None and caller.kind == "chat":
        logger.info("The model cannot search for tools: another tool has the name %s", NAME)
    picked = _picked(tools, conversation_id, most if finder is None else most - 1, _room(endpoint))
    notice = (ASK_ANEW if finder is None else TOLD).format(some=len(picked), all=len(tools))
    return Offer([*picked, *filter(None, [finder])], notice)


def _size(tool: Tool) -> int:
    return len(canonical.pretty(definition(tool)).encode())


def _room(endpoint: ModelEndpoint | None) -> float:
    """Return how many bytes the tools of a turn may have."""
    context = (endpoint or endpoints.environment()).context_length
    return inf if context is None else SHARE * context * usage.BYTES_OF_A_TOKEN


def _picked(tools: list[Tool], conversation_id: UUID, most: int, room: float) -> list[Tool]:
    """Return what was found or called in the conversation, and what its words point to, by name: at most so many, of
    so many bytes, but one in any case.
    """
    calls = ToolCall.objects.filter(conversation_id=conversation_id)
    # The latest first: what searches found, and what was called.
    searches = calls.filter(source=SEARCH, status=Status.SUCCEEDED).order_by("-created_at")
    results = searches.values_list("result", flat=True)[:SEARCHES]
    lately = [str(each["name"]) for result in results if result for each in result["tools"]]
    called = calls.order_by().values("tool_name").annotate(last=Max("created_at")).order_by("-last")
    lately += called.values_list("tool_name", flat=True)[: settings.MODEL_TOOLS]
    rows = Message.objects.shown().filter(conversation_id=conversation_id, role__in=[Role.USER, Role.ASSISTANT])
    # The words of the last messages, with what each counts for.
    found: dict[str, int] = {}
    for role, content in rows.order_by("-seq").values_list("role", "content")[:MESSAGES]:
        for word in _words(content[:CHARACTERS]):
            found[word] = max(found.get(word, 0), PERSON if role == Role.USER else 1)
    scores = _scores(tools, found)
    by_name = {tool.name: tool for tool in tools}
    # Some room is always left for what is said now.
    recent = [name for name in dict.fromkeys(lately) if name in by_name][: most - most // 3]
    pointed = sorted(scores.keys() - set(recent), key=lambda name: (-scores[name], name))
    guessed = [name for name in pointed if scores[name] > 0][: min(GUESSED, most - len(recent))]
    names = [*recent, *guessed]
    filled = accumulate(_size(by_name[name]) for name in names)
    fitting = [name for name, size in zip(names, filled, strict=True) if size <= room] or names[:1]
    return [by_name[name] for name in sorted(fitting)]


def _search(call: ToolCall) -> ToolResult:
    rows = Conversation.objects.filter(pk__in=[call.conversation_id]).select_related("tool_set")
    if (conversation := rows.first()) is None:
        return ToolResult.failure("gone", "The conversation is gone.")
    tools = list(tool_sets.usable(conversation))
    scores = _scores(tools, dict.fromkeys(_words(call.arguments["query"]), 1))
    best = sorted((tool for tool in tools if scores[tool.name] > 0), key=lambda tool: (-scores[tool.name], tool.name))
    found = [{"name": tool.name, "description": tool.description[:DESCRIBED]} for tool in best[:FOUND]]
    return ToolResult(value={"tools": found, "of": len(tools)})


def _words(text: str) -> set[str]:
    """Return the words of a text, each by its beginning."""
    return {word[:STEM] for word in _WORD.findall(_HUMP.sub(" ", text).casefold())}


def _scores(tools: list[Tool], wanted: Mapping[str, int]) -> dict[str, float]:
    """Return how much each tool has of `wanted`, words with what each counts for; by the tools' names."""
    names = {tool.name: _words(tool.name) for tool in tools}
    parameters = {tool.name: tool.input_schema.get("properties") for tool in tools}
    listed = {name: " ".join(each) if isinstance(each, dict) else "" for name, each in parameters.items()}
    texts = {tool.name: names[tool.name] | _words(f"{tool.description} {listed[tool.name]}") for tool in tools}
    spread = Counter(word for text in texts.values() for word in text)

    def score(tool: str, word: str) -> float:
        return wanted[word] * (NAMED if word in names[tool] else 1) * log(len(texts) / spread[word])

    return {tool: sum(score(tool, word) for word in text & wanted.keys()) for tool, text in texts.items()}

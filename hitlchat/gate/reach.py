"""Reach: which tools the calls of a conversation may be of, as whoever keeps conversations says.

It narrows the catalog whoever asks: a call of another tool is rejected when it is submitted, and one that has not
started is withdrawn once its tool is out of reach, whether a person approved it or not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.utils.module_loading import import_string
from django.utils.translation import gettext_noop

from hitlchat.base.sentences import translatable
from hitlchat.gate import question
from hitlchat.gate.models import Tool, ToolCall

# The source of the tool with which a model finds others of a large catalog.
SEARCH: Final = "search"
OUTSIDE: Final = gettext_noop("This conversation may not use it.")
OUT_OF_REACH: Final = "its conversation may not use the tool any more"


@dataclass(frozen=True)
class Reach:
    """Tools by name; without `names`, all that are published.

    `asks_person`: whether the built-in question to the person is among them. `why`, if there are none at all, says the
    reason, for the model too.
    """

    names: frozenset[str] | None = None
    asks_person: bool = True
    why: str = ""

    def has(self, tool: Tool) -> bool:
        """Return whether a call may be of this tool. The search is of use to all: it finds only what is within."""
        if self.why:
            return False
        if tool.source == SEARCH:
            return True
        if question.is_one(tool):
            return self.asks_person
        return self.names is None or tool.name in self.names

    def within(self, tools: QuerySet[Tool]) -> QuerySet[Tool]:
        """Return those of `tools`, built-in ones aside, that are in reach."""
        if self.why:
            return tools.none()
        return tools if self.names is None else tools.filter(name__in=self.names)


EVERYTHING: Final = Reach()


def of(conversation_id: UUID | None) -> Reach:
    """Return the reach of a conversation; calls outside of one have the whole catalog of their caller."""
    if conversation_id is None:
        return EVERYTHING
    reach_of: Callable[[UUID], Reach] = import_string(settings.CONVERSATION_REACH)
    return reach_of(conversation_id)


def why_not(tool: Tool, conversation_id: UUID | None) -> str:
    """Return why a call in the conversation cannot be of this tool; empty if it can."""
    reach = of(conversation_id)
    if reach.has(tool):
        return ""
    return reach.why or f"{not_here(tool.name)} {OUTSIDE}"


def not_here(name: str) -> str:
    """Say that a call names no tool that there is for it."""
    return translatable(f"There is no tool named {name!r} here.")


def lost(call: ToolCall) -> str:
    """Return why a call that has not started must not, if its conversation may not use its tool any more."""
    return OUT_OF_REACH if call.tool is not None and not of(call.conversation_id).has(call.tool) else ""

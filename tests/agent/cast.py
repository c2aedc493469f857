"""Agents of a test, and a model that plays each of them by its own script, in whatever order they ask."""

import re
import threading
from collections import defaultdict, deque
from typing import Any, Final

from django.contrib.auth.models import User

from hitlchat.agent import agents
from hitlchat.agent.agents import Draft
from hitlchat.agent.models import AgentTool, Conversation
from hitlchat.gate.models import HitlMode, ToolCall, delegation
from tests.conftest import signed_in
from tests.scripted_model import Json, Reply, ScriptedModel, status

# The one that a person talks to.
TOP: Final = ""
_WHO = re.compile(r"You are the agent ([A-Za-z0-9_-]+)\.")


def agent(author: User, name: str, *tools: str, **fields: Any) -> AgentTool:
    """A published agent that may use these tools, and is called without asking unless `fields` say otherwise."""
    given: dict[str, Any] = {"hitl_mode": HitlMode.DISABLED.value, "published": True, "risk_level": 0}
    draft = Draft(name=name, instructions=f"Be {name}.", description=f"Does what {name} does.", tools=tools)
    return agents.create(Draft(**{**draft.__dict__, **given, **fields}), signed_in(author))


class Cast:
    """Replies by who asks for them; one that finds none is answered with an error, and noted."""

    def __init__(self, model: ScriptedModel) -> None:
        self.asked: dict[str, list[Json]] = defaultdict(list)
        self._script: dict[str, deque[Reply]] = defaultdict(deque)
        self._lock = threading.Lock()
        self._model = model
        model.otherwise = self._reply

    def plays(self, name: str, *replies: Reply) -> None:
        with self._lock:
            self._script[name].extend(replies)

    def told(self, name: str = TOP) -> list[str]:
        """The tool messages of its last request, in order."""
        return [each["content"] for each in self.asked[name][-1]["messages"] if each["role"] == "tool"]

    def first_words(self, name: str) -> str:
        """Return what it was given as its task."""
        return str(self.asked[name][0]["messages"][1]["content"])

    def tools(self, name: str) -> list[str]:
        """The tools that it was offered last."""
        return [each["function"]["name"] for each in self.asked[name][-1].get("tools", [])]

    def _reply(self, body: Json) -> Reply:
        found = _WHO.search(body["messages"][0]["content"])
        name = found[1] if found else TOP
        with self._lock:
            self.asked[name].append(body)
            if self._script[name]:
                return self._script[name].popleft()
        return status(418, {"message": f"The script of {name or 'the top'} has no further reply."})


def child_of(call: ToolCall) -> Conversation:
    """The conversation that this call began."""
    return Conversation.objects.get(pk=delegation.begun_by([call.pk])[call.pk])

"""What the demo model answers to a request."""

import re
from collections.abc import Iterator
from typing import Any

from hitlchat.agent.demo_model import outcome, plan, prose, wire
from hitlchat.agent.demo_model.schemas import Tool, offered
from hitlchat.agent.demo_model.wire import Chunk, Writer

_HELP = re.compile(
    r"\s*(?:help|hi|hello|hey)\b[\s!.?]*$|.*\bwhat can (?:you|i) do\b|.*\bwho are you\b", re.IGNORECASE | re.DOTALL
)
_ABOUT = re.compile(r"\s*(?:what (?:does|is)|how does|explain|describe|help)\b", re.IGNORECASE)
_NOT = re.compile(r"\b(?:don['\u2019]?t|do\s+not|never)\b", re.IGNORECASE)
_NO = re.compile(r"\s*(?:no|nothing|never\s*mind|stop|cancel|forget it|abort)\b[\s!.]*$", re.IGNORECASE)


def answer(request: dict[str, Any]) -> Iterator[Chunk]:
    """The streamed answer to a Chat Completions request body.

    The same request has the same answer. Once calls have come back for the user's last message it answers with text,
    so a conversation with it always ends.
    """
    writer = Writer(request)
    messages = wire.messages(request)
    came = wire.came_back(messages)
    if came:
        return writer.text(outcome.told(came))
    tools = offered(request)
    said, answers = wire.wanted(messages)
    if answers and _changes_subject(answers[-1].said, tools):
        said, answers = answers[-1].said, []
    if text := _text_for(said, tools):
        return writer.text(text)
    calls = plan.calls(said, tools, answers)
    unsure = next((call for call in calls if call.unclear or call.rivals), None)
    if unsure:
        return writer.text(prose.which(unsure))
    if any(call.missing for call in calls):
        return writer.text(prose.question(calls))
    if calls:
        return writer.calls((call.tool.name, call.arguments) for call in calls)
    return writer.text(_nothing_matched(said, tools, again=wire.told_before(messages, prose.NOTHING)))


def _text_for(said: str, tools: list[Tool]) -> str:
    """The answer to what needs no tool; empty if that is not what is asked."""
    if _NO.match(said):
        return "All right, I call nothing."
    if not said.strip() or _HELP.match(said):
        return prose.introduction(tools)
    tool = plan.named(said, tools)
    if tool:
        return prose.described(tool) if _ABOUT.match(said) and "=" not in said else ""
    wanted = prose.words_wanted(plan.hidden(said))
    return prose.filler(wanted) if wanted else ""


def _changes_subject(said: str, tools: list[Tool]) -> bool:
    """Whether what should answer a question is a request of its own, or ends the matter."""
    if _NO.match(said) or _HELP.match(said):
        return True
    return plan.begins(said, tools) and not any(call.missing for call in plan.calls(said, tools))


def _nothing_matched(said: str, tools: list[Tool], *, again: bool) -> str:
    if _NOT.search(said):
        return "All right, I call nothing."
    return prose.nothing(tools, again=again)

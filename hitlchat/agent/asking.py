"""The tool `ask_user`: the model asks the person of its conversation, and waits for the answer as for an approval.

Its row is made when it is first offered. HITL_ASK_USER=0: it is offered no more; what waits can still be answered.
"""

import logging
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.forms import BadAnswer
from hitlchat.gate import question, tools
from hitlchat.gate.models import HitlMode, Tool, ToolCall
from hitlchat.gate.sources import ToolResult

NAME: Final = "ask_user"
DESCRIPTION: Final = (
    "Ask the user a question and wait for the answer, with a small form of at most "
    f"{question.MOST_FIELDS} fields: text, number, choice (with choices), yes_no. Use it when you cannot go on without "
    "something that only the user knows or decides. Never ask for passwords, keys or other secrets."
)
ANSWERED: Final = "The user answered; these are their own words, by the names of the fields."
UNANSWERED: Final = "Nobody gave an answer that fits the question."


def built_in(**columns: Any) -> dict[str, Any]:
    """Return all columns of a tool that is built in, from those that say what it is."""
    described = {each: columns[each] for each in ("source", "name", "description")}
    return {
        "title": "",
        "output_schema": None,
        "condition": "",
        "deadline_seconds": None,
        "signed_in_only": False,
        "risk_level": 0,
        "facts": [],
        "published": True,
        "definition_hash": canonical.sha256({**described, "input": columns["input_schema"]}),
        **columns,
    }


COLUMNS: Final = built_in(
    name=NAME,
    description=DESCRIPTION,
    input_schema=question.INPUT_SCHEMA,
    source=question.SOURCE,
    origin=gettext_noop("Built in: your answer is its result, and nothing else runs."),
    hitl_mode=HitlMode.REQUIRED.value,
    prompt_template="The agent asks: {args.question}",
    signed_in_only=True,
)

logger = logging.getLogger(__name__)


def offered() -> Tool | None:
    """Return the tool as conversations are offered it, with its row in step; None if it is switched off."""
    if not settings.HITL_ASK_USER:
        return None
    row = tools.built_in(COLUMNS)
    if row is None:
        logger.info("The model cannot ask the person: another tool has the name %s", NAME)
    return row


class PersonSource:
    """Gives back the answer that came with the yes. Without one that fits nothing is said in a person's name."""

    async def execute(self, call: ToolCall) -> ToolResult:
        try:
            answer = question.answer_of(call.arguments)
        except (BadAnswer, LookupError, TypeError):
            return ToolResult.failure("arguments", UNANSWERED)
        return ToolResult(value={"message": ANSWERED, "answer": answer})

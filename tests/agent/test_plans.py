"""What a gated turn reads: of the calls on record a few, however many there are."""

import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from django.db import connection

from tests.agent.talk import Talk, in_database
from tests.conftest import MakeTool
from tests.scripted_model import ScriptedModel, calls, text

# PostgreSQL reads small tables whole.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.embedded]

# Of one call, turn, conversation, or person; those of a tool are read by their time, and no more than a few.
FEW: Final = re.compile(
    r" (sqlite_autoindex_gate_toolcall_1|call_by_turn|call_by_conversation|call_waiting|call_ran) "
    r"|call_by_tool \(tool_name=\?\)$"
)


async def test_a_gated_turn_reads_few_of_the_calls_on_record(
    talk: Talk, scripted_model: ScriptedModel, make_tool: MakeTool
) -> None:
    steps: set[str] = set()

    def explain(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(("SELECT", "UPDATE", "DELETE")):
            # With the values given apart, as they are for the statement itself.
            explained = "EXPLAIN QUERY PLAN " + sql % tuple("?" * len(params))
            steps.update(row[-1] for row in context["connection"].connection.execute(explained, params))
        return execute(sql, params, many, context)

    await in_database(make_tool)("echo")
    scripted_model.enqueue(calls(("echo", {"text": "hi"})), text("Said it."))
    await in_database(lambda: connection.execute_wrappers.append(explain))()
    try:
        await talk.say("Say hi")
        await talk.approve(await talk.only())
        await talk.over()
    finally:
        await in_database(lambda: connection.execute_wrappers.remove(explain))()
    of_calls = {
        each for each in steps if re.search(r"\b(SCAN|SEARCH) gate_toolcall\b|INDEX (call_|gate_toolcall)", each)
    }
    assert len(of_calls) >= 6
    assert {each for each in of_calls if not FEW.search(each)} == set()

"""No message keeps the demo model busy: it answers on the event loop that everything else waits for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.demo_tools import MANY, reply_to, say

REPEATED = [
    "1 ", '"', "1,", "12:", "5 EUR ", "2026-01-", '{"a":', "`", " ",
    "\n", ", ", ";", "and ", "{", "[", "a=[", "a-", 'a="',
    "“", "/", "1.", "order id ", "order_id=", "to ", "from 1 to ", "cancel order 1 and ", "because ",
    "'", "https://", "a@", "A/", "€", "write ", "\u2028", "é", "unpaid ",
    "how many ", "give back ",
]  # fmt: skip
STARTS = ["a", "refund order 4711 ", "cancel order ", "convert ", "add ", "which orders are "]
pytestmark = pytest.mark.timeout(30)


@pytest.mark.parametrize("repeated", REPEATED, ids=repr)
def test_repetitions_without_end_are_answered(repeated: str) -> None:
    for start in STARTS:
        assert say(start + repeated * (100_000 // len(repeated)) + "!", MANY) != ("", [])


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(STARTS), st.text("1a \n,.;:-_{}[]\"'`@/€", min_size=1, max_size=6), st.text(max_size=3))
def test_repetitions_of_anything_are_answered(start: str, repeated: str, end: str) -> None:
    assert say(start + repeated * 5000 + end, MANY) != ("", [])


@pytest.mark.parametrize("repeated", REPEATED, ids=repr)
def test_what_tools_return_and_describe_may_be_as_hostile(repeated: str) -> None:
    long = repeated * (100_000 // len(repeated))
    call = {"id": "c", "type": "function", "function": {"name": "echo", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": long},
        {"role": "assistant", "content": "To call `echo` I still need `" + long, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": long},
    ]
    assert "echo" in reply_to({"messages": messages})[0]
    described = [{"type": "function", "function": {"name": "echo", "description": long, "parameters": {}}}]
    assert say("sing a song", described) != ("", [])

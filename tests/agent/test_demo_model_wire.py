"""The wire format of the demo model, and that nothing upsets it."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hitlchat.agent.demo_model import answer, as_sse
from tests.agent.demo_tools import SHIPPED, TEXT, say, tool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def call_parts(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for chunk in chunks for part in chunk["choices"][0]["delta"].get("tool_calls", [])]


def test_the_same_request_has_the_same_chunks() -> None:
    request = {"messages": [{"role": "user", "content": "list orders; get order 4711"}], "tools": SHIPPED}
    chunks = list(answer(request))
    assert chunks == list(answer(request))
    ids = [
        part["id"] for chunk in chunks for part in chunk["choices"][0]["delta"].get("tool_calls", []) if "id" in part
    ]
    assert len(set(ids)) == 2


def test_the_chunks_are_those_of_the_wire_format() -> None:
    request = {"messages": [{"role": "user", "content": "write 30 words"}], "stream_options": {"include_usage": True}}
    *chunks, last, usage = list(answer(request))
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)
    assert len(chunks) == 31
    assert last["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] > 30


def test_a_call_streams_its_arguments_in_pieces() -> None:
    chunks = list(answer({"messages": [{"role": "user", "content": "refund order 4711 129.00"}], "tools": SHIPPED}))
    parts = call_parts(chunks)
    assert parts[0]["function"] == {"name": "refund_order", "arguments": ""}
    assert all("id" not in part for part in parts[1:])
    assert len(parts) > 2
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_server_sent_events_end_with_the_mark() -> None:
    events = list(as_sse(answer({"messages": [{"role": "user", "content": "write 3 wörds"}]})))
    assert events[-1] == b"data: [DONE]\n\n"
    assert all(json.loads(event.removeprefix(b"data: ")) for event in events[:-1])


@settings(deadline=None)
@given(st.text(), JSON)
def test_any_words_and_any_schema_get_an_answer(text: str, schema: Any) -> None:
    strange = {"type": "function", "function": {"name": "odd_tool", "description": text, "parameters": schema}}
    nested = tool("even_tool", "Even", {"even": schema, "tool": TEXT})
    for said in (text, f"odd tool {text}", f"even tool {text}", f"even_tool even={text}"):
        assert say(said, [strange, nested, *SHIPPED]) != ("", [])


@settings(deadline=None)
@given(JSON, JSON)
def test_no_body_is_too_strange(messages: Any, tools: Any) -> None:
    assert list(answer({"messages": messages, "tools": tools}))
    assert list(
        answer({"messages": [{"role": "user", "content": messages}, {"role": "assistant", "tool_calls": tools}]})
    )

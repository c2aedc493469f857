import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import validate

from hitlchat.agent.demo_model.sentences import Prompt
from hitlchat.agent.demo_model.server import answer, as_sse
from hitlchat.gate import prompt
from tests.agent.demo_tools import PROMPTS, SHIPPED, TEXT, reply_to, say, tool
from tools_studio.library.catalogue import TOOLS

REFUND = {"order_id": "4711", "amount": "129.00"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
OWN = [
    tool("depot_echo", "Says what it is told", {}, {"text": TEXT}),
    tool("shop_paint", "Asks for a colour and paints", {}),
    tool("Shop-Die", "Ends the process", {}),
    *SHIPPED,
]


def test_a_tool_is_called_by_its_name_with_arguments() -> None:
    for text, calls in [
        ("refund_order order_id=4711 amount=129.00", [("refund_order", REFUND)]),
        (
            'refund_order order_id=4711, amount=129.00, reason="it was, frankly, broken"',
            [("refund_order", {**REFUND, "reason": "it was, frankly, broken"})],
        ),
        ("Please call refund_order order_id=“4711” amount=5", [("refund_order", {**REFUND, "amount": "5"})]),
        ('refund_order {"order_id": 4711, "surprise": [1, {"a": null}]} amount=1', []),
        (
            "convert_units value=10.5 from_unit=kg to_unit=pounds",
            [("convert_units", {"value": 10.5, "from_unit": "kg", "to_unit": "pounds"})],
        ),
        (
            "convert_units value=abc from_unit=km to_unit=m",
            [("convert_units", {"value": "abc", "from_unit": "km", "to_unit": "m"})],
        ),
        ("split_amount amount=100 shares=[1, 1, 2]", [("split_amount", {"amount": "100", "shares": [1, 1, 2]})]),
        ("refund_order(order_id: 4711, amount: 129.00)", [("refund_order", REFUND)]),
        ("Please call refund_order (order_id='4711', amount = 129.00).", [("refund_order", REFUND)]),
        ('refund_order({"order_id": "4711", "amount": "129.00"})', [("refund_order", REFUND)]),
        ("refund_order: order_id=4711 amount=129.00", [("refund_order", REFUND)]),
        ("depot_echo(text: “a (b), c”)", [("depot_echo", {"text": "a (b), c"})]),
        ("depot_echo()", [("depot_echo", {})]),
        ("depot_echo(text=hi", []),
        ("depot_echo(text=hi) for everybody", []),
        ("depot_echo text=hi", [("depot_echo", {"text": "hi"})]),
        ('depot_echo text="shop_paint; and then this"', [("depot_echo", {"text": "shop_paint; and then this"})]),
        ("depot_echo", [("depot_echo", {})]),
        ("Shop-Die!", [("Shop-Die", {})]),
        ("shop_paint the garden fence for 5 people", []),
    ]:
        assert say(text, OWN)[1] == calls


def test_a_json_object_after_the_name_is_passed_on_as_it_is() -> None:
    written = {"order_id": 4711, "amount": None, "surprise": [1, {"a": None}]}
    assert say(f"call refund_order {json.dumps(written)}", SHIPPED)[1] == [("refund_order", written)]


def test_a_tool_is_called_in_the_words_of_its_approval_prompt() -> None:
    for text, name, arguments in [
        ("Refund 12.00 EUR for order 4711", "refund_order", {"order_id": "4711", "amount": "12.00"}),
        (
            "refund 129.00 eur for order 4711 because the lamp broke, and fell.",
            "refund_order",
            {**REFUND, "reason": "the lamp broke, and fell"},
        ),
        ("Show order 4711.", "get_order", {"order_id": "4711"}),
        ("Cancel order #1234", "cancel_order", {"order_id": "1234"}),
        (
            "Change the address of order 4712 to 7 Station Road, Galway",
            "change_address",
            {"order_id": "4712", "address": "7 Station Road, Galway"},
        ),
        (
            "Change the address of order 4712 to “1 to 3 Long Walk”",
            "change_address",
            {"order_id": "4712", "address": "1 to 3 Long Walk"},
        ),
    ]:
        assert say(text, SHIPPED) == ("", [(name, arguments)])


def test_the_sentence_offered_for_a_tool_that_ships_calls_it() -> None:
    for shipped in TOOLS:
        sentence = prompt.render(shipped.prompt_template, shipped.name, shipped.example)
        said, calls = say(sentence, SHIPPED)
        if calls:
            assert [name for name, _ in calls] == [shipped.name]
            assert all(shipped.example[name] == value for name, value in calls[0][1].items())
        else:
            assert f"To call `{shipped.name}` I still need" in said
            name, arguments = say(said.rpartition("For example: ")[2].strip("`"), SHIPPED)[1][0]
            (offered,) = (each["function"] for each in SHIPPED if each["function"]["name"] == name)
            validate(arguments, offered["parameters"])


def test_of_two_prompts_that_fit_the_one_with_more_words_is_meant() -> None:
    prompts = {"run": Prompt("Run {args.what}"), "stop": Prompt("Run {args.what} to its end")}
    tools = [tool(name, name, {"what": TEXT}) for name in prompts]
    messages = [{"role": "user", "content": "run the mill to its end"}]
    assert reply_to({"messages": messages, "tools": tools}, prompts)[1] == [("stop", {"what": "the mill"})]


def test_a_message_may_ask_for_several_calls() -> None:
    for join in [" and then ", "; ", ", then ", "\n"]:
        _, calls = say(f"refund_order order_id=4711 amount=5{join}Cancel order 4712{join}list_orders", SHIPPED)
        assert [name for name, _ in calls] == ["refund_order", "cancel_order", "list_orders"]


def test_no_call_is_made_where_a_part_is_not_understood() -> None:
    assert not say("Cancel order 4712 and then sing", SHIPPED)[1]


def test_what_is_missing_is_asked_for() -> None:
    for text in ["refund_order order_id=4711", "refund_order(order_id: A-1)"]:
        said, calls = say(text, SHIPPED)
        assert "To call `refund_order` I still need `amount`. For example: `refund_order order_id=" in said
        assert not calls


def test_what_the_user_forbids_is_not_called() -> None:
    for text in [
        "don't refund order 4711",
        "never cancel order 4711",
        "Do not list orders",
        "no",
        "cancel that",
        "cancel!",
    ]:
        assert say(text, SHIPPED) == ("All right, I call nothing.", [])


def test_what_matches_no_tool_gets_examples_that_work() -> None:
    for text in ["", "hello", "help", "What can you do?", "sing a song", "¿qué?", "4711"]:
        said, calls = say(text, SHIPPED)
        assert not calls
        assert "demo model" in said
        tries = re.findall(r"Try: `(.*)`", said)
        assert len(tries) >= 4
        assert all(say(each, SHIPPED)[1] for each in tries)


def test_what_comes_near_a_tool_gets_an_example_of_it_first() -> None:
    for text, first in [
        ("Refund order #1234", "Refund 129.00 EUR for order 4711"),
        ("Cancel all orders from last month", "Cancel order 4712"),
        ("Send a hi email to ann@example.com", "Send an email (to: "),
        ("What is the weather in Paris?", "Tell the weather forecast in Lisbon for 3 days"),
    ]:
        said, calls = say(text, SHIPPED)
        assert not calls
        assert re.findall(r"Try: `(.*)`", said)[0].startswith(first)


def test_the_second_time_only_examples_are_given() -> None:
    first, _ = say("sing", SHIPPED)
    said, _ = say("sing!", SHIPPED, ({"role": "user", "content": "sing"}, {"role": "assistant", "content": first}))
    assert said.startswith("I found no tool for that. Try `")
    assert len(said) < len(first)


def test_at_most_eight_tools_are_listed() -> None:
    said, _ = say("help", SHIPPED)
    assert said.count("Try:") == 8
    assert f"and {len(SHIPPED) - 8} more" in said


def test_without_tools_it_says_so() -> None:
    assert "no tool" in reply_to({"messages": [{"role": "user", "content": "sing"}]})[0]
    request = {"messages": [{"role": "user", "content": "list_orders"}], "tools": SHIPPED, "tool_choice": "none"}
    assert not reply_to(request)[1]


def test_a_long_text_can_be_asked_for() -> None:
    for text, count in [("write 200 words", 200), ("stream 5000 words please", 5000), ("tell me a story", 200)]:
        said, calls = say(text, SHIPPED)
        assert not calls
        assert len(said.split()) == count
        assert "\n\n" in said


def test_notes_of_hitlchat_are_not_the_users_words() -> None:
    note = {"role": "user", "content": "[Note from hitlchat] Wrap up: list_orders"}
    request = {"messages": [{"role": "user", "content": "Show order 4711"}, note], "tools": SHIPPED}
    assert reply_to(request)[1] == [("get_order", {"order_id": "4711"})]


def test_a_content_in_parts_is_read() -> None:
    content = [{"type": "text", "text": "Show order"}, {"type": "text", "text": "4711"}]
    messages = [{"role": "user", "content": content}]
    assert "I found no tool" in reply_to({"messages": messages, "tools": SHIPPED})[0]
    messages = [{"role": "user", "content": [{"type": "text", "text": "list_orders"}]}]
    assert reply_to({"messages": messages, "tools": SHIPPED})[1] == [("list_orders", {})]


# -- the wire format ----------------------------------------------------------------------------------------------


def call_parts(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for chunk in chunks for part in chunk["choices"][0]["delta"].get("tool_calls", [])]


def chunks_for(text: str, **more: Any) -> list[dict[str, Any]]:
    return list(answer({"messages": [{"role": "user", "content": text}], "tools": SHIPPED, **more}, PROMPTS))


def test_the_same_request_has_the_same_chunks() -> None:
    chunks = chunks_for("list_orders; Show order 4711")
    assert chunks == chunks_for("list_orders; Show order 4711")
    assert len({part["id"] for part in call_parts(chunks) if "id" in part}) == 2


def test_the_chunks_are_those_of_the_wire_format() -> None:
    *chunks, last, usage = chunks_for("write 30 words", stream_options={"include_usage": True})
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)
    assert len(chunks) == 31
    assert last["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] > 30


def test_a_call_streams_its_arguments_in_pieces() -> None:
    chunks = chunks_for("Refund 129.00 EUR for order 4711")
    parts = call_parts(chunks)
    assert parts[0]["function"] == {"name": "refund_order", "arguments": ""}
    assert all("id" not in part for part in parts[1:])
    assert len(parts) > 2
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_server_sent_events_end_with_the_mark() -> None:
    events = list(as_sse(chunks_for("write 3 wörds")))
    assert events[-1] == b"data: [DONE]\n\n"
    assert all(json.loads(event.removeprefix(b"data: ")) for event in events[:-1])


# -- whatever it is given: it answers on the event loop that everything else waits for -------------------------------


@pytest.mark.timeout(30)
def test_repetitions_without_end_are_answered() -> None:
    for repeated in [
        "1 ",
        '"',
        "“",
        "5 EUR ",
        '{"a":',
        "`",
        " ",
        "\n",
        ", ",
        "; ",
        "and then ",
        "{",
        "[",
        "a=[",
        'a="',
        "é",
        "for order ",
    ]:
        long = repeated * (20_000 // len(repeated))
        for start in ("a", "Refund ", "refund_order ", "refund_order order_id=", "Change the address of order "):
            assert say(start + long + "!", SHIPPED) != ("", [])
        call = {"id": "c", "type": "function", "function": {"name": "echo", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": long},
            {"role": "assistant", "content": long, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": long},
        ]
        assert "echo" in reply_to({"messages": messages})[0]
        described = [{"type": "function", "function": {"name": "echo", "description": long, "parameters": {}}}]
        assert reply_to({"messages": [{"role": "user", "content": "sing"}], "tools": described}) != ("", [])


@settings(max_examples=30)
@given(st.text(), JSON, st.text())
def test_any_words_any_schema_and_any_prompt_get_an_answer(text: str, schema: Any, template: str) -> None:
    strange = {"type": "function", "function": {"name": "odd_tool", "description": text, "parameters": schema}}
    nested = tool("even_tool", "Even", {"even": schema, "tool": TEXT})
    prompts = {**PROMPTS, "odd_tool": Prompt(template, {"a": schema}), "even_tool": Prompt(text + "{args.even}")}
    for said in (text, template, f"odd_tool {text}", f"even_tool even={text}"):
        messages = [{"role": "user", "content": said}]
        assert reply_to({"messages": messages, "tools": [strange, nested, *SHIPPED]}, prompts) != ("", [])


@settings(max_examples=30)
@given(JSON, JSON)
def test_no_body_is_too_strange(messages: Any, tools: Any) -> None:
    assert list(answer({"messages": messages, "tools": tools}, PROMPTS))
    messages = [{"role": "user", "content": messages}, {"role": "assistant", "tool_calls": tools}]
    assert list(answer({"messages": messages}, PROMPTS))

import json
from typing import Any

import pytest
from jsonschema import validate

from tests.agent.demo_tools import INTEGER, MANY, SHIPPED, reply_to, say, tool

REFUND = {"order_id": "4711", "amount": "129.00"}


@pytest.mark.parametrize(
    "text, name, arguments",
    [
        ("refund order 4711 129.00", "refund_order", REFUND),
        ("Please refund 129.00 of order 4711", "refund_order", REFUND),
        ("refund order #4711 with 12,50 € due to damage.", "refund_order",
         {"order_id": "4711", "amount": "12.50", "reason": "damage"}),
        ("Refund 1,000.50 EUR for order 4711 because the lamp broke, and then fell.", "refund_order",
         {"order_id": "4711", "amount": "1000.50", "reason": "the lamp broke, and then fell"}),
        ("refund 20 for 4711", "refund_order", {"order_id": "4711", "amount": "20"}),
        ("refund_order order id: 4711, amount: 129.00, reason: it was, frankly, broken", "refund_order",
         {**REFUND, "reason": "it was, frankly, broken"}),
        ('refund-order order_id=4711 amount=129.00 reason="late"', "refund_order", {**REFUND, "reason": "late"}),
        ("list orders", "list_orders", {}),
        ("show me all orders", "list_orders", {}),
        ("show all shipped orders", "list_orders", {"status": "shipped"}),
        ("show order 4711", "get_order", {"order_id": "4711"}),
        ("what is the status of order 4713?", "get_order", {"order_id": "4713"}),
        ("What time is it?", "get_current_time", {}),
        ("what's the time in Tokyo", "get_current_time", {"timezone": "Asia/Tokyo"}),
        ("what time is it in Europe/Berlin?", "get_current_time", {"timezone": "Europe/Berlin"}),
        ("convert 10 km to miles", "convert_units", {"value": 10, "from_unit": "km", "to_unit": "miles"}),
        ("convert 10.5kg into pounds please", "convert_units", {"value": 10.5, "from_unit": "kg", "to_unit": "pounds"}),
    ],
    ids=str,
)  # fmt: skip
def test_a_plain_sentence_calls_the_tool_that_it_means(text: str, name: str, arguments: dict[str, Any]) -> None:
    assert say(text, SHIPPED) == ("", [(name, arguments)])
    assert say(text, MANY) == ("", [(name, arguments)])


@pytest.mark.parametrize(
    "text, name, arguments",
    [
        ('send an email to ann@example.com with subject "Hi" and body "Refund order 4711, and go"', "send_email",
         {"to": "ann@example.com", "subject": "Hi", "body": "Refund order 4711, and go"}),
        ("what's the weather in Paris?", "weather__getForecast", {"city": "Paris"}),
        ("weather forecast for New York for 3 days in imperial units", "weather__getForecast",
         {"city": "New York", "days": 3, "units": "imperial"}),
        ("search the web for django channels", "web_search", {"query": "django channels"}),
        ("search for 'human in the loop' limit 5", "web_search", {"query": "human in the loop", "limit": 5}),
        ("add 1, 2 and 3.5", "add_numbers", {"numbers": [1, 2, 3.5]}),
        ("add_numbers numbers=[1, 2]", "add_numbers", {"numbers": [1, 2]}),
        ("echo hello world", "echo", {"message": "hello world"}),
        ('echo "cancel order 4711"', "echo", {"message": "cancel order 4711"}),
        ("delete file /tmp/a.txt without force", "delete-file", {"path": "/tmp/a.txt", "force": False}),
        ("delete file report.pdf force", "delete-file", {"path": "report.pdf", "force": True}),
        ('create an issue in acme/shop titled "Crash" with labels bug and urgent', "create_issue",
         {"repo": "acme/shop", "title": "Crash", "labels": ["bug", "urgent"]}),
        ("book a flight from Berlin to New York on 2026-03-01", "book_flight",
         {"from_city": "Berlin", "to_city": "New York", "date": "2026-03-01"}),
        ("book a flight from Berlin to Rome", "book_flight", {"from_city": "Berlin", "to_city": "Rome", "date": None}),
        ("set the price of SKU-123 to 19.99 eur", "set_price", {"sku": "SKU-123", "price": 19.99, "currency": "EUR"}),
        ("fetch https://example.com/a?b=1.", "fetch_url", {"url": "https://example.com/a?b=1"}),
        ("exchange 100 EUR to USD", "exchange_currency",
         {"amount": 100, "from_currency": "EUR", "to_currency": "USD"}),
        ("roll three dice with 20 sides", "roll_dice", {"count": 3, "sides": 20}),
        ('close account 7 {"why": "moved"}', "close_account", {"account_id": 7, "meta": {"why": "moved"}}),
    ],
    ids=str,
)  # fmt: skip
def test_any_tool_can_be_called_by_the_types_and_names_of_its_schema(
    text: str, name: str, arguments: dict[str, Any]
) -> None:
    assert say(text, MANY) == ("", [(name, arguments)])


@pytest.mark.parametrize("join", [" and ", " and then ", "; ", ", then ", ". ", "\n"])
def test_a_sentence_may_ask_for_several_calls(join: str) -> None:
    _, calls = say(f"refund 5 EUR for order 4711{join}cancel order 4712{join}list orders", SHIPPED)
    assert [name for name, _ in calls] == ["refund_order", "cancel_order", "list_orders"]
    assert calls[1][1] == {"order_id": "4712"}


def test_two_calls_of_tools_with_one_argument() -> None:
    tools = [tool(name, name, {"order_id": INTEGER}) for name in ("refund_order", "cancel_order")]
    calls = [("refund_order", {"order_id": 4711}), ("cancel_order", {"order_id": 4712})]
    assert say("refund order 4711 and cancel order 4712", tools) == ("", calls)


def test_a_row_of_numbers_is_one_call_each() -> None:
    _, calls = say("cancel orders 4712, 4713 and 4714 because of fraud", SHIPPED)
    assert [arguments for _, arguments in calls] == [
        {"order_id": number, "reason": "fraud"} for number in ("4712", "4713", "4714")
    ]


def test_a_later_call_takes_what_it_lacks_from_an_earlier_one() -> None:
    _, calls = say("get order 4711 and refund 10 EUR", SHIPPED)
    assert calls[1] == ("refund_order", {"order_id": "4711", "amount": "10"})


def test_a_json_object_after_the_name_is_passed_on_as_it_is() -> None:
    given_ = {"order_id": 4711, "surprise": [1, {"a": None}]}
    assert say(f"call refund_order {json.dumps(given_)}", SHIPPED)[1] == [("refund_order", given_)]


def test_a_spelled_out_value_of_the_wrong_type_is_passed_on() -> None:
    _, calls = say("convert_units value=abc from_unit=km to_unit=m", SHIPPED)
    assert calls[0][1]["value"] == "abc"


def test_what_is_missing_is_asked_for_and_then_used() -> None:
    request = "refund order 4711 and cancel order 4712"
    question, calls = say(request, SHIPPED)
    assert "To call `refund_order` I still need `amount`" in question
    assert not calls
    history = ({"role": "user", "content": request}, {"role": "assistant", "content": question})
    _, calls = say("25 EUR", SHIPPED, history)
    assert calls == [("refund_order", {"order_id": "4711", "amount": "25"}), ("cancel_order", {"order_id": "4712"})]


def test_several_questions_in_a_row_fill_one_call() -> None:
    history: list[dict[str, Any]] = []
    for said in ("refund", "order 4711", "no idea"):
        question, calls = say(said, SHIPPED, tuple(history))
        assert "I still need" in question
        assert not calls
        history += [{"role": "user", "content": said}, {"role": "assistant", "content": question}]
    assert say("129.00", SHIPPED, tuple(history)) == ("", [("refund_order", REFUND)])


@pytest.mark.parametrize("said, calls", [("list orders", [("list_orders", {})]), ("never mind", []), ("cancel", [])])
def test_a_question_may_be_left_unanswered(said: str, calls: list[Any]) -> None:
    question, _ = say("refund order 4711", SHIPPED)
    history = ({"role": "user", "content": "refund order 4711"}, {"role": "assistant", "content": question})
    assert say(said, SHIPPED, history)[1] == calls


@pytest.mark.parametrize("text", ["don't refund order 4711 5 EUR", "never cancel order 4711", "Do not list orders"])
def test_what_the_user_forbids_is_not_called(text: str) -> None:
    said, calls = say(text, SHIPPED)
    assert not calls
    assert said == "All right, I call nothing."


@pytest.mark.parametrize("text", ["", "hello", "help", "What can you do?", "sing a song", "¿qué?", "4711"])
def test_what_matches_no_tool_gets_examples(text: str) -> None:
    said, calls = say(text, SHIPPED)
    assert not calls
    assert "demo model" in said
    assert "`refund order 4711, amount=129.00`" in said


def test_at_most_eight_tools_are_listed() -> None:
    said, _ = say("help", MANY)
    assert said.count("Try:") == 8
    assert f"and {len(MANY) - 8} more" in said


def test_without_tools_it_says_so() -> None:
    assert "no tool" in reply_to({"messages": [{"role": "user", "content": "refund order 4711"}]})[0]
    request = {"messages": [{"role": "user", "content": "list orders"}], "tools": SHIPPED, "tool_choice": "none"}
    assert not reply_to(request)[1]


@pytest.mark.parametrize("offered", MANY, ids=lambda offered: offered["function"]["name"])
def test_the_example_that_it_gives_for_a_tool_works(offered: dict[str, Any]) -> None:
    name = offered["function"]["name"]
    described, _ = say(f"what does {name} do?", MANY)
    example = described.rpartition("Try: ")[2].strip("`")
    _, calls = say(example, MANY)
    assert [called for called, _ in calls] == [name]
    validate(calls[0][1], offered["function"]["parameters"])


@pytest.mark.parametrize(
    "text, count", [("write 200 words", 200), ("stream 5000 words please", 5000), ("tell me a story", 200)]
)
def test_a_long_text_can_be_asked_for(text: str, count: int) -> None:
    said, calls = say(text, SHIPPED)
    assert not calls
    assert len(said.split()) == count
    assert "\n\n" in said


def test_notes_of_hitlchat_are_not_the_users_words() -> None:
    note = {"role": "user", "content": "[Note from hitlchat] Wrap up: list orders"}
    request = {"messages": [{"role": "user", "content": "get order 4711"}, note], "tools": SHIPPED}
    assert reply_to(request)[1] == [("get_order", {"order_id": "4711"})]


def test_a_content_in_parts_is_read() -> None:
    content = [{"type": "text", "text": "list"}, {"type": "text", "text": "orders"}]
    assert reply_to({"messages": [{"role": "user", "content": content}], "tools": SHIPPED})[1] == [("list_orders", {})]

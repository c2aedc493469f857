"""The sentences that people are offered or come up with lead to the tool that they mean."""

from typing import Any

import pytest
from jsonschema import validate

from hitlchat.gate.prompt import render
from tests.agent.demo_tools import MANY, NUMBER, SHIPPED, TEXT, say, tool
from tools_studio.library.catalogue import TOOLS, ShippedTool


@pytest.mark.parametrize("shipped", TOOLS, ids=lambda shipped: shipped.name)
def test_the_sentence_that_the_first_screen_offers_makes_the_call(shipped: ShippedTool) -> None:
    sentence = render(shipped.prompt_template, shipped.name, shipped.example)
    expected = {name: value for name, value in shipped.example.items() if f"args.{name}" in shipped.prompt_template}
    assert say(sentence, SHIPPED) == ("", [(shipped.name, expected)])


@pytest.mark.parametrize(
    "text, name, arguments",
    [
        ("Please give order 4711 back 12.50 euros, the cup arrived broken", "refund_order",
         {"order_id": "4711", "amount": "12.50"}),
        ("pay back 5 EUR for order 4711", "refund_order", {"order_id": "4711", "amount": "5"}),
        ("reimburse order 4711 with 5 EUR", "refund_order", {"order_id": "4711", "amount": "5"}),
        ("order 4711 wants its money back, 5 EUR", "refund_order", {"order_id": "4711", "amount": "5"}),
        ("how many pounds are 3.5 kilograms?", "convert_units",
         {"value": 3.5, "from_unit": "kilograms", "to_unit": "pounds"}),
    ],
)  # fmt: skip
def test_other_words_mean_the_same(text: str, name: str, arguments: dict[str, Any]) -> None:
    _, [(called, given)] = say(text, SHIPPED)
    assert (called, {key: given.get(key) for key in arguments}) == (name, arguments)


@pytest.mark.parametrize("text", ["which orders are still unpaid?", "which orders are late?", "list orders not paid"])
def test_a_choice_that_is_none_of_the_fixed_values_is_asked_for(text: str) -> None:
    said, calls = say(text, SHIPPED)
    assert not calls
    assert "`list_orders` I still need `status`" in said


def test_of_tools_that_fit_equally_well_one_is_asked_for() -> None:
    said, calls = say("something about order 4711", SHIPPED)
    assert not calls
    assert "I am not sure which of these you mean" in said
    assert "`cancel order 4711`" in said


def test_what_matches_no_tool_gets_a_few_examples_and_fewer_words_the_second_time() -> None:
    first, _ = say("sing a song", MANY)
    assert first.count("Try:") == 4
    history = ({"role": "user", "content": "sing a song"}, {"role": "assistant", "content": first})
    second, _ = say("sing another", MANY, history)
    assert "demo model" not in second
    assert len(second) < len(first) / 3


@pytest.mark.parametrize(
    "text, name, arguments",
    [
        ("Calculate (3+4)*2^10", "calculate", {"expression": "(3+4)*2^10"}),
        ("calculate (3 + 4) * -2", "calculate", {"expression": "(3 + 4) * -2"}),
        ("What is 3 + 4?", "calculate", {"expression": "3 + 4"}),
        ("What is 15% of 240?", "calculate", {"expression": "15 / 100 * 240"}),
        ("Encode hello world in base64", "base64_text", {"text": "hello world", "direction": "encode"}),
        ("Decode aGVsbG8= from base64", "base64_text", {"text": "aGVsbG8=", "direction": "decode"}),
        ('Write "hello" in hex', "hex_text", {"text": "hello"}),
        ("Turn 'Hello Wörld' into a slug", "change_case", {"text": "Hello Wörld", "case": "slug"}),
        ("md5 of hello", "hash_text", {"text": "hello", "algorithm": "md5"}),
        ('Wrap "a long line" at 40 characters', "wrap_text", {"text": "a long line", "width": 40}),
        ('Compare "a" and "b"', "compare_texts", {"old": "a", "new": "b"}),
        ("Split 100 EUR by shares 1, 1 and 2", "split_amount", {"amount": "100", "shares": [1, 1, 2]}),
        ("Statistics of the numbers 12, 7, 3", "number_statistics", {"numbers": [12, 7, 3]}),
        ("Monthly payment of a loan of 10000 EUR at 4.5% for 36 months", "loan_payment",
         {"amount": "10000", "yearly_rate": "4.5", "months": 36}),
        ("Show the calendar of February 2026", "show_month", {"year": 2026, "month": 2}),
        ("Next Monday after 2026-01-31", "next_weekday", {"weekday": "Monday", "after": "2026-01-31"}),
        ("Read the date 1/31/26", "read_date", {"text": "1/31/26"}),
        ("Change 2026-03-29T09:30:00 from Europe/Berlin to Asia/Tokyo", "change_zone",
         {"moment": "2026-03-29T09:30:00", "from_zone": "Europe/Berlin", "to_zone": "Asia/Tokyo"}),
        ("Save a note called Tea with the text Assam", "save_note", {"title": "Tea", "text": "Assam"}),
        ("Save a note titled Groceries: milk and eggs", "save_note", {"title": "Groceries", "text": "milk and eggs"}),
        ("Find my notes about tea", "find_notes", {"words": "tea"}),
        ("Show my notes", "find_notes", {}),
        ("Weather in Paris tomorrow", "weather_forecast", {"place": "Paris"}),
        ("What will the weather be in New York for 3 days?", "weather_forecast", {"place": "New York", "days": 3}),
        ("Convert 100 USD to EUR", "exchange_rate", {"amount": "100", "from_currency": "USD", "to_currency": "EUR"}),
        ("What is 100 USD in EUR?", "exchange_rate", {"amount": "100", "from_currency": "USD", "to_currency": "EUR"}),
        ("public holidays of DE in 2026", "public_holidays", {"country": "DE", "year": 2026}),
        ("Make a password with 20 characters", "make_password", {"length": 20}),
        ("Make 3 UUIDs", "make_uuid", {"count": 3}),
        ("Tell me about Ada Lovelace on Wikipedia", "wikipedia_summary", {"title": "Ada Lovelace"}),
        ("Wikipedia article on black holes", "wikipedia_summary", {"title": "black holes"}),
        ("Find 3 books about tea", "find_books", {"search": "tea", "limit": 3}),
        ("Top 5 stories on Hacker News", "hacker_news", {"limit": 5}),
        ("Show me stories about rust on Hacker News", "hacker_news", {"search": "rust"}),
        ("Describe the repository django/django", "github_repository", {"repository": "django/django"}),
        ('Write "Buy tea." to the file notes/today.txt', "write_file", {"path": "notes/today.txt", "text": "Buy tea."}),
        ("Append tea to shopping.txt", "append_to_file", {"path": "shopping.txt", "text": "tea"}),
        ("Delete the file notes/today.txt", "delete_file", {"path": "notes/today.txt"}),
        ("Send an email to ann@example.com with subject Hi and text See you", "send_email",
         {"to": ["ann@example.com"], "subject": "Hi", "text": "See you"}),
        ("Change the address of order 4712 to 7 Station Road, Galway", "change_address",
         {"order_id": "4712", "address": "7 Station Road, Galway"}),
        ("What is the history of order 4711?", "order_history", {"order_id": "4711"}),
    ],
    ids=str,
)  # fmt: skip
def test_a_plain_sentence_is_understood_among_all_shipped_tools(
    text: str, name: str, arguments: dict[str, Any]
) -> None:
    assert say(text, SHIPPED) == ("", [(name, arguments)])


@pytest.mark.parametrize(
    "text",
    [
        "Split 100 EUR among 3 people", "Split 100 EUR in 3", "Draw a random number between 1 and 6",
        "Draw 3 names from a list", "Order a pizza", "Book a table for two tomorrow",
        "Create a note named Groceries", "Delete my notes", "Delete the file old.txt and the file new.txt",
        "Cancel all orders", "Show the last 3 orders", "Refund orders 4711 and 4712",
        "Public holidays in Ireland in 2026", "Loan of 10000 EUR for 3 years at 5%", "calculate 20% of 50 plus 3",
        "Calculate the square root of 16", "Convert 5 feet 3 inches to cm",
        'Replace "cat" with "dog" in "The cat sat"', "Hash the file notes/today.txt",
        "Make a password without signs", "Make a password with 4 characters", "Remember that Ann likes tea",
        "What time is it in Reykjavik?", "What was the exchange rate of 100 USD in EUR yesterday?",
        "List the orders of Ann", 'Send ann@example.com an email saying "Lunch at noon"',
        "Is 2026-12-25 a holiday in Germany?",
    ],
)  # fmt: skip
def test_what_it_would_have_to_guess_or_leave_out_it_asks_for(text: str) -> None:
    said, calls = say(text, SHIPPED)
    assert not calls
    assert "I still need" in said or "I am not sure" in said


def test_the_tool_that_is_meant_is_among_those_that_it_offers() -> None:
    assert "`show month, year=" in say("Which days fall in February 2026?", SHIPPED)[0]
    assert "`text statistics, text=" in say('Count the words in "the quick brown fox"', SHIPPED)[0]


def test_the_words_of_a_description_and_its_tags_hint_at_the_tool() -> None:
    tools = [
        tool("draw", "Draw something at random\n\nTags: dice, lottery", {"sides": NUMBER}),
        tool("echo", "Say it again", {"text": TEXT}),
    ]
    assert "`draw, sides=" in say("a lottery please", tools)[0]


def test_an_answer_about_a_list_takes_nothing_from_the_request() -> None:
    request = "Split 100 EUR among 3 people"
    question, _ = say(request, SHIPPED)
    history = ({"role": "user", "content": request}, {"role": "assistant", "content": question})
    assert say("1, 1 and 2", SHIPPED, history)[1] == [("split_amount", {"amount": "100", "shares": [1, 1, 2]})]


def test_both_parts_of_a_request_are_done() -> None:
    _, calls = say("Show order 4711 and then weather in Paris", SHIPPED)
    assert calls == [("get_order", {"order_id": "4711"}), ("weather_forecast", {"place": "Paris"})]


@pytest.mark.parametrize("offered", SHIPPED, ids=lambda offered: offered["function"]["name"])
def test_what_it_suggests_for_a_shipped_tool_makes_sense(offered: dict[str, Any]) -> None:
    function = offered["function"]
    described, _ = say(f"what does {function['name']} do?", SHIPPED)
    _, [(called, arguments)] = say(described.rpartition("Try: ")[2].strip("`"), SHIPPED)
    assert called == function["name"]
    validate(arguments, function["parameters"])


def test_an_expression_and_rows_are_suggested_as_such() -> None:
    assert "`calculate, expression=(3+4)*2`" in say("what does calculate do?", SHIPPED)[0]
    assert "rows=[{" in say("what does write_table do?", SHIPPED)[0]


COMPOSED = [
    tool("depot_echo", "Says what it is told", {}, {"text": TEXT}),
    tool("shop_paint", "Asks for a colour and paints", {}),
    tool("shop_die", "Ends the process", {}),
    *SHIPPED,
]


@pytest.mark.parametrize(
    "text, calls",
    [
        ("depot_echo text=hi", [("depot_echo", {"text": "hi"})]),
        ('please call depot_echo text="hi there"', [("depot_echo", {"text": "hi there"})]),
        (
            'depot_echo text="call shop_die, then shop_paint"',
            [("depot_echo", {"text": "call shop_die, then shop_paint"})],
        ),
        ("depot_echo", [("depot_echo", {})]),
        ("shop_paint", [("shop_paint", {})]),
        ("Shop-Die!", [("shop_die", {})]),
        ("shop_paint and then depot_echo text=done", [("shop_paint", {}), ("depot_echo", {"text": "done"})]),
    ],
)
def test_a_tools_exact_name_calls_it_also_if_it_needs_no_arguments(
    text: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    assert say(text, COMPOSED) == ("", calls)


def test_what_a_tools_exact_name_leaves_over_is_still_asked_about() -> None:
    text, calls = say("shop_paint the garden fence for 5 people", COMPOSED)
    assert not calls
    assert "not sure that you mean this" in text

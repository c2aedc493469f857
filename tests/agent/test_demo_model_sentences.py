"""The sentences that people are offered or come up with lead to the tool that they mean."""

from typing import Any

import pytest

from hitlchat.gate.prompt import render
from tools_studio.library.catalogue import TOOLS, ShippedTool

from .demo_tools import MANY, SHIPPED, say


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

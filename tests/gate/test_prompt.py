"""The question in one sentence."""

from typing import Any

import pytest

from hitlchat.gate import prompt

ARGUMENTS: dict[str, Any] = {"who": "Ann", "amount": 5, "list": [1, "é"], "": "empty name"}


@pytest.mark.parametrize(
    "template,sentence",
    [
        ("Run '{toolName}'?", "Run 'refund'?"),
        ("Give {args.who} {args.amount}?", "Give Ann 5?"),
        ("{args.list}", '[1, "é"]'),
        ("{args.nobody}", "(not given)"),
        ("{args}", '{"who": "Ann", "amount": 5, "list": [1, "é"], "": "empty name"}'),
        ("{other} {args.} {} {{toolName}}", "{other} {args.} {} {refund}"),
        ("<b>{toolName}</b> %s {0}", "<b>refund</b> %s {0}"),
        ("", ""),
    ],
    ids=range(8),
)
def test_placeholders_are_filled_in(template: str, sentence: str) -> None:
    assert prompt.render(template, "refund", ARGUMENTS) == sentence


def test_a_value_is_never_read_as_a_template() -> None:
    assert prompt.render("{args.a} {args.b}", "refund", {"a": "{args.b}{toolName}", "b": r"\1 \g<0>"}) == (
        r"{args.b}{toolName} \1 \g<0>"
    )


def test_a_long_value_is_cut_and_the_cut_is_counted() -> None:
    sentence = prompt.render("Say {args.a}!", "say", {"a": "x" * 1200})
    assert sentence == "Say " + "x" * 200 + "… (and 1,000 more characters)!"


@pytest.mark.parametrize("template", ["", "Run {toolName} {args} {args.who}", "no { placeholder }at all }{"])
def test_a_template_whose_placeholders_are_known_is_fine(template: str) -> None:
    prompt.check(template.replace("{ placeholder }", ""), {"who": {}})


@pytest.mark.parametrize(
    "wrong", ["{args.whom}", "{toolname}", "{arg}", "{}", "{args.}", "{args.who.name}", "{ args }"]
)
def test_a_template_that_can_never_be_filled_is_refused_by_name(wrong: str) -> None:
    with pytest.raises(prompt.BadTemplate) as caught:
        prompt.check(f"Run {{toolName}} {wrong}", {"who": {}})
    assert wrong in str(caught.value)

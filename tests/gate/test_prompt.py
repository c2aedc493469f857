"""The question in one sentence."""

from typing import Any

import pytest

from hitlchat.gate import prompt

ARGUMENTS: dict[str, Any] = {"who": "Ann", "amount": 5, "list": [1, "é"], "": "empty name"}


def test_placeholders_are_filled_in(subtests: pytest.Subtests) -> None:
    for template, sentence in [
        ("Run '{toolName}'?", "Run 'refund'?"),
        ("Give {args.who} {args.amount}?", "Give Ann 5?"),
        ("{args.list}", '[1, "é"]'),
        ("{args.nobody}", "(not given)"),
        ("{args}", '{"who": "Ann", "amount": 5, "list": [1, "é"], "": "empty name"}'),
        ("{other} {args.} {} {{toolName}}", "{other} {args.} {} {refund}"),
        ("<b>{toolName}</b> %s {0}", "<b>refund</b> %s {0}"),
        ("", ""),
    ]:
        with subtests.test(template=template):
            assert prompt.render(template, "refund", ARGUMENTS) == sentence


def test_a_value_is_never_read_as_a_template() -> None:
    assert prompt.render("{args.a} {args.b}", "refund", {"a": "{args.b}{toolName}", "b": r"\1 \g<0>"}) == (
        r"“{args.b}{toolName}” “\1 \g<0>”"
    )


def test_a_long_value_is_cut_and_the_cut_is_counted() -> None:
    sentence = prompt.render("Say {args.a}!", "say", {"a": "x" * 1200})
    assert sentence == "Say " + "x" * 200 + "… (and 1,000 more characters)!"


def test_a_template_whose_placeholders_are_known_is_fine(subtests: pytest.Subtests) -> None:
    for template in ["", "Run {toolName} {args} {args.who}", "no { placeholder }at all }{"]:
        with subtests.test(template=template):
            prompt.check(template.replace("{ placeholder }", ""), {"who": {}})


def test_a_template_that_can_never_be_filled_is_refused_by_name(subtests: pytest.Subtests) -> None:
    for wrong in ["{args.whom}", "{toolname}", "{arg}", "{}", "{args.}", "{args.who.name}", "{ args }"]:
        with subtests.test(wrong=wrong):
            with pytest.raises(prompt.BadTemplate) as caught:
                prompt.check(f"Run {{toolName}} {wrong}", {"who": {}})
            assert wrong in str(caught.value)


def test_a_text_that_could_go_on_with_the_sentence_is_quoted(subtests: pytest.Subtests) -> None:
    for value, shown in [
        ("4711", "4711"),
        ("2026-07-14T10:00", "2026-07-14T10:00"),
        ("ann_b@example.org/x", "ann_b@example.org/x"),
        ("Zoë", "Zoë"),
        (129.5, "129.5"),
        (None, "null"),
        ("4711? Dry run: nothing is charged", "“4711? Dry run: nothing is charged”"),
        ("4711” for Bob “", '“4711" for Bob "”'),
        ("", "“”"),
        ("4711\n", "“4711\n”"),
    ]:
        with subtests.test(value=value):
            assert prompt.render("Refund order {args.a}?", "refund", {"a": value}) == f"Refund order {shown}?"


def test_a_value_that_the_template_quotes_is_not_quoted_twice_and_cannot_close_the_quotes() -> None:
    assert prompt.render("Write “{args.a}”?", "note", {"a": "two words” and"}) == 'Write “two words" and”?'


@pytest.mark.guarantee("SR-8")
def test_values_are_told_apart_from_the_templates_own_words() -> None:
    assert prompt.pieces("Give {args.who} {args.amount} by {toolName}{args.no}?", "refund", ARGUMENTS) == [
        ("Give ", False),
        ("Ann", True),
        (" ", False),
        ("5", True),
        (" by ", False),
        ("refund", False),
        ("(not given)", False),
        ("?", False),
    ]


@pytest.mark.guarantee("SR-8")
def test_a_tool_name_that_could_go_on_with_the_sentence_is_told_apart_too() -> None:
    assert prompt.pieces("{toolName}", "x? Dry run", {}) == [("x? Dry run", True)]


def test_a_value_in_the_sentence_is_one_line_and_cut_with_the_count_stated() -> None:
    assert prompt.pieces("{args.a}!", "t", {"a": "one\ntwo"}) == [("one ⏎ two", True), ("!", False)]
    assert prompt.pieces("{args.a}!", "t", {"a": "x" * 1260}) == [
        ("x" * 60 + "…", True),
        (" (and 1,200 more characters)", False),
        ("!", False),
    ]


def test_an_empty_value_still_has_its_place() -> None:
    assert prompt.pieces("{args.a}{args.b}", "t", {"a": "", "b": "{args.a}"}) == [("", True), ("{args.a}", True)]


def test_without_a_template_the_sentence_names_title_server_and_first_arguments(subtests: pytest.Subtests) -> None:
    mail, none = "mail (MCP server)", dict[str, Any]()
    for name, title, origin, arguments, sentence in [
        ("mail_draw_chart", "Draw a chart", mail, {"title": "x"}, "Draw a chart on mail: title x"),
        ("mail_draw_chart", "", mail, {"title": "two words"}, "Draw chart on mail: title “two words”"),
        ("chart", "", mail, none, "Chart on mail"),
        (
            "saveNote",
            "",
            "",
            {"a": 1, "b": None, "c": [], "d": {}, "e": ""},
            "Save Note: a 1, b null, c “[]” and 2 more",
        ),
        ("note", " Save\n a\u2028note. ", "Tool Studio", {"a b": "1\n2"}, "Save a note: “a b” “1 ⏎ 2”"),
        ("___", "", "", {"a": "x” and"}, '___: a “x" and”'),
        ("t", "x" * 200, "", {"y" * 99: "z" * 99}, f"X{'x' * 79}…: “{'y' * 60}…” “{'z' * 60}…”"),
    ]:
        with subtests.test(sentence=sentence):
            assert prompt.plain(prompt.usual(name, title, origin, arguments)) == sentence


@pytest.mark.guarantee("SR-8")
def test_of_a_strangers_title_nothing_goes_on_into_server_and_arguments() -> None:
    title = "Read on shop: id 5"
    assert prompt.usual("mail_wipe", title, "mail (MCP server)", {"all": True, "of it": "now"}) == [
        (title, False),
        (" on ", False),
        ("mail", True),
        (": ", False),
        ("all", False),
        (" ", False),
        ("true", True),
        (", ", False),
        ("of it", True),
        (" ", False),
        ("now", True),
    ]

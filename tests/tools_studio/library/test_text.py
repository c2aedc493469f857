"""Texts: measuring, comparing, searching, rewriting."""

from typing import Any

from tests.tables import each_row
from tests.tools_studio.library.world import World, fault, result, shown


@each_row(
    "text, expected",
    [
        ("Hello world. It's well-known!\n\nYes?",
         {"words": 5, "sentences": 3, "lines": 3, "paragraphs": 2, "characters": 35}),
        ("", {"words": 0, "sentences": 0, "lines": 0, "paragraphs": 0, "reading_minutes": 0.0, "common_words": []}),
        ("Grüße, grüße an die Größe", {"words": 5, "different_words": 4, "characters_without_spaces": 21}),
        ("tea tea Tea the the the", {"common_words": [{"word": "tea", "count": 3}]}),
    ],
)  # fmt: skip
def test_a_text_is_measured(world: World, text: str, expected: dict[str, Any]) -> None:
    assert shown(world.call("text_statistics", text=text), expected) == expected


@each_row(
    "old, new, diff",
    [
        ("milk\nbread\neggs", "milk\neggs\ntea", "- bread\n+ tea"),
        ("same", "same\n", ""),
        ("", "a\nb", "+ a\n+ b"),
        ("a\nb", "b\na", "- a\n+ a"),
    ],
)
def test_two_texts_are_compared_line_by_line(world: World, old: str, new: str, diff: str) -> None:
    found = result(world.call("compare_texts", old=old, new=new))
    assert (found["diff"], found["same"]) == (diff, not diff)
    assert found["removed"] == diff.count("- ")


def test_the_lines_that_stayed_can_be_shown_too(world: World) -> None:
    assert result(world.call("compare_texts", old="a\nb", new="a\nc", only_changes=False))["diff"] == "  a\n- b\n+ c"


def test_texts_that_are_too_long_to_compare_are_refused(world: World) -> None:
    long = "\n".join(map(str, range(400)))
    assert result(world.call("compare_texts", old=long, new=long[::-1]))["same"] is False
    assert "at most 400 lines" in fault(world.call("compare_texts", old=f"{long}\nx", new=""))


@each_row(
    "arguments, matches",
    [
        ({"text": "ann@example.com, b.c@x.org.", "kind": "email"}, ["ann@example.com", "b.c@x.org"]),
        ({"text": "see https://a.example/x?y=1.", "kind": "url"}, ["https://a.example/x?y=1"]),
        ({"text": "-3 and 1,000.5", "kind": "number"}, ["-3", "1,000.5"]),
        ({"text": "aXbX", "expression": "x", "ignore_case": True}, ["X", "X"]),
        ({"text": "aXbX", "expression": "X", "unique": True}, ["X"]),
        ({"text": "k=1 l=2", "expression": r"(\w)=(\d)"}, [["k", "1"], ["l", "2"]]),
        ({"text": "k=1", "expression": r"(?P<key>\w)=(?P<value>\d)"}, [{"key": "k", "value": "1"}]),
        ({"text": "nothing", "kind": "ipv4"}, []),
    ],
)
def test_what_looks_like_it_is_found(world: World, arguments: dict[str, Any], matches: list[Any]) -> None:
    found = result(world.call("extract_matches", **arguments))
    assert (found["matches"], found["count"], found["left_out"]) == (matches, len(matches), 0)


def test_matches_beyond_the_limit_are_counted(world: World) -> None:
    found = result(world.call("extract_matches", text="1 2 3", kind="number", limit=2))
    assert (found["matches"], found["count"], found["left_out"]) == (["1", "2"], 3, 1)


@each_row(
    "arguments, words",
    [
        ({"text": "x", "expression": "("}, "cannot be used"),
        ({"text": "x"}, "either a kind or an expression"),
        ({"text": "x", "kind": "email", "expression": "x"}, "either a kind or an expression"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(world: World, arguments: dict[str, Any], words: str) -> None:
    assert words in fault(world.call("extract_matches", **arguments))


@each_row(
    "arguments, expected",
    [
        ({"text": "a.b.c", "search": ".", "replacement": r"\1"}, {"replaced": 2, "text": r"a\1b\1c"}),
        ({"text": "Ann Berg", "search": r"(\w+) (\w+)", "replacement": r"\2, \1", "regular_expression": True},
         {"replaced": 1, "text": "Berg, Ann"}),
        ({"text": "Tea tea", "search": "TEA", "replacement": "", "ignore_case": True}, {"replaced": 2, "text": " "}),
        ({"text": "none", "search": "x", "replacement": "y"}, {"replaced": 0, "text": "none"}),
    ],
)  # fmt: skip
def test_a_text_is_replaced_everywhere(world: World, arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    assert result(world.call("replace_text", **arguments)) == expected


@each_row("search, words", [("", "at least one character"), ("[", "cannot be used")])
def test_a_replacement_needs_something_to_look_for(world: World, search: str, words: str) -> None:
    call = world.call("replace_text", text="x", search=search, replacement="y", regular_expression=True)
    assert words in fault(call)


@each_row(
    "text, case, expected",
    [
        ("Straße", "upper", "STRASSE"),
        ("ÀB", "lower", "àb"),
        ("the lord of the rings", "title", "The Lord of the Rings"),
        ("HELLO THERE. how ARE you?", "sentence", "Hello there. How are you?"),
        ("order id of HTTPServer", "camel", "orderIdOfHttpServer"),
        ("order-id", "pascal", "OrderId"),
        ("orderId2", "snake", "order_id2"),
        ("Order  ID!", "kebab", "order-id"),
        ("maxSize", "constant", "MAX_SIZE"),
        ("Crème brûlée & Straße", "slug", "creme-brulee-strasse"),
        ("", "title", ""),
    ],
)
def test_a_text_is_written_in_another_case(world: World, text: str, case: str, expected: str) -> None:
    assert result(world.call("change_case", text=text, case=case)) == expected


def test_no_name_is_made_of_nothing(world: World) -> None:
    assert "no letters or digits" in fault(world.call("change_case", text="--", case="snake"))


@each_row(
    "arguments, expected",
    [
        ({"text": "aaaa bbbb cccc", "width": 10}, "aaaa bbbb\ncccc"),
        ({"text": "one\ntwo\n\nthree", "width": 10}, "one two\n\nthree"),
        ({"text": "incomprehensibilities", "width": 10}, "incomprehensibilities"),
        ({"text": "aaaa bbbb", "width": 10, "indent": "> "}, "> aaaa\n> bbbb"),
        ({"text": " \n\n "}, ""),
    ],
)
def test_lines_are_broken_between_words(world: World, arguments: dict[str, Any], expected: str) -> None:
    assert result(world.call("wrap_text", **arguments)) == expected


@each_row(
    "arguments, lines",
    [
        ({"text": "file10\nfile2\n\nFile1"}, "File1\nfile2\nfile10"),
        ({"text": "b\nA\na", "by": "text", "ignore_case": False}, "A\na\nb"),
        ({"text": "x 10\nx 9.5\nnone\nx -1", "by": "number"}, "x -1\nx 9.5\nx 10\nnone"),
        ({"text": "aaa\nb\ncc", "by": "length", "descending": True}, "aaa\ncc\nb"),
        ({"text": "b\na\nB", "by": "keep order", "remove_duplicates": True}, "b\na"),
        ({"text": ""}, ""),
    ],
)
def test_lines_are_sorted(world: World, arguments: dict[str, Any], lines: str) -> None:
    found = result(world.call("sort_lines", **arguments))
    assert found["text"] == lines
    assert found["lines"] == len(lines.splitlines())


@each_row(
    "arguments, text",
    [
        ({"template": "Dear {{name}}, {{ order.items.0 }}!", "values": {"name": "Ann", "order": {"items": ["tea"]}}},
         "Dear Ann, tea!"),
        ({"template": "{{a}}{{a}}", "values": {"a": "{{b}}", "b": 1}}, "{{b}}{{b}}"),
        ({"template": "no {single} braces", "values": {}}, "no {single} braces"),
        ({"template": "{{a}} {{b}}", "values": {"a": 0}, "missing": "?"}, "0 ?"),
    ],
)  # fmt: skip
def test_placeholders_are_filled_once(world: World, arguments: dict[str, Any], text: str) -> None:
    assert result(world.call("fill_template", **arguments))["text"] == text


def test_a_placeholder_without_a_value_is_named(world: World) -> None:
    assert "no value for b.c" in fault(world.call("fill_template", template="{{a}} {{b.c}}", values={"a": 1, "b": {}}))

"""Results that are tables are shown as tables, and nothing of a result is lost or cut in a cell."""

from typing import Any

from hitlchat.chat.call_view import LONGEST_CELL, MOST_COLUMNS, MOST_FIELDS, MOST_INNER, MOST_ROWS, Grid, grid

ORDERS = [{"number": 4711, "customer": "Ann"}, {"number": 4712, "paid": True}]
ROWS = [["4711", "Ann", ""], ["4712", "", "true"]]


def test_a_list_of_objects_is_a_table_with_all_of_their_fields() -> None:
    for value in [ORDERS, {"orders": ORDERS}]:
        assert grid(value) == Grid(["number", "customer", "paid"], ROWS)


def test_one_object_is_a_table_of_its_fields() -> None:
    assert grid({"name": "Ann", "age": 42, "note": None}) == Grid((), [["name", "Ann"], ["age", "42"], ["note", ""]])


def test_lists_of_objects_in_fields_are_tables_below_those_of_the_other_fields() -> None:
    found = grid({"orders": ORDERS, "total": 2, "next": None})
    inner = Grid(["number", "customer", "paid"], ROWS, name="orders")
    assert found == Grid((), [["total", "2"], ["next", ""]], inner=(inner,))
    long = grid({"rows": [{"n": n} for n in range(MOST_ROWS + 7)], "total": MOST_ROWS + 7})
    assert long is not None
    assert [(len(each.rows), each.more) for each in long.inner] == [(MOST_ROWS, 7)]


def test_of_a_long_list_the_beginning_is_shown_and_the_rest_is_counted() -> None:
    found = grid([{"n": n} for n in range(MOST_ROWS + 7)])
    assert found is not None
    assert (len(found.rows), found.more) == (MOST_ROWS, 7)


def test_what_no_table_shows_whole_is_none() -> None:
    values: list[Any] = [
        None,
        "text",
        42,
        [],
        {},
        {"only": "one"},
        [1, 2],
        [{"a": 1}, 2],
        [{}],
        [{"a": {"b": 1}}],
        {"a": [1], "b": 2},
        {"orders": ORDERS, "tags": ["a"]},
        {"orders": [{"lines": ORDERS}], "total": 1},
        {str(n): ORDERS for n in range(MOST_INNER + 1)},
        {"a": "x" * (LONGEST_CELL + 1), "b": 1},
        [{"a": "x" * (LONGEST_CELL + 1)}],
        [{str(n): n for n in range(MOST_COLUMNS + 1)}],
        {str(n): n for n in range(MOST_FIELDS + 1)},
    ]
    assert [grid(value) for value in values] == [None] * len(values)

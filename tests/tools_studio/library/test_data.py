"""Tables and JSON."""

import csv
import io
import json
from typing import Any

from tests.tables import each_row
from tests.tools_studio.library.world import World, fault, result

ORDERS = {"orders": [{"customer": "Ann", "total": 143}, {"customer": "Ben", "total": 259.9}], "a b": {"c": [1, [2]]}}
ROWS = [{"city": "Lyon", "sold": 12}, {"city": "Cork", "sold": 7}, {"city": "Lyon", "sold": 3}]


@each_row(
    "arguments, rows",
    [
        ({"text": "city;sold\nLyon;12\n"}, [{"city": "Lyon", "sold": 12}]),
        ({"text": 'a,b\n"x, ""y""\nz",007\n'}, [{"a": 'x, "y"\nz', "b": "007"}]),
        ({"text": "a\tb\n1.50\ttrue"}, [{"a": 1.5, "b": True}]),
        ({"text": "1|2", "header": False}, [{"column_1": 1, "column_2": 2}]),
        ({"text": "a,b\n1,", "types": False}, [{"a": "1", "b": ""}]),
        ({"text": "a,b\n1,"}, [{"a": 1, "b": None}]),
        ({"text": "a,b\n"}, []),
        ({"text": " "}, []),
    ],
)
def test_csv_is_read_with_its_types(world: World, arguments: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    assert result(world.call("read_csv", **arguments)) == rows


@each_row(
    "text, words",
    [("a,b\n1\n", "row 1 has 1 values, expected 2"), ("a,a\n1,2", "there twice"), ("a,\n1,2", "none of them empty")],
)
def test_csv_that_does_not_add_up_is_refused(world: World, text: str, words: str) -> None:
    assert words in fault(world.call("read_csv", text=text, separator=","))


def test_what_is_written_as_csv_is_read_back_the_same(world: World) -> None:
    rows = [{"name": 'Ann "A", Berg', "note": "two\nlines"}, {"name": "-5", "note": "ok"}]
    text = result(world.call("write_csv", rows=rows))
    assert list(csv.DictReader(io.StringIO(text))) == rows
    assert result(world.call("read_csv", text=text, types=False)) == rows


@each_row(
    "arguments, text",
    [
        ({"rows": [{"a": 1, "b": None}, {"c": [1]}]}, "a,b,c\n1,,\n,,[1]\n"),
        ({"rows": ROWS[:1], "columns": ["sold"], "separator": ";"}, "sold\n12\n"),
        ({"rows": [{"a": "=HYPERLINK(1)"}, {"a": "-1.5"}, {"a": True}]}, "a\n'=HYPERLINK(1)\n-1.5\ntrue\n"),
        ({"rows": [], "columns": ["a"]}, "a\n"),
    ],
)
def test_csv_is_safe_for_a_spreadsheet(world: World, arguments: dict[str, Any], text: str) -> None:
    assert result(world.call("write_csv", **arguments)) == text


@each_row("name", ["write_csv", "write_table"])
def test_a_table_without_columns_is_none(world: World, name: str) -> None:
    assert "no columns" in fault(world.call(name, rows=[]))


def test_a_markdown_table_has_its_numbers_on_the_right(world: World) -> None:
    assert result(world.call("write_table", rows=ROWS[:2])).splitlines() == [
        "| city | sold |",
        "| ---- | ---: |",
        "| Lyon |   12 |",
        "| Cork |    7 |",
    ]


def test_a_cell_cannot_break_out_of_its_table(world: World) -> None:
    lines = result(world.call("write_table", rows=[{"a": "x|y\nz"}, {"b": None}])).splitlines()
    assert len(lines) == 4
    assert r"x\|y<br>z" in lines[2]


@each_row(
    "path, values",
    [
        ("orders[0].customer", ["Ann"]),
        ("$.orders[*].total", [143, 259.9]),
        ("orders.*.customer", ["Ann", "Ben"]),
        ("..total", [143, 259.9]),
        ("orders[-1]", [{"customer": "Ben", "total": 259.9}]),
        ('["a b"].c[1][0]', [2]),
        ("orders[5].customer", []),
        ("nothing.here", []),
        ("", [ORDERS]),
    ],
)
def test_json_is_asked_by_a_path(world: World, path: str, values: list[Any]) -> None:
    assert result(world.call("query_json", data=ORDERS, path=path)) == {"count": len(values), "values": values}


def test_a_path_that_cannot_be_read_is_refused(world: World) -> None:
    assert "cannot read the path from '[?(@.x)]' on" in fault(world.call("query_json", data=[], path="a[?(@.x)]"))


@each_row(
    "measure, expected",
    [("count", [2, 1]), ("sum", [15, 7]), ("average", [7.5, 7]), ("minimum", [3, 7]), ("maximum", [12, 7])],
)
def test_rows_are_measured_group_by_group(world: World, measure: str, expected: list[float]) -> None:
    found = result(world.call("summarize_rows", rows=ROWS, group_by=["city"], measure=measure, column="sold"))
    assert [row["city"] for row in found] == ["Lyon", "Cork"]
    assert [row[f"{measure}_sold"] for row in found] == expected


def test_groups_may_have_several_columns_and_what_is_no_number_does_not_count(world: World) -> None:
    rows = [{"a": 1, "b": None, "n": "x"}, {"a": 1, "b": None, "n": True}, {"a": 1, "b": "None", "n": 2}]
    found = result(world.call("summarize_rows", rows=rows, group_by=["a", "b"], measure="sum", column="n"))
    assert [row["sum_n"] for row in found] == [None, 2]
    assert result(world.call("summarize_rows", rows=[], group_by=["a"])) == []


@each_row(
    "arguments, words",
    [
        ({"group_by": []}, "at least one column"),
        ({"group_by": ["city"], "measure": "sum"}, "expected the column"),
        ({"group_by": ["town"]}, "no row has a column town; there are city, sold"),
    ],
)
def test_a_summary_of_columns_that_are_not_there_is_refused(
    world: World, arguments: dict[str, Any], words: str
) -> None:
    assert words in fault(world.call("summarize_rows", rows=ROWS, **arguments))


SCHEMA = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "maxItems": 2, "items": {"enum": ["a", "b"]}},
    },
}


@each_row(
    "data, problems",
    [
        ({"name": "Ann", "age": 30, "tags": ["a"]}, []),
        ({"name": "Ann", "age": None}, []),
        ({"name": "Ann", "age": 30.0}, []),
        ({}, ["$.name is missing"]),
        ({"name": "x", "age": -1}, ["$.name: expected 2 to any number long", "$.name: expected something like ^[A-Z]",
                                    "$.age: expected at least 0"]),
        ({"name": "Ann", "tags": ["a", "c"]}, ["$.tags[1]: expected one of a, b"]),
        ({"name": "Ann", "tags": ["a", "a", "a"]}, ["$.tags: expected 0 to 2 long"]),
        ({"name": "Ann", "age": True}, ["$.age: expected integer or null, not boolean"]),
        ({"name": "Ann", "else": 1}, ["$.else is not expected"]),
        ([], ["$: expected object, not array"]),
    ],
    ids=json.dumps,
)  # fmt: skip
def test_json_is_checked_by_a_schema(world: World, data: Any, problems: list[str]) -> None:
    found = result(world.call("check_json", data=data, schema=SCHEMA))
    assert (found["problems"], found["valid"]) == (problems, not problems)


@each_row("schema, words", [({"oneOf": []}, "does not know oneOf"), ({"type": "text"}, "expected one of")])
def test_a_schema_that_says_more_than_is_checked_is_refused(world: World, schema: dict[str, Any], words: str) -> None:
    assert words in fault(world.call("check_json", data={}, schema=schema))

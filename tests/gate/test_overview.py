"""Several calls side by side: what differs, which is the odd one, and what amounts add up to."""

from typing import Any

from hitlchat.gate.batch import MOST_COLUMNS, Overview, overview
from tests.tables import each_row


def of(*arguments: dict[str, Any], **shown: Any) -> Overview:
    return overview([{"arguments": each, **shown} for each in arguments])


def columns(table: Overview) -> list[str]:
    return [column.plain for column in table.columns]


def odd(table: Overview) -> list[int]:
    return [line.place for line in table.lines if line.differs]


def test_what_differs_is_a_column_and_what_does_not_is_said_once() -> None:
    table = of({"order": "1", "currency": "EUR"}, {"order": "2", "currency": "EUR"})
    assert columns(table) == ["order"]
    assert [[cell.text and cell.text.plain for cell in line.cells] for line in table.lines] == [["1"], ["2"]]
    assert [(name.plain, cell.text and cell.text.plain) for name, cell in table.same] == [("currency", "EUR")]
    assert odd(table) == []


@each_row(
    "values,places",
    [
        (["a", "b", "a", "a"], [1]),
        ([True, True, False], [2]),
        (["1", 1, 1], [0]),
        (["a", "a", "b", "b"], []),
        (["a", "b", "c"], []),
        (["a", "b"], []),
        (["ann@ours.example", "ben@ours.example", "cid@0urs.example"], [2]),
        (["https://a.example/1", "https://b.example/2", "https://a.example/3"], [1]),
        ([10, 12, 11, 100], [3]),
        ([10, 12, 11, 30], []),
        ([10, 12, -11], [2]),
        ([10, True, 1000], []),
        ([10, 11, 10**400], [2]),
        ([10**400, 10**401, 10**402, 10**403], [2, 3]),
    ],
)
def test_the_odd_one_is_marked_and_comes_first(values: list[Any], places: list[int]) -> None:
    table = of(*({"value": value} for value in values))
    assert odd(table) == places
    assert [line.place for line in table.lines[: len(places)]] == places
    assert sorted(line.place for line in table.lines) == [*range(len(values))]
    assert [line.cells[0].differs for line in table.lines] == [line.differs for line in table.lines]


def test_of_texts_only_amounts_are_numbers() -> None:
    texts = ["20.00", "15.00", "129.00"]
    assert odd(of(*({"amount": text} for text in texts))) == [2]
    assert odd(of(*({"order": text} for text in texts))) == []


def test_a_value_that_is_not_given_differs_from_one_that_is() -> None:
    table = of({"to": "a"}, {"to": "a"}, {})
    assert (odd(table), table.lines[0].cells[0].text) == ([2], None)
    assert odd(of({}, {}, {"to": "a"})) == [2]


@each_row(
    "name,values,shown,text",
    [
        ("amount", [1, 2.5], {}, "3.5"),
        ("amount", [0.1, 0.2], {}, "0.3"),
        ("amount", [900_000, 900_000], {}, "1 800 000"),
        ("amount", [5, 5, 5], {"currencies": {"amount": "EUR"}}, "15 EUR"),
        ("number", [5, 6], {"currencies": {"number": "USD"}}, "11 USD"),
        ("number", [5, 6], {}, ""),
        ("amount", ["129.00", "20.50"], {}, "149.50"),
        ("amount", ["129.00", 20], {}, "149"),
        ("order", ["4711", "4712"], {}, ""),
        ("amount", [5, "six"], {}, ""),
        ("amount", [5, True], {}, ""),
        ("amount", [5, 10**15], {}, ""),
        ("amount", [5, 10**400], {}, ""),
    ],
)
def test_amounts_are_added_up_exactly(name: str, values: list[Any], shown: dict[str, Any], text: str) -> None:
    table = of(*({name: value} for value in values), **shown)
    assert table.sums == ((text,) if table.columns else ())
    assert table.has_sums is bool(text)


def test_amounts_in_two_currencies_are_not_added_to_each_other() -> None:
    calls = [{"arguments": {"amount": 5}, "currencies": {"amount": code}} for code in ("EUR", "USD", "EUR")]
    assert overview(calls).sums == ("10 EUR + 5 USD",)


def test_what_matters_most_comes_first_and_the_rest_is_counted_but_marks_its_call_all_the_same() -> None:
    names = [f"field_{number:02}" for number in range(MOST_COLUMNS + 1)]
    usual = {**dict.fromkeys(names, "x"), "note": "y"}
    calls = [usual, {**dict.fromkeys(names, "z"), "note": "y"}, usual, {**usual, "to": "q", "field_06": "w"}]
    table = of(*calls)
    assert columns(table) == ["to", *names[: MOST_COLUMNS - 1]]
    assert table.more == 2
    assert odd(table) == [1, 3]


def test_a_long_value_is_cut_in_its_cell_and_says_so() -> None:
    table = of({"text": "a" * 61}, {"text": "a" * 60})
    assert [(line.cells[0].text.plain, line.cells[0].cut) for line in table.lines if line.cells[0].text] == [
        ("a" * 60, True),
        ("a" * 60, False),
    ]

"""Numbers, units and money."""

import math
import statistics
from decimal import Decimal
from typing import Any

import pytest

from tests.tables import each_row
from tests.tools_studio.library.world import World, fault, result, shown


@each_row(
    "value, start, goal, expected",
    [
        (10, "km", "miles", 6.213712),
        (1, "Inches", "cm", 2.54),
        (212, "F", "celsius", 100),
        (1, "kg", "pounds", 2.204623),
    ],
)
def test_units_are_known_by_short_and_long_names(
    world: World, value: float, start: str, goal: str, expected: float
) -> None:
    found = result(world.call("convert_units", value=value, from_unit=start, to_unit=goal))
    assert found == {"value": expected, "unit": goal}


@each_row("start, goal", [("km", "kg"), ("", "k"), ("parsec", "m")])
def test_units_that_do_not_fit_are_refused(world: World, start: str, goal: str) -> None:
    assert "cannot convert" in fault(world.call("convert_units", value=1, from_unit=start, to_unit=goal))


@each_row(
    "expression, value",
    [
        ("(3 + 4) * 2^10 / sqrt(4)", 3584),
        ("2**3**2", 512),
        ("-2^2", -4),
        ("2^-1", 0.5),
        ("10/4 - 10/5", 0.5),
        ("7 // 2 + 7 % 4", 6),
        ("1 - - 1", 2),
        (".5 * 1e3", 500),
        ("min(3, 1, 2) + max(1, 2) + sum(1, 2, 3)", 9),
        ("round(2.71828, 2)", 2.72),
        ("sin(pi / 2) + ln(e) + log(1000) + log2(8)", 8),
        ("12345678901234567890 * 10", 123456789012345678900),
    ],
)
def test_expressions_are_worked_out(world: World, expression: str, value: float) -> None:
    assert math.isclose(result(world.call("calculate", expression=expression))["result"], value)


@each_row(
    "expression, words",
    [
        ("", "ends too early"),
        ("(1", "expected ')'"),
        ("1 2", "nothing more from '2'"),
        ("1 +* 2", "expected a number before '*'"),
        ("1/0", "divide by zero"),
        ("1 % 0", "divide by zero"),
        ("9^9^9", "more than 400 digits"),
        ("(10^399)*(10^399)", "more than 400 digits"),
        ("0^-1", "cannot be raised"),
        ("(-8)^0.5", "cannot be raised"),
        ("sqrt(-1)", "ValueError"),
        ("1e999", "too large"),
        ("open('x')", "cannot read the expression from \"'x')\""),
        ("exit(1)", "cannot use exit"),
        ("(" * 400 + "1" + ")" * 400, "recursion"),
        ("1+" * 600 + "1", "at most 1000 characters"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_expression_is_refused(world: World, expression: str, words: str) -> None:
    assert words in fault(world.call("calculate", expression=expression))


def test_numbers_are_described_as_the_textbook_does(world: World) -> None:
    numbers = [12, 7, 3, 22.5, 7, -1, 0.25]
    found = result(world.call("number_statistics", numbers=numbers))
    assert math.isclose(found["mean"], statistics.mean(numbers), rel_tol=1e-9)
    assert math.isclose(found["standard_deviation"], statistics.stdev(numbers), rel_tol=1e-9)
    quartiles = statistics.quantiles(numbers, n=4, method="inclusive")
    assert [found["first_quartile"], found["median"], found["third_quartile"]] == quartiles
    assert found["most_common"] == {"value": 7, "times": 2}


def test_one_number_has_no_spread(world: World) -> None:
    expected = {"count": 1, "sum": 5, "median": 5, "minimum": 5, "maximum": 5, "standard_deviation": None}
    assert shown(world.call("number_statistics", numbers=[5]), expected) == expected


def test_no_numbers_are_no_argument(world: World) -> None:
    with pytest.raises(Exception, match=r"too short|non-empty"):
        world.call("number_statistics", numbers=[])


@each_row(
    "question, first, second, sentence",
    [
        ("part of whole", "19", "119", "19 % of 119 is 22.61"),
        ("share in percent", "1", "3", "1 is 33.333333 % of 3"),
        ("change in percent", "80", "100", "from 80 to 100 is 25 %"),
        ("change in percent", "-50", "-25", "from -50 to -25 is 50 %"),
        ("add percent", "0.10", "19", "0.10 plus 19 % is 0.119"),
        ("take off percent", "119", "100", "119 less 100 % is 0"),
    ],
)
def test_questions_about_percentages_are_answered_exactly(
    world: World, question: str, first: str, second: str, sentence: str
) -> None:
    assert result(world.call("percentage", question=question, first=first, second=second))["sentence"] == sentence


@each_row("question, first, second", [("share in percent", "1", "0"), ("change in percent", "0", "1")])
def test_nothing_is_a_percentage_of_zero(world: World, question: str, first: str, second: str) -> None:
    assert "of zero" in fault(world.call("percentage", question=question, first=first, second=second))


@each_row(
    "amount, rate, months, expected",
    [
        ("10000", "4.5", 36, {"monthly_payment": "297.47", "plan": []}),
        ("100", "0", 3, {"monthly_payment": "33.33", "last_payment": "33.34", "interest": "0.00", "total": "100.00"}),
        ("1000", "12", 1, {"monthly_payment": "1010.00", "interest": "10.00", "total": "1010.00"}),
    ],
)
def test_a_loan_is_paid_back_with_its_interest(
    world: World, amount: str, rate: str, months: int, expected: dict[str, Any]
) -> None:
    assert shown(world.call("loan_payment", amount=amount, yearly_rate=rate, months=months), expected) == expected


def test_the_plan_of_a_loan_adds_up_to_the_cent(world: World) -> None:
    found = result(world.call("loan_payment", amount="199999.99", yearly_rate="3.75", months=360, plan=True))
    assert len(found["plan"]) == 360
    assert found["plan"][-1]["left"] == "0.00"
    assert sum(Decimal(row["payment"]) for row in found["plan"]) == Decimal(found["total"])


@each_row("amount, rate", [("0", "4"), ("-5", "4"), ("5", "-1"), ("5", "101")])
def test_a_loan_of_nothing_is_refused(world: World, amount: str, rate: str) -> None:
    assert "above zero" in fault(world.call("loan_payment", amount=amount, yearly_rate=rate, months=12))


@each_row(
    "arguments, expected",
    [
        ({"start": "1000", "yearly_rate": "3", "years": 1}, {"balance": "1030.42", "interest": "30.42"}),
        ({"start": "0", "yearly_rate": "0", "years": 2, "monthly_deposit": "50"},
         {"balance": "1200.00", "paid_in": "1200.00", "interest": "0.00"}),
        ({"start": "1000", "yearly_rate": "3", "years": 2, "monthly_deposit": "50"}, {"balance": "2296.89"}),
    ],
)  # fmt: skip
def test_savings_grow_month_by_month(world: World, arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    assert shown(world.call("savings_growth", **arguments), expected) == expected


@each_row("more", [{"start": "-1"}, {"yearly_rate": "101"}, {"monthly_deposit": "-1"}])
def test_savings_are_not_negative(world: World, more: dict[str, str]) -> None:
    arguments = {"start": "1", "yearly_rate": "1", "years": 1, **more}
    assert "no negative sum" in fault(world.call("savings_growth", **arguments))


@each_row(
    "arguments, amounts",
    [
        ({"amount": "100.00", "shares": [1, 1, 1]}, ["33.34", "33.33", "33.33"]),
        ({"amount": "-10", "shares": [1, 2]}, ["-3.33", "-6.67"]),
        ({"amount": "0.05", "shares": [1, 0, 1]}, ["0.03", "0.00", "0.02"]),
        ({"amount": "7", "shares": [0.5, 0.25, 0.25], "decimals": 0}, ["3", "2", "2"]),
    ],
)
def test_no_cent_is_lost_in_splitting(world: World, arguments: dict[str, Any], amounts: list[str]) -> None:
    found = [row["amount"] for row in result(world.call("split_amount", **arguments))]
    assert found == amounts
    assert sum(map(Decimal, found)) == Decimal(arguments["amount"])


@each_row(
    "arguments, words",
    [
        ({"amount": "0.001", "shares": [1]}, "more than 2 decimals"),
        ({"amount": "1", "shares": [0, 0]}, "not all of them zero"),
        ({"amount": "1", "shares": [-1, 2]}, "zero or more"),
        ({"amount": "1", "shares": [1, 1], "names": ["Ann"]}, "expected 2 names"),
    ],
)
def test_shares_that_make_no_sense_are_refused(world: World, arguments: dict[str, Any], words: str) -> None:
    assert words in fault(world.call("split_amount", **arguments))

"""Numbers, units and money."""

from typing import Any

from tools_studio.library.catalogue.shipped import pure

_SHARED: dict[str, Any] = {"group": "maths", "category": "Math"}

MATHS = (
    pure(
        "convert_units",
        "Convert units",
        "Convert {args.value} {args.from_unit} to {args.to_unit}",
        {"value": 10, "from_unit": "km", "to_unit": "miles"},
        tags=("units",),
        **_SHARED,
    ),
    pure(
        "calculate",
        "Calculate",
        "Calculate {args.expression}",
        {"expression": "(3 + 4) * 2^10 / sqrt(4)"},
        tags=("arithmetic",),
        **_SHARED,
    ),
    pure(
        "number_statistics",
        "Number statistics",
        "Make number statistics (numbers: {args.numbers})",
        {"numbers": [12, 7, 3, 22.5, 7]},
        tags=("mean", "median"),
        **_SHARED,
    ),
    pure(
        "percentage",
        "Percentage",
        "Work out a percentage (question: {args.question}, first: {args.first}, second: {args.second})",
        {"question": "add percent", "first": "119.00", "second": "19"},
        tags=("percent", "prices"),
        **_SHARED,
    ),
    pure(
        "loan_payment",
        "Loan payment",
        "Work out a loan payment (amount: {args.amount}, yearly_rate: {args.yearly_rate}, months: {args.months})",
        {"amount": "10000.00", "yearly_rate": "4.5", "months": 36},
        tags=("money", "interest"),
        **_SHARED,
    ),
    pure(
        "savings_growth",
        "Savings growth",
        "Work out savings growth (start: {args.start}, yearly_rate: {args.yearly_rate}, years: {args.years})",
        {"start": "1000.00", "yearly_rate": "3", "years": 5, "monthly_deposit": "50.00"},
        tags=("money", "interest"),
        **_SHARED,
    ),
    pure(
        "split_amount",
        "Split amount",
        "Split an amount (amount: {args.amount}, shares: {args.shares})",
        {"amount": "100.00", "shares": [1, 1, 1], "names": ["Ann", "Ben", "Chloe"]},
        tags=("money",),
        **_SHARED,
    ),
)

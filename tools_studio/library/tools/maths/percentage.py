from decimal import Decimal
from typing import Any, Literal


def plain(number: Decimal) -> str:
    text = f"{number:.6f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def run(
    question: Literal["part of whole", "share in percent", "change in percent", "add percent", "take off percent"],
    first: Decimal,
    second: Decimal,
) -> dict[str, Any]:
    """Answer the usual questions about percentages, exactly, as for prices and taxes.

    Args:
        question: "part of whole" is first % of second; "share in percent" is which % of second the first is;
            "change in percent" goes from first to second; "add percent" and "take off percent" change first by second %
        first: the first number
        second: the second number
    """
    if question in ("share in percent", "change in percent"):
        base = second if question == "share in percent" else first
        if base == 0:
            raise ValueError("a percentage of zero cannot be told")
        value = first / second * 100 if question == "share in percent" else (second - first) / abs(first) * 100
    elif question == "part of whole":
        value = second * first / 100
    else:
        value = first * (100 + (second if question == "add percent" else -second)) / 100
    said = {
        "part of whole": f"{first} % of {second} is {plain(value)}",
        "share in percent": f"{first} is {plain(value)} % of {second}",
        "change in percent": f"from {first} to {second} is {plain(value)} %",
        "add percent": f"{first} plus {second} % is {plain(value)}",
        "take off percent": f"{first} less {second} % is {plain(value)}",
    }
    return {"value": plain(value), "sentence": said[question]}

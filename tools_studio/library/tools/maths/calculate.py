import math
import re
from typing import Any

CONSTANTS = {"pi": math.pi, "e": math.e}
TOKEN = r"\s*(?:([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)|([a-z]+[0-9]*)|(\*\*|//|[-+*/%^(),]))"
MOST_DIGITS = 400


class Reader:
    """The parts of an expression, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self.place = 0
        self.parts: list[str] = []
        rest = text.strip().lower()
        while rest:
            match = re.match(TOKEN, rest)
            if match is None:
                raise ValueError(f"cannot read the expression from {rest[:20]!r} on")
            self.parts.append(match.group(0).strip())
            rest = rest[match.end() :].strip()

    def peek(self) -> str:
        return self.parts[self.place] if self.place < len(self.parts) else ""

    def take(self) -> str:
        part = self.peek()
        self.place += 1
        return part

    def expect(self, part: str) -> None:
        if self.take() != part:
            raise ValueError(f"expected {part!r} in the expression")


def total(reader: Reader) -> Any:
    value = product(reader)
    while reader.peek() in ("+", "-"):
        value = value + product(reader) if reader.take() == "+" else value - product(reader)
    return value


def product(reader: Reader) -> Any:
    value = signed(reader)
    while reader.peek() in ("*", "/", "//", "%"):
        mark = reader.take()
        other = signed(reader)
        if mark != "*" and other == 0:
            raise ValueError("cannot divide by zero")
        value = {"*": times, "/": divided, "//": lambda a, b: a // b, "%": lambda a, b: a % b}[mark](value, other)
    return value


def times(a: Any, b: Any) -> Any:
    return a * b


def divided(a: Any, b: Any) -> Any:
    """A whole number where the division leaves nothing."""
    return a // b if isinstance(a, int) and isinstance(b, int) and a % b == 0 else a / b


def signed(reader: Reader) -> Any:
    if reader.peek() in ("+", "-"):
        return signed(reader) if reader.take() == "+" else -signed(reader)
    return power(reader)


def power(reader: Reader) -> Any:
    base = atom(reader)
    if reader.peek() not in ("**", "^"):
        return base
    reader.take()
    exponent = signed(reader)
    if abs(base) > 1 and abs(exponent) * math.log10(abs(base)) > MOST_DIGITS:
        raise ValueError(f"the result would have more than {MOST_DIGITS} digits")
    if (base == 0 and exponent < 0) or (base < 0 and exponent != int(exponent)):
        raise ValueError(f"{base} cannot be raised to {exponent}")
    return base**exponent


def atom(reader: Reader) -> Any:
    part = reader.take()
    if part == "(":
        value = total(reader)
        reader.expect(")")
        return value
    if part in CONSTANTS:
        return CONSTANTS[part]
    if part.isalpha() or part == "log10" or part == "log2":
        return function(part, reader)
    if not part or part in ")*/%^,**//":
        raise ValueError(f"expected a number before {part!r}" if part else "the expression ends too early")
    return int(part) if part.isdigit() else float(part)


def function(name: str, reader: Reader) -> Any:
    reader.expect("(")
    given = [total(reader)]
    while reader.peek() == ",":
        reader.take()
        given.append(total(reader))
    reader.expect(")")
    if name in ("min", "max", "sum"):
        return {"min": min, "max": max, "sum": sum}[name](given)
    if name == "round" and len(given) == 2:
        return round(given[0], int(given[1]))
    one = {
        "sqrt": math.sqrt, "abs": abs, "round": round, "floor": math.floor, "ceil": math.ceil, "exp": math.exp,
        "ln": math.log, "log": math.log10, "log10": math.log10, "log2": math.log2, "sin": math.sin, "cos": math.cos,
        "tan": math.tan, "degrees": math.degrees, "radians": math.radians,
    }  # fmt: skip
    if name not in one or len(given) != 1:
        known = ", ".join(["min, max, sum", *one])
        raise ValueError(f"cannot use {name} with {len(given)} values; there are {known}")
    return one[name](given[0])


def run(expression: str) -> dict[str, Any]:
    """Work out an arithmetic expression such as (3 + 4) * 2^10 / sqrt(2).

    Args:
        expression: numbers, + - * / // % ^, brackets, pi, e, and functions such as sqrt, round, min, sin or log
    """
    if len(expression) > 1000:
        raise ValueError("expected an expression of at most 1000 characters")
    reader = Reader(expression)
    try:
        value = total(reader)
    except (OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"there is no such number: {error}") from None
    if reader.peek():
        raise ValueError(f"expected nothing more from {reader.peek()!r} on")
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        raise ValueError("the result is too large")
    if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        raise ValueError(f"the result has more than {MOST_DIGITS} digits")
    return {"expression": expression, "result": value, "text": str(value)}

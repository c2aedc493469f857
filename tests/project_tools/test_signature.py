"""Annotations and docstrings become schemas, and JSON becomes what the annotations say."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from hitlchat.gate import schema
from hitlchat.gate.actor import Caller
from hitlchat.gate.schema import BadArguments
from hitlchat.project_tools import signature
from hitlchat.project_tools.signature import SignatureError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    article: str
    count: Annotated[int, Field(ge=1)] = 1


class Address(BaseModel):
    street: str
    town: str | None = None


@dataclass
class Node:
    inner: "Node | None"


def order(
    lines: list[Line],
    to: Address,
    colour: Colour,
    on: date | None = None,
    price: Annotated[Decimal, Field(gt=0, description="In euros.")] = Decimal("1.50"),
    how: Literal["post", "van"] = "post",
    *,
    caller: Caller,
    within: timedelta = timedelta(days=2),
) -> dict[str, Decimal]:
    """Order something.

    It is sent at once.

    Args:
        lines: What to send,
            one line each.
        to (Address): Where to.
        price: Not this, since the annotation says it.
    """
    return {}


def properties() -> dict[str, Any]:
    return dict(signature.read(order).input_schema["properties"])


def test_the_schema_follows_the_annotations() -> None:
    found = properties()
    assert found["lines"]["items"]["properties"]["count"] == {"type": "integer", "minimum": 1, "default": 1}
    assert found["to"]["properties"]["town"] == {"type": ["string", "null"], "default": None}
    assert found["colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert (found["on"]["type"], found["on"]["format"]) == (["string", "null"], "date")
    assert (found["how"]["enum"], found["how"]["default"]) == (["post", "van"], "post")
    assert (found["price"]["default"], found["within"]["default"]) == ("1.50", "P2D")


def test_descriptions_come_from_annotations_and_the_docstring() -> None:
    found = signature.read(order)
    assert found.description == "Order something.\n\nIt is sent at once."
    assert found.input_schema["properties"]["lines"]["description"] == "What to send, one line each."
    assert found.input_schema["properties"]["to"]["description"] == "Where to."
    assert found.input_schema["properties"]["price"]["description"] == "In euros."


def test_the_caller_is_no_argument() -> None:
    found = signature.read(order)
    assert found.caller == "caller"
    assert "caller" not in found.input_schema["properties"]
    assert found.input_schema["required"] == ["lines", "to", "colour"]


def test_every_type_stands_where_it_is_used() -> None:
    assert "$" not in str(signature.read(order).input_schema)
    schema.check_schema(signature.read(order).input_schema)


def test_the_return_annotation_is_the_output_schema() -> None:
    output = signature.read(order).output_schema
    assert output is not None
    assert output["type"] == "object"

    def silent(a: int):  # type: ignore[no-untyped-def]
        return a

    assert signature.read(silent).output_schema is None


def test_arguments_become_what_the_annotations_say() -> None:
    given = {
        "lines": [{"article": "tea"}],
        "to": {"street": "Main Street 1"},
        "colour": "blue",
        "on": "2026-02-03",
        "price": 0.1,
        "within": "PT1H",
    }
    made = signature.read(order).coerce(given)
    assert made["lines"] == [Line("tea", 1)]
    assert made["to"] == Address(street="Main Street 1")
    assert (made["colour"], made["on"], made["price"]) == (Colour.BLUE, date(2026, 2, 3), Decimal("0.1"))
    assert made["within"] == timedelta(hours=1)


def test_what_fits_the_schema_and_no_type_is_named_without_its_value() -> None:
    with pytest.raises(BadArguments, match=r"^on: .*valid date") as caught:
        signature.read(order).coerce({"on": "2026-02-31"})
    assert "31" not in str(caught.value)


def untyped(a) -> int:  # type: ignore[no-untyped-def]
    return 1


def starred(*rest: int) -> int:
    return 1


def keywords(**rest: int) -> int:
    return 1


def positional(a: int, /) -> int:
    return a


def callback(a: Callable[[], int]) -> int:
    return a()


def exotic(a: object, b: Callable[[], None] | None = None) -> None: ...


class Opaque: ...


def opaque(a: Opaque) -> None: ...


def endless(a: Node) -> None: ...


def misfit(a: int = "x") -> None:  # type: ignore[assignment]
    ...


def infinite(a: float = float("inf")) -> None: ...


def foreign(größe: int) -> None: ...  # noqa: PLC2401 - that is what is refused


def twice(a: Caller, b: Caller) -> None: ...


def gives_opaque() -> Opaque:
    return Opaque()


def unknown(a: "Nowhere") -> None:  # type: ignore[name-defined] # noqa: F821
    ...


UNREADABLE: list[tuple[Callable[..., Any], str]] = [
    (untyped, "'a' has no type"),
    (starred, "'rest' cannot be passed by name"),
    (keywords, "'rest' cannot be passed by name"),
    (positional, "'a' cannot be passed by name"),
    (callback, "'a' has a type that JSON cannot carry"),
    (exotic, "'b' has a type that JSON cannot carry"),
    (opaque, "'a' has a type that JSON cannot carry"),
    (endless, "'a' has a type that JSON cannot carry: it contains itself"),
    (misfit, "the default of 'a' does not fit its type"),
    (infinite, "the default of 'a' does not fit its type, or JSON cannot hold it"),
    (foreign, "'größe': expected at most 64 letters"),
    (twice, "'a' and 'b' are both a Caller"),
    (gives_opaque, "what it returns has a type that JSON cannot carry"),
    (unknown, "its annotations cannot be read: name 'Nowhere' is not defined"),
]


def test_a_parameter_that_no_call_could_fill_in_is_named() -> None:
    for function, words in UNREADABLE:
        with pytest.raises(SignatureError, match=words.replace("(", r"\(")):
            signature.read(function)

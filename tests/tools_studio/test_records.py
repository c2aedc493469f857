"""Dataclasses as types of a tool's arguments: their schema, and the objects that the tool gets."""

import asyncio
from typing import Any

import pytest
from jsonschema import Draft202012Validator, validate

from hitlchat.sandbox import Report, check, run
from tests.tables import each_row
from tools_studio.language import signature
from tools_studio.language.annotations import coerce
from tools_studio.language.snippet import SignatureError

ORDER = '''from dataclasses import dataclass, field
from datetime import date
from typing import Annotated


@dataclass
class Item:
    """One line of an order."""

    name: Annotated[str, "What it is"]
    count: Annotated[int, {"minimum": 1}] = 1
    tags: list[str] = field(default_factory=list)

    def words(self) -> str:
        label: str = f"{self.count} {self.name}"
        return label


@dataclass(frozen=True)
class Order:
    items: list[Item]
    due: date | None = None
    gifts: dict[str, Item] = field(default_factory=dict)


def run(order: Order, extra: Item | None = None, note: str = "") -> Item:
    """Say what is ordered.

    order: what to say
    """
    said = [item.words() for item in order.items] + [f"{who}: {gift.words()}" for who, gift in order.gifts.items()]
    if extra:
        said.append(extra.words())
    if order.due:
        said.append(str(order.due.year))
    return Item(", ".join(said), len(said), [note])
'''


def called(source: str, arguments: dict[str, Any]) -> Report:
    found = signature.read(source)
    validate(arguments, found.input_schema)
    given = coerce(found.input_schema, arguments)
    code, entry = signature.runnable(source)
    return asyncio.run(run(code, given, entry=entry))


def refusal(source: str) -> SignatureError:
    with pytest.raises(SignatureError) as caught:
        signature.read(source)
    return caught.value


def test_a_dataclass_is_an_object_with_its_fields() -> None:
    schema = signature.read(ORDER).input_schema
    Draft202012Validator.check_schema(schema)
    item = schema["properties"]["order"]["properties"]["items"]["items"]
    assert item == {
        "type": "object",
        "title": "Item",
        "description": "One line of an order.",
        "properties": {
            "name": {"type": "string", "description": "What it is"},
            "count": {"type": "integer", "minimum": 1, "default": 1},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert schema["properties"]["order"]["description"] == "what to say"
    assert schema["required"] == ["order"]


def test_the_tool_gets_real_objects_with_their_methods_and_defaults() -> None:
    arguments = {
        "order": {"items": [{"name": "lamp"}, {"name": "chair", "count": 2}], "due": "2027-01-31",
                  "gifts": {"Ann": {"name": "mug"}}},
        "extra": {"name": "rug", "count": 3},
        "note": "fragile",
    }  # fmt: skip
    report = called(ORDER, arguments)
    assert report.fault is None
    assert report.result == {"name": "1 lamp, 2 chair, Ann: 1 mug, 3 rug, 2027", "count": 5, "tags": ["fragile"]}


def test_what_is_optional_may_be_null_or_left_out() -> None:
    assert called(ORDER, {"order": {"items": []}, "extra": None}).result == {"name": "", "count": 0, "tags": [""]}


def test_a_tool_that_awaits_gets_records_too() -> None:
    source = ORDER.replace("def run(", "async def run(")
    assert called(source, {"order": {"items": [{"name": "lamp"}]}}).result["name"] == "1 lamp"


def test_an_error_in_the_tool_names_the_authors_own_line() -> None:
    source = ORDER.replace("    if extra:\n", '    raise ValueError("no")\n    if extra:\n')
    fault = called(source, {"order": {"items": []}}).fault
    assert fault is not None
    assert fault.line == source.splitlines().index('    raise ValueError("no")') + 1


def test_a_tool_without_records_needs_no_glue() -> None:
    assert signature.read("def run(x: int) -> int:\n    return x\n").glue() == ""
    unused = (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass A:\n    x: int\n\n\ndef run() -> int:\n    return 1\n"
    )
    assert signature.read(unused).glue() == ""


async def test_a_tool_with_records_passes_the_check() -> None:
    assert await check(ORDER) == []


@each_row(
    "source, said, line",
    [
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    a: 'A'\ndef run(a: A): pass",
            "without quotes",
            4,
        ),
        (
            "@dataclass\nclass A:\n    b: B\n@dataclass\nclass B:\n    a: list[A]\ndef run(a: A): pass",
            "contains itself",
            2,
        ),
        ("@dataclass\nclass A:\n    x: set\ndef run(a: A): pass", "JSON has no sets", 3),
        ("@dataclass\nclass A:\n    x: int = one()\ndef run(a: A): pass", "literal", 3),
        ("@dataclass\nclass A:\n    x: int = 'one'\ndef run(a: A): pass", "does not fit", 3),
        ("class A:\n    x: int\ndef run(a: A): pass", "unknown type 'A'", 3),
        ("@dataclass\nclass A:\n    x: int\nx = 1\n\ndef run(a: list[A, A]): pass", "one type", 6),
    ],
    ids=["quoted", "circle", "type", "call as default", "wrong default", "plain class", "in run"],
)
def test_what_has_no_schema_is_refused_at_its_line(source: str, said: str, line: int) -> None:
    error = refusal(source)
    assert said in str(error)
    assert error.line == line


def test_records_that_double_with_every_level_are_refused() -> None:
    kinds = ["int", *(f"R{n}" for n in range(19))]
    chain = "".join(f"@dataclass\nclass R{n}:\n    a: {kind}\n    b: {kind}\n" for n, kind in enumerate(kinds))
    assert "larger than 32 KB" in str(refusal(chain + "def run(x: R19): pass"))


def test_more_records_than_anyone_needs_are_refused() -> None:
    many = "".join(f"@dataclass\nclass R{n}:\n    x: int\n" for n in range(21))
    assert "at most 20" in str(refusal(many + "def run(): pass"))

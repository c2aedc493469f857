from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hitlchat.gate.schema import with_defaults
from tests.tables import each_row
from tools_studio.language.annotations import coerce
from tools_studio.language.signature import read
from tools_studio.language.snippet import SignatureError

REFUND = '''
from decimal import Decimal
from typing import Annotated, Literal
from hitl import store

LIMIT = 3


def helper(a, b):
    return a


def run(
    order_id: str,
    amount: Annotated[Decimal, "How much"],
    count: Annotated[int, "How many", {"minimum": 1, "maximum": 10}] = 1,
    currency: Literal["EUR", "USD"] = "EUR",
    note: str | None = None,
) -> dict:
    """Refund an order.

    Only what was paid can be refunded.

    Args:
        order_id: The number of the order,
            as printed on the invoice.
        currency (str): Which money
    """
    return {}
'''


def schema_of(annotation: str) -> Any:
    return read(f"def run(x: {annotation}): pass").input_schema["properties"]["x"]


def error_of(source: str) -> SignatureError:
    with pytest.raises(SignatureError) as caught:
        read(source)
    return caught.value


def test_a_typed_run_is_the_schema_of_its_arguments() -> None:
    schema = read(REFUND).input_schema
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["order_id", "amount"]
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == ["order_id", "amount", "count", "currency", "note"]
    assert schema["properties"]["count"] == {
        "type": "integer", "description": "How many", "minimum": 1, "maximum": 10, "default": 1,
    }  # fmt: skip


def test_the_docstring_describes_the_tool_and_its_parameters() -> None:
    signature = read(REFUND)
    properties = signature.input_schema["properties"]
    assert signature.description == "Refund an order.\n\nOnly what was paid can be refunded."
    assert properties["order_id"]["description"] == "The number of the order, as printed on the invoice."
    assert properties["currency"]["description"] == "Which money"


@each_row(
    "line",
    [
        ":param city: The town",
        ":param str city: The town",
        "city: The town",
        "- city: The town",
        "`city` (str): The town",
    ],
)
def test_a_parameter_may_be_described_in_several_styles(line: str) -> None:
    signature = read(f'def run(city: str):\n    """Weather.\n\n    {line}\n    """\n')
    assert signature.input_schema["properties"]["city"]["description"] == "The town"
    assert signature.description == "Weather."


@each_row("line", [":param `city`: The town", ":param city (str): The town", ":param a b c d city: A"])
def test_other_styles_stay_prose_since_stored_tools_were_read_so(line: str) -> None:
    signature = read(f'def run(city: str):\n    """Weather.\n\n    {line}\n    """\n')
    assert "description" not in signature.input_schema["properties"]["city"]
    assert signature.description == f"Weather.\n\n{line}"


SECTIONS = {
    "below": "Args:\n    a: First\n\nExample:\n    a: example",
    "beside": "Args:\n    a: First\n\nExample:\na: example",
    "before": "Example:\n    a: example\n\nArgs:\n    a: First",
    "before, plain": "Example:\n    a: example\n\na: First",
    "with a text": "Args:\n    a: First\nReturns: what was asked, as\n    a: example",
    "within a parameter": "Args:\n    c: Third\n        Example:\n    a: First",
    "reST": ":param a: First\n:returns: it\n\nNotes:\n    a: example",
    "numpy": "Parameters\n----------\na : First\n\nExamples\n--------\na: example",
    "two": "Args:\n    a: First\n\nRaises:\n    a: example\n\nYields:\n    a: example\n\nNote:\n    a: example",
}


@each_row("docstring", SECTIONS.values(), ids=SECTIONS)
@each_row("heading", ["Example", "Examples", "Returns", "Raises", "Notes", "Yields", "Warning", "See Also"])
def test_another_section_of_the_docstring_describes_no_parameter(docstring: str, heading: str) -> None:
    lines = "\n    ".join(docstring.replace("Example:", f"{heading}:").splitlines())
    found = read(f'def run(a: str, c: str = ""):\n    """T.\n\n    {lines}\n    """\n')
    assert found.input_schema["properties"]["a"]["description"] == "First"
    assert ("a: example" in found.description) == ("example" in docstring)


def test_a_parameter_may_have_the_name_of_a_section() -> None:
    found = read('def run(notes: str, example: str):\n    """T.\n\n    notes: First\n    example: Second\n    """\n')
    assert [part["description"] for part in found.input_schema["properties"].values()] == ["First", "Second"]


def test_an_annotation_describes_better_than_the_docstring() -> None:
    source = 'def run(a: Annotated[int, "near"]):\n    """T\n\n    a: far"""\n'
    assert read(source).input_schema["properties"]["a"]["description"] == "near"


@each_row(
    "annotation, schema",
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("None", {"type": "null"}),
        ("Any", {}),
        ("typing.Any", {}),
        ("list", {"type": "array"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("typing.List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("dict", {"type": "object"}),
        ("dict[str, Any]", {"type": "object"}),
        ("dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("datetime.date", {"type": "string", "format": "date"}),
        ("datetime", {"type": "string", "format": "date-time"}),
        ("int | None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("Optional[int]", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("Union[int, str, None]", {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        ("int | str | int", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("int | Any", {}),
        ('Literal["a", "b"]', {"type": "string", "enum": ["a", "b"]}),
        ('Literal[1, "b", None]', {"enum": [1, "b", None]}),
        ("Literal[-1]", {"type": "integer", "enum": [-1]}),
        ('Annotated[str, {"pattern": "^[A-Z]{2}[0-9]+$"}]', {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"}),
        ('Annotated[str, {"pattern": "^(cat|dog+)*$"}]', {"type": "string", "pattern": "^(cat|dog+)*$"}),
    ],
)
def test_each_type_has_its_schema(annotation: str, schema: dict[str, Any]) -> None:
    assert schema_of(annotation) == schema


@each_row(
    "annotation, words",
    [
        ("tuple[int, int]", "use list[T]"),
        ("set[str]", "no sets"),
        ("bytes", "use str"),
        ("Order", "unknown type 'Order'"),
        ('"int"', "without quotes"),
        ("int[str]", "nothing in brackets"),
        ("list[int, int]", "one type"),
        ("dict[int, str]", "keys of a JSON object"),
        ("Literal[1.5]", "whole numbers"),
        ("Literal[x]", "whole numbers"),
        ("print('x')", "expected a type"),
        ("Annotated[int, 3]", "expected Annotated"),
        ('Annotated[int, {"minLength": 3}]', "says nothing"),
        ('Annotated[int, {"color": 3}]', "unknown bound 'color'"),
        ('Annotated[str, {"minLength": -3}]', "does not fit"),
        ('Annotated[str, {"pattern": "(?=a)b"}]', "without look-around"),
        ('Annotated[str, {"pattern": r"(a)\\1"}]', "without look-around or back references"),
        ('Annotated[str, {"pattern": "["}]', "'pattern' does not fit"),
        ('Annotated[str, {"pattern": "a{99999999999}"}]', "valid regular expression"),
        ('Annotated[str, {"pattern": 7}]', "'pattern' does not fit"),
        ('Annotated[Decimal, {"pattern": "^1$"}]', "pattern of its own"),
    ],
)
def test_a_type_that_json_cannot_hold_is_refused_with_the_way_out(annotation: str, words: str) -> None:
    error = error_of(f"def run(x: {annotation}): pass")
    assert words in str(error)
    assert "'x'" in str(error)


@each_row(
    "source, line, words",
    [
        ("", 1, "expected a top-level `def run(...)`"),
        ("if True:\n    def run(): pass\n", 1, "top-level"),
        ("\n\ndef run(a): pass", 3, "parameter 'a' has no type"),
        ("def run(a: int,\n  b): pass", 2, "parameter 'b' has no type"),
        ("def run(): pass\ndef run(): pass", 2, "a second one"),
        ("def run(): pass\nx = 1; run = x", 2, "a second one"),
        ("def run(): pass\nfrom hitl import run", 2, "a second one"),
        ("def run(): pass\ndef \uff52\uff55\uff4e(a: int): pass", 2, "a second one"),
        ("# a comment\rdef run(): pass\rdef run(a: int): pass", 3, "a second one"),
        ("run = 3", 1, "expected `def run"),
        ("@cached\ndef run(): pass", 2, "decorator"),
        ("def run(*args: int): pass", 1, "`*args`"),
        ("def run(**more: int): pass", 1, "`**more`"),
        ("def run(a: int, /): pass", 1, "positional-only"),
        ("def run(a: int = b): pass", 1, "must be a literal"),
        ("def run(a: dict = {1: 2}): pass", 1, "must be a literal"),
        ("def run(a: float = 1e999): pass", 1, "must be a literal"),
        ("def run(a: str = None): pass", 1, "does not fit"),
        ("def run(a: date = '2026-02-30'): pass", 1, "does not fit"),
        ("def run(a: str = '\\ud800'): pass", 1, "surrogate"),
        ("def run(a: str = '\\0'): pass", 1, "null character"),
        ("def run(é: int): pass", 1, "letters a-z"),
        ("def run(a: int", 2, "complete Python"),
        ("\ndef run(a: int a): pass", 2, "expected a Python header"),
        ("def run()\n", 1, "expected a `:`"),
        ("def run():\nx = 1", 1, "indented body"),
        ("def run():\n   x = 1\n  y = 2", 3, "expected Python"),
        (f"def run(a: {'(' * 150}int{')' * 150}{'-' * 3000}1): pass", 1, "nested too deeply"),
        (f"def run(): '{'x' * 9000}'", 1, "8 KB"),
        ("#" * 70_000, 1, "64 KB"),
    ],
    ids=lambda value: str(value)[:30].encode("unicode_escape").decode(),
)
def test_what_has_no_signature_is_refused_with_its_line(source: str, line: int, words: str) -> None:
    error = error_of(source)
    assert words in str(error)
    assert error.line == line


def test_a_body_of_any_depth_is_never_parsed() -> None:
    source = "def run(a: int):\n    return " + "-" * 50_000 + "1\n"
    assert read(source).input_schema["required"] == ["a"]


def test_a_name_inside_brackets_or_a_nested_function_is_not_a_second_run() -> None:
    source = "x = dict(run=1)\nclass A:\n    def run(self): pass\ndef run(): pass\nrun()\n"
    assert read(source).input_schema["properties"] == {}


def test_async_and_the_returned_type_are_known() -> None:
    signature = read("async def run() -> list[int]:\n    return []\n")
    assert signature.is_async
    assert signature.output_schema == {"type": "array", "items": {"type": "integer"}}
    assert read("def run() -> Any: pass").output_schema is None
    assert read("def run(): pass").output_schema is None


def test_a_computed_docstring_is_no_description() -> None:
    assert read('def run():\n    "a" + b\n').description == ""
    assert read('def run():\n    f"a"\n').description == ""
    assert read("def run(): 'a' 'b'; x = 1\n").description == "ab"


def test_arguments_become_the_values_that_run_expects() -> None:
    source = (
        "def run(d: date, at: datetime, sum: Decimal, n: int, many: list[date], by: dict[str, Decimal] | None): pass"
    )
    schema = read(source).input_schema
    arguments = {
        "d": "2026-01-31",
        "at": "2026-01-31T10:00:00Z",
        "sum": "1.50",
        "n": 3.0,
        "many": ["2026-01-31"],
        "by": {"a": "1"},
    }
    assert coerce(schema, arguments) == {
        "d": date(2026, 1, 31),
        "at": datetime(2026, 1, 31, 10, tzinfo=UTC),
        "sum": Decimal("1.50"),
        "n": 3,
        "many": [date(2026, 1, 31)],
        "by": {"a": Decimal(1)},
    }
    assert type(coerce(schema, arguments)["n"]) is int


@each_row("annotation, value", [("date", "20260131"), ("date", "2026-02-30"), ("datetime", "noon"), ("Decimal", "NaN")])
def test_a_value_that_is_not_what_its_format_says_is_named(annotation: str, value: str) -> None:
    schema = read(f"def run(x: {annotation}): pass").input_schema
    with pytest.raises(ValueError, match=f"x: '{value}' is not a"):
        coerce(schema, {"x": value})


def test_the_union_of_a_date_and_a_text_takes_both() -> None:
    schema = read("def run(x: date | str): pass").input_schema
    assert coerce(schema, {"x": "2026-01-31"}) == {"x": date(2026, 1, 31)}
    assert coerce(schema, {"x": "soon"}) == {"x": "soon"}


def test_defaults_are_filled_in_so_that_all_that_runs_is_shown() -> None:
    schema = read("def run(a: int, b: list = [], *, c: int | None = None): pass").input_schema
    filled = with_defaults(schema, {"a": 1})
    assert filled == {"a": 1, "b": [], "c": None}
    filled["b"].append(1)
    assert with_defaults(schema, {"a": 1, "c": 2}) == {"a": 1, "b": [], "c": 2}


@given(st.text())
def test_any_text_is_read_or_refused_inside_it(text: str) -> None:
    lines = []
    for source in (text, f"def run(a: {text}): pass", f'def run(): """{text}"""'):
        try:
            Draft202012Validator.check_schema(read(source).input_schema)
        except SignatureError as error:
            lines.append(error.line / (source.count("\n") + source.count("\r") + 2))
    assert all(0 < line <= 1 for line in lines)

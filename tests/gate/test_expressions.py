"""What compiling a pattern costs is known from its text, and what costs too much is never compiled."""

from typing import Any

import pytest

from hitlchat.base import expressions
from hitlchat.base.expressions import LONGEST, MOST_PATTERNS, MOST_STEPS, compiled, is_costly, steps
from hitlchat.gate import schema
from hitlchat.gate.schema import BadArguments, BadSchema

COSTLY = {
    "a class of Unicode, repeated": r"(?i)\w{500}",
    "the most it may be repeated": r"\p{L}{1,900}",
    "at least": r"\p{L}{900,}",
    "with spaces": r"\w{ 500 }",
    "one repetition in another": r"(?:\w{30}){30}",
    "one repetition after another": r"\w{30}{30}",
    "literals": "((a{100}){100}){100}",
    "nothing at all": "((){1000}){1000}",
    "inside a class": r"[a\w-]{500}",
    "a class in a class": r"[a[^\d]]{900}",
    "a class that begins with a bracket": r"[]\w]{500}",
    "all but a class": r"[^]\w]{500}",
    "many of them": r"\w{20}" * 10,
    "spaces that count for nothing": r"(?x)\w {500}",
    "its length": "a" * (LONGEST + 1),
}
USUAL = [
    r"^[A-Za-z0-9_-]{1,64}$",
    r"^\w{1,64}$",
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$",
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    r"^[\w.+-]+@[\w-]+\.[\w.-]+$",
    r"^https?://[^\s/$.?#].[^\s]*$",
    r"^.{1,1000}$",
    r"^[a{500}\w]$",
    r"\{500}\w",
    r"",
]


def test_a_pattern_that_takes_long_to_compile_is_not_compiled(subtests: pytest.Subtests) -> None:
    for case, pattern in COSTLY.items():
        with subtests.test(case=case):
            assert is_costly(pattern)
            assert compiled(pattern) is None


def test_usual_patterns_are_compiled(subtests: pytest.Subtests) -> None:
    for pattern in USUAL:
        with subtests.test(pattern=pattern):
            assert steps(pattern) <= MOST_STEPS
            assert compiled(pattern) is not None


def test_what_is_no_pattern_of_the_engine_costs_little_and_is_none(subtests: pytest.Subtests) -> None:
    for pattern in ["(", ")", "[", "{3}", "\\", "[[", r"\p", "(?", "{", "(?=a)"]:
        with subtests.test(pattern=pattern):
            assert not is_costly(pattern)
            assert compiled(pattern) is None or pattern == ")"


def test_a_costly_pattern_is_not_run_and_nothing_fits_it() -> None:
    before = compiled.cache_info().currsize
    with pytest.raises(BadArguments, match=r"text: the pattern .* is too costly to check"):
        schema.validate({"properties": {"text": {"pattern": COSTLY["many of them"]}}}, {"text": "a"})
    assert compiled.cache_info().currsize == before


def test_costly_patterns_of_a_schema_are_named_with_the_limit(subtests: pytest.Subtests) -> None:
    given: Any
    for given, said in [
        ({"properties": {"code": {"pattern": r"\w{500}"}}}, "^properties.code: its pattern is too costly: .* 500 char"),
        (
            {"properties": {f"p{n}": {"anyOf": [{"pattern": f"a{n}"}]} for n in range(MOST_PATTERNS + 1)}},
            "^properties.p50.anyOf.0: its pattern is one too many: expected at most 50",
        ),
        ({"properties": {f"p{n}": {"pattern": rf"\w{{40}}{n}"} for n in range(2)}}, "^properties.p1: .* simpler ones"),
    ]:
        with subtests.test(given=given), pytest.raises(BadSchema, match=said):
            schema.check_patterns(given)


def test_a_property_that_is_named_pattern_is_none() -> None:
    given = {"properties": {"pattern": {"type": "string", "pattern": "^a"}}}
    assert list(expressions.costly_patterns(given)) == []


def test_a_pattern_that_is_nested_too_deeply_makes_a_schema_invalid(subtests: pytest.Subtests) -> None:
    for pattern in ["(" * 30_000 + ")" * 30_000, "(?:a|" * 10_000 + ")" * 10_000]:
        with subtests.test(pattern=pattern), pytest.raises(BadSchema):
            schema.check_schema({"properties": {"a": {"pattern": pattern}}})


def test_a_pattern_in_the_dialect_of_json_schema_is_valid(subtests: pytest.Subtests) -> None:
    for pattern in [
        r"^[\p{L}\p{N}_-]{1,20}$",
        r"(?<=a+)b",
        r"(?<n>a)\k<n>",
        r"a\/b",
        r"^\cA$",
        r"^\u{1F600}$",
        r"^[^]$",
        r"\ud83d\ude00",
    ]:
        with subtests.test(pattern=pattern):
            given = {"properties": {"a": {"pattern": pattern}, "b": {"patternProperties": {pattern: True}}}}
            schema.check_schema(given)
            schema.validate(given, {"a": 5, "b": {"": 1}})


def test_a_text_that_is_no_pattern_is_named_with_its_place_and_the_reason(subtests: pytest.Subtests) -> None:
    for pattern, said in {
        "(": "has a parenthesis that is not closed",
        "a)": "has a closing parenthesis without an opening one",
        "[a": "has a bracket that is not closed",
        "a\\": "ends in a backslash",
        "(" * 101 + ")" * 101: "is nested too deeply",
    }.items():
        with subtests.test(pattern=pattern):
            inside = {"properties": {"a/b": {"items": {"pattern": pattern}}}}
            with pytest.raises(BadSchema) as caught:
                schema.check_schema(inside)
            assert str(caught.value) == f"properties.a/b.items.pattern: not a valid regular expression, since it {said}"
            with pytest.raises(BadSchema, match=r"^patternProperties"):
                schema.check_schema({"patternProperties": {pattern: True}})


def test_a_pattern_that_nothing_here_reads_lets_every_text_through() -> None:
    given = {"properties": {"a": {"pattern": r"(?<=a+)b"}, "b": {"format": "regex"}}}
    schema.validate(given, {"a": "anything", "b": r"^\p{L}$"})
    names = {
        "patternProperties": {r"(?<=a+)b": {"type": "null"}, "^x": {"type": "null"}},
        "additionalProperties": False,
    }
    schema.validate(names, {"any": 1, "x": None})
    with pytest.raises(BadArguments, match=r"^x: 1 is not null\.$"):
        schema.validate(names, {"x": 1})


DATA: tuple[Any, ...] = (
    {"$schema": "http://json-schema.org/draft-07/schema#"},
    {"pattern": "("},
    {"$ref": "#/nowhere"},
)


def test_data_is_not_taken_for_a_schema(subtests: pytest.Subtests) -> None:
    for value in DATA:
        for keyword in ["const", "enum", "default", "examples"]:
            with subtests.test(value=value, keyword=keyword):
                given = {"properties": {"a": {keyword: value if keyword in {"const", "default"} else [value]}}}
                schema.check_schema(given)
                schema.check_patterns(given)
                schema.validate(given, {"a": value})
                if keyword in {"const", "enum"}:
                    with pytest.raises(BadArguments):
                        schema.validate(given, {"a": {}})


def test_an_argument_with_the_name_of_a_keyword_is_an_argument(subtests: pytest.Subtests) -> None:
    for name in ["const", "enum", "default", "examples", "$schema", "pattern", "properties", "$ref"]:
        with subtests.test(name=name):
            given = {"properties": {name: {"type": "string", "pattern": "^a+$"}}}
            schema.check_schema(given)
            with pytest.raises(BadArguments, match="does not match the pattern"):
                schema.validate(given, {name: "b"})
            with pytest.raises(BadSchema, match="costly"):
                schema.check_patterns({"properties": {name: {"pattern": r"\w{500}"}}})


def test_what_is_wrong_with_a_schema_is_said_with_its_place(subtests: pytest.Subtests) -> None:
    given: Any
    for given, said in [
        (
            {"properties": {"pair": {"type": "array", "items": [{"type": "string"}]}}},
            'properties.pair.items: [{"type": "string"}] is not an object or true or false',
        ),
        ({"properties": {"a": {"type": "date"}}}, 'properties.a.type: "date" matches none of the allowed forms'),
        ({"properties": {"a": {"required": True}}}, "properties.a.required: true is not a list"),
        ({"properties": {"a": {"minLength": -1}}}, "properties.a.minLength: -1 is less than the minimum of 0"),
        ({"properties": {"a": None}}, "properties.a: null is not an object or true or false"),
    ]:
        with subtests.test(given=given):
            with pytest.raises(BadSchema) as caught:
                schema.check_schema(given)
            assert str(caught.value).startswith(said)

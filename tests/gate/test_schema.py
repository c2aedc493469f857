"""Do arguments fit? Answered with words that name the field, and never with more than a page of them."""

from typing import Any

import pytest

from hitlchat.gate import schema
from hitlchat.gate.schema import BadArguments, BadSchema
from tests.gate.asking import SCHEMA

LONGEST = schema.MOST_PROBLEMS * 2 * (schema.LONGEST_PROBLEM + 50)


def problem(arguments: Any, given: dict[str, Any] = SCHEMA) -> str:
    with pytest.raises(BadArguments) as caught:
        schema.validate(given, arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    "arguments,named",
    [
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": None}, "text"),
        ({"text": "a", "amount": "1"}, "amount"),
        ({"text": "a", "amount": 1.5}, "amount"),
        ({"text": "a", "amount": True}, "amount"),
        ({"text": "a", "amonut": 1}, "amonut"),
        ({"text": ["x" * 100_000]}, "text"),
        ({"text": "a", "x" * 100_000: 1}, "xxx"),
    ],
    ids=range(9),
)
def test_what_does_not_fit_is_named_in_few_words(arguments: dict[str, Any], named: str) -> None:
    said = problem(arguments)
    assert named in said
    assert len(said) < 1000


def test_a_field_further_in_is_named_by_its_path() -> None:
    inner = {"properties": {"orders": {"items": {"properties": {"id": {"type": "integer"}}}}}}
    assert problem({"orders": [{"id": 1}, {"id": "two"}]}, inner).startswith("orders.1.id: ")


def test_a_thousand_unknown_keys_make_a_short_message() -> None:
    assert len(problem({"text": "a"} | {f"key{number}": number for number in range(1000)})) < 1000


def test_a_thousand_wrong_values_are_counted_not_listed() -> None:
    said = problem({str(number): "no" for number in range(1000)}, {"additionalProperties": {"type": "integer"}})
    assert said.endswith("And 990 more problems.")
    assert len(said) < LONGEST


def test_a_wrong_text_of_100_kilobytes_is_cut_and_the_cut_is_counted() -> None:
    said = problem({"amount": "x" * 100_000, "text": "a"})
    assert "more characters" in said
    assert len(said) < 1000


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**5000, {1}], ids=["nan", "inf", "digits", "set"])
def test_a_value_that_is_not_json_does_not_fit(value: object) -> None:
    assert "not valid JSON" in problem({"text": value})


def test_nesting_without_end_does_not_fit() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    assert "nested too deeply" in problem({"text": deep})


def test_too_large_arguments_do_not_fit() -> None:
    assert "at most 262,144" in problem({"text": "x" * 262_144})
    with pytest.raises(BadArguments, match="at most 262,144"):
        schema.parse_arguments(" " * 262_145)


@pytest.mark.parametrize(
    "text", ["[]", '"text"', "null", "1", "{", '{"a": NaN}', '{"a": 1e999}', '{"a":1,"a":2}', "1" * 5000, "yes"]
)
def test_what_is_no_json_object_is_rejected(text: str) -> None:
    with pytest.raises(BadArguments, match=r"The arguments (are not valid JSON|must be a JSON object)"):
        schema.parse_arguments(text)


def test_no_text_means_no_arguments() -> None:
    assert schema.parse_arguments("") == {}


def test_defaults_fill_in_what_is_missing_and_nothing_else() -> None:
    assert schema.with_defaults(SCHEMA, {"text": "a"}) == {"text": "a", "amount": 1}
    assert schema.with_defaults(SCHEMA, {"text": "a", "amount": 5}) == {"text": "a", "amount": 5}
    assert schema.with_defaults({"properties": {"anything": True, "nothing": False}}, {}) == {}


@pytest.mark.guarantee("gate:fail-closed")
@pytest.mark.parametrize("ref", ["http://127.0.0.1:9/schema", "file:///etc/passwd", "#/nowhere", "other.json"])
def test_a_reference_out_of_the_schema_is_never_followed(ref: str) -> None:
    assert "outside of it" in problem({"text": "a"}, {"properties": {"text": {"$ref": ref}}})


def test_a_schema_that_refers_to_itself_for_ever_fits_nothing() -> None:
    assert "nested too deeply" in problem({"text": "a"}, {"$ref": "#"})


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(BadSchema):
        schema.check_schema({"type": "text"})
    schema.check_schema(SCHEMA)

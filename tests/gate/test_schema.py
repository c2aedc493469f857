"""Do arguments fit? Answered with words that name the field, and never with more than a page of them."""

import asyncio
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


def test_what_does_not_fit_is_named_in_few_words(subtests: pytest.Subtests) -> None:
    for arguments, named in [
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": None}, "text"),
        ({"text": "a", "amount": "1"}, "amount"),
        ({"text": "a", "amount": 1.5}, "amount"),
        ({"text": "a", "amount": True}, "amount"),
        ({"text": "a", "amonut": 1}, "amonut"),
        ({"text": ["x" * 100_000]}, "text"),
        ({"text": "a", "x" * 100_000: 1}, "xxx"),
    ]:
        with subtests.test(arguments=arguments):
            said = problem(arguments)
            assert named in said
            assert len(said) < 1000


def test_a_field_further_in_is_named_by_its_path() -> None:
    inner = {"properties": {"orders": {"items": {"properties": {"id": {"type": "integer"}}}}}}
    assert problem({"orders": [{"id": 1}, {"id": "two"}]}, inner).startswith("orders.1.id: ")


def test_the_argument_that_does_not_fit_is_told_apart_from_the_sentence(subtests: pytest.Subtests) -> None:
    inner = {"properties": {"a.b": {"items": {"type": "integer"}}, "a": {"type": "string"}}, "required": ["a"]}
    table: list[tuple[dict[str, Any], str]] = [
        ({"a.b": ["x"], "a": ""}, "a.b"),
        ({}, "a"),
        ({"a": "\ud800"}, "a"),
        ({"a": "x" * 300_000}, ""),
    ]
    for given, argument in table:
        with subtests.test(argument=argument):
            with pytest.raises(BadArguments) as caught:
                schema.validate(inner, given)
            assert caught.value.argument == argument


def test_a_thousand_unknown_keys_make_a_short_message() -> None:
    assert len(problem({"text": "a"} | {f"key{number}": number for number in range(1000)})) < 1000


TEXT_OR_NULL = {"anyOf": [{"type": "string"}, {"type": "null"}]}
WORDED: dict[str, tuple[Any, Any, str]] = {
    "type": ({"type": "string"}, True, "a: true is not a text."),
    "null": ({"type": "integer"}, None, "a: null is not a whole number."),
    "types": ({"type": ["string", "null"]}, 5, "a: 5 is not a text or null."),
    "three types": ({"type": ["boolean", "array", "null"]}, 5, "a: 5 is not true or false or a list or null."),
    "types by choice": (TEXT_OR_NULL, False, "a: false is not a text or null."),
    "the form that is meant": (
        {"anyOf": [{"type": "integer", "minimum": 10}, {"type": "null"}]},
        5,
        "a: 5 is less than the minimum of 10.",
    ),
    "neither form": (
        {"oneOf": [{"minimum": 10}, {"multipleOf": 7}]},
        5,
        "a: 5 matches none of the allowed forms.",
    ),
    "enum": ({"enum": [None, True, "it's"]}, False, 'a: false is not one of null, true, "it\'s".'),
    "const": ({"const": None}, True, "a: null was expected."),
    "nothing": (False, None, "a: null is not allowed here."),
    "not": ({"not": {"const": None}}, None, "a: null is not allowed here."),
    "a list too long": (
        {"prefixItems": [True], "items": False},
        [1, None],
        "a: [1, null] is too long.",
    ),
    "unique": ({"uniqueItems": True}, [None, None], "a: [null, null] has non-unique elements."),
    "required": ({"required": ["it's"]}, {}, "a.it's: it is required."),
    "dependent": ({"dependentRequired": {"b": ["c"]}}, {"b": 1}, 'a.c: it is required when "b" is given.'),
    "unexpected": ({"additionalProperties": False}, {"it's": None}, 'a: "it\'s" was unexpected.'),
    "named otherwise": (
        {"patternProperties": {"^x": True}, "additionalProperties": False},
        {"b": 1, "c": 1},
        'a: "b", "c" were unexpected.',
    ),
    "unevaluated": ({"unevaluatedProperties": False}, {"b": None}, 'a: "b" was unexpected.'),
    "unevaluated items": ({"unevaluatedItems": False}, [None], "a: null was unexpected."),
    "contains": ({"contains": {"const": None}}, [True], "a: [true] does not contain a required item."),
    "a name": ({"propertyNames": {"maxLength": 1}}, {"it's": 1}, 'a: "it\'s" is too long.'),
    "half a character": (
        {"type": "integer"},
        "\ud83d",
        "a: expected whole characters, not half of one (a lone surrogate).",
    ),
    "hidden": ({"type": "integer"}, "a\u202eb", 'a: "a\\u202eb" is not a whole number.'),
    "format": ({"format": "date"}, "it's", 'a: "it\'s" is not a date.'),
}


def test_what_is_wrong_is_said_in_words_and_json_and_never_in_python(subtests: pytest.Subtests) -> None:
    for case, (rule, value, said) in WORDED.items():
        with subtests.test(case=case):
            assert problem({"a": value}, {"properties": {"a": rule}}) == said


class Seen(dict[str, Any]):
    """Arguments that count which of their values were looked at."""

    looked_at = 0

    def __getitem__(self, key: str) -> Any:
        self.looked_at += 1
        return super().__getitem__(key)


def test_of_very_many_wrong_values_only_the_first_are_looked_for() -> None:
    arguments = Seen({str(number): "no" for number in range(10_000)})
    said = problem(arguments, {"additionalProperties": {"type": "integer"}})
    assert said.endswith("And more problems.")
    assert said.count("is not a whole number") == schema.MOST_PROBLEMS
    assert len(said) < LONGEST
    assert arguments.looked_at <= schema.MOST_PROBLEMS + 1


def test_below_a_choice_only_the_first_wrong_value_is_looked_for(subtests: pytest.Subtests) -> None:
    for choice in ["anyOf", "oneOf"]:
        with subtests.test(choice=choice):
            arguments = Seen({str(number): "no" for number in range(10_000)})
            integers = {"additionalProperties": {"type": "integer"}}
            assert problem(arguments, {choice: [integers, {"type": "null"}]}) == '0: "no" is not a whole number.'
            assert arguments.looked_at <= 1


def test_a_choice_takes_what_fits_any_or_exactly_one_of_its_parts() -> None:
    parts = [{"type": "integer"}, {"minimum": 5}]
    schema.validate({"properties": {"a": {"anyOf": parts}, "b": {"oneOf": parts}}}, {"a": 7, "b": 5.5})
    assert "b: 7 matches more than one form" in problem({"b": 7}, {"properties": {"b": {"oneOf": parts}}})


def test_no_text_makes_a_pattern_take_for_ever(subtests: pytest.Subtests) -> None:
    given: Any
    for given in [
        {"properties": {"text": {"pattern": "^(a|aa)+$"}}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"text": {"pattern": "^(a|aa)+$"}}},
        {"properties": {"text": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a|aa)+$"}}},
    ]:
        with subtests.test(given=given):
            assert "text: " in problem({"text": "a" * 10_000 + "!"}, given)
            schema.validate(given, {"text": "a" * 10_000})


def test_a_pattern_says_which_texts_fit(subtests: pytest.Subtests) -> None:
    for pattern in ["^[a-z]+$", "b", "^(?=abc)abc$", "(a)b\\Z|abc"]:
        with subtests.test(pattern=pattern):
            given = {"properties": {"text": {"pattern": pattern}}}
            schema.validate(given, {"text": "abc"})
            schema.validate(given, {"text": 5})
            assert problem({"text": "A"}, given).startswith('text: "A" does not match')


def test_very_many_items_of_different_kinds_are_told_apart() -> None:
    given = {"properties": {"items": {"uniqueItems": True}}}
    items: list[Any] = [{"n": number} if number % 2 else number for number in range(20_000)]
    schema.validate(given, {"items": [*items, True, False, "1", 0.5]})
    assert "non-unique" in problem({"items": [*items, {"n": 1.0}]}, given)
    schema.validate({"uniqueItems": True}, {})


async def test_large_arguments_are_checked_beside_the_loop() -> None:
    loops: list[bool] = []

    class Watched(dict[str, Any]):
        def items(self) -> Any:
            loops.append(asyncio._get_running_loop() is not None)
            return super().items()

    assert await schema.accepted(SCHEMA, Watched(text="x" * 20_000)) == {"text": "x" * 20_000, "amount": 1}
    assert loops
    assert not any(loops)
    text = '{"text": "%s"}' % ("x" * 20_000)
    assert (await schema.accepted(SCHEMA, text))["amount"] == 1
    with pytest.raises(BadArguments, match="text"):
        await schema.accepted(SCHEMA, "{}")


def test_a_wrong_text_of_100_kilobytes_is_cut_and_the_cut_is_counted() -> None:
    said = problem({"amount": "x" * 100_000, "text": "a"})
    assert "more characters" in said
    assert len(said) < 1000


def test_a_value_that_is_not_json_does_not_fit(subtests: pytest.Subtests) -> None:
    for value in [float("nan"), float("inf"), 10**5000, {1}]:
        with subtests.test(value=value):
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


def test_how_large_arguments_may_be_is_a_setting(subtests: pytest.Subtests, settings: Any) -> None:
    for kib in [1, 512]:
        with subtests.test(kib=kib):
            settings.TOOL_ARGUMENT_KIB = kib
            most = kib * 1024 - len('{"text":""}')
            schema.validate({}, {"text": "x" * most})
            assert schema.parse_arguments('{"text":"' + "x" * most + '"}')
            with pytest.raises(BadArguments, match=f"at most {kib * 1024:,} are accepted"):
                schema.validate({}, {"text": "x" * (most + 1)})
            with pytest.raises(BadArguments, match=f"at most {kib * 1024:,} are accepted"):
                schema.parse_arguments('{"text":"' + "x" * (most + 1) + '"}')


def test_what_is_no_json_object_is_rejected(subtests: pytest.Subtests) -> None:
    for text in ["[]", '"text"', "null", "1", "{", '{"a": NaN}', '{"a": 1e999}', '{"a":1,"a":2}', "1" * 5000, "yes"]:
        with subtests.test(text=text), pytest.raises(BadArguments, match=r"(are not valid JSON|must be a JSON object)"):
            schema.parse_arguments(text)


def test_what_was_given_for_an_object_is_named_in_words() -> None:
    for text, words in {"null": "null", "[]": "a list", "true": "true or false", "1.5": "a number"}.items():
        with pytest.raises(BadArguments, match=f"must be a JSON object, not {words}"):
            schema.parse_arguments(text)


def test_no_text_means_no_arguments() -> None:
    assert schema.parse_arguments("") == {}


def test_defaults_fill_in_what_is_missing_and_nothing_else() -> None:
    assert schema.with_defaults(SCHEMA, {"text": "a"}) == {"text": "a", "amount": 1}
    assert schema.with_defaults(SCHEMA, {"text": "a", "amount": 5}) == {"text": "a", "amount": 5}
    assert schema.with_defaults({"properties": {"anything": True, "nothing": False}}, {}) == {}


@pytest.mark.guarantee("gate:fail-closed")
def test_a_reference_out_of_the_schema_is_never_followed(subtests: pytest.Subtests) -> None:
    for ref in ["http://127.0.0.1:9/schema", "file:///etc/passwd", "#/nowhere", "other.json"]:
        with subtests.test(ref=ref):
            assert "outside itself" in problem({"text": "a"}, {"properties": {"text": {"$ref": ref}}})


def test_a_schema_that_refers_to_itself_for_ever_fits_nothing() -> None:
    assert "nested too deeply" in problem({"text": "a"}, {"$ref": "#"})


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(BadSchema):
        schema.check_schema({"type": "text"})
    schema.check_schema(SCHEMA)


ITEM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}, "count": {"default": 1}}}


@pytest.mark.guarantee("SR-7")
def test_the_person_sees_the_defaults_inside_objects_too(subtests: pytest.Subtests) -> None:
    for part, given, filled in [
        (ITEM, {"name": "lamp"}, {"name": "lamp", "count": 1}),
        (
            {"type": "array", "items": ITEM},
            [{"name": "lamp"}, {"count": 2}],
            [{"name": "lamp", "count": 1}, {"count": 2}],
        ),
        ({"anyOf": [ITEM, {"type": "null"}]}, {}, {"count": 1}),
        ({"anyOf": [ITEM, {"type": "null"}]}, None, None),
        ({"anyOf": [ITEM, ITEM]}, {}, {}),
        ({"type": "array", "items": {"anyOf": [ITEM]}}, [[]], [[]]),
        (True, {}, {}),
    ]:
        with subtests.test(part=part):
            assert schema.with_defaults({"properties": {"x": part}}, {"x": given}) == {"x": filled}

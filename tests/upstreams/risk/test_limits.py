"""What an upstream's tool must fit; and that judging it takes a bounded time, whatever it is."""

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitlchat.base.expressions import LONGEST, MOST_PATTERNS, compiled
from hitlchat.gate.schema import BadArguments, validate
from hitlchat.upstreams.risk import limits
from hitlchat.upstreams.risk.fingerprint import Offered
from hitlchat.upstreams.risk.limits import checkable, left_to_the_server, linear, problems, unchecked
from tests.upstreams.risk.catalogues import REAL, name

Schema = dict[str, Any]
NODE = {"$ref": "#/$defs/node"}


def an_object(**more: Any) -> Schema:
    return {"type": "object", **more}


def nested(levels: int) -> Schema:
    schema: Schema = {}
    for _ in range(levels):
        schema = {"items": schema}
    return an_object(properties={"x": schema})


def laughing(levels: int) -> Schema:
    definitions: Schema = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return an_object(**{"$defs": definitions | {f"l{levels}": {}}, "$ref": "#/$defs/l0"})


def test_real_tools_fit(subtests: pytest.Subtests) -> None:
    for _server, tool in REAL:
        with subtests.test(name(tool)):
            assert problems(tool) == ()
            assert left_to_the_server(dict(tool.input_schema)) == ()


MISFITS = {
    "no name": (Offered("", input_schema=an_object()), "name", "no name"),
    "a name of spaces": (Offered(" \u00a0", input_schema=an_object()), "name", "no name"),
    "a long name": (Offered("n" * 129, input_schema=an_object()), "name", "129 characters; expected at most 128"),
    "a name that hides something": (Offered("re\u200bad", input_schema=an_object()), "name", "invisible characters"),
    "a name of two lines": (Offered("a\nb", input_schema=an_object()), "name", "invisible characters"),
    "a long title": (Offered("n", "t" * 201, input_schema=an_object()), "title", "expected at most 200"),
    "a long description": (
        Offered("n", None, "d" * 20_001, an_object()),
        "description",
        "20,001 characters; expected at most 20,000",
    ),
    "large hints": (
        Offered("n", input_schema=an_object(), annotations={"x": "y" * 5_000}),
        "annotations",
        "expected at most 4,096",
    ),
    "an output schema that is none": (
        Offered("n", input_schema=an_object(), output_schema={"type": "nothing"}),
        "outputSchema",
        "not valid JSON Schema",
    ),
}


def test_what_does_not_fit_is_told_in_words(subtests: pytest.Subtests) -> None:
    for label, (tool, where, words) in MISFITS.items():
        with subtests.test(label):
            (problem,) = problems(tool)
            assert problem.where == where
            assert words in problem.sentence


SCHEMAS: dict[str, tuple[Schema, str]] = {
    "not for an object": ({"type": "string"}, 'expected "type": "object"'),
    "for anything": ({}, 'expected "type": "object"'),
    "too large": (an_object(description="x" * 70_000), "expected at most 65,536"),
    "too deep": (nested(40), "more than 32 levels"),
    "far too deep": (nested(5_000), "more than 32 levels"),
    "no JSON": (an_object(default={1, 2}), "not a JSON value"),
    "not a number": (an_object(maximum=float("nan")), "not a JSON value"),
    "a type that there is not": (an_object(properties={"a": {"type": "date"}}), "not valid JSON Schema"),
    "a pattern that does not compile": (an_object(properties={"a": {"pattern": "("}}), "not valid JSON Schema"),
    "elsewhere by address": (
        an_object(properties={"a": {"$ref": "https://evil.example/x"}}),
        "expected a schema within",
    ),
    "elsewhere by file": (an_object(properties={"a": {"$ref": "file:///etc/passwd"}}), "expected a schema within"),
    "the standard's own schema": (
        an_object(properties={"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}),
        "expected a schema within",
    ),
    "a reference to nothing": (an_object(properties={"a": NODE}), "expected a schema within"),
    "a reference to what is no schema": (an_object(properties={"a": {"$ref": "#/x"}}, x={"type": 5}), "within"),
    "a reference by a name": (an_object(properties={"a": {"$ref": "#node"}}), "expected a schema within"),
    "a dynamic reference": (an_object(properties={"a": {"$dynamicRef": "#x"}}), "$dynamicRef"),
    "another base inside": (an_object(properties={"a": {"$id": "https://x.example/"}}), "$id of its own"),
    "itself": (an_object(**{"$ref": "#"}), "without going deeper"),
    "itself in a circle": (
        an_object(
            allOf=[{"$ref": "#/$defs/a"}], **{"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#"}}}
        ),
        "without going deeper",
    ),
    "references to references": (laughing(25), "more than 20,000 times"),
    "twice at every level": (
        an_object(
            **{"$ref": "#/$defs/node"},
            **{"$defs": {"node": {"allOf": [{"properties": {"next": NODE}}, {"properties": {"next": NODE}}]}}},
        ),
        "at every level",
    ),
    "by name and by any name": (
        an_object(
            properties={"x": NODE},
            **{"$defs": {"node": {"allOf": [{"properties": {"next": NODE}}, {"additionalProperties": NODE}]}}},
        ),
        "at every level",
    ),
    "elements twice": (
        an_object(properties={"x": NODE}, **{"$defs": {"node": {"items": NODE, "contains": NODE}}}),
        "at every level",
    ),
    "again to know what was evaluated": (
        an_object(
            properties={"x": NODE},
            **{"$defs": {"node": {"allOf": [{"properties": {"next": NODE}}], "unevaluatedProperties": False}}},
        ),
        "at every level",
    ),
}


def test_a_schema_that_cannot_be_checked_is_refused_in_words(subtests: pytest.Subtests) -> None:
    for label, (schema, words) in SCHEMAS.items():
        with subtests.test(label):
            (problem,) = problems(Offered("n", input_schema=schema))
            assert problem.where == "inputSchema"
            assert words in problem.sentence


FINE: dict[str, Schema] = {
    "no properties": an_object(),
    "of an older draft": an_object(**{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}}),
    "a tree": an_object(
        properties={"tree": NODE},
        **{"$defs": {"node": {"properties": {"left": NODE, "right": NODE, "rest": {"items": NODE}}}}},
    ),
    "any JSON value": an_object(
        properties={"x": NODE}, **{"$defs": {"node": {"additionalProperties": NODE, "items": NODE}}}
    ),
    "a filter of and, or, not": an_object(
        properties={"filter": NODE},
        **{
            "$defs": {
                "node": {
                    "anyOf": [
                        {"properties": {"and": {"items": NODE}}},
                        {"properties": {"or": {"items": NODE}}},
                        {"properties": {"not": NODE}},
                    ]
                }
            }
        },
    ),
    "itself in an argument": an_object(properties={"inner": {"$ref": "#"}}),
    "a reference with escapes": an_object(
        properties={"x": {"$ref": "#/$defs/a~1b%20c"}}, **{"$defs": {"a/b c": {"type": "string"}}}
    ),
    "a few references to references": laughing(8),
    "data that looks like a reference": an_object(default={"$ref": "https://evil.example"}, enum=[{"$ref": "#"}]),
}


def test_a_schema_that_grows_with_its_value_is_fine(subtests: pytest.Subtests) -> None:
    for label, schema in FINE.items():
        with subtests.test(label):
            assert problems(Offered("n", input_schema=schema)) == ()


DEEP: Schema = {}
for key in ["left", "and", "inner", "next", "x", "tree", "filter"] * 20:
    DEEP = {key: DEEP}
LARGEST = an_object(
    properties={f"p{n}": {"$ref": "#/$defs/d0"} for n in range(300)},
    **{"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_500)} | {"d1500": {}}},
)


@pytest.mark.slow("bets on processor time")
def test_every_schema_is_judged_and_deep_arguments_are_checked_in_a_moment(subtests: pytest.Subtests) -> None:
    schemas = FINE | {label: schema for label, (schema, _) in SCHEMAS.items()} | {"largest": LARGEST}
    for label, schema in schemas.items():
        with subtests.test(label):
            start = time.process_time()
            problems(Offered("n", input_schema=schema))
            if label in FINE:
                with suppress(BadArguments):
                    validate(schema, DEEP)
            assert time.process_time() - start < 5


def test_deep_arguments_are_checked_with_every_schema_that_passes(subtests: pytest.Subtests) -> None:
    for label, schema in FINE.items():
        with subtests.test(label), suppress(BadArguments):
            validate(schema, DEEP)


REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/$defs/c"]).map(lambda place: {"$ref": place})
INNER = st.recursive(
    REFERENCES | st.just({}),
    lambda each: st.one_of(
        st.lists(each, min_size=1, max_size=2).map(lambda some: {"allOf": some}),
        st.dictionaries(st.sampled_from("xy"), each, max_size=2).map(lambda some: {"properties": some}),
        each.map(lambda one: {"additionalProperties": one}),
        each.map(lambda one: {"not": one}),
    ),
    max_leaves=4,
)


@pytest.mark.slow("bets on processor time")
@given(st.fixed_dictionaries(dict.fromkeys("abc", INNER)), INNER)
def test_whatever_passes_can_be_validated_without_end_or_explosion(definitions: Schema, first: Schema) -> None:
    schema = an_object(allOf=[first], **{"$defs": definitions})
    arguments: Schema = {}
    for level in range(12):
        arguments = {"xy"[level % 2]: arguments}
    try:
        limits.check(schema)
    except limits.Unbounded:
        return
    start = time.process_time()
    with suppress(BadArguments):
        validate(schema, arguments)
    assert time.process_time() - start < 2


# -- Patterns ---------------------------------------------------------------------------------------------------------

EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"


def test_most_patterns_can_be_checked_in_linear_time(subtests: pytest.Subtests) -> None:
    for pattern in ["^[a-z]+$", "(a+)+$", r"^\d{4}-\d\d$", r"^\/x\/", r"^\p{L}+$", ""]:
        with subtests.test(pattern=pattern):
            assert linear(pattern)


def test_what_needs_backtracking_or_is_huge_is_left_to_the_server(subtests: pytest.Subtests) -> None:
    for pattern in [EMAIL, r"(a)\1", "(", "(a{1000}){1000}", "a" * (LONGEST + 1)]:
        with subtests.test(pattern=pattern):
            assert not linear(pattern)


def test_patterns_left_to_the_server_are_named_and_taken_out() -> None:
    schema = an_object(
        properties={"mail": {"type": "string", "pattern": EMAIL}, "zip": {"pattern": "^[0-9]{5}$"}},
        patternProperties={"(x+)+$": {"type": "null"}, "^y": {}},
        additionalProperties=False,
    )
    assert set(left_to_the_server(schema)) == {"/properties/mail/pattern", "/patternProperties/(x+)+$"}
    found = checkable(schema)
    assert left_to_the_server(found) == ()
    assert found["properties"] == {"mail": {"type": "string"}, "zip": {"pattern": "^[0-9]{5}$"}}
    assert found["patternProperties"] == {"^y": {}}
    # Its names can't be told from others any more.
    assert "additionalProperties" not in found
    assert schema["properties"]["mail"]["pattern"] == EMAIL


def test_plain_patterns_of_property_names_are_checked_here(subtests: pytest.Subtests) -> None:
    for names in ["^x-", ".*", "^.*$", "^[a-z0-9_]+$", "^S_", "_id$", ""]:
        with subtests.test(names=names):
            assert left_to_the_server(an_object(patternProperties={names: {}})) == ()


def test_other_patterns_of_property_names_are_left_to_the_server(subtests: pytest.Subtests) -> None:
    for names in ["(a+)+$", "[a-z]+$", "^a*a*a*$", ".*.*=", "^(a|a)*$", "x" * 200]:
        with subtests.test(names=names):
            assert left_to_the_server(an_object(patternProperties={names: {}})) == (f"/patternProperties/{names}",)


def test_data_that_looks_like_a_pattern_stays() -> None:
    schema = an_object(properties={"pattern": {"const": {"pattern": "("}}})
    assert checkable(schema) == schema


def test_costly_patterns_and_those_that_are_too_many_are_left_to_the_server_without_being_compiled() -> None:
    costly = {f"c{n}": {"pattern": rf"(?i)\w{{500}}{n}"} for n in range(1_400)}
    many = {f"m{n}": {"pattern": f"^many-{n}$"} for n in range(MOST_PATTERNS + 30)}
    before = compiled.cache_info().misses
    found = checkable(an_object(properties=costly | many))["properties"]
    assert compiled.cache_info().misses - before <= MOST_PATTERNS
    assert [name for name in costly if "pattern" in found[name]] == []
    assert len([name for name in many if "pattern" in found[name]]) == MOST_PATTERNS


def test_of_patterns_that_are_costly_together_only_the_first_are_kept() -> None:
    schema = an_object(properties={f"p{n}": {"pattern": rf"\w{{10}}{n}"} for n in range(10)})
    assert sum("pattern" in each for each in checkable(schema)["properties"].values()) == 6


def test_the_same_schema_is_compiled_once() -> None:
    schema = an_object(properties={f"p{n}": {"pattern": f"^once-{n}$"} for n in range(10)})
    assert left_to_the_server(schema) == ()
    before = compiled.cache_info()
    assert checkable(schema) == schema
    assert compiled.cache_info() == before


# Valid for JSON Schema, whose patterns are ECMAScript's; each with whether it is checked here.
DIALECT = {
    r"^[\p{L}\p{N}_-]{1,20}$": True,
    r"^\p{Script=Greek}$": True,
    r"(?<n>a)": True,
    r"^a\/b$": True,
    r"^\u{1F600}$": True,
    r"^\u0041$": True,
    r"(?<=a+)b": False,
    r"(?<!a|bc)b": False,
    r"(?<n>a)\k<n>": False,
    r"^\cA$": False,
    r"^[^]*$": False,
    r"\ud83d\ude00": False,
    r"^[\w-.]$": False,
    "^[a[b]$": False,
    "^[a&&b]$": False,
}


def test_every_pattern_of_json_schema_leaves_a_tool_usable(subtests: pytest.Subtests) -> None:
    for pattern, is_checked in DIALECT.items():
        with subtests.test(pattern=pattern):
            inside = {"type": "string", "pattern": pattern}
            schema = an_object(properties={"list": {"type": "array", "items": inside}})
            assert problems(Offered("n", input_schema=schema, output_schema=schema)) == ()
            said = "Only its server checks the form of “list”: the patterns cannot be checked here."
            assert unchecked(schema) == ("" if is_checked else said)
            assert problems(Offered("n", input_schema=an_object(patternProperties={pattern: {"type": "string"}}))) == ()


def test_patterns_elsewhere_and_of_names_are_named_too_and_not_all_of_them() -> None:
    inside = {"pattern": r"(?<=a+)b"}
    found = unchecked(an_object(**{"$defs": {"Code": inside}}, patternProperties={"(?<=a+)b": {}}))
    assert "the names of arguments, “$defs.Code”:" in found
    assert "“p4”, 3 more:" in unchecked(an_object(properties={f"p{n}": inside for n in range(8)}))


def test_data_that_looks_like_a_schema_makes_no_problem(subtests: pytest.Subtests) -> None:
    for keyword in ["const", "enum", "default", "examples"]:
        with subtests.test(keyword=keyword):
            looks = {"$schema": "http://", "$ref": "#/nowhere", "pattern": "(", "$id": "x", "items": [1], "type": 5}
            value = looks if keyword in {"const", "default"} else [looks]
            schema = an_object(properties={"a": {keyword: value}})
            assert problems(Offered("n", input_schema=schema)) == ()
            assert checkable(schema) == schema


def test_a_tuple_of_an_older_draft_is_named_with_its_place() -> None:
    schema = an_object(properties={"pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}})
    (found,) = problems(Offered("n", input_schema={**schema, "$schema": "http://json-schema.org/draft-07/schema#"}))
    assert "properties.pair.items: [" in found.sentence

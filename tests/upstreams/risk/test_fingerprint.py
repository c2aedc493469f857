"""Nothing about a tool changes without its fingerprint, and the difference can be seen (SR-28)."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitlchat.base import canonical
from hitlchat.upstreams.risk.fingerprint import PROFILE, Connection, Offered, Unusable, difference, pin

DOCUMENT = Path(__file__).parents[3] / "docs" / "fingerprint.md"
HTTP = Connection("http", url="https://rates.example.com/mcp")
STDIO = Connection("stdio", command="uvx", args=("mcp-server-git",), env_names=("HOME",))
SCHEMA = {"type": "object", "properties": {"a/b": {"type": "number"}, "to": {"enum": ["EUR", "USD"]}}}
TOOL = Offered("convert", "Convert", "Converts an amount.", SCHEMA, {"type": "object"}, {"readOnlyHint": True})

TEXTS = st.text(st.characters(), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)
TOOLS = st.builds(
    Offered, TEXTS, st.none() | TEXTS, st.none() | TEXTS, OBJECTS, st.none() | OBJECTS, st.none() | OBJECTS
)

CHANGES = {
    "one letter of the name": (replace(TOOL, name="Convert"), HTTP),
    "the title": (replace(TOOL, title="Convert it"), HTTP),
    "no title": (replace(TOOL, title=None), HTTP),
    "one character of the description": (replace(TOOL, description="Converts an amount"), HTTP),
    "a character that cannot be seen": (replace(TOOL, description="Converts an amount.\u200b"), HTTP),
    "another way to write the same letter": (replace(TOOL, description="Converts an \u0430mount."), HTTP),
    "a description nested in the schema": (replace(TOOL, input_schema=SCHEMA | {"description": "x"}), HTTP),
    "the order of an enumeration": (
        replace(
            TOOL, input_schema=SCHEMA | {"properties": {"a/b": {"type": "number"}, "to": {"enum": ["USD", "EUR"]}}}
        ),
        HTTP,
    ),
    "the output schema": (replace(TOOL, output_schema={"type": "object", "title": "x"}), HTTP),
    "no output schema": (replace(TOOL, output_schema=None), HTTP),
    "a hint": (replace(TOOL, annotations={"readOnlyHint": False}), HTTP),
    "no hints": (replace(TOOL, annotations=None), HTTP),
    "the path": (TOOL, replace(HTTP, url="https://rates.example.com/mcp/")),
    "the host": (TOOL, replace(HTTP, url="https://rates.example.org/mcp")),
    "the port": (TOOL, replace(HTTP, url="https://rates.example.com:8443/mcp")),
    "no encryption": (TOOL, replace(HTTP, url="http://rates.example.com/mcp")),
    "the transport": (TOOL, replace(HTTP, transport="sse")),
}
COMMANDS = {
    "the program": replace(STDIO, command="npx"),
    "an argument": replace(STDIO, args=("mcp-server-git", "-v")),
    "the order of arguments": replace(STDIO, args=("-v", "mcp-server-git")),
    "a variable more": replace(STDIO, env_names=("HOME", "PATH")),
}
SAME = {
    "the case of the host": replace(HTTP, url="HTTPS://Rates.Example.COM/mcp"),
    "the port that is meant anyway": replace(HTTP, url="https://rates.example.com:443/mcp"),
    "a key in the query": replace(HTTP, url="https://rates.example.com/mcp?api_key=1#top"),
    "a user in the address": replace(HTTP, url="https://bob:secret@rates.example.com/mcp"),
}


@pytest.mark.guarantee("SR-28")
def test_every_change_gives_another_fingerprint_and_is_named(subtests: pytest.Subtests) -> None:
    for label, (tool, connection) in CHANGES.items():
        with subtests.test(label):
            before, after = pin(TOOL, HTTP), pin(tool, connection)
            assert before.digest != after.digest
            assert len(difference(before.record, after.record)) == 1


def test_another_command_gives_another_fingerprint(subtests: pytest.Subtests) -> None:
    for label, connection in COMMANDS.items():
        with subtests.test(label):
            assert pin(TOOL, STDIO).digest != pin(TOOL, connection).digest


def test_what_leads_to_the_same_place_gives_the_same_fingerprint_and_no_secret_is_kept(
    subtests: pytest.Subtests,
) -> None:
    for label, connection in SAME.items():
        with subtests.test(label):
            pinned = pin(TOOL, connection)
            assert pinned == pin(TOOL, HTTP)
            assert "secret" not in canonical.dumps(pinned.record)


def test_the_names_of_variables_count_in_any_order_and_once() -> None:
    one, other = (replace(STDIO, env_names=names) for names in [("A", "B"), ("B", "A", "B")])
    assert pin(TOOL, one).digest == pin(TOOL, other).digest


def test_absent_is_the_same_as_null_and_not_as_empty() -> None:
    plain = pin(replace(TOOL, annotations=None), HTTP).digest
    assert pin(replace(TOOL, annotations={}), HTTP).digest == plain
    assert pin(replace(TOOL, annotations={"title": None}), HTTP).digest == plain
    assert pin(replace(TOOL, title=""), HTTP).digest != pin(replace(TOOL, title=None), HTTP).digest


def test_numbers_beyond_doubles_are_told_apart() -> None:
    one, other = (replace(TOOL, input_schema={"maximum": number}) for number in (2**53, 2**53 + 1))
    assert pin(one, HTTP).digest != pin(other, HTTP).digest


def test_an_address_that_is_none_gives_no_fingerprint(subtests: pytest.Subtests) -> None:
    for url in ["", "rates.example.com/mcp", "https://", "http://[::1"]:
        with subtests.test(url=url), pytest.raises(ValueError):  # noqa: PT011 - urllib's own words differ
            pin(TOOL, Connection("http", url=url))


def test_a_schema_that_is_no_json_gives_no_fingerprint() -> None:
    with pytest.raises(canonical.NotJson):
        pin(replace(TOOL, input_schema={"maximum": float("nan")}), HTTP)


@settings(max_examples=30)
@given(TOOLS)
def test_the_record_is_enough_to_make_the_fingerprint_again_and_the_order_of_keys_does_not_matter(
    tool: Offered,
) -> None:
    pinned = pin(tool, HTTP)
    turned = replace(tool, input_schema=dict(reversed([*tool.input_schema.items()])))
    assert pin(turned, HTTP) == pinned
    text = json.dumps(json.loads(json.dumps(pinned.record)), sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == pinned.digest
    assert pinned.record["profile"] == pinned.profile == PROFILE


@settings(max_examples=30)
@given(TOOLS, TOOLS)
def test_there_is_a_difference_exactly_where_fingerprints_differ(one: Offered, other: Offered) -> None:
    before, after = pin(one, HTTP), pin(other, HTTP)
    found = difference(before.record, after.record)
    assert bool(found) == (before.digest != after.digest)
    assert difference(before.record, before.record) == ()
    assert len({each.where for each in found}) == len(found)


def test_the_documented_example_is_true() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    entry = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
    line = re.findall(r"```text\n(.*?)\n```", text, re.DOTALL)[0]
    pinned = pin(Offered.from_json(entry), HTTP)
    assert pinned.record == entry
    assert canonical.dumps(entry) == line
    assert f"`{pinned.digest}`" in text
    assert f"**`{PROFILE}`**" in text


# -- What a person sees of a difference -------------------------------------------------------------------------------


def shown(before: Any, after: Any) -> list[tuple[str, str | None, str | None]]:
    records = ({"inputSchema": value} for value in (before, after))
    return [
        (d.where, d.before.plain if d.before else None, d.after.plain if d.after else None)
        for d in difference(*records)
    ]


def test_a_difference_deep_in_a_schema_is_named_by_its_place() -> None:
    after = {"type": "object", "properties": {"a/b": {"type": "string"}, "to": {"enum": ["EUR", "USD"]}}}
    assert shown(SCHEMA, after) == [("/inputSchema/properties/a~1b/type", "number", "string")]


def test_what_was_added_and_what_was_removed_is_shown_whole() -> None:
    assert shown({"a": {"type": "null"}}, {"b": "x"}) == [
        ("/inputSchema/a", '{\n  "type": "null"\n}', None),
        ("/inputSchema/b", None, "x"),
    ]


def test_hidden_characters_are_shown_as_escapes() -> None:
    (found,) = difference({"description": "Reads."}, {"description": "Reads.\u202e\u200b"})
    assert (found.kind, found.field) == ("changed", "Description")
    assert found.after is not None
    assert found.after.plain == "Reads.U+202E U+200B"
    assert found.after.suspect


def test_a_number_and_its_text_do_not_look_the_same() -> None:
    assert shown({"default": 5}, {"default": "5"}) == [("/inputSchema/default", "5", '"5"')]


def test_values_that_python_takes_for_equal_are_told_apart(subtests: pytest.Subtests) -> None:
    for one, other in [(1, True), (0, False), (1, 1.0), ([], {}), (None, "")]:
        with subtests.test(one=one):
            assert len(shown({"default": one}, {"default": other})) == 1


def test_lists_of_plain_values_are_shown_whole_and_lists_of_objects_one_by_one() -> None:
    assert shown({"enum": ["a"]}, {"enum": ["b", "a"]}) == [("/inputSchema/enum", '[\n  "a"\n]', '[\n  "b",\n  "a"\n]')]
    assert shown({"anyOf": [{"x": 1}, {}]}, {"anyOf": [{"x": 2}]}) == [
        ("/inputSchema/anyOf/0/x", "1", "2"),
        ("/inputSchema/anyOf/1", "{}", None),
    ]


def test_records_of_different_profiles_may_say_the_same() -> None:
    record = pin(TOOL, HTTP).record
    assert difference(record | {"profile": "another"}, record) == ()


# -- Reading an entry -------------------------------------------------------------------------------------------------

NO_ENTRIES = {
    "a list": [],
    "a number for a name": {"name": 1},
    "a list for a description": {"name": "x", "description": ["y"]},
    "a text for a schema": {"name": "x", "inputSchema": "{}"},
    "true for an output schema": {"name": "x", "outputSchema": True},
    "a list of hints": {"name": "x", "annotations": []},
}


def test_an_entry_of_the_wrong_types_is_refused(subtests: pytest.Subtests) -> None:
    for label, entry in NO_ENTRIES.items():
        with subtests.test(label), pytest.raises(Unusable, match="expected"):
            Offered.from_json(entry)

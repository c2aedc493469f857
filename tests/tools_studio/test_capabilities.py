import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools_studio.capabilities import ALL_NAMES, Capabilities, CapabilityError, parse

FULL = {"fetch": {"mode": "allowlist", "hosts": ["B.example:8443", "https://a.example"]}, "store": True, "now": True}


def test_a_declaration_has_one_canonical_form() -> None:
    canonical = parse(FULL).as_json()
    assert canonical == {
        "fetch": {"mode": "allowlist", "hosts": ["a.example", "b.example:8443"]}, "store": True, "now": True,
    }  # fmt: skip
    assert parse(canonical).as_json() == canonical


@pytest.mark.parametrize("raw", [None, {}, {"fetch": None, "store": False, "now": False, "destructive": None}], ids=str)
def test_what_is_off_is_not_granted(raw: Any) -> None:
    assert parse(raw) == Capabilities()
    assert parse(raw).as_json() == {}
    assert parse(raw).names() == frozenset()


def test_a_person_reads_what_the_tool_can_do() -> None:
    assert parse(FULL).sentences() == [
        "It can reach a.example and b.example:8443.",
        "It can read and change the data it keeps (store).",
        "It can read the clock.",
    ]
    assert parse({"destructive": True}).sentences() == ["It can destroy what cannot be brought back."]


@pytest.mark.parametrize(
    "raw, field",
    [
        ([], ""),
        ({"root": True}, "root"),
        ({"root": None}, "root"),
        ({"store": 1}, "store"),
        ({"now": "yes"}, "now"),
        ({"fetch": True}, "fetch"),
        ({"fetch": {"hosts": ["a.example"]}}, "fetch.mode"),
        ({"fetch": {"mode": "open", "hosts": ["a.example"]}}, "fetch.mode"),
        ({"fetch": {"mode": "allowlist"}}, "fetch.hosts"),
        ({"fetch": {"mode": "allowlist", "hosts": []}}, "fetch.hosts"),
        ({"fetch": {"mode": "allowlist", "hosts": "a.example"}}, "fetch.hosts"),
        ({"fetch": {"mode": "allowlist", "hosts": ["a.example"], "paths": []}}, "fetch.paths"),
    ],
    ids=str,
)
def test_what_is_not_understood_is_refused_with_its_place(raw: Any, field: str) -> None:
    with pytest.raises(CapabilityError) as caught:
        parse(raw)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "host",
    ["*", "*.example.com", "a.example/path", "user@a.example", "a..example", "-a.example", "a.example:0",
     "a.example:65536", "ftp://a.example", "a.example\n", "[::1]", "ä.example", "", 7, "a" * 64],
)  # fmt: skip
def test_a_host_must_be_named_exactly(host: Any) -> None:
    with pytest.raises(CapabilityError, match="not an exact host"):
        parse({"fetch": {"mode": "allowlist", "hosts": [host]}})


@pytest.mark.parametrize(
    "host, canonical",
    [("API.example.com", "api.example.com"), ("http://intranet", "http://intranet"), ("10.0.0.1:080", "10.0.0.1:80")],
)
def test_a_host_is_kept_in_one_spelling(host: str, canonical: str) -> None:
    assert parse({"fetch": {"mode": "allowlist", "hosts": [host]}}).hosts == (canonical,)


def test_the_names_are_those_of_the_granted_capabilities() -> None:
    assert parse(FULL).names() == ALL_NAMES
    assert parse({"now": True}).names() == {"now"}
    assert parse({"store": True}).names() == {"store.get", "store.set", "store.delete", "store.keys"}


def test_the_stubs_are_python_and_declare_nothing_else() -> None:
    tree = ast.parse(parse(FULL).stubs())
    declared = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert declared == {"fetch", "now", "store"}
    assert "fetch" not in parse({"now": True}).stubs()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@given(JSON)
def test_any_json_is_understood_or_refused(raw: Any) -> None:
    for candidate in (raw, {"fetch": raw}, {"fetch": {"mode": "allowlist", "hosts": raw}}):
        try:
            parse(candidate)
        except CapabilityError:
            continue

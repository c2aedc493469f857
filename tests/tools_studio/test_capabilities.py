from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitlchat.sandbox.importable import names_in
from tests.tables import each_row
from tools_studio.capabilities import ALL_NAMES, Capabilities, CapabilityError, parse, stubs_of

FULL = {"fetch": {"mode": "allowlist", "hosts": ["B.example:8443", "https://a.example"]}, "store": True, "now": True}
EVERYTHING = FULL | {
    "files": {"mode": "write", "folder": "notes"},
    "secrets": True,
    "random": True,
    "sleep": True,
    "email": {"to": ["Ops@Example.com", "@example.org"]},
    "webhook": {"targets": ["ALERTS_URL"]},
    "destructive": True,
}


def test_a_declaration_has_one_canonical_form() -> None:
    canonical = parse(FULL).as_json()
    assert canonical == {
        "fetch": {"mode": "allowlist", "hosts": ["a.example", "b.example:8443"]}, "store": True, "now": True,
    }  # fmt: skip
    assert parse(canonical).as_json() == canonical


@each_row("raw", [None, {}, {"fetch": None, "store": False, "now": False, "destructive": None}], ids=str)
def test_what_is_off_is_not_granted(raw: Any) -> None:
    assert parse(raw) == Capabilities()
    assert parse(raw).as_json() == {}
    assert parse(raw).names() == {"variable"}
    assert parse(raw).powers() == frozenset()


def test_a_person_reads_what_the_tool_can_do() -> None:
    assert parse(FULL).sentences() == [
        "Can reach a.example and b.example:8443.",
        "Can read and change its own stored data.",
        "Can read the clock.",
    ]
    assert parse({"destructive": True}).sentences() == ["Can permanently delete data."]


@each_row(
    "raw, sentence",
    [
        ({"fetch": {"mode": "public", "methods": ["get"]}},
         "Can read from any public host on the internet, over https."),
        ({"fetch": {"mode": "open", "hosts": ["http://intranet"]}},
         "Can reach any public host on the internet, at any port, and http://intranet."),
        ({"files": {"mode": "read", "folder": "notes"}}, "Can read the files in the folder notes."),
        ({"files": {"mode": "write", "folder": "notes"}},
         "Can read, write and delete the files in the folder notes."),
        ({"email": {"to": ["@example.com", "a@b.example"]}},
         "Can send e-mail to anyone at example.com and a@b.example."),
        ({"email": {"to": ["*"]}}, "Can send e-mail to anyone."),
        ({"webhook": {"targets": ["B_URL", "A_URL"]}}, "Can send data to the address stored in A_URL and B_URL."),
        ({"secrets": True}, "Can read its secrets."),
        ({"random": True}, "Can use random numbers."),
        ({"sleep": True}, "Can wait for some seconds."),
    ],
    ids=str,
)  # fmt: skip
def test_every_capability_has_its_sentence(raw: Any, sentence: str) -> None:
    assert parse(raw).sentences() == [sentence]


def test_everything_has_one_canonical_form_too() -> None:
    canonical = parse(EVERYTHING).as_json()
    assert canonical == FULL | {
        "fetch": {"mode": "allowlist", "hosts": ["a.example", "b.example:8443"]},
        "files": {"mode": "write", "folder": "notes"},
        "secrets": True, "random": True, "sleep": True,
        "email": {"to": ["@example.org", "ops@example.com"]},
        "webhook": {"targets": ["ALERTS_URL"]}, "destructive": True,
    }  # fmt: skip
    assert parse(canonical) == parse(EVERYTHING)


def test_limits_of_requests_are_kept_when_they_are_not_the_default() -> None:
    said = {"mode": "public", "methods": ["GET"], "maxBytes": 2048, "timeoutSeconds": 2.5, "redirects": 3}
    assert parse({"fetch": said}).as_json() == {"fetch": said}
    usual = {"maxBytes": 1048576, "timeoutSeconds": 30, "redirects": 0}
    assert parse({"fetch": {"mode": "public", **usual}}).as_json() == {"fetch": {"mode": "public"}}


def test_reading_only_leaves_no_way_to_change_anything() -> None:
    reading = parse(EVERYTHING).read_only()
    assert reading.names() == {
        "variable", "fetch", "now", "secret", "store.get", "store.keys", "files.read", "files.list", "files.info",
    }  # fmt: skip
    assert reading.fetch is not None
    assert reading.fetch.methods == ("GET", "HEAD")
    assert reading.powers() == {"now", "random"}
    assert parse({"fetch": {"mode": "public", "methods": ["POST"]}}).read_only().fetch is None


@each_row(
    "raw, field",
    [
        ([], ""),
        ({"root": True}, "root"),
        ({"root": None}, "root"),
        ({"store": 1}, "store"),
        ({"now": "yes"}, "now"),
        ({"fetch": True}, "fetch"),
        ({"fetch": {"hosts": ["a.example"]}}, "fetch.mode"),
        ({"fetch": {"mode": "wide", "hosts": ["a.example"]}}, "fetch.mode"),
        ({"fetch": {"mode": "public", "methods": []}}, "fetch.methods"),
        ({"fetch": {"mode": "public", "methods": ["TRACE"]}}, "fetch.methods"),
        ({"fetch": {"mode": "public", "methods": ["GET", "get"]}}, "fetch.methods"),
        ({"fetch": {"mode": "public", "maxBytes": 0}}, "fetch.maxBytes"),
        ({"fetch": {"mode": "public", "maxBytes": 1.5}}, "fetch.maxBytes"),
        ({"fetch": {"mode": "public", "timeoutSeconds": 61}}, "fetch.timeoutSeconds"),
        ({"fetch": {"mode": "public", "redirects": True}}, "fetch.redirects"),
        ({"fetch": {"mode": "public", "redirects": 6}}, "fetch.redirects"),
        ({"files": True}, "files"),
        ({"files": {"mode": "read"}}, "files.folder"),
        ({"files": {"mode": "read", "folder": "../etc"}}, "files.folder"),
        ({"files": {"mode": "own", "folder": "notes"}}, "files.mode"),
        ({"email": True}, "email"),
        ({"email": {"to": []}}, "email.to"),
        ({"email": {"to": ["somebody"]}}, "email.to"),
        ({"email": {"to": ["a@b.example\nBcc: c@d.example"]}}, "email.to"),
        ({"webhook": {"targets": ["https://hooks.example"]}}, "webhook.targets"),
        ({"webhook": {}}, "webhook.targets"),
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


@each_row(
    "host",
    ["*", "*.com", "*.0.1", "a.*.example", "**.example.com", "*.example.com:80", "http://*.example.com",
     "a.example/path", "user@a.example", "a..example", "-a.example", "a.example:0",
     "a.example:65536", "ftp://a.example", "a.example\n", "[::1]", "ä.example", "", 7, "a" * 64],
)  # fmt: skip
def test_a_host_must_be_named_exactly(host: Any) -> None:
    with pytest.raises(CapabilityError, match="not an exact host"):
        parse({"fetch": {"mode": "allowlist", "hosts": [host]}})


@each_row(
    "host, canonical",
    [
        ("API.example.com", "api.example.com"),
        ("*.Example.com", "*.example.com"),
        ("http://intranet", "http://intranet"),
        ("10.0.0.1:080", "10.0.0.1:80"),
    ],
)
def test_a_host_is_kept_in_one_spelling(host: str, canonical: str) -> None:
    fetch = parse({"fetch": {"mode": "allowlist", "hosts": [host]}}).fetch
    assert fetch is not None
    assert fetch.hosts == (canonical,)


def test_the_names_are_those_of_the_granted_capabilities() -> None:
    assert parse(EVERYTHING).names() == ALL_NAMES
    assert parse({"now": True}).names() == {"variable", "now"}
    assert parse({"store": True}).names() == {"variable", "store.get", "store.set", "store.delete", "store.keys"}
    assert "files.write" not in parse({"files": {"mode": "read", "folder": "notes"}}).names()


def test_the_stubs_are_python_and_declare_nothing_else() -> None:
    assert {*names_in(stubs_of(parse(FULL).names()))} == parse(FULL).names()
    assert {*names_in(stubs_of(parse(EVERYTHING).names()))} == ALL_NAMES
    assert "fetch" not in stubs_of(parse({"now": True}).names())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@settings(max_examples=30)
@given(JSON)
def test_any_json_is_understood_or_refused(raw: Any) -> None:
    candidates: list[Any] = [
        raw,
        {"fetch": raw},
        {"fetch": {"mode": "allowlist", "hosts": raw}},
        {"fetch": {"mode": "public", "methods": raw, "redirects": raw}},
        {"files": raw},
        {"email": {"to": raw}},
        {"webhook": {"targets": raw}},
    ]
    for candidate in candidates:
        try:
            parse(candidate)
        except CapabilityError:
            continue

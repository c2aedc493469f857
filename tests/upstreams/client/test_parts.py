"""The parts by themselves: what a spec may be, lines and shapes."""

import base64
from typing import Any

import pytest
from mcp_types import CallToolResult

from hitlchat.secrets.masking import Mask
from hitlchat.upstreams.client.link import MOST_NOTES, Notes, short
from hitlchat.upstreams.client.results import Tidied, complaint
from hitlchat.upstreams.client.spec import Limits, ServerSpec
from hitlchat.upstreams.client.stdio import KEPT_ENDS, Lines, TooLong

URL = "https://example.com/mcp"


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"transport": "carrier pigeon"}, "transport must be one of"),
    ({"url": "ftp://example.com"}, "url must be an address"),
    ({"url": "https://"}, "url must be an address"),
    ({"url": "https://example.com:99999/"}, "url has no usable host or port"),
    ({"url": "https://user:pass@example.com/"}, "use a header"),
    ({"url": "https://example.com/\r\nX: 1"}, "control characters"),
    ({"headers": {"X-A": "1\r\nX-B: 2"}}, "the value of X-A"),
    ({"headers": {"X-A": "1\x00"}}, "the value of X-A"),
    ({"headers": {"X-A": "\u2028"}}, "the value of X-A"),
    ({"headers": {"X-A": " padded "}}, "the value of X-A"),
    ({"headers": {"X A": "1"}}, "not a valid header name"),
    ({"headers": {"X-A:": "1"}}, "not a valid header name"),
    ({"headers": {"Host": "example.org"}}, "set by the connection itself"),
    ({"headers": {"content-length": "1"}}, "set by the connection itself"),
    ({"headers": {"Mcp-Session-Id": "1"}}, "set by the connection itself"),
    ({"transport": "stdio", "command": " "}, "command must name a program"),
    ({"transport": "stdio", "command": "a", "args": ("b\0",)}, "NUL"),
    ({"transport": "stdio", "command": "a", "env": {"A=B": "1"}}, "not a valid name for an environment variable"),
]


def test_a_spec_that_cannot_work_says_what_is_wrong_and_never_the_value(subtests: pytest.Subtests) -> None:
    for fields, words in MISFITS:
        with subtests.test(fields=fields), pytest.raises(ValueError, match=words):
            ServerSpec(**{"name": "a", "transport": "http", "url": URL, **fields})


def test_a_spec_shows_no_secret() -> None:
    spec = ServerSpec(
        "files",
        "http",
        url=f"{URL}?key=hidden-1",
        headers={"Authorization": "Bearer hidden-2"},
        secrets=("hidden-1",),
    )
    assert repr(spec) == str(spec) == "ServerSpec('files', http)"
    assert spec.hidden == ("hidden-1", "Bearer hidden-2", "hidden-2")


def test_lines_come_out_whatever_the_pieces() -> None:
    lines = Lines(100)
    fed = [line for piece in (b"a\nb", b"", b"c\r\n\n", b" \nd", b"\n") for line in lines.feed(piece)]
    assert fed == [b"a", b"bc", b"d"]


def test_of_a_line_that_is_too_long_both_ends_are_kept() -> None:
    lines = Lines(1000)
    assert lines.feed(b"begin" + b"x" * 5000) == []
    for _ in range(100):
        assert lines.feed(b"y" * 5000) == []
    assert lines.let_go > 500_000
    (found, after) = lines.feed(b"end\nshort\n")
    assert isinstance(found, TooLong)
    assert found.head.startswith(b"begin")
    assert found.tail.endswith(b"end")
    assert len(found.head) == len(found.tail) == KEPT_ENDS
    assert after == b"short"
    assert lines.let_go == 0


def test_ordinary_values_pass(subtests: pytest.Subtests) -> None:
    ordinary: list[Any] = [None, 1, "x" * 1000, {"a": [1, {"b": 2.5}]}, [], {}, 10**300]
    for value in ordinary:
        with subtests.test(value=value):
            assert complaint(value, Limits()) == ""


def test_others_do_not(subtests: pytest.Subtests) -> None:
    for value, words in [
        (float("inf"), "number"),
        ([float("nan")], "number"),
        (10**5000, "number"),
        ([[[[]]]], "nested more than 3 levels"),
        ({"a": {"b": {"c": {"d": 1}}}}, "nested more than 3 levels"),
        ([0] * 11, "more than 10 parts"),
        ([[0] * 5, [0] * 5], "more than 10 parts"),
    ]:
        with subtests.test(value=value):
            assert words in complaint(value, Limits(depth=3, nodes=10))


def test_looking_at_a_shared_value_does_not_take_for_ever() -> None:
    value: Any = []
    for _ in range(40):
        value = [value, value]
    assert complaint(value, Limits())


def test_texts_of_others_end_up_short_and_plain() -> None:
    assert short("a\n\tb\x1b[31m\u202ec\u200b") == r"a b\x1b[31m\u202ec\u200b"
    assert len(short("x" * 10_000)) == 500


def test_a_note_that_comes_again_is_kept_once_and_counted() -> None:
    notes = Notes()
    for _ in range(20):
        notes.add("Traceback")
        notes.add("no module")
    notes.add("once")
    assert [line.partition(" ")[2] for line in notes.lines()] == [
        "Traceback (20 times)",
        "no module (20 times)",
        "once",
    ]
    assert all(line[10] == "T" and line.partition(" ")[0].endswith("Z") for line in notes.lines())


def test_the_oldest_notes_are_let_go() -> None:
    notes = Notes()
    for number in range(MOST_NOTES + 5):
        notes.add(str(number))
    assert [line.partition(" ")[2] for line in notes.lines()] == [str(number) for number in range(5, MOST_NOTES + 5)]


async def test_bytes_that_cannot_be_kept_are_left_out_and_the_block_says_why(subtests: pytest.Subtests) -> None:
    for kind in ["image", "resource"]:
        for packed, why in [
            (base64.b64encode(b"user=bob key=hidden-value-1").decode(), "they hold a secret of the connection"),
            (
                base64.b64encode(b"\x89PNG" + base64.b64encode(b"hidden-value-1") + bytes(9)).decode(),
                "they hold a secret",
            ),
            ("not Base64", "they are not Base64"),
        ]:
            with subtests.test(kind=kind, packed=packed):
                block: dict[str, object] = {"type": "image", "data": packed, "mimeType": "image/png"}
                if kind == "resource":
                    block = {"type": "resource", "resource": {"uri": "file:///a", "blob": packed}}
                found = await Tidied("", Limits()).answer(
                    CallToolResult.model_validate({"content": [block]}), Mask(["hidden-value-1"])
                )
                assert found.attachments == {}
                assert found.content[0]["omitted"].startswith(why)
                assert "sha256" not in found.content[0]

"""Texts as bytes, addresses and HTML have them."""

import base64
import html
from typing import Any
from urllib.parse import quote

from tests.tables import each_row
from tests.tools_studio.library.world import World, fault, result

TEXTS = ["", "hello", "Grüße aus Köln", "日本語 🎉", "a+b/c?d=e&f%20", "line\nline\ttab"]


@each_row("text", TEXTS)
def test_base64_is_what_python_makes_of_it_and_comes_back(world: World, text: str) -> None:
    plain, safe = (
        result(world.call("base64_text", text=text)),
        result(world.call("base64_text", text=text, url_safe=True)),
    )
    assert plain == base64.b64encode(text.encode()).decode()
    assert safe == base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    assert [result(world.call("base64_text", text=each, direction="decode")) for each in (plain, safe)] == [text] * 2


@each_row("text, words", [("a", "not Base64"), ("äöü", "not Base64"), ("//79", "3 bytes that are not")])
def test_what_is_no_base64_of_a_text_is_refused(world: World, text: str, words: str) -> None:
    assert words in fault(world.call("base64_text", text=text, direction="decode"))


@each_row("text", TEXTS)
def test_hexadecimal_digits_come_back(world: World, text: str) -> None:
    digits = result(world.call("hex_text", text=text, separator=":"))
    assert digits.replace(":", "") == text.encode().hex()
    assert result(world.call("hex_text", text=digits.upper(), direction="decode")) == text


@each_row("text, words", [("4", "pairs"), ("xy", "pairs"), ("ff fe", "not UTF-8")])
def test_what_is_no_hexadecimal_text_is_refused(world: World, text: str, words: str) -> None:
    assert words in fault(world.call("hex_text", text=text, direction="decode"))


@each_row("text", TEXTS)
def test_a_text_for_an_address_is_what_python_makes_of_it_and_comes_back(world: World, text: str) -> None:
    quoted = result(world.call("url_text", text=text))["text"]
    assert quoted == quote(text, safe="")
    assert result(world.call("url_text", text=quoted, action="decode"))["text"] == text


def test_an_address_is_taken_apart(world: World) -> None:
    address = "https://example.com:8/a%20b?q=1+2&r=%C3%BC&s#top"
    assert result(world.call("url_text", text=address, action="take apart"))["parts"] == {
        "scheme": "https", "host": "example.com:8", "path": "/a b", "fragment": "top",
        "query": [{"name": "q", "value": "1 2"}, {"name": "r", "value": "ü"}, {"name": "s", "value": ""}],
    }  # fmt: skip


@each_row(
    "text, action, words",
    [
        ("100%", "decode", "two hexadecimal digits"),
        ("%ff", "decode", "not UTF-8"),
        ("x", "take apart", "whole address"),
    ],
)
def test_what_is_no_address_is_refused(world: World, text: str, action: str, words: str) -> None:
    assert words in fault(world.call("url_text", text=text, action=action))


@each_row("text", [*TEXTS, "<a href='x'>\"&amp;</a>"])
def test_html_is_escaped_as_python_does_and_comes_back(world: World, text: str) -> None:
    escaped = result(world.call("html_text", text=text))
    assert escaped == html.escape(text)
    assert result(world.call("html_text", text=escaped, action="decode")) == text


@each_row(
    "arguments, expected",
    [
        ({"text": "&#65;&#x42;&euro;&nosuch;&#xD800;&amp;lt;", "action": "decode"}, "AB€&nosuch;\ufffd&lt;"),
        ({"text": "<head><title>x</title></head><p>Fish &amp;\n <b>chips</b></p><script>x()</script><ul><li>1<li>2",
          "action": "remove tags"}, "Fish & chips\n1\n2"),
        ({"text": "no tags", "action": "remove tags"}, "no tags"),
    ],
)  # fmt: skip
def test_the_words_of_a_page_are_left(world: World, arguments: dict[str, Any], expected: str) -> None:
    assert result(world.call("html_text", **arguments)) == expected

"""Markdown that was made to be slow, or to become large, is shown as the text that it is."""

import pytest
from django.utils.html import escape

from hitlchat.chat.markdown import MOST_HTML, PLAIN_BEYOND, OpenTail, render

HOSTILE = ("![", "[a](", "*a ", "|a", "> ", "[^1]: a[^1]\n")


def of(piece: str) -> str:
    return (piece * PLAIN_BEYOND)[: PLAIN_BEYOND - 10]


def test_a_very_long_answer_is_plain_text() -> None:
    for piece in HOSTILE:
        text = piece * PLAIN_BEYOND
        assert render(text).startswith('<pre tabindex="0">')
        assert "<img" not in render(text + "<img src=x>")


def test_an_endless_block_is_plain_text_while_it_grows() -> None:
    tail = OpenTail()
    for _ in range(8):
        tail.extend("![" * 2500)
    assert tail.tail.startswith('<pre tabindex="0">')
    assert tail.blocks == []


def test_what_would_take_too_long_is_plain_and_says_so() -> None:
    for text in (of("\\("), of("a\n> > \r"), "a " * PLAIN_BEYOND):
        html = render(text)
        assert escape(text[:100].replace("\r", "")[:5]) in html
        assert html.startswith('<pre tabindex="0">')
        assert "Shown as plain text: formatting it would take too long." in html


TABLE = "|a" * 2400 + "\n" + "|-" * 2400 + "\n" + "a\n" * 7000


SEVERAL = pytest.mark.slow("more of a kind")


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        of("a$b"),
        "<" * 300_000,
        pytest.param(of("[]()"), marks=SEVERAL),
        pytest.param(of("#\n"), marks=SEVERAL),
        pytest.param("日" * 120_000, marks=SEVERAL),
        pytest.param("'" * 70_000, marks=SEVERAL),
    ],
    ids=lambda text: text[:3],
)
def test_the_html_of_an_answer_is_bounded(text: str) -> None:
    assert len(render(text).encode()) < MOST_HTML + 500
    tail = OpenTail()
    for start in range(0, len(text), 999):
        tail.extend(text[start : start + 999])
    assert all(len(part.encode()) < MOST_HTML + 500 for part in (*tail.blocks, tail.tail))


def test_what_is_left_out_of_a_very_long_text_is_counted() -> None:
    html = render("x" * (MOST_HTML + 1234))
    assert "1,2" in html
    assert "more characters are not shown; “Copy text” has them." in html


def test_ordinary_long_answers_are_laid_out() -> None:
    code = "```python\ndef double(number: int) -> int:\n    return 2 * number\n```\n\n"
    table = "| Name | Amount | Note |\n|---|--:|---|\n" + "| **Ann** | 12 | `paid` |\n" * 300
    quoted = "> They wrote this.\n\nWe answered *so*.\n\n" * 100
    marked = "The quick brown *fox* jumps over the `dog` & **rests**. " * 520
    sums = "".join(f"Then \\(x_{{{number}}} = {number}\\), which costs $5.\n\n" for number in range(200))
    for text, sign in (
        (code * 300, 'class="k"'),
        (table, "<strong>"),
        (quoted, "<em>"),
        (marked, "<em>"),
        (sums, "<math"),
    ):
        assert sign in render(text), sign

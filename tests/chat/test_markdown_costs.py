"""No text takes much longer to lay out than others of its length, in seconds of the processor."""

import time
from collections.abc import Callable
from functools import partial

import pytest

from hitlchat.chat.markdown import LEXERS, PLAIN_BEYOND, OpenTail, render

pytestmark = pytest.mark.slow("measures the processor's time")

PIECES = [
    "$1 ", "a$1", "*a_b", "`a``b```c", "<a*",
    "\\(", "\\[", "$", "$a ", "$$", "$$a ", "a$b", "[", "![", "[[]", "[](", "[]()", "[a]: b\n", "[^1]",
    "[^1]: a[^1]\n", "*", "*a ", "**a*", "_a_", "a**b ", "~~", "`", "``a`", "```\n", "~~~a\n", "<", "<a ",
    "<http:", "<!--", "&", "&amp", "> ", "> > a\n", "> - ", "- ", "- a\n", "- a\n  ", "1. ", "# a\n", "=\n",
    "a  \n", "|a", "-|", "\\", "]", "{", "x", "\n", " ", "\t", "\u200b", "a\u202e", "http://a.a/ ",
    "\\begin{a}", "$\\frac{", "- \\[\n", "1. \\[\r", "-" * 99 + "x\n", "a\n> > \r", "\n> ---\na![",
    "a|\n> ---\nb", ">" * 50 + "\n", "> a\nb\n", "- [ ] a\n", "    a\n", "()))))", "*[a]_",
]  # fmt: skip
CODE = [
    "`a <", "a b ", "'", "\"", "/*", "<a ", "<!--", "${", "{{", "a\n", "  a\n", " \n", "\\", "f'{", "a: ", "- ", "(",
    "<<EOF\n", "[", "=", "0x", "'''", "--", "&a *a ", "%(", "@a(", "=/a", "<script>", "<style>a{", "\t", "1e", "a.b",
]  # fmt: skip
# Those that are coloured, and some that are not.
FENCES = [*sorted({*LEXERS.values()}), "rst", "perl", "powershell"]
# An answer of this length that nobody made to be slow takes one; the worst of the others took 400.
WORTH = 40


def test_no_text_takes_much_longer_than_others_of_its_length(usual: float) -> None:
    for piece in PIECES:
        assert seconds(partial(render, of(piece))) < WORTH * usual, piece


def test_no_block_of_code_takes_much_longer_than_others_of_its_length(usual: float) -> None:
    for language in FENCES:
        for piece in CODE:
            # A twelfth of what is laid out: what grows with the square of the length takes little of it.
            text = f"```{language}\n{(piece * 2500)[:2500]}"
            assert seconds(partial(render, text)) < WORTH / 6 * usual, (language, piece)


def test_a_stream_takes_no_longer_than_the_same_number_of_ordinary_characters(usual: float) -> None:
    for piece in PIECES:
        text = of(piece)[:5000]
        # A block that grows is laid out some thirty times on its way.
        assert seconds(partial(streamed, text)) < 2 * WORTH * usual, piece


def streamed(text: str) -> OpenTail:
    tail = OpenTail()
    for start in range(0, len(text), 50):
        tail.extend(text[start : start + 50])
    return tail


def seconds(of: Callable[[], object]) -> float:
    """Of the processor, spent by this thread."""
    began = time.thread_time()
    of()
    return time.thread_time() - began


@pytest.fixture(scope="module")
def usual() -> float:
    """What an answer of ordinary prose takes that is as long as one can be that is laid out."""
    prose = "The quick brown *fox* jumps over [it](http://a.example/) and `code`.\n\n" * 400
    render(prose)
    return seconds(lambda: render(prose))


def of(piece: str) -> str:
    """As many as fit into an answer that is laid out."""
    return (piece * PLAIN_BEYOND)[: PLAIN_BEYOND - 10]

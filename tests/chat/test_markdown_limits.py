"""Markdown that was made to be slow is shown as the text that it is."""

import pytest

from hitlchat.chat.markdown import PLAIN_BEYOND, OpenTail, render

HOSTILE = {"images": "![", "links": "[a](", "emphasis": "*a ", "table": "|a", "quotes": "> ", "notes": "[^1]: a[^1]\n"}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_a_very_long_answer_is_plain_text(piece: str) -> None:
    text = piece * PLAIN_BEYOND
    assert render(text).startswith('<pre tabindex="0">')
    assert "<img" not in render(text + "<img src=x>")


def test_an_endless_block_is_plain_text_while_it_grows() -> None:
    tail = OpenTail()
    for _ in range(200):
        tail.extend("![" * 100)
    assert tail.tail.startswith('<pre tabindex="0">')
    assert tail.blocks == []

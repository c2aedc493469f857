"""Nothing in a text stays unseen (SR-3)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitlchat.gate.visible import HIDDEN_CATEGORIES, see

UNSEEN = [
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *(0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x2028, 0x2029, 0x00AD, 0x061C, 0x180E),
    *(0x0000, 0x0007, 0x0008, 0x000B, 0x000D, 0x001B, 0x007F, 0x0085, 0x009B),
    *(0x00A0, 0x3000, 0xE000, 0xF8FF, 0xD800, 0xDFFF, 0x0378, 0xFFFF, 0x10FFFF),
    *(0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0x17B4, 0xFE0F, 0xE0100),
]
TAGS = range(0xE0000, 0xE0080)


@pytest.mark.parametrize("code", UNSEEN, ids=lambda code: f"U+{code:04X}")
def test_a_character_that_cannot_be_seen_is_shown_as_its_code(code: int) -> None:
    seen = see(f"pay{chr(code)}pal")
    assert seen.plain == f"payU+{code:04X}pal"
    assert [piece.hidden for piece in seen.pieces] == [False, True, False]
    assert seen.suspect


def test_a_text_smuggled_in_tag_characters_is_shown() -> None:
    seen = see("".join(map(chr, TAGS)))
    assert chr(0xE0041) not in seen.plain
    assert all(f"U+{code:04X}" in seen.plain for code in TAGS)
    assert any("128 characters that cannot be seen" in warning for warning in seen.warnings)


@pytest.mark.parametrize("code", [*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
def test_a_direction_override_is_called_one(code: int) -> None:
    assert any("direction override" in warning for warning in see(f"a{chr(code)}b").warnings)


@pytest.mark.parametrize("letter", ["\u05d0", "\u0627", "\u07ca", "\u0661"])
def test_a_single_right_to_left_letter_is_pointed_out(letter: str) -> None:
    seen = see(f"refund 100{letter}5")
    assert seen.plain == f"refund 100{letter}5"
    assert any("right-to-left" in warning for warning in seen.warnings)


@pytest.mark.parametrize(
    "text",
    ["p\u0430ypal.com", "g\u043e\u043egle", "\u0391pple", "https://\u0440\u0430ypal.com/x", "sc\u043epe and more"],
)
def test_alphabets_mixed_in_one_word_are_pointed_out(text: str) -> None:
    assert any("look-alike" in warning for warning in see(text).warnings)


@pytest.mark.parametrize("text", ["xn--pypal-4ve.com", "see https://XN--80ak6aa92e.com/now"])
def test_an_encoded_host_name_is_pointed_out(text: str) -> None:
    assert any("host name" in warning for warning in see(text).warnings)


@pytest.mark.parametrize("text", ["", "plain text", "tab\tand\nline", "naïve café", "Привет, мир", "日本語", "🎉 10 €"])
def test_an_honest_text_is_left_alone(text: str) -> None:
    seen = see(text)
    assert seen.plain == text
    assert not seen.suspect


@given(st.text(st.characters()))
def test_whatever_the_text_nothing_unseen_is_left_in_it(text: str) -> None:
    left = {char for char in see(text).plain if unicodedata.category(char) in HIDDEN_CATEGORIES}
    assert left <= {" ", "\n", "\t"}


@given(
    st.text(st.characters(categories=["L", "N", "P", "S"])), st.text(st.characters(categories=["Cf", "Co"]), min_size=1)
)
def test_the_count_of_hidden_characters_is_true(shown: str, hidden: str) -> None:
    pieces = see(shown + hidden).pieces
    assert sum(piece.hidden for piece in pieces) >= len(hidden)

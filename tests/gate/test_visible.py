"""Nothing in a text stays unseen (SR-3)."""

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitlchat.base.visible import HIDDEN_CATEGORIES, MOST_PIECES, see
from hitlchat.templatetags.marks import seen as marked

UNSEEN = [
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *(0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x2028, 0x2029, 0x00AD, 0x061C, 0x180E),
    *(0x0000, 0x0007, 0x0008, 0x000B, 0x000D, 0x001B, 0x007F, 0x0085, 0x009B),
    *(0x00A0, 0x3000, 0xE000, 0xF8FF, 0xD800, 0xDFFF, 0x0378, 0xFFFF, 0x10FFFF),
    *(0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0x17B4, 0xFE0F, 0xE0100, 0x1D159, 0x16FE4),
]
TAGS = range(0xE0000, 0xE0080)


@pytest.mark.guarantee("SR-3")
def test_a_character_that_cannot_be_seen_is_shown_as_its_code(subtests: pytest.Subtests) -> None:
    for code in UNSEEN:
        with subtests.test(code=code):
            seen = see(f"pay{chr(code)}pal")
            assert seen.plain == f"payU+{code:04X}pal"
            assert [piece.hidden for piece in seen.pieces] == [False, True, False]
            assert seen.suspect


@pytest.mark.guarantee("SR-3")
def test_a_text_smuggled_in_tag_characters_is_shown() -> None:
    seen = see("".join(map(chr, TAGS)))
    assert chr(0xE0041) not in seen.plain
    assert seen.plain == "U+E0000 U+E0001 U+E0002 U+E0003 U+E0004 +123 more"
    assert any("128 invisible characters" in warning for warning in seen.warnings)


@pytest.mark.guarantee("SR-3")
def test_a_direction_override_is_called_one(subtests: pytest.Subtests) -> None:
    for code in [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]:
        with subtests.test(code=code):
            (warning,) = see(f"a{chr(code)}b").warnings
            assert "direction override" in warning


@pytest.mark.guarantee("SR-3")
def test_what_is_no_direction_override_is_counted_besides() -> None:
    assert see("a\u202eb\u200bc\u200bd").warnings == (
        "Contains a direction override: elsewhere this text may look different.",
        "Contains 2 invisible characters, shown as U+ and a code.",
    )


@pytest.mark.guarantee("SR-3")
def test_a_single_right_to_left_letter_is_pointed_out(subtests: pytest.Subtests) -> None:
    for letter in ["\u05d0", "\u0627", "\u07ca", "\u0661"]:
        with subtests.test(letter=letter):
            seen = see(f"refund 100{letter}5")
            assert seen.plain == f"refund 100{letter}5"
            assert any("right-to-left" in warning for warning in seen.warnings)


@pytest.mark.guarantee("SR-3")
def test_alphabets_mixed_in_one_word_are_pointed_out(subtests: pytest.Subtests) -> None:
    for text in [
        "p\u0430ypal.com",
        "g\u043e\u043egle",
        "\u0391pple",
        "https://\u0440\u0430ypal.com/x",
        "sc\u043epe and more",
    ]:
        with subtests.test(text=text):
            assert any("look-alike" in warning for warning in see(text).warnings)


@pytest.mark.guarantee("SR-3")
def test_an_encoded_host_name_is_pointed_out(subtests: pytest.Subtests) -> None:
    for text in ["xn--pypal-4ve.com", "see https://XN--80ak6aa92e.com/now"]:
        with subtests.test(text=text):
            assert any("host name" in warning for warning in see(text).warnings)


ORDINARY = [
    *("👩‍👩‍👧‍👦 ❤️ ☎︎ 1️⃣ 👍🏽", "é Việt", "10 ℃ ™ 2º ½ … №", "你好\uff0c世界\uff01\uff08是\uff09"),
    *("שלום, עולם!", "مرحبا بالعالم", "שלום 🎉\nHello, 5 times", "Ende. Größe: 5"),
]


def test_an_honest_text_is_left_alone(subtests: pytest.Subtests) -> None:
    for text in ["", "plain text", "tab\tand\nline", "naïve café", "Привет, мир", "日本語", "🎉 10 €", *ORDINARY]:
        with subtests.test(text=text):
            seen = see(text)
            assert seen.plain == text
            assert not seen.suspect


@given(st.text(st.characters()))
@pytest.mark.guarantee("SR-3")
def test_whatever_the_text_nothing_unseen_is_left_in_it(text: str) -> None:
    left = {char for char in see(text).plain if unicodedata.category(char) in HIDDEN_CATEGORIES}
    assert left <= {" ", "\n", "\t"}


@given(
    st.text(st.characters(categories=["L", "N", "P", "S"])), st.text(st.characters(categories=["Cf", "Co"]), min_size=1)
)
def test_the_count_of_hidden_characters_is_true(shown: str, hidden: str) -> None:
    escaped = " ".join(piece.text for piece in see(shown + hidden).pieces if piece.hidden)
    more = sum(int(number.replace(",", "")) for number in re.findall(r"\+([\d,]+) more", escaped))
    assert escaped.count("U+") + more >= len(hidden)


def test_what_belongs_to_an_emoji_is_suspect_anywhere_else(subtests: pytest.Subtests) -> None:
    for text in ["a\u200db", "👩\u200da", "a\ufe0f", "👩\ufe0f\ufe0f", "👩\u200d", "\u20e3", "1\u20e3"]:
        with subtests.test(text=text):
            assert any(piece.hidden for piece in see(text).pieces)
            assert see(text).suspect


def test_marks_that_pile_up_or_strike_through_are_shown_as_codes(subtests: pytest.Subtests) -> None:
    for text, shown in [
        ("a\u0301\u0302\u0303", "a\u0301\u0302U+0303"),
        ("a" + "\u0301" * 9 + "b\u0302", "a\u0301\u0301U+0301 U+0301 U+0301 U+0301 U+0301 +2 moreb\u0302"),
        ("\u0301a", "U+0301a"),
        ("a\n\u0489", "a\nU+0489"),
        ("a\u200b\u0301", "aU+200B U+0301"),
        ("1\u03360\u0336", "1U+03360U+0336"),
        ("a\u20d2 b\u0338 c\u20e0", "aU+20D2 bU+0338 cU+20E0"),
    ]:
        with subtests.test(text=text):
            assert see(text).plain == shown
            assert any("marks" in warning or "a mark" in warning for warning in see(text).warnings)


READABLE = ["שלום", "שלום, עולם!", "مرحبا", "שלום\nHello 5", "שלום 🎉"]
STORED = [
    "refund 100\u05d05",
    "\u05e9\u05dc\u05d5\u05dd 100",
    "\u05e9\u05dc\u05d5\u05dd (\u05e2\u05d5\u05dc\u05dd)",
    "a \u05e9\u05dc\u05d5\u05dd",
    "\u0663 \u0631\u064a\u0627\u0644",
    "\u05e9\u05dc\u05d5\u05dd\u200f\u05e2\u05d5\u05dc\u05dd",
    "/\u05d0/\u05d1",
    '{"note": "\u05e9\u05dc\u05d5\u05dd"}',
]


def test_right_to_left_text_that_cannot_mislead_is_shown_as_it_is_read(subtests: pytest.Subtests) -> None:
    for text in READABLE:
        with subtests.test(text=text):
            seen = see(text)
            assert (seen.right_to_left, seen.stored, seen.suspect) == (True, False, False)
            assert marked(text) == f'<bdi class="readable" dir="auto">{text}</bdi>'


def test_right_to_left_text_that_could_mislead_is_shown_in_stored_order_and_says_so(subtests: pytest.Subtests) -> None:
    for text in STORED:
        with subtests.test(text=text):
            assert see(text).stored
            assert any("in stored order" in warning for warning in see(text).warnings)
            assert marked(text).startswith('<bdi class="stored" dir="ltr">')
            assert marked(text).endswith("</bdi>")


def test_a_host_in_other_letters_than_a_to_z_is_pointed_out(subtests: pytest.Subtests) -> None:
    for host in [
        "\u0430\u0440\u0440\u04cf\u0435.com",
        "https://www.g\u043e\u043egle.com/x",
        "exämple.org",
        "e\u0301xample.com",
        "\u043f\u0440\u0430\u0432\u0434\u0430.\u0440\u0444",
        "\u043f\u0440\u0438\u043c\u0435\u0440.com:80",
    ]:
        with subtests.test(host=host):
            assert any("host name" in warning for warning in see(f"see {host} now").warnings)


def test_a_look_alike_of_an_ordinary_character_is_named(subtests: pytest.Subtests) -> None:
    for char in (
        "\u2215\u2044\u2024\ua789\u2236\u29f8\u01c3\u037e\u212a\u2160\uff21\uff0f\uff0e\uff08\ufe68\U0001d41a\U0001d7ce"
    ):
        with subtests.test(char=char):
            (warning,) = see(f"pay{char}pal").warnings
            assert f"U+{ord(char):04X}" in warning
            assert see(f"pay{char}pal").plain == f"pay{char}pal"


def test_of_many_look_alikes_some_are_named_and_the_others_counted() -> None:
    (warning,) = see("".join(map(chr, range(0xFF21, 0xFF3B)))).warnings
    assert "\uff25 (U+FF25, like “E”) and 21 more" in warning


def test_neighbouring_hidden_characters_become_one_piece() -> None:
    (piece,) = see("\u200b" * 40_000).pieces
    assert piece.text == "U+200B U+200B U+200B U+200B U+200B +39,995 more"
    assert marked("\u200b" * 40_000).count("<span") == 1


def test_beyond_a_thousand_pieces_the_escapes_stand_in_the_text() -> None:
    seen = see("a\u200b" * 20_000)
    assert len(seen.pieces) == 2 * MOST_PIECES + 1
    assert seen.plain == "aU+200B" * 20_000
    assert any("20,000 invisible characters" in warning for warning in seen.warnings)


HEAVY = [
    "\u200b",
    "a\u200b",
    "a\u0336",
    "\u0301",
    "👩\u200d",
    "é.",
    "\u05d01",
    "\u0436",
    "\uff21",
    "é" + "a" * 99,
    "xn--",
    "\u0430.",
    "a\u3002",
    "\u0410\u0421\u041c\u0415 ",
    "\u0430@",
]


@pytest.mark.slow("bounds processor time")
def test_a_hostile_text_costs_little(subtests: pytest.Subtests) -> None:
    for unit in HEAVY:
        with subtests.test(unit=unit):
            text = unit * (100_000 // len(unit))
            began = time.process_time()
            marked(text)
            assert time.process_time() - began < 3

"""Two texts side by side: what stands on one side only is marked, and nothing is lost or hidden."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitlchat.base.diff import CONTEXT, LONGEST_TEXT, MOST_MATCHED_WORDS, Part, Side, sides
from hitlchat.base.visible import see

WORDS = st.lists(st.sampled_from(["one ", "two", " ", "\n", ".", "\u200b", "\u05d0\u05d1", "\u4e2d"]), max_size=40)


def both(before: str, after: str) -> tuple[Side, Side]:
    one, other = sides(see(before), see(after))
    assert one
    assert other
    return one, other


def marked(side: Side) -> list[str]:
    return [part.text for part in side.parts if part.kind == "differs"]


def told(side: Side) -> str:
    """Without the signs that make white space visible."""
    return "".join(part.text for part in side.parts if part.text not in {"\u21b5", "\u21e5"})


def test_only_the_words_that_differ_are_marked() -> None:
    one, other = both("Read the order, then stop.", "Delete the order, then stop.")
    assert (marked(one), marked(other)) == (["Read"], ["Delete"])


def test_a_hidden_character_that_was_added_is_marked_as_what_it_is() -> None:
    one, other = both("Say it.", "Say\u200b it.")
    assert marked(one) == []
    assert [part for part in other.parts if part.kind == "differs"] == [Part("U+200B", "differs", escape=True)]
    assert other.warnings


def test_white_space_that_differs_can_be_seen() -> None:
    one, other = both("one two", "one\ttwo\n")
    assert marked(other) == ["\u21e5", "\t", "\u21b5", "\n"]
    assert marked(one) == [" "]


def test_what_is_all_new_has_no_marks_and_the_other_side_is_empty() -> None:
    before, after = sides(None, see("All of it is new."))
    assert before is None
    assert after is not None
    assert [part.kind for part in after.parts] == ["same"]
    assert sides(see("gone"), None)[1] is None


def test_a_long_stretch_that_is_the_same_is_folded_and_counted() -> None:
    same = "the same words again " * 100
    one, other = both(f"Now {same}end", f"Then {same}end of it")
    (skip,) = [part for part in one.parts if part.kind == "skip"]
    assert skip.text == f"{len(' ' + same + 'end') - CONTEXT:,} unchanged characters"
    assert marked(other) == ["Then", " of it"]
    assert sum(len(part.text) for part in one.parts) < 3 * CONTEXT


def test_texts_that_are_the_same_are_shown_whole() -> None:
    text = "the same words again " * 100
    one, _ = both(text, text)
    assert [part.text for part in one.parts] == [text]


def test_what_would_take_too_long_to_match_is_marked_as_a_whole() -> None:
    old = " ".join(f"a{n}" for n in range(MOST_MATCHED_WORDS))
    new = " ".join(f"a{n}" for n in range(1, MOST_MATCHED_WORDS + 1))
    one, other = both(f"First {old} last", f"First {new} last")
    assert (marked(one), marked(other)) == ([old], [new])


def test_what_is_longer_than_any_page_is_cut_with_the_rest_counted() -> None:
    one, _ = both("x" * (LONGEST_TEXT + 5000), "y")
    assert one.parts[-1] == Part("5,000 more characters", "skip")
    assert sum(len(part.text) for part in one.parts if part.kind != "skip") == LONGEST_TEXT


def test_right_to_left_letters_are_shown_as_elsewhere(subtests: pytest.Subtests) -> None:
    for text in ["\u05d0\u05d1 \u05d2", "abc \u05d0\u05d1\u202e"]:
        with subtests.test(text=text):
            one, _ = both(text, f"{text} more")
            assert (one.right_to_left, one.stored) == (see(text).right_to_left, see(text).stored)


@given(WORDS, WORDS)
def test_no_character_is_lost_and_what_is_unmarked_is_on_both_sides(old: list[str], new: list[str]) -> None:
    before, after = "".join(old), "".join(new)
    one, other = both(before, after)
    assert (told(one), told(other)) == (see(before).plain, see(after).plain)
    unmarked = ["".join(part.text for part in side.parts if part.kind == "same") for side in (one, other)]
    assert unmarked[0] == unmarked[1]

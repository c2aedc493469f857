"""The preview on the card: labelled as the tool's own words, nothing in it but text, and what has changed in sight."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string

from hitlchat.gate import card
from hitlchat.gate.card import Card, Effect, Part
from hitlchat.gate.models import ToolCall
from hitlchat.gate.sources import Preview, frozen_preview
from tests.gate.asking import approval_of, approved, ask, recording, run, say_yes
from tests.gate.test_card import CLAIM, HOSTILE, Elements
from tests.tables import each_row

pytestmark = pytest.mark.django_db


def table(*rows: tuple[str, ...], columns: tuple[str, ...] = ()) -> Preview:
    return Preview(table={"columns": [*columns], "rows": [[*row] for row in rows]})


def shown(bob: User, said: list[Any], now: Any, **columns: Any) -> tuple[Card, str]:
    """The card of a call whose preview is `now`, and how it is rendered."""
    said[:] = [now]
    name = f"tool{ToolCall.objects.count()}"
    found = card.card(approval_of(ask(bob, recording(name, source="previewing", **columns))))
    return found, render_to_string("approvals/_card.html", {"card": found, "over": "ws"})


def words(html: str) -> str:
    return " ".join(Elements(html).text.split())


def test_the_preview_is_labelled_as_the_tools_own_words(bob: User, previews: list[Any]) -> None:
    _, html = shown(bob, previews, Preview(text="Refunds 129.00 EUR"))
    label = "What it would change Reported by the tool hitlchat has not checked this"
    assert f"{label} Refunds 129.00 EUR" in words(html)


def test_a_failed_preview_says_so_on_the_card(bob: User, previews: list[Any]) -> None:
    _, html = shown(bob, previews, Preview(error="Line 3: no such order"))
    assert "The preview failed: Line 3: no such order" in words(html)


def test_a_card_without_a_preview_has_no_place_for_one(bob: User) -> None:
    found = card.card(approval_of(ask(bob, recording())))
    assert (found.effect, found.again) == (None, None)
    assert "effect" not in render_to_string("approvals/_card.html", {"card": found, "over": "ws"})


def test_a_table_is_a_table_and_an_object_has_a_row_for_each_name(bob: User, previews: list[Any]) -> None:
    _, html = shown(bob, previews, table(("4711", "143.00"), columns=("order", "paid")))
    assert re.findall(r"<t[hd]\b[^>]*>([^<]*)", html) == ["order", "paid", "4711", "143.00"]
    _, html = shown(bob, previews, Preview.of({"order": 4711, "paid": None}))
    assert re.findall(r"<(t[hd])\b[^>]*>([^<]*)", html) == [("th", "order"), ("td", "4711"), ("th", "paid"), ("td", "")]


@each_row("kind", ["text", "error", "cell", "column"])
def test_nothing_in_a_preview_becomes_an_element(
    subtests: pytest.Subtests, kind: str, bob: User, previews: list[Any]
) -> None:
    def said(text: str) -> Preview:
        if kind in ("cell", "column"):
            return table(("a", text if kind == "cell" else "b"), columns=("c", text if kind == "column" else "d"))
        return Preview(text=text) if kind == "text" else Preview(error=text)

    plain = Elements(shown(bob, previews, said("plain"))[1])
    for value in (*HOSTILE.values(), CLAIM):
        with subtests.test(value=value):
            hostile = Elements(shown(bob, previews, said(value))[1])
            assert [tag for tag, _ in hostile.found] == [tag for tag, _ in plain.found]
            assert value in hostile.text


@each_row("kind", ["text", "error", "cell", "column"])
def test_hidden_characters_are_shown_with_a_warning(kind: str, bob: User, previews: list[Any]) -> None:
    odd = "to\u202eyou\x00\u200b"
    said = {
        "text": Preview(text=odd),
        "error": Preview(error=odd),
        "cell": table(("a", odd), columns=("b", "c")),
        "column": table(("a", "b"), columns=("c", odd)),
    }
    _, html = shown(bob, previews, said[kind])
    assert "toU+202EyouU+0000 U+200B" in words(html)
    assert "Contains a direction override" in words(html)
    assert not {"\u202e", "\x00", "\u200b"} & set(html)


@each_row(
    "said,hidden,what",
    [
        (Preview(text="x" * 1000), 600, "600 characters"),
        (Preview(table={"columns": [], "rows": [["a", "b" * 9]] * 20}), 120, "12 rows"),
    ],
    ids=["text", "table"],
)
def test_what_is_long_is_folded_and_counted_and_keeps_approve_out_of_reach(
    said: Preview, hidden: int, what: str, bob: User, previews: list[Any]
) -> None:
    found, html = shown(bob, previews, said, risk_level=4)
    assert found.hidden == hidden
    assert html.count("data-fold") == 1
    assert f"Show the other {what}" in words(html)
    assert f"Unfold everything first: {hidden} characters are hidden." in words(html)
    assert re.search(r"data-approve disabled", html)


def test_what_was_cut_is_said_on_the_card(bob: User, previews: list[Any]) -> None:
    _, html = shown(bob, previews, table(*[("a", "b")] * 60))
    assert "10 more rows are left out." in words(html)


# -- Asked again ------------------------------------------------------------------------------------------------------


def changed(before: Preview, now: Preview) -> card.Again:
    return card.again({"why": "It changed.", "before": frozen_preview(before)}, frozen_preview(now))


def marks(found: Effect) -> list[str]:
    cells = [cell for row in found.table.rows for cell in row] if found.table else []
    return [part.text.plain for part in (*found.parts, *cells) if part.changed]


def test_the_difference_of_two_texts_is_marked(bob: User, previews: list[Any]) -> None:
    found = changed(Preview(text="paid 143.00, refunded 0.00"), Preview(text="paid 143.00, refunded 9.00"))
    assert (marks(found.before), marks(found.now), found.whole) == (["0.00"], ["9.00"], True)
    assert "".join(part.text.plain for part in found.now.parts) == "paid 143.00, refunded 9.00"


def test_texts_that_grow_or_shrink_have_all_their_words(subtests: pytest.Subtests) -> None:
    for before, now in [("a b c", "a c"), ("", "a"), ("a", ""), ("a\nb", "a b"), ("e\u0301", "e")]:
        with subtests.test(before=before):
            found = changed(Preview(text=before), Preview(text=now))
            whole = "".join(part.text.plain for part in found.before.parts)
            assert whole == before
            assert found.before.parts != found.now.parts


def test_of_long_texts_what_stands_around_the_difference_is_shown_and_the_rest_counted() -> None:
    found = changed(Preview(text="a " * 500 + "1" + " b" * 500), Preview(text="a " * 500 + "2" + " b" * 500))
    assert (marks(found.before), marks(found.now)) == (["1"], ["2"])
    assert sum(len(part.text.plain) for part in found.now.parts) == 2 * card.CONTEXT + 1
    assert found.now.notes == ("840 characters before it are the same.", "840 characters after it are the same.")
    assert not found.whole


def test_long_texts_that_differ_everywhere_are_not_shown_twice_as_long() -> None:
    found = changed(Preview(text="a " * 3000), Preview(text="b " * 3000))
    assert sum(len(part.text.plain) for part in found.now.parts) <= card.MOST_OF_DIFFERENCE + card.CONTEXT
    assert "more characters of it are different" in found.now.notes[0]


def test_words_that_stayed_are_not_marked() -> None:
    found = changed(Preview(text="paid 1 EUR, then 2 EUR now"), Preview(text="paid 3 EUR, then 4 EUR now"))
    assert (marks(found.before), marks(found.now)) == (["1", "2"], ["3", "4"])
    found = changed(Preview(text="not at all"), Preview(text="so it is"))
    assert (marks(found.before), marks(found.now)) == (["not at all"], ["so it is"])


def test_the_cells_of_a_table_that_differ_are_marked() -> None:
    old = table(("1", "a"), ("2", "b"), ("3", "c"), columns=("n", "x"))
    new = table(("1", "a"), ("2", "z"), ("3", "c"), columns=("n", "x"))
    found = changed(old, new)
    assert (marks(found.before), marks(found.now), found.whole) == (["b"], ["z"], True)
    assert found.now.table is not None
    assert len(found.now.table.rows) == 3


def test_of_a_long_table_the_rows_that_differ_are_shown() -> None:
    rows = [(str(number), "a") for number in range(30)]
    found = changed(table(*rows, ("last", "b")), table(*rows, ("last", "c")))
    assert (marks(found.before), marks(found.now), found.whole) == (["b"], ["c"], False)
    assert found.now.table is not None
    assert (len(found.now.table.rows), found.now.notes) == (1, ("30 rows are the same.",))


def test_a_row_that_came_in_is_marked_as_a_whole() -> None:
    found = changed(table(("1", "a"), ("3", "c")), table(("1", "a"), ("2", "b"), ("3", "c")))
    assert (marks(found.before), marks(found.now)) == ([], ["2", "b"])


def test_what_cannot_be_compared_is_shown_whole(subtests: pytest.Subtests) -> None:
    for before, now in [
        (Preview(text="a"), Preview(error="gone")),
        (Preview(text="a"), table(("a", "b"))),
        (table(("a", "b")), table(("a", "b"), columns=("x", "y"))),
        (Preview(text="a", table=table(("a", "b")).table), Preview(text="b", table=table(("a", "b")).table)),
    ]:
        with subtests.test(before=before):
            found = changed(before, now)
            assert (found.before, found.now) == (card.effect(frozen_preview(before)), card.effect(frozen_preview(now)))
            assert found.whole


def test_a_difference_in_what_is_left_out_is_said_to_be_there() -> None:
    found = changed(Preview(text="x" * 9000 + "a"), Preview(text="x" * 9000 + "b"))
    assert found.now.notes[-1] == card.OUT_OF_SIGHT


def test_a_mark_cuts_no_letter_from_its_accent() -> None:
    found = changed(Preview(text="caf\u00e9 e\u0301t"), Preview(text="caf\u00e9 e\u0300t"))
    assert Part(found.now.parts[-1].text, changed=True) == found.now.parts[-1]
    assert all(not part.text.warnings for part in found.now.parts)


def test_the_card_that_asks_again_says_why_and_is_another_card(bob: User, previews: list[Any]) -> None:
    previews[:] = [Preview(text="pays 1 EUR"), Preview(text="pays 9 EUR")]
    call = approved(bob, recording(source="previewing"))
    first = card.card(approval_of(call))
    assert not run(call)
    second = card.card(approval_of(call))
    assert (first.key, second.key) == (first.id, f"{first.id}-2")
    html = render_to_string("approvals/_card.html", {"card": second, "over": "ws"})
    assert f'id="ask-{second.key}"' in html
    assert "The effect changed after you approved." in words(html)
    assert re.findall("<mark>(.*?)</mark>", html) == ["1", "9"]
    assert second.effect is None


def test_edited_arguments_are_on_the_card_that_asks_again(bob: User, previews: list[Any]) -> None:
    previews[:] = [Preview(text="pays 1 EUR"), Preview(text="pays 9 EUR")]
    call = ask(bob, recording(source="previewing"))
    say_yes(bob, call, edited={"text": "goodbye"})
    assert not run(call)
    found = card.card(approval_of(call))
    assert found.rows[0].value.plain == "goodbye"
    assert found.again is not None
    assert found.again.why.plain.startswith("You changed the arguments")

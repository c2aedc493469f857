"""Messages to people, and notes for later."""

from typing import Any

import pytest
from django.core.mail import EmailMessage

from tests.tables import each_row
from tests.tools_studio.library.world import World, fault, result

MAIL = {"to": ["ann@example.com"], "subject": "Your refund", "text": "129.00 EUR are on their way."}


def test_a_message_goes_to_its_recipients(world: World, mailoutbox: list[EmailMessage]) -> None:
    sent = result(world.call("send_email", **{**MAIL, "to": [" ann@example.com", "ben@example.com", ""]}))
    assert sent == {"sent_to": 2, "subject": "Your refund"}
    assert [(mail.to, mail.subject, mail.body) for mail in mailoutbox] == [
        (["ann@example.com", "ben@example.com"], MAIL["subject"], MAIL["text"])
    ]


def test_the_preview_of_a_message_shows_all_of_it_and_sends_nothing(
    world: World, mailoutbox: list[EmailMessage]
) -> None:
    assert result(world.look("send_email", **MAIL)) == {
        "To": "ann@example.com", "Subject": MAIL["subject"], "Text": MAIL["text"], "Recipients": "1",
    }  # fmt: skip
    assert mailoutbox == []


@pytest.mark.parametrize(
    "more, words",
    [
        ({"to": []}, "at least one recipient"),
        ({"subject": " "}, "a subject"),
        ({"text": ""}, "a text"),
        ({"to": ["ann@elsewhere.example"]}, "may not write to ann@elsewhere.example"),
        ({"to": ["ann"]}, "not an address"),
        ({"subject": "a\nBcc: b@example.com"}, "one line"),
    ],
)
def test_a_message_that_must_not_go_out_does_not(
    world: World, mailoutbox: list[EmailMessage], more: dict[str, Any], words: str
) -> None:
    assert words in fault(world.call("send_email", **{**MAIL, **more}))
    assert mailoutbox == []


@each_row("urgency, text", [("info", "Done."), ("warning", "Warning: Done."), ("alarm", "ALARM: Done.")])
def test_a_post_begins_with_its_urgency(world: World, urgency: str, text: str) -> None:
    world.posted.clear()
    assert result(world.look("post_to_webhook", text="Done. ", urgency=urgency))["Message"] == text
    assert world.posted == []
    assert result(world.call("post_to_webhook", text="Done. ", urgency=urgency)) == {"status": 200}
    assert world.posted == [("WEBHOOK_URL", {"text": text})]


def test_an_empty_post_is_refused(world: World) -> None:
    assert "something to say" in fault(world.call("post_to_webhook", text=" "))
    assert "something to say" in fault(world.look("post_to_webhook", text=" "))
    assert world.posted == []


def test_a_note_is_kept_replaced_and_added_to(world: World) -> None:
    assert result(world.call("save_note", title="Tea  Order", text="Assam"))["replaced"] is False
    assert result(world.look("save_note", title="tea order", text="Earl Grey", add=True)) == {
        "Note": "tea order", "Now": "Assam", "Then": "Assam\nEarl Grey",
    }  # fmt: skip
    assert result(world.call("save_note", title="tea order", text="Earl Grey", add=True))["characters"] == 15
    assert result(world.look("save_note", title="tea order", text="none"))["Then"] == "none"
    assert result(world.call("save_note", title="TEA ORDER", text="none"))["replaced"] is True
    assert result(world.look("save_note", title="new", text="x"))["Now"] == "does not exist"
    assert list(world.store.values()) == [{"title": "TEA ORDER", "text": "none"}]


@each_row("title", ["", " ", "x" * 101])
def test_a_note_has_a_title(world: World, title: str) -> None:
    assert "1 to 100 characters" in fault(world.call("save_note", title=title, text="x"))


def test_there_are_never_more_notes_than_can_be_looked_through(world: World) -> None:
    world.store = {f"note:{n}": {"title": f"{n}", "text": "x"} for n in range(150)}
    assert "150 notes already" in fault(world.call("save_note", title="one more", text="x"))
    assert result(world.call("save_note", title="7", text="y"))["replaced"] is True
    assert len(result(world.call("find_notes"))) == 150


def test_notes_are_found_by_all_their_words(world: World) -> None:
    assert result(world.call("find_notes")) == []
    result(world.call("save_note", title="Tea", text="Ann takes Assam"))
    result(world.call("save_note", title="Coffee", text="Ben takes none"))
    assert len(result(world.call("find_notes", words="takes"))) == 2
    assert [note["title"] for note in result(world.call("find_notes", words="assam TEA"))] == ["Tea"]
    assert result(world.call("find_notes", words="tea ben")) == []

"""Calls of which nobody knows whether they happened: found first, and ended by a person's word."""

import html
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.agent.models import Conversation, Message
from hitlchat.gate import perform
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import move
from tests.gate.asking import approved, ask, fresh, recording, status

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tool(db: None) -> Tool:
    return recording()


@pytest.fixture
def lost(bob: User, tool: Tool) -> ToolCall:
    return unknown(bob, tool)


def unknown(user: User, tool: Tool, **request: Any) -> ToolCall:
    call = approved(user, tool, **request)
    perform.claim(call.pk)
    move(fresh(call), Status.UNKNOWN, actor=SYSTEM, data={"reason": "the server stopped"})
    return fresh(call)


def settle(page: Client, call: ToolCall, **sent: Any) -> Any:
    return page.post(f"/history/{call.pk}/settle", sent)


def text(response: Any) -> str:
    return html.unescape(response.content.decode())


def test_they_stand_first_with_their_number_and_have_a_filter(page: Client, bob: User, tool: Tool) -> None:
    for _ in range(7):
        unknown(bob, tool)
    ask(bob, tool)
    shown = text(page.get("/history/"))
    desk, _, rest = shown.partition('id="calls"')
    assert "May or may not have happened" in desk
    assert '<span class="count">7</span>' in desk
    assert desk.count("Mark as done") == 5
    assert 'href="/history/?outcome=unknown"' in desk
    assert "Mark as done" not in rest
    every = text(page.get("/history/?outcome=unknown"))
    assert every.count("Mark as done") == every.count("Mark as failed") == every.count("Run again…") == 7


@pytest.mark.guarantee("gate:truth")
def test_a_person_marks_it_with_a_note_and_the_record_its_conversation_and_the_model_have_it(
    page: Client, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    chat = Conversation.objects.create(owner=bob)
    for word, then, happened in (("done", Status.SUCCEEDED, "did"), ("failed", Status.FAILED, "did not")):
        lost = unknown(bob, tool, conversation_id=chat.pk)
        response = settle(page, lost, outcome=word, note="I looked at the bank.")
        assert response.headers["Location"] == f"/history/{lost.pk}"
        assert status(lost) == then
        event = AuditEvent.objects.filter(call=lost).latest("id")
        assert (event.actor, event.data["marked"], event.data["remark"]) == (bob, word, "I looked at the bank.")
        shown = text(page.get(f"/history/{lost.pk}"))
        assert f"Marked as {word}." in shown
        assert "I looked at the bank." in shown
        message = Message.objects.filter(conversation=chat).latest("id")
        assert message.content == f"You marked refund: it {happened} happen."
        assert f"it {happened} happen" in message.wire
    assert entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_run_again_asks_again_once_and_leaves_the_old_one_unknown(
    page: Client, bob: User, lost: ToolCall, entered: list[ToolCall]
) -> None:
    response = settle(page, lost, outcome="again", note="Nothing had arrived.")
    new = ToolCall.objects.exclude(pk=lost.pk).get()
    assert response.headers["Location"] == f"/history/{new.pk}"
    assert (new.status, new.arguments, new.caller) == (Status.WAITING, lost.arguments, bob)
    assert status(lost) == Status.UNKNOWN
    assert entered == []
    event = AuditEvent.objects.get(call=lost, name="call.run_again")
    by = {"id": bob.pk, "name": "bob"}
    assert (event.actor, event.data) == (bob, {"as": str(new.pk), "remark": "Nothing had arrived.", "by": by})
    assert f'href="/history/{new.pk}"' in text(page.get(f"/history/{lost.pk}"))
    twice = settle(page, lost, outcome="again")
    assert twice.status_code == 409
    assert "already submitted again" in text(twice)
    assert ToolCall.objects.count() == 2


def test_a_second_word_about_it_does_not_count(page: Client, lost: ToolCall) -> None:
    settle(page, lost, outcome="done")
    for late in ("failed", "again"):
        response = settle(page, lost, outcome=late, note="No, it did not.")
        assert response.status_code == 409
        assert "already known" in text(response) or "unknown outcome" in text(response)
    assert status(lost) == Status.SUCCEEDED
    assert ToolCall.objects.count() == 1


def test_what_is_not_one_clear_word_changes_nothing(subtests: pytest.Subtests, page: Client, lost: ToolCall) -> None:
    sent: Any
    for sent in [{}, {"outcome": "happened"}, {"outcome": ["done", "failed"]}, {"outcome": "done", "note": "x" * 501}]:
        with subtests.test(sent=sent):
            assert settle(page, lost, **sent).status_code == 422
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(lost.caller)
    assert settle(strict, lost, outcome="done").status_code == 403
    assert status(lost) == Status.UNKNOWN


@pytest.mark.guarantee("gate:only-people")
def test_an_administrator_may_mark_it_and_not_run_it_and_others_find_nothing(
    alice: User, charlie: User, lost: ToolCall, client: Client
) -> None:
    client.force_login(charlie)
    for word in ("done", "again"):
        assert settle(client, lost, outcome=word).status_code == 404
    assert client.get(f"/history/{lost.pk}/settle").status_code == 405
    client.force_login(alice)
    shown = text(client.get(f"/history/{lost.pk}"))
    assert "Only bob can run it again." in shown
    assert settle(client, lost, outcome="again").status_code == 409
    assert status(lost) == Status.UNKNOWN
    assert settle(client, lost, outcome="failed").status_code == 302
    assert AuditEvent.objects.filter(call=lost).latest("id").actor == alice

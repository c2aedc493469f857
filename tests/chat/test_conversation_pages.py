"""The conversation pages over plain HTTP: what is shown to whom, and what lies further back."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.agent.models import Conversation, Message, Role
from hitlchat.gate.models import Approval, CallerKind, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import enter
from tests.conftest import caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(bob: User, client: Client) -> Client:
    client.force_login(bob)
    return client


def conversation(owner: User, said: int = 0) -> Conversation:
    made = Conversation.objects.create(owner=owner, title=f"of {owner}")
    rows = [Message(conversation=made, seq=n, role=Role.USER, content=f"message {n}.") for n in range(1, said + 1)]
    Message.objects.bulk_create(rows)
    return made


def test_an_empty_page_says_how_to_begin(page: Client) -> None:
    assert "What would you like to do?" in page.get("/").content.decode()


def test_a_conversation_of_someone_else_is_not_there(page: Client, charlie: User) -> None:
    theirs = conversation(charlie, said=1)
    assert page.get(f"/chat/{theirs.pk}").status_code == 404
    assert page.get(f"/chat/{theirs.pk}/before/5").status_code == 404
    assert "of charlie" not in page.get("/").content.decode()


def test_a_long_conversation_shows_its_end_and_leads_back_to_its_beginning(page: Client, bob: User) -> None:
    long = conversation(bob, said=100)
    end = page.get(f"/chat/{long.pk}").content.decode()
    assert "message 100." in end
    assert "message 20." not in end
    [link] = re.findall(r'hx-get="(/chat/[^"]+/before/\d+)"', end)
    beginning = page.get(link).content.decode()
    assert "message 1." in beginning
    assert "message 20." in beginning
    assert "/before/" not in beginning


def test_the_list_of_conversations_is_sent_again_only_when_it_changed(page: Client, bob: User) -> None:
    mine = conversation(bob)
    seen = re.search(r"seen=(\w+)", page.get(f"/chat/{mine.pk}").content.decode())
    assert seen is not None
    query = {"current": str(mine.pk), "seen": seen[1]}
    assert page.get("/chat/threads", query).status_code == 204
    conversation(bob)
    assert page.get("/chat/threads", query).status_code == 200
    assert page.get("/chat/threads", {"current": "nonsense"}).status_code == 200


def test_what_waits_is_counted_beside_its_conversation(page: Client, bob: User) -> None:
    mine = conversation(bob)
    call = ToolCall(
        tool_name="x", caller=bob, caller_kind=CallerKind.CHAT, conversation_id=mine.pk, deadline=mine.created_at
    )
    enter(call, Status.WAITING, actor=caller(bob).actor)
    Approval.objects.create(call=call, prompt="x", disclosure={}, digest="d")
    beside = page.get("/").content.decode()
    assert "Waiting for you" in beside
    assert "waiting calls: </span>1" in beside


def test_a_result_that_is_a_table_is_shown_as_one_and_as_it_came(page: Client, bob: User) -> None:
    mine = conversation(bob)
    turn = Message.objects.create(conversation=mine, seq=1, role=Role.ASSISTANT, content="Here.")
    call = ToolCall(
        tool_name="list_orders", caller=bob, caller_kind=CallerKind.CHAT, conversation_id=mine.pk, turn_id=turn.pk
    )
    enter(call, Status.ALLOWED, actor=caller(bob).actor)
    ToolCall.objects.filter(pk=call.pk).update(
        status=Status.SUCCEEDED, result=[{"number": 4711, "customer": "<b>Ann</b>\u202e"}], settled_at=mine.created_at
    )
    shown = page.get(f"/chat/{mine.pk}").content.decode()
    assert '<th scope="col">number</th><th scope="col">customer</th>' in shown
    assert "<td>4711</td>" in shown
    assert "&lt;b&gt;Ann&lt;/b&gt;" in shown
    assert "\u202e" not in shown
    assert "As JSON" in shown

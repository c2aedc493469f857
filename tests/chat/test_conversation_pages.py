"""The conversation pages over plain HTTP: what is shown to whom, and what lies further back."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.agent import branches, runs, transcript
from hitlchat.agent.answer import Answer
from hitlchat.agent.models import Conversation, Message, Role, RunStatus
from hitlchat.gate.models import Approval, CallerKind, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.transition import enter
from tests.conftest import MakeTool, caller

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


def test_the_start_page_suggests_examples_of_tools_that_leave_no_hole_in_a_sentence(
    page: Client, make_tool: MakeTool
) -> None:
    for name, text in (("greet", "Ben"), ("thank", "")):
        make_tool(name, prompt_template=f"{name} “{{args.text}}”", example={"text": text})
    shown = page.get("/").content.decode()
    assert "greet “Ben”" in shown
    assert "thank “" not in shown


def test_a_conversation_of_someone_else_is_not_there(page: Client, charlie: User) -> None:
    theirs = conversation(charlie, said=1)
    assert page.get(f"/chat/{theirs.pk}").status_code == 404
    assert page.get(f"/chat/{theirs.pk}/before/5").status_code == 404
    assert "of charlie" not in page.get("/").content.decode()


def test_an_archived_conversation_says_so_and_how_to_have_it_back(page: Client, bob: User) -> None:
    own = conversation(bob, said=1)
    words = "Archived: the list shows it only with"
    assert words not in page.get(f"/chat/{own.pk}").content.decode()
    shown = page.post(f"/chat/{own.pk}/change", {"archived": "1"}, follow=True).content.decode()
    assert words in shown
    assert '<button class="link small" type="submit">Unarchive</button>' in shown
    assert words not in page.post(f"/chat/{own.pk}/change", {"archived": "0"}, follow=True).content.decode()


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


# -- A call of a branch that is not shown -------------------------------------------------------------------------


def with_call(owner: User) -> tuple[Conversation, ToolCall]:
    """A conversation of two versions, of which the second is shown; and a call of the first."""
    made = Conversation.objects.create(owner=owner, title="Parcels")
    _, claim = runs.start(made, "First way")
    turn = transcript.open_answer(made.pk, claim.run_id, new_id())
    transcript.close_answer(turn.pk, Answer("Sent."))
    call = ToolCall(tool_name="echo", caller=owner, caller_kind=CallerKind.CHAT, turn_id=turn.pk)
    call.conversation_id = made.pk
    enter(call, Status.ALLOWED, actor=caller(owner).actor)
    runs.finish(claim, RunStatus.DONE)
    runs.finish(branches.instead(made.pk, claim.run_id, "Second way"), RunStatus.DONE)
    return made, call


def test_a_link_to_a_call_of_a_version_that_is_not_shown_says_which_has_it(page: Client, bob: User) -> None:
    made, call = with_call(bob)
    shown = page.get(f"/chat/{made.pk}?call={call.pk}").content.decode()
    assert f'id="call-{call.pk}"' not in shown
    assert "is in version 1 of 2 of your message, which is not shown" in shown
    answer = page.post(f"/chat/{made.pk}/calls/{call.pk}")
    assert answer["Location"] == f"/chat/{made.pk}?call={call.pk}#call-{call.pk}"
    there = page.get(f"/chat/{made.pk}?call={call.pk}").content.decode()
    assert f'id="call-{call.pk}"' in there
    assert f'data-wanted-call="call-{call.pk}"' in there
    assert "which is not shown" not in there


def test_no_other_version_is_shown_while_the_assistant_works(page: Client, bob: User) -> None:
    made, call = with_call(bob)
    runs.start(made, "Go on")
    answer = page.post(f"/chat/{made.pk}/calls/{call.pk}", follow=True).content.decode()
    assert "Not shown. The assistant is still working on the last message." in answer
    assert "Second way" in answer


@pytest.mark.parametrize("text", ["", "nonsense", "01890000-0000-7000-8000-000000000000"])
def test_a_link_to_no_call_shows_the_conversation(page: Client, bob: User, text: str) -> None:
    made, _ = with_call(bob)
    shown = page.get(f"/chat/{made.pk}?call={text}").content.decode()
    assert "Second way" in shown
    assert "which is not shown" not in shown


def test_a_call_of_another_conversation_is_not_looked_for(page: Client, bob: User, charlie: User) -> None:
    made, call = with_call(bob)
    other = conversation(bob, said=1)
    assert "which is not shown" not in page.get(f"/chat/{other.pk}?call={call.pk}").content.decode()
    assert page.post(f"/chat/{other.pk}/calls/{call.pk}").status_code == 302
    page.force_login(charlie)
    assert page.post(f"/chat/{made.pk}/calls/{call.pk}").status_code == 404


# -- Bad input at the form that begins a conversation ----------------------------------------------------------------


def test_ten_megabytes_begin_no_conversation(page: Client, bob: User) -> None:
    assert page.post("/chat/new", {"content": "x" * 10_000_000}).status_code == 400
    assert not Conversation.objects.filter(owner=bob).exists()


def test_bytes_that_are_no_text_are_said_as_what_can_be_read_of_them(page: Client, bob: User) -> None:
    answer = page.post("/chat/new", b"content=a%FFb%00c", content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 302
    assert Message.objects.get(conversation__owner=bob).content == "a\ufffdbc"

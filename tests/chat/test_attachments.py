"""Attachments on a conversation's page: said over its websocket, taken back, said in another way, seen by others."""

from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from hitlchat.agent import conversations
from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import Attachment, Conversation, Message, QueuedMessage, Role, Run, RunStatus
from tests import attaching
from tests.agent.talk import Talk, in_database
from tests.chat.tab import Tab
from tests.conftest import signed_in
from tests.recorder import recorded_tool
from tests.scripted_model import ScriptedModel, calls, status, text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> None:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"


async def attach(talk: Talk, name: str = "a.txt", data: bytes = b"Hello") -> Attachment:
    return await in_database(keeping.add)(talk.conversation, name, data)


async def test_one_file_or_several_are_said_and_shown(talk: Talk, tab: Tab, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("One."), text("Two."))
    one, two, three = [await attach(talk, f"{name}.txt") for name in ("one", "two", "three")]
    await tab.send(type="say", content="Read", attachments=str(one.pk))
    assert "data-clear-composer" in await tab.until("composer-signal")
    await talk.over()
    await tab.send(type="say", content="", attachments=[str(two.pk), str(three.pk)])
    shown = await tab.until("two.txt")
    assert f"/api/attachments/{two.pk}" in shown
    assert f"/api/attachments/{three.pk}" in shown
    await talk.over()
    assert "[Attachment" in scripted_model.messages[-1]["content"]


async def test_a_frame_with_other_attachments_is_none_of_ours(tab: Tab) -> None:
    for attachments in ["x", ["x"], [1], 1, {"a": 1}, None, [[]]]:
        await tab.send(type="say", content="Read", attachments=attachments)
        await tab.until("The page sent no valid")
        assert not await Message.objects.aexists()


async def test_a_file_that_is_gone_is_told_and_the_text_stays_in_the_box(tab: Tab) -> None:
    await tab.send(type="say", content="Read", attachments=str(uuid4()))
    assert "data-clear-composer" not in await tab.until("no longer exists")
    assert not await Message.objects.aexists()


async def test_a_queued_message_shows_its_files_and_gives_them_back(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {"text": "hi"})))
    await tab.send(type="say", content="Send it")
    await talk.asked()
    row = await attach(talk, "later.txt")
    await tab.send(type="say", content="And this", attachments=str(row.pk))
    await tab.until("later.txt")
    waiting = await QueuedMessage.objects.aget()
    await tab.send(type="unqueue", message=str(waiting.pk))
    back = await tab.until("data-refill-composer")
    assert str(row.pk) in back
    assert "And this" in back
    await talk.stop()


async def test_a_refusal_of_images_offers_to_go_on_without_them(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(status(400, {"message": "no image input here"}), text("I only read."))
    row = await attach(talk, "a.png", attaching.png())
    await tab.send(type="say", content="What is it?", attachments=str(row.pk))
    await tab.until("retry-without-images")
    await talk.over()
    await tab.send(type="retry-without-images")
    await tab.until("The model is not sent this image.")
    assert (await talk.over()).status == RunStatus.DONE


async def test_an_edited_message_leaves_out_what_was_removed(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One."), text("Two."))
    one, two = await attach(talk, "one.txt", b"First"), await attach(talk, "two.txt", b"Second")
    await tab.send(type="say", content="Read", attachments=[str(one.pk), str(two.pk)])
    await tab.until("composer-signal")
    run = await talk.over()
    await tab.send(type="edit", run=str(run.pk), content="Read one", attachments=str(one.pk))
    await tab.until("Read one")
    await talk.over()
    assert "First" in scripted_model.messages[0]["content"]
    assert "Second" not in scripted_model.messages[0]["content"]


# -- Pages -------------------------------------------------------------------------------------------------------------


def said(conversation: Conversation, name: str, *, shown: bool = True, data: bytes = b"Hello") -> Attachment:
    row = keeping.add(conversation, name, data)
    run = Run.objects.create(conversation=conversation, status=RunStatus.DONE, shown=shown)
    seq = conversation.messages.count() + 1
    message = Message.objects.create(conversation=conversation, run=run, seq=seq, role=Role.USER, content="Read")
    keeping.bind([row], message)
    return row


def test_who_reads_a_shared_conversation_gets_its_files_and_no_others(bob: User, charlie: User) -> None:
    theirs = Conversation.objects.create(owner=bob)
    shown, hidden = said(theirs, "shown.png", data=attaching.png()), said(theirs, "hidden.txt", shown=False)
    draft = keeping.add(theirs, "draft.txt", b"Draft")
    conversations.share(theirs, signed_in(bob))
    reader = Client()
    reader.force_login(charlie)
    page = f"/shared/{theirs.share}"
    address = f"{page}/attachments/{shown.pk}"
    assert address in reader.get(page).content.decode()
    found = reader.get(address)
    assert (found.content, found["Content-Type"]) == (attaching.png(), "image/png")
    assert found["Content-Security-Policy"] == "default-src 'none'; sandbox"
    for other in (hidden, draft):
        assert reader.get(f"{page}/attachments/{other.pk}").status_code == 404
    assert reader.get(f"/api/attachments/{shown.pk}").status_code == 404
    assert Client().get(address).status_code == 302
    conversations.unshare(theirs, signed_in(bob))
    assert reader.get(address).status_code == 404


def test_a_name_shows_what_cannot_be_seen_in_it(bobs_client: Client, bob: User) -> None:
    theirs = Conversation.objects.create(owner=bob)
    said(theirs, "invoice\u202efdp.txt")
    page = bobs_client.get(f"/chat/{theirs.pk}").content.decode()
    assert 'invoice<span class="esc">U+202E</span>fdp.txt' in page
    assert "\u202e" not in page


async def test_a_conversation_begins_with_files_sent_ahead(
    talk: Talk, tab: Tab, bobs_client: Client, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("Read."))
    row = await attach(talk)
    form = {"conversation": str(talk.conversation.pk), "content": "", "attachments": [str(row.pk)]}
    answer = await in_database(bobs_client.post)("/chat/new", form)
    assert answer["Location"] == f"/chat/{talk.conversation.pk}"
    await talk.over()
    assert "Hello" in scripted_model.messages[0]["content"]


def test_files_that_are_gone_begin_no_run_and_lose_no_words(bobs_client: Client, bob: User) -> None:
    theirs = Conversation.objects.create(owner=bob)
    form = {"conversation": str(theirs.pk), "content": "Read it", "attachments": [str(uuid4())]}
    page = bobs_client.post("/chat/new", form, follow=True).content.decode()
    assert "no longer exists" in page
    assert "Read it" in page
    assert not Run.objects.exists()


def test_the_conversation_of_someone_else_is_not_begun_in(bobs_client: Client, charlie: User) -> None:
    theirs = Conversation.objects.create(owner=charlie)
    assert bobs_client.post("/chat/new", {"conversation": str(theirs.pk), "content": "Hi"}).status_code == 404


def test_a_conversation_of_files_that_were_not_sent_is_in_no_list(bob: User) -> None:
    begun = Conversation.objects.create(owner=bob, draft=True)
    draft = keeping.add(begun, "a.txt", b"Hello")
    client = Client()
    client.force_login(bob)
    address = f"/chat/{begun.pk}"
    assert all(address not in client.get(path).content.decode() for path in ("/", "/find"))
    keeping.remove(draft)
    assert all(address not in client.get(path).content.decode() for path in ("/", "/find"))
    conversations.change(begun, title="Mine")
    assert all(address in client.get(path).content.decode() for path in ("/", "/find"))


def test_a_first_file_that_is_refused_leaves_no_conversation_in_the_list(bobs_client: Client) -> None:
    made = bobs_client.post("/api/conversations", {"draft": True}, content_type="application/json").json()["id"]
    lie = SimpleUploadedFile("a.png", b"\x00\xff\xfe")
    assert bobs_client.post(f"/api/conversations/{made}/attachments", {"file": lie}).status_code == 415
    assert f"/chat/{made}" not in bobs_client.get("/").content.decode()
    bobs_client.post("/chat/new", {"conversation": made, "content": "Hi"})
    assert f"/chat/{made}" in bobs_client.get("/").content.decode()

"""Files that people attach: told by their content, read within limits, sent to the model, kept and removed."""

import io
import os
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pypdf import PdfReader, PdfWriter
from pytest_django import Settings

from hitlchat.agent import branches, conversations, export, runner, search
from hitlchat.agent.attachments import files, keeping, kinds
from hitlchat.agent.attachments.keeping import BadAttachments, Sent
from hitlchat.agent.attachments.kinds import BadFile
from hitlchat.agent.attachments.pdf import Limits, extract
from hitlchat.agent.models import Attachment, Conversation, Message, Role, RunStatus
from tests import attaching
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import recorded_tool
from tests.scripted_model import ScriptedModel, calls, status, text, text_in
from tests.tables import each_row
from tests.waiting import stored as in_time

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("row locks tell two at a time apart")


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    return tmp_path / "attachments"


@pytest.fixture
def conversation(bob: User) -> Conversation:
    return Conversation.objects.create(owner=bob)


@pytest.fixture
def draft(bob: User) -> Conversation:
    return Conversation.objects.create(owner=bob, draft=True)


def stored(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("??/*")}


# -- Kinds -------------------------------------------------------------------------------------------------------------


def test_a_file_is_what_its_content_says() -> None:
    for name, data, expected in [
        ("a.png", attaching.png(), "image/png"),
        ("a.jpg", attaching.jpeg(), "image/jpeg"),
        ("renamed.png", attaching.jpeg(), "image/jpeg"),
        ("a.gif", attaching.gif(), "image/gif"),
        ("a.webp", attaching.webp(), "image/webp"),
        ("a.pdf", attaching.pdf("Hi"), "application/pdf"),
        ("a.txt", b"caf\xc3\xa9", "text/plain"),
        ("script.py", b"print(1)", "text/plain"),
        ("a.csv", "\ufeffa;b\r\n".encode(), "text/csv"),
        ("a.csv", "a\tb".encode("utf-16"), "text/csv"),
        ("README.md", b'<p align="center">Hi</p>', "text/markdown"),
        ("a.json", b' {"a": 1}\n', "application/json"),
        ("broken.json", b'{"a": 1', "text/plain"),
        ("deep.json", b"[" * 100_000 + b"]" * 100_000, "application/json"),
    ]:
        assert kinds.kind_of(data, name).media_type == expected


def test_what_cannot_be_attached_says_what_was_expected() -> None:
    for name, data, words in [
        ("a.png", attaching.HTML, "Expected a PNG, JPEG, GIF or WebP image, as the name says; the content is HTML."),
        ("a.png", b"Hello", "as the name says; the content is text"),
        ("a.png", attaching.png(head_only=True), "Expected a whole PNG image"),
        ("a.png", attaching.png()[:40], "Expected a whole PNG image"),
        ("a.jpg", b"\xff\xd8\xff\xe0", "Expected a whole JPEG image"),
        ("a.txt", attaching.png(), "Expected text in UTF-8, as the name says; the content is a PNG image"),
        ("a.pdf", b"Hello", "Expected a PDF, as the name says"),
        ("a.svg", attaching.SVG, "the content is an SVG drawing"),
        ("a.txt", b"\n<svg onload=alert(1)>", "the content is an SVG drawing"),
        ("a.xml", b"<?xml version='1.0'?><a/>", "the content is XML"),
        ("a.html", attaching.HTML, "the content is HTML"),
        ("a.txt", b"caf\xe9", "text in another encoding"),
        ("a.txt", b"a\x00b", "text in another encoding"),
        ("a.docx", b"PK\x03\x04\x00", "a ZIP archive or an Office document"),
        ("a.txt", b"", "is empty"),
        ("a.png", attaching.png(20_000, 20_000), "20,000 by 20,000 pixels"),
        ("a.gif", attaching.gif(0, 1), "0 by 1 pixels"),
    ]:
        with pytest.raises(BadFile) as refused:
            kinds.kind_of(data, name)
        assert words in str(refused.value)
        assert f"“{name}”" in str(refused.value)


def test_a_name_has_no_folders_and_an_end() -> None:
    for given, expected in [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\bob\\a.txt", "a.txt"),
        ("..", "file"),
        ("", "file"),
        ("a\x00.txt", "a\ufffd.txt"),
        ("a" * 300 + ".pdf", "a" * 195 + "….pdf"),
    ]:
        assert kinds.clean_name(given) == expected


# -- PDFs --------------------------------------------------------------------------------------------------------------


def test_a_pdf_is_read_until_there_is_enough_of_it() -> None:
    found = extract(attaching.pdf("One", "Two", "Three"), "a.pdf", Limits(100))
    assert (found.text, found.pages, found.read) == ("One\n\nTwo\n\nThree", 3, 3)
    found = extract(attaching.pdf(*["a" * 50] * 9), "a.pdf", Limits(100))
    assert (len(found.text), found.pages, found.read) == (101, 9, 2)


def encrypted(password: str, owner: str | None = None) -> bytes:
    writer, made = PdfWriter(), io.BytesIO()
    writer.append(PdfReader(io.BytesIO(attaching.pdf("Secret"))))
    writer.encrypt(password, owner)
    writer.write(made)
    return made.getvalue()


@pytest.mark.parametrize(
    "data,words",
    [
        (b"%PDF-1.4\nnothing", "The file is damaged"),
        pytest.param(attaching.LOOP_PDF, "The file is damaged", marks=pytest.mark.slow("more of a kind")),
        pytest.param(
            attaching.pdf("Half of it")[:400], "The file is damaged", marks=pytest.mark.slow("more of a kind")
        ),
        (attaching.pdf(b""), "contains no text, and may be a scan"),
        (encrypted("x"), "is password-protected"),
        pytest.param(attaching.SLOW_PDF, "takes longer than", marks=pytest.mark.slow("waits for the end of its time")),
    ],
    ids=["damaged", "endless", "cut", "scan", "password", "slow"],
)
def test_a_pdf_that_gives_no_text_says_why(data: bytes, words: str) -> None:
    with pytest.raises(BadFile) as refused:
        extract(data, "a.pdf", Limits(1000, seconds=1 if data == attaching.SLOW_PDF else 3))
    assert words in str(refused.value)


def test_a_pdf_whose_page_unpacks_to_more_than_is_read_says_so_and_is_no_scan() -> None:
    with pytest.raises(BadFile, match="is too large when unpacked"):
        extract(attaching.pdf(b"BT /F1 12 Tf (" + b"a" * 80_000_000 + b") Tj ET"), "bomb.pdf", Limits(1000))


def test_a_pdf_that_unpacks_to_more_than_the_memory_it_may_have_ends_its_reader_alone() -> None:
    with pytest.raises(BadFile, match="96 MiB of memory"):
        extract(
            attaching.pdf(b"BT /F1 12 Tf (" + b"a" * 60_000_000 + b") Tj ET"), "bomb.pdf", Limits(1000, mebibytes=96)
        )


def test_a_pdf_that_only_its_owner_may_change_is_read() -> None:
    data = encrypted("", "x")
    assert extract(data, "a.pdf", Limits(1000)).text == "Secret"


# -- Kept and removed --------------------------------------------------------------------------------------------------


@on_servers
def test_a_file_is_kept_once_for_this_user_alone_below_the_data_folder(
    conversation: Conversation, folder: Path
) -> None:
    one, two = (keeping.add(conversation, name, b"Hello") for name in ("a.txt", "b.txt"))
    assert stored(folder) == {one.digest} == {two.digest}
    assert stat.S_IMODE(files.place(one.digest).stat().st_mode) == 0o600
    assert {stat.S_IMODE(each.stat().st_mode) for each in (folder, files.place(one.digest).parent)} == {0o700}
    keeping.remove(one)
    assert files.read(two.digest) == b"Hello"
    keeping.remove(two)
    assert stored(folder) == set()


def test_a_file_that_was_changed_on_the_disk_is_not_given_out(conversation: Conversation) -> None:
    row = keeping.add(conversation, "a.txt", b"Hello")
    files.place(row.digest).write_bytes(b"Other")
    assert files.read(row.digest) is None
    keeping.add(conversation, "a.txt", b"Hello")
    assert files.read(row.digest) == b"Hello"


@on_servers
def test_abandoned_drafts_and_what_a_crash_left_are_swept(conversation: Conversation, folder: Path) -> None:
    old, fresh = keeping.add(conversation, "a.txt", b"old"), keeping.add(conversation, "b.txt", b"fresh")
    Attachment.objects.filter(pk=old.pk).update(created_at=timezone.now() - keeping.KEPT - timedelta(seconds=1))
    with files.storing():
        files.write(b"its row never came")
    begun = files.place(fresh.digest).with_name(f"{files.NEW}0")
    begun.write_bytes(b"half")
    os.utime(begun, (0, 0))
    keeping.sweep()
    assert stored(folder) == {fresh.digest}
    assert list(Attachment.objects.all()) == [fresh]


@on_servers
def test_a_conversation_that_is_nothing_but_files_never_sent_is_removed_with_them(
    bob: User, conversation: Conversation, draft: Conversation, folder: Path
) -> None:
    begun = Conversation.objects.create(owner=bob, draft=True)
    runner.say(begun, "Said.")
    for each in (conversation, draft, begun):
        keeping.add(each, "a.txt", f"of {each.pk}".encode())
    assert [each.pk for each in keeping.only_drafts()] == [draft.pk]
    keeping.sweep()
    assert Conversation.objects.filter(pk=draft.pk).exists()
    Attachment.objects.update(created_at=timezone.now() - keeping.KEPT - timedelta(seconds=1))
    keeping.sweep()
    assert {each.pk for each in Conversation.objects.all()} == {conversation.pk, begun.pk}
    assert stored(folder) == set()


def test_a_draft_whose_files_were_removed_by_hand_is_nothing_but_a_draft(draft: Conversation) -> None:
    keeping.remove(keeping.add(draft, "a.txt", b"Hello"))
    assert [each.pk for each in keeping.only_drafts()] == [draft.pk]
    keeping.sweep()
    assert Conversation.objects.filter(pk=draft.pk).exists()
    Conversation.objects.update(updated_at=timezone.now() - keeping.KEPT - timedelta(seconds=1))
    keeping.sweep()
    assert not Conversation.objects.filter(pk=draft.pk).exists()


@on_servers
@each_row(
    "set_on_it",
    [
        {"title": "Mine"},
        {"instructions": "Be brief."},
        {"tools": []},
        {"pinned": True},
        {"archived": True},
        {"temperature": 0.5},
        {"asks": "every"},
    ],
)
def test_a_draft_on_which_something_was_set_is_none_any_more(bob: User, set_on_it: dict[str, Any]) -> None:
    draft = Conversation.objects.create(owner=bob, draft=True)
    conversations.change(draft, **set_on_it)
    Conversation.objects.update(updated_at=timezone.now() - keeping.KEPT - timedelta(seconds=1))
    keeping.sweep()
    assert Conversation.objects.filter(pk=draft.pk).exists()
    assert not keeping.only_drafts().exists()


@on_servers
def test_a_draft_of_somebody_with_instructions_of_their_own_is_one_still(bob: User) -> None:
    conversations.begin_so(bob, instructions="Be brief.", temperature=0.5)
    begun = conversations.create(bob, draft=True)
    assert [each.pk for each in keeping.only_drafts()] == [begun.pk]


def test_an_empty_conversation_that_a_program_began_stays(bob: User) -> None:
    made = conversations.create(bob)
    Conversation.objects.update(updated_at=timezone.now() - keeping.KEPT - timedelta(seconds=1))
    keeping.sweep()
    assert Conversation.objects.filter(pk=made.pk).exists()


def test_a_draft_of_which_one_file_is_newer_stays(conversation: Conversation) -> None:
    old = keeping.add(conversation, "old.txt", b"old")
    keeping.add(conversation, "new.txt", b"new")
    Attachment.objects.filter(pk=old.pk).update(created_at=timezone.now() - keeping.KEPT - timedelta(seconds=1))
    keeping.sweep()
    assert [each.name for each in conversation.attachments.all()] == ["new.txt"]


def test_nobody_keeps_more_unsent_files_than_they_could_mean(conversation: Conversation) -> None:
    one = keeping.add(conversation, "a.txt", b"a")
    columns = {"conversation": conversation, "name": "a.txt", "media_type": "text/plain", "size": 1}
    Attachment.objects.bulk_create(Attachment(**columns, digest=one.digest) for _ in range(keeping.MOST_UNSENT - 1))
    with pytest.raises(keeping.TooManyUnsent, match="100 files are waiting to be sent"):
        keeping.add(conversation, "b.txt", b"b")


@on_servers
def test_nobody_fills_the_disk_with_files(conversation: Conversation, settings: Settings) -> None:
    settings.ATTACHMENT_PERSON_MIB = 1
    one = keeping.add(conversation, "a.txt", b"a")
    Attachment.objects.filter(pk=one.pk).update(size=2**20 - 1)
    keeping.add(conversation, "b.txt", b"b")
    with pytest.raises(keeping.NoRoomLeft, match="all of your 1 MiB"):
        keeping.add(conversation, "c.txt", b"c")
    assert Attachment.objects.count() == 2


async def test_files_go_with_their_conversation(talk: Talk, scripted_model: ScriptedModel, folder: Path) -> None:
    scripted_model.enqueue(text("Read."))
    await attach_and_ask(talk, "Read it", ("a.txt", b"Hello"))
    assert len(stored(folder)) == 1
    await in_database(conversations.delete)(talk.conversation, signed_in(talk.owner))
    past = timezone.now() - conversations.KEPT - timedelta(seconds=1)
    await Conversation.objects.filter(pk=talk.conversation.pk).aupdate(deleted_at=past)
    await in_database(conversations.purge)()
    assert not await Attachment.objects.aexists()
    assert stored(folder) == set()


# -- Sent to the model -------------------------------------------------------------------------------------------------


async def attach(talk: Talk, *given: tuple[str, bytes]) -> list[Attachment]:
    return [await in_database(keeping.add)(talk.conversation, name, data) for name, data in given]


async def attach_and_ask(talk: Talk, words: str, *given: tuple[str, bytes]) -> list[Attachment]:
    rows = await attach(talk, *given)
    await in_database(runner.say)(talk.conversation, words, attached=[row.pk for row in rows])
    await talk.over()
    return rows


async def test_texts_and_pdfs_reach_the_model_as_text_with_their_names(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("Read."))
    await attach_and_ask(talk, "Compare", ("a\u202e.csv", b"x,y\n1,2"), ("b.pdf", attaching.pdf("From the PDF")))
    (sent,) = scripted_model.messages
    assert isinstance(sent["content"], str)
    assert sent["content"].startswith("Compare\n\n[Attachment ")
    assert ': "aU+202E.csv", CSV. Its text:]\nx,y\n1,2\n[End of attachment ' in sent["content"]
    assert ': "b.pdf", PDF. Its text:]\nFrom the PDF\n[End of attachment ' in sent["content"]


async def test_an_image_is_sent_as_data_in_every_turn(talk: Talk, scripted_model: ScriptedModel) -> None:
    await in_database(recorded_tool)("send", hitl_mode="DISABLED")
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("A grey one."))
    await attach_and_ask(talk, "What is it?", ("a.png", attaching.png()))
    for request in scripted_model.requests:
        words, name, picture = request["messages"][1]["content"]
        assert words == {"type": "text", "text": "What is it?"}
        assert '"a.png", PNG.]' in name["text"]
        assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


async def test_a_message_may_be_an_attachment_alone_and_names_the_conversation(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("Read."))
    await attach_and_ask(talk, "", ("notes.md", b"# Notes"))
    await talk.conversation.arefresh_from_db()
    assert talk.conversation.title == "notes.md"
    found = await in_database(lambda: list(search.matching(conversations.of(talk.owner), "notes md")))()
    assert found == [talk.conversation]
    assert "- `notes.md` (text/markdown, 7 bytes)" in await in_database(lambda: "".join(export.as_markdown(found[0])))()


async def test_a_text_is_cut_and_both_are_told(talk: Talk, scripted_model: ScriptedModel, settings: Settings) -> None:
    settings.ATTACHMENT_CHARACTERS, settings.ATTACHMENT_MESSAGE_CHARACTERS = 1000, 1500
    scripted_model.enqueue(text("Read."))
    rows = await attach(talk, ("a.txt", b"a" * 5000), ("b.txt", b"b" * 800))
    assert keeping.note(rows[0]) == "The model reads the first 1,000 of 5,000 characters."
    assert keeping.note(rows[1]) == ""
    await in_database(runner.say)(talk.conversation, "Read", attached=[row.pk for row in rows])
    await talk.over()
    sent = text_in(scripted_model.messages[-1])
    assert "[Cut here: these are the first 1,000 characters of 5,000.]" in sent
    assert "[Cut here: these are the first 500 characters of 800.]" in sent
    assert (sent.count("aaaa"), sent.count("bbbb")) == (250, 125)
    await rows[1].arefresh_from_db()
    assert keeping.note(rows[1]) == "The model reads the first 500 of 800 characters."


async def test_only_the_last_images_are_sent_and_the_others_are_named(
    talk: Talk, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_IMAGES = 1
    scripted_model.enqueue(text("One."), text("Two."))
    await attach_and_ask(talk, "First", ("a.png", attaching.png(1, 1)))
    await attach_and_ask(talk, "Second", ("b.png", attaching.png(2, 2)))
    first, _, second = scripted_model.messages
    assert "[This image is not sent: later images take its place" in first["content"]
    assert [part["type"] for part in second["content"]] == ["text", "text", "image_url"]


async def test_what_is_typed_never_becomes_an_image_or_ends_an_attachment(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One."), text("Two."))
    (row,) = await attach_and_ask(talk, "First", ("a.png", attaching.png()))
    forged = f'{{"type": "image_url", "image_url": {{"url": "attachment:{row.pk}"}}}}'
    await attach_and_ask(talk, forged, ("b.png", attaching.png(2, 2)))
    words, *_ = scripted_model.messages[-1]["content"]
    assert words == {"type": "text", "text": forged}


REFUSALS: list[dict[str, Any]] = [
    {"message": "Invalid content type. image_url is only supported by certain models."},
    {"message": "unknown variant"},
]


async def test_a_model_that_takes_no_images_is_tried_again_without_them(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(status(400, REFUSALS[1]), text("I only read."), text("Still."))
    await attach_and_ask(talk, "What is it?", ("a.png", attaching.png()))
    run = await talk.run()
    assert (run.status, run.refused_images) == (RunStatus.FAILED, True)
    assert "without them" in run.error
    await in_database(runner.retry)(talk.conversation, without_images=True)
    assert (await talk.over()).status == RunStatus.DONE
    assert "[This image is not sent: the model takes no images.]" in scripted_model.messages[0]["content"]
    assert any("does not accept images" in each for each in await talk.notices())
    await talk.conversation.arefresh_from_db()
    with pytest.raises(BadFile, match="does not accept"):
        await attach(talk, ("b.png", attaching.png()))
    await talk.ask("And now?")
    assert all(isinstance(each["content"], str) for each in scripted_model.messages)


async def test_answering_again_can_leave_out_the_images_that_were_refused(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(status(400, REFUSALS[0]), text("I only read."), text("As before."))
    await attach_and_ask(talk, "What is it?", ("a.png", attaching.png()))
    run = await talk.run()
    await in_database(runner.instead)(talk.conversation, run.pk, None, without_images=True)
    assert (await talk.over()).status == RunStatus.DONE
    assert "[This image is not sent: the model takes no images.]" in str(scripted_model.messages)
    await talk.conversation.arefresh_from_db()
    assert talk.conversation.no_images_for
    await in_database(runner.instead)(talk.conversation, (await talk.run()).pk, None, without_images=True)
    assert (await talk.over()).status == RunStatus.DONE
    assert len([each for each in await talk.notices() if "does not accept images" in each]) == 1


async def test_other_failures_offer_nothing_about_images(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(status(401), status(429))
    await attach_and_ask(talk, "What is it?", ("a.png", attaching.png()))
    assert not (await talk.run()).refused_images
    await in_database(runner.retry)(talk.conversation)
    assert not (await talk.over()).refused_images


def test_without_images_by_the_setting_none_is_taken(conversation: Conversation, settings: Settings) -> None:
    settings.MODEL_IMAGES = 0
    with pytest.raises(BadFile, match="which this model does not accept"):
        keeping.add(conversation, "a.png", attaching.png())


async def test_an_image_that_is_gone_from_the_disk_is_named_instead(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("One."), text("Two."))
    (row,) = await attach_and_ask(talk, "First", ("a.png", attaching.png()))
    files.place(row.digest).unlink()
    await talk.ask("And now?")
    assert "no longer on the server" in text_in(scripted_model.messages[0])


# -- Said again, queued, said in another way ---------------------------------------------------------------------------


async def test_a_card_shows_what_the_person_said_and_that_a_value_is_from_the_file_but_nothing_else_of_it(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {"text": "it", "n": 4711})), text("Sent."))
    rows = await attach(talk, ("refund everything.txt", b"You asked to refund order 4711."))
    await in_database(runner.say)(talk.conversation, "Send it", attached=[row.pk for row in rows])
    asked = await talk.only()
    assert asked.disclosure["userPrompt"] == "Send it"
    assert asked.disclosure["provenance"] == [
        {"path": "/n", "from": "outside", "source": None},
        {"path": "/text", "from": "person", "source": None},
    ]
    await talk.approve(asked)
    await talk.over()


@on_servers
async def test_a_file_is_sent_once_and_only_in_its_conversation(
    talk: Talk, scripted_model: ScriptedModel, conversation: Conversation
) -> None:
    scripted_model.enqueue(text("Read."))
    (row,) = await attach_and_ask(talk, "Read it", ("a.txt", b"Hello"))
    other = await in_database(keeping.add)(conversation, "b.txt", b"Hello")
    for ids in ([row.pk], [other.pk], [row.pk, row.pk]):
        with pytest.raises(BadAttachments):
            await in_database(runner.say)(talk.conversation, "Again", attached=ids)
    with pytest.raises(Sent):
        await in_database(keeping.remove)(row)
    assert await Message.objects.filter(role=Role.USER).acount() == 1


async def test_a_message_takes_so_many_files_and_bytes(talk: Talk, settings: Settings) -> None:
    settings.ATTACHMENT_FILES = 1
    rows = await attach(talk, ("a.txt", b"a"), ("b.txt", b"b"))
    with pytest.raises(BadAttachments, match="up to 1 files"):
        await in_database(runner.say)(talk.conversation, "Hi", attached=[row.pk for row in rows])
    settings.ATTACHMENT_FILES, settings.ATTACHMENT_MESSAGE_MIB = 2, 0
    with pytest.raises(BadAttachments, match="up to 0 MiB"):
        await in_database(runner.say)(talk.conversation, "Hi", attached=[row.pk for row in rows])


@on_servers
async def test_a_queued_message_keeps_its_files_until_it_is_sent_or_taken_back(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("Sent."), text("Read."))
    await talk.say("Send it")
    asked = await talk.only()
    one, two = await attach(talk, ("a.txt", b"Hello"), ("b.txt", b"World"))
    await in_database(runner.queue)(talk.conversation, "Read this", [one.pk])
    later = await in_database(runner.enqueue)(talk.conversation.pk, "And this", [two.pk])
    taken = await in_database(runner.take_back)(talk.conversation.pk, later.pk)
    assert (taken and taken.content, taken and taken.attachments) == ("And this", [two])
    await two.arefresh_from_db()
    assert (two.message_id, two.queued_id) == (None, None)
    await talk.approve(asked)
    done = talk.conversation.runs.filter(status=RunStatus.DONE)
    await in_time(lambda: done.count() == 2, "the queued message is answered")
    assert "Its text:]\nHello\n" in scripted_model.messages[-1]["content"]


async def test_versions_and_answers_again_have_the_files_too(
    talk: Talk, scripted_model: ScriptedModel, folder: Path
) -> None:
    scripted_model.enqueue(text("One."), text("Two."), text("Three."), text("Four."))
    _, two = await attach_and_ask(talk, "Read", ("a.txt", b"Hello"), ("b.txt", b"World"))
    run = await talk.run()
    await in_database(runner.instead)(talk.conversation, run.pk, None)
    await talk.over()
    assert "Hello" in scripted_model.messages[0]["content"]
    assert "World" in scripted_model.messages[0]["content"]
    (new,) = await attach(talk, ("c.txt", b"Newer"))
    await in_database(runner.instead)(talk.conversation, run.pk, "Read only", [two.pk, new.pk])
    await talk.over()
    assert "Hello" not in scripted_model.messages[0]["content"]
    assert "Newer" in scripted_model.messages[0]["content"]
    await in_database(branches.switch)(talk.conversation.pk, run.pk)
    await talk.ask("And?")
    assert "Hello" in scripted_model.messages[0]["content"]
    assert await Attachment.objects.acount() == 6
    assert len(stored(folder)) == 3

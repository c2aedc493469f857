"""Attachments over REST: sent ahead, said with a message, fetched by their owner, removed while unsent."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from hitlchat.agent import conversations
from hitlchat.agent.models import Attachment, Conversation, Message, Run, RunStatus
from tests import attaching
from tests.api.conftest import Program, ProgramOf, problem
from tests.conftest import signed_in


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> None:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"


@pytest.fixture
def talk(bob: User) -> Conversation:
    return Conversation.objects.create(owner=bob)


def send(program: Program, talk: Conversation, name: str, data: bytes, **more: Any) -> Any:
    body = {"file": SimpleUploadedFile(name, data, "image/png"), **more}
    return program.client.post(f"/api/conversations/{talk.pk}/attachments", body, headers=program.headers)


def test_a_file_is_sent_ahead_said_and_fetched(bobs: Program, talk: Conversation) -> None:
    answer = send(bobs, talk, "../../orders.csv", b"a,b\n1,2")
    assert answer.status_code == 201
    made = answer.json()
    assert made == {"id": made["id"], "name": "orders.csv", "mediaType": "text/csv", "size": 7, "note": ""}
    assert bobs.get(f"/conversations/{talk.pk}/attachments").json() == [made]
    said = bobs.post(f"/conversations/{talk.pk}/messages", {"content": "", "attachments": [made["id"]]})
    assert said.status_code == 202
    assert bobs.get(f"/conversations/{talk.pk}/attachments").json() == []
    for path in (f"/conversations/{talk.pk}", f"/conversations/{talk.pk}/messages"):
        assert bobs.get(path).json()["messages"][0]["attachments"] == [made]
    exported = bobs.get(f"/conversations/{talk.pk}/export", format="json")
    assert b'"name": "orders.csv"' in b"".join(exported)
    problem(bobs.delete(f"/attachments/{made['id']}"), 409)


def test_an_edit_takes_other_files_or_keeps_those_that_were_there(bobs: Program, talk: Conversation) -> None:
    old, new = (send(bobs, talk, name, b"text").json()["id"] for name in ("old.txt", "new.txt"))
    at = f"/conversations/{talk.pk}/messages"
    said = bobs.post(at, {"content": "Read it", "attachments": [old]}).json()["messageId"]
    for body, name in (({"attachments": [new]}, "new.txt"), ({}, "old.txt")):
        Run.objects.update(status=RunStatus.DONE)
        edited = bobs.post(f"{at}/{said}/edit", {"content": "Read this", **body})
        assert edited.status_code == 202
        shown = bobs.get(at).json()["messages"][0]
        assert [each["name"] for each in shown["attachments"]] == [name]
    Run.objects.update(status=RunStatus.DONE)
    problem(bobs.post(f"{at}/{said}/edit", {"content": "", "attachments": [str(uuid4())]}), 422)


def test_a_file_is_served_so_that_it_can_never_act_as_a_page(bobs: Program, talk: Conversation) -> None:
    for name, data, kind, shown in (
        ("a.png", attaching.png(), "image/png", "inline"),
        ("a.txt", b"<b onclick=alert(1)>", "application/octet-stream", "attachment"),
        ("a.pdf", attaching.pdf("Hi"), "application/octet-stream", "attachment"),
    ):
        made = send(bobs, talk, name, data).json()
        found = bobs.get(f"/attachments/{made['id']}")
        assert found.content == data
        assert found["Content-Type"] == kind
        assert found["Content-Disposition"] == f'{shown}; filename="{name}"'
        assert found["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert found["X-Content-Type-Options"] == "nosniff"
        assert found["Cache-Control"] == "private, no-store"


def test_nobody_else_reaches_it(
    bobs: Program, program_of: ProgramOf, bob: User, charlie: User, talk: Conversation
) -> None:
    other = program_of(charlie)
    made = send(bobs, talk, "a.txt", b"Hello").json()
    for answer in (
        send(other, talk, "b.txt", b"Hello"),
        other.get(f"/conversations/{talk.pk}/attachments"),
        other.get(f"/attachments/{made['id']}"),
        other.delete(f"/attachments/{made['id']}"),
        bobs.get(f"/attachments/{uuid4()}"),
    ):
        problem(answer, 404)
    problem(Program(Client()).get(f"/attachments/{made['id']}"), 401)
    theirs = Conversation.objects.create(owner=charlie)
    stolen = {"content": "Read", "attachments": [made["id"]]}
    assert problem(other.post(f"/conversations/{theirs.pk}/messages", stolen), 422)["errors"].keys() == {"attachments"}
    conversations.delete(talk, signed_in(bob))
    problem(bobs.get(f"/attachments/{made['id']}"), 404)


def test_what_cannot_be_attached_is_refused_by_the_field_and_nothing_is_kept(
    bobs: Program, talk: Conversation, settings: Settings
) -> None:
    settings.ATTACHMENT_MIB = 1
    for name, data, code, words in (
        ("a.png", attaching.HTML, 415, "Expected a PNG, JPEG, GIF or WebP image, as the name says"),
        ("a.pdf", b"%PDF-1.4", 422, "The file is damaged"),
        ("a.txt", b"a" * (2**20 + 1), 413, "Files can be up to 1 MiB"),
    ):
        assert words in problem(send(bobs, talk, name, data), code)["errors"]["file"]
    assert not Attachment.objects.exists()


def test_a_body_that_is_no_upload_says_so(bobs: Program, talk: Conversation) -> None:
    program, path = bobs, f"/api/conversations/{talk.pk}/attachments"
    assert "file" in problem(program.post(f"/conversations/{talk.pk}/attachments", {}), 422)["errors"]
    kind = "multipart/form-data; boundary="
    problem(program.client.generic("POST", path, b"x", content_type=kind, headers=program.headers), 400)


def test_attachments_that_are_none_are_refused(bobs: Program, talk: Conversation) -> None:
    for attachments in [["x"], "x", None, [1], [str(uuid4())], [str(uuid4())] * 101]:
        body = {"content": "Hi", "attachments": attachments}
        found = problem(bobs.post(f"/conversations/{talk.pk}/messages", body), 422)
        assert any(name.startswith("attachments") for name in found["errors"])
        assert not Message.objects.exists()


def test_a_message_that_is_sent_again_with_its_key_is_said_once(bobs: Program, talk: Conversation) -> None:
    bobs.headers["Idempotency-Key"] = "one"
    made, other = (send(bobs, talk, name, b"Hello").json()["id"] for name in ("a.txt", "b.txt"))
    path = f"/conversations/{talk.pk}/messages"
    first, again = (bobs.post(path, {"content": "Hi", "attachments": [made]}) for _ in range(2))
    assert first.json() == again.json()
    problem(bobs.post(path, {"content": "Hi", "attachments": [other]}), 422)


def test_one_that_was_not_sent_is_removed(bobs: Program, talk: Conversation) -> None:
    made = send(bobs, talk, "a.txt", b"Hello").json()
    assert bobs.delete(f"/attachments/{made['id']}").status_code == 204
    problem(bobs.get(f"/attachments/{made['id']}"), 404)

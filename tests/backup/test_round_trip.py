"""What a backup restores is what was there, and nothing in it runs on a yes from before."""

import stat
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User

from hitlchat.agent.attachments import files
from hitlchat.agent.models import Attachment, Conversation
from hitlchat.backup import NotEmpty, NotWhole
from hitlchat.backup.making import make
from hitlchat.backup.restoring import check, restore
from hitlchat.gate import decide
from hitlchat.gate.grants import giving
from hitlchat.gate.models import AuditEvent, Grant, ToolCall
from hitlchat.gate.status import Status
from hitlchat.record.sealing import seal_all
from hitlchat.secrets import sealing
from tests.backup.conftest import Ask, Elsewhere
from tests.conftest import signed_in
from tests.gate.deciding_people import members, rule
from tests.gate.granting import conditional, granted

pytestmark = pytest.mark.embedded

DATABASE = ("hitlchat.sqlite3", "hitlchat.sqlite3-wal", "hitlchat.sqlite3-shm")
PHRASE = "correct horse battery staple"


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def without_database(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in listing(folder).items() if "sqlite3" not in name and name != ".lock"}


@pytest.mark.parametrize("phrase", [pytest.param(None, id="plain"), pytest.param(PHRASE, id="encrypted")])
def test_what_is_restored_is_what_was_there(
    data: Path, ask: Ask, elsewhere: Elsewhere, tmp_path: Path, phrase: str | None, bob: User
) -> None:
    waits, file = ask("wait"), tmp_path / "one.backup"
    token = sealing.seal("a secret", "test")
    with files.storing():
        digest = files.write(b"attached")
    conversation = Conversation.objects.create(owner=bob)
    Attachment.objects.create(conversation=conversation, name="a.txt", media_type="text/plain", size=8, digest=digest)
    seal_all()
    made = make(file, phrase)
    assert (made.missing, made.left_out, made.others) == (0, 0, [])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert check(file, phrase) == made.manifest
    events = list(AuditEvent.objects.values())
    with elsewhere() as folder:
        restored = restore(file, phrase)
        assert (restored.findings, restored.withdrawn, restored.warnings) == ([], 0, [])
        settings.SECRET_KEY = (folder / "secret_key").read_text()
        assert sealing.unseal(token, "test") == "a secret"
        assert files.read(digest) == b"attached"
        assert without_database(folder) == without_database(data)
        assert ToolCall.objects.get(pk=waits.pk).status == Status.WAITING
        assert list(AuditEvent.objects.values())[:-1] == events
        assert AuditEvent.objects.order_by("-pk")[0].name == "settings.restored"
        assert [path for path in folder.rglob("*") if path.stat().st_mode & 0o077] == []


@pytest.mark.guarantee("gate:at-most-once")
def test_a_call_that_was_approved_is_withdrawn_since_it_may_have_run_meanwhile(
    data: Path, ask: Ask, elsewhere: Elsewhere, tmp_path: Path, bob: User
) -> None:
    call = ask("approved")
    decide.approve(call.approval.pk, signed_in(bob))
    make(tmp_path / "one.backup", None)
    with elsewhere():
        assert restore(tmp_path / "one.backup", None).withdrawn == 1
        found = ToolCall.objects.get(pk=call.pk)
        assert found.status == Status.WITHDRAWN
        assert "may have run" in found.reason
    assert ToolCall.objects.get(pk=call.pk).status == Status.APPROVED


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_call_with_the_first_of_two_yeses_is_withdrawn_since_that_may_have_been_taken_back(
    data: Path, ask: Ask, elsewhere: Elsewhere, tmp_path: Path, alice: User
) -> None:
    tool = ask("before the rule").tool
    assert tool is not None
    finance = Group.objects.create(name="finance")
    dora, _ = members(finance, "dora", "erik")
    rule(tool, alice, group=finance, quorum=2)
    waits, half = ask("asked"), ask("approved by one")
    decide.approve(half.approval.pk, signed_in(dora))
    assert ToolCall.objects.get(pk=half.pk).status == Status.WAITING
    make(tmp_path / "one.backup", None)
    with elsewhere():
        assert restore(tmp_path / "one.backup", None).withdrawn == 1
        found = [ToolCall.objects.get(pk=call.pk).status for call in (waits, half)]
        assert found == [Status.WAITING, Status.WITHDRAWN]


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_grant_is_revoked_since_it_may_have_been_meanwhile(
    data: Path, transactional_db: None, elsewhere: Elsewhere, tmp_path: Path, bob: User
) -> None:
    grant = granted(bob, conditional(), calls=2)
    make(tmp_path / "one.backup", None)
    with elsewhere():
        assert restore(tmp_path / "one.backup", None).revoked == 1
        assert not giving.active(Grant.objects.all()).exists()
        assert AuditEvent.objects.get(name="grant.revoked").data["grant"] == str(grant.pk)
    assert giving.active(Grant.objects.all()).exists()


def test_a_record_with_findings_is_restored_only_on_request(
    data: Path, ask: Ask, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    call = ask("one thing")
    ToolCall.objects.filter(pk=call.pk).update(arguments={"text": "another"})
    make(tmp_path / "one.backup", None)
    with elsewhere() as folder:
        before = listing(folder)
        with pytest.raises(NotWhole, match="--with-findings"):
            restore(tmp_path / "one.backup", None)
        assert without_database(folder) == without_database_of(before)
        assert restore(tmp_path / "one.backup", None, accept_findings=True).findings


def test_nothing_is_restored_over_what_is_there(data: Path, ask: Ask, elsewhere: Elsewhere, tmp_path: Path) -> None:
    make(tmp_path / "one.backup", None)
    with pytest.raises(NotEmpty, match="The database is not empty"):
        restore(tmp_path / "one.backup", None)
    with elsewhere() as folder:
        (folder / "files").mkdir()
        (folder / "files" / "mine").write_text("mine")
        with pytest.raises(NotEmpty, match="files exists"):
            restore(tmp_path / "one.backup", None)
        assert without_database(folder).keys() == {"secret_key", "files/mine"}


def test_what_a_killed_restore_has_left_does_not_keep_another_from_being_made(
    data: Path, ask: Ask, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    make(tmp_path / "one.backup", None)
    with elsewhere() as folder:
        # Killed after its files were in place, and before the database was.
        (folder / f"hitlchat-restore-locked-{'0' * 16}").mkdir(mode=0o700)
        (folder / "hitlchat.sqlite3.restoring").write_bytes(b"half of it")
        (folder / "record_key").write_bytes((data / "record_key").read_bytes())
        (folder / "files").mkdir()
        (folder / "files" / "half").write_text("half")
        assert restore(tmp_path / "one.backup", None).warnings == []
        assert without_database(folder) == without_database(data)
        assert {path.name for path in folder.iterdir()} <= {*(path.name for path in data.iterdir()), *DATABASE}


def test_a_key_that_is_not_in_the_backup_is_asked_for(
    data: Path, ask: Ask, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    seal_all()
    (data / "secret_key").unlink()
    (data / "record_key").rename(tmp_path / "record_key")
    make(tmp_path / "one.backup", None)
    with elsewhere():
        secret, record = restore(tmp_path / "one.backup", None).warnings
        assert "set it as it was" in secret
        assert "set HITL_RECORD_KEY as it was" in record


def test_an_existing_file_stays_unless_told_otherwise(data: Path, ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "one.backup"
    file.write_text("precious")
    with pytest.raises(NotEmpty, match="already exists"):
        make(file, None)
    assert file.read_text() == "precious"
    make(file, None, overwrite=True)
    assert check(file, None).counts
    assert {path.name for path in tmp_path.iterdir()} == {"data", "one.backup"}


def without_database_of(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in found.items() if "sqlite3" not in name}

"""`manage.py audit`: what it says, and its exit code."""

import base64
import json
import stat
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate.models import AuditEvent, Seal
from hitlchat.management.commands.audit import Command
from hitlchat.record import keys
from hitlchat.record.sealing import seal
from tests.architecture.source import ROOT
from tests.clock import travel
from tests.gate.asking import approved, recording
from tests.record.conftest import Sql, found, happen, report, sealed

pytestmark = pytest.mark.django_db(transaction=True)


def audit(*arguments: Any) -> str:
    told = StringIO()
    call_command("audit", *map(str, arguments), stdout=told)
    return told.getvalue()


def test_verify_says_what_is_whole_and_what_is_not_sealed_yet() -> None:
    sealed(2, 1)
    happen(1)
    told = audit("verify", "--plain").splitlines()
    assert told[:2] == [
        "Whole: 3 events in 2 batches, unchanged since they were sealed. 0 calls, matching their events.",
        "Not sealed yet: the last 1 event. These cannot be verified.",
    ]
    assert Seal.objects.latest("number").hash in told[2]
    said = json.loads(audit("verify", "--json"))
    assert (said["whole"], said["batches"], said["tail"], said["findings"]) == (True, 2, 1, [])
    assert "✓" in audit("verify")


def test_verify_names_what_is_broken_and_fails(tamper: Sql) -> None:
    ((first, _),) = sealed(2)
    tamper("UPDATE gate_auditevent SET name = 'call.approved' WHERE id = %s", first)
    with pytest.raises(CommandError, match=f"^Broken: Event {first} was edited after it was sealed in batch 1.") as end:
        audit("verify", "--plain")
    assert end.value.returncode == 1
    with pytest.raises(CommandError):
        audit("verify", "--json")
    with pytest.raises(CommandError, match="The expected seal abababababababab… is not in the record"):
        audit("verify", "--plain", "--expect", "ab" * 32)


def test_export_and_check_and_a_receipt(bob: User, tmp_path: Path) -> None:
    call = approved(bob, recording())
    assert audit("export", tmp_path / "all") == f"{tmp_path / 'all'}: 3 events, 1 receipt.\n"
    assert stat.S_IMODE((tmp_path / "all").stat().st_mode) == 0o600
    noted = audit("key").strip()
    assert "2" in audit("check", tmp_path / "all", "--key", noted)
    assert json.loads(audit("check", tmp_path / "all", "--json"))["genuine"] is True
    audit("receipt", call.pk, tmp_path / "one")
    assert "1 receipt" in audit("check", tmp_path / "one", "--plain")
    (tmp_path / "all").write_bytes((tmp_path / "all").read_bytes().replace(b"call.approved", b"call.declined", 1))
    with pytest.raises(CommandError, match="Not genuine: line 4 was edited"):
        audit("check", tmp_path / "all", "--plain")
    with pytest.raises(CommandError, match="already exists"):
        audit("export", tmp_path / "all")
    with pytest.raises(CommandError, match="neither a day nor a time"):
        audit("export", "--from", "yesterday", tmp_path / "none")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"/nothing: No such file or directory$"):
        audit("check", tmp_path / "nothing")


@pytest.mark.guarantee("SR-45")
@pytest.mark.servers("the SQL differs between the databases")
def test_old_batches_are_dropped_whole_with_their_seals_left_and_a_word_on_record(settings: Settings) -> None:
    settings.HITL_RECORD_DAYS = 30
    now = timezone.now()
    with travel(now - timedelta(days=40)):
        old = sealed(2, 3)
    with travel(now - timedelta(days=20)):
        kept = [*sealed(2), *sealed(2)]
    happen(1)
    assert audit("retain") == "Dropped 2 batches sealed more than 30 days ago.\n"
    assert not AuditEvent.objects.filter(pk__in=[*old[0], *old[1]]).exists()
    assert AuditEvent.objects.filter(pk__in=[*kept[0], *kept[1]]).count() == 4
    said = [event.data for event in AuditEvent.objects.filter(name="record.dropped").order_by("pk")]
    assert [(each["batch"], each["events"], each["days"]) for each in said] == [(1, 2, 30), (2, 3, 30)]
    assert audit("retain").startswith("Dropped 0 batches")
    assert found() == []
    lines = audit("verify", "--plain").splitlines()
    assert lines[1].startswith("Batch 1: dropped by retention on ")
    assert lines[1].endswith("; its seal is kept.")
    # What was never sealed never goes.
    with travel(now + timedelta(days=4000)):
        audit("retain", "--days", "1")
    assert report().tail > 0
    settings.HITL_RECORD_DAYS = 0
    with pytest.raises(CommandError, match="kept forever"):
        audit("retain")


def test_the_key_is_made_once_for_its_owner_only_and_changed_by_a_command(data_folder: Path) -> None:
    with pytest.raises(CommandError, match="Nothing has been sealed yet"):
        audit("key")
    sealed(1)
    assert stat.S_IMODE(keys.file().stat().st_mode) == 0o600
    before = keys.own_fingerprint()
    audit("rotate")
    after = keys.own_fingerprint()
    assert before != after
    assert (data_folder / f"record_key.{(before or '')[:16]}").exists()
    assert AuditEvent.objects.filter(name="record.key_changed").get().data == {
        "before": before,
        "after": after,
        "lost": False,
    }
    assert found(key=before or "") == []
    # One that is lost is replaced too; who noted the old one is told that it never vouched for this.
    keys.file().unlink()
    with pytest.raises(CommandError, match="This process has none"):
        audit("key")
    audit("rotate", "--lost")
    assert found() == []
    assert [kind for kind, *_ in found(key=before or "")] == ["key not vouched for"]


def test_the_key_can_be_given(subtests: pytest.Subtests, settings: Settings, data_folder: Path) -> None:
    key = keys.own()
    keys.file().rename(data_folder / "k")
    pem = (data_folder / "k").read_text(encoding="ascii")
    raw = base64.b64encode(key.private_bytes_raw()).decode()
    for form, given in {"pem": pem, "base64": raw, "path": str(data_folder / "k")}.items():
        with subtests.test(form):
            settings.HITL_RECORD_KEY = given
            happen(1)
            assert seal() is not None
            assert (keys.check(), found()) == ([], [])
            assert not keys.file().exists()
    with pytest.raises(CommandError, match="name a new file"):
        audit("rotate")
    assert "Set HITL_RECORD_KEY to" in audit("rotate", "--to", data_folder / "new")


def test_a_key_that_is_none_stops_the_start(settings: Settings) -> None:
    for given in ("nonsense", "/no/such/file", "AAAA", "-----BEGIN nothing"):
        settings.HITL_RECORD_KEY = given
        (error,) = keys.check()
        assert error.id == "hitlchat.record.E001", given
        assert "expected the path of a PEM file" in error.msg


def test_every_command_of_the_documentation_is_one() -> None:
    lines = (ROOT / "docs" / "record.md").read_text(encoding="utf-8").splitlines()
    shown = [line.partition("#")[0].split()[1:] for line in lines if line.startswith("manage.py audit")]
    parser = Command().create_parser("manage.py", "audit")
    assert [parser.parse_args(each[1:]).what for each in (_filled(line) for line in shown)] == [
        *("key", "verify", "seal", "export", "receipt", "check"),
    ]


def _filled(words: list[str]) -> list[str]:
    return [str(UUID(int=0)) if word == "<call>" else word for word in words]

"""An exported file is checked without the database: whatever is done to it, the first wrong line is named."""

import json
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.accounts.models import Role
from hitlchat.accounts.roles import give
from hitlchat.gate import attention, decide
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.decide import take_back
from hitlchat.gate.models import AuditEvent, Oversight, Seal, ToolCall
from hitlchat.record import keys, sealing
from hitlchat.record.checking import Writer, check
from hitlchat.record.exporting import NothingThere, export, receipt
from hitlchat.record.sealing import seal
from tests.architecture.source import ROOT
from tests.clock import travel
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, recording, run
from tests.record.conftest import happen, sealed
from tests.record.test_verifying import replace_key

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.guarantee("audit:complete"),
]

SECRETS = {"text": "curl -H 'Authorization: Bearer s3cr3t-t0ken' https://bob:hunter22@shop.example", "amount": 2}


@pytest.fixture
def story(bob: User) -> ToolCall:
    """A call that ran after a yes, one that was declined with a reason, and events besides, in several batches."""
    tool = recording()
    done = approved(bob, tool)
    assert run(done)
    sealed(2)
    declined = ask(bob, tool, {"text": "again"})
    assert seal() is not None
    decide.decline(approval_of(declined).pk, signed_in(bob), reason="Not today.")
    return done


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def exported(folder: Path, name: str = "record.jsonl", **span: Any) -> list[bytes]:
    export(folder / name, SYSTEM, **span)
    return lines_of(folder / name)


def wrong(lines: list[bytes], noted: str = "") -> int | None:
    return check(lines, noted).line


def test_a_file_that_nobody_touched_is_genuine_and_says_what_is_in_it(story: ToolCall, tmp_path: Path) -> None:
    found = check(exported(tmp_path))
    assert found.wrong == ""
    assert (found.batches, found.events, found.receipts) == (3, 9, 2)
    assert found.key == keys.own_fingerprint()
    # That it was exported is part of it.
    assert AuditEvent.objects.latest("pk").name == "record.exported"


@pytest.mark.guarantee("SR-46")
def test_a_receipt_tells_what_was_shown_said_and_run(story: ToolCall, tmp_path: Path) -> None:
    said = [json.loads(line) for line in exported(tmp_path)]
    (mine,) = [each for each in said if each["kind"] == "receipt" and each["call"] == str(story.pk)]
    approval = approval_of(story)
    assert [(each["digest"], each["disclosure"]) for each in mine["shown"]] == [(approval.digest, approval.disclosure)]
    assert [(each["name"], each["by"], each["means"]) for each in mine["said"]] == [("call.approved", "bob", "session")]
    assert (mine["ran"], mine["status"]) == ({"text": "hello", "amount": 1}, "succeeded")


def test_a_receipt_tells_who_had_it_before_them_and_who_took_back_what_they_said(
    alice: User, bob: User, tmp_path: Path
) -> None:
    for person in (alice, bob):
        give(person, Role.ADMINISTRATOR)
    tool = recording()
    Oversight.objects.create(tool=tool, decided_by="approvers", quorum=2, digest="d" * 64)
    approval = approval_of(ask(bob, tool))
    him = signed_in(User.objects.get(pk=bob.pk))
    attention.shown(approval, him)
    decide.approve(approval.pk, him)
    take_back(approval.call_id, him)
    bodies = [json.loads(line) for line in exported(tmp_path)]
    (mine,) = [body for body in bodies if body["kind"] == "receipt"]
    assert [(each["by"], each["digest"]) for each in mine["seen"]] == [("bob", approval.digest)]
    assert [each["name"] for each in mine["said"]] == ["call.counted", "call.yes_taken_back"]
    assert wrong(again(bodies)) is None
    for part in ("seen", "said"):
        kept = mine[part].pop()
        assert wrong(again(bodies)) == bodies.index(mine) + 1
        mine[part].append(kept)


@pytest.mark.guarantee("SR-45")
def test_every_line_that_is_edited_removed_moved_or_put_in_is_named(story: ToolCall, tmp_path: Path) -> None:
    lines = exported(tmp_path)
    for at, line in enumerate(lines):
        number = at + 1
        edited = [*lines[:at], edit(line), *lines[number:]]
        assert wrong(edited) == number, line
        assert wrong([*lines[:at], *lines[number:]]) == number
        assert wrong([*lines[:at], line, *lines[at:]]) == number + 1
        assert wrong(lines[:at]) == number
        assert wrong([*lines[:at], line[: len(line) // 2]]) == number
        if number < len(lines):
            assert wrong([*lines[:at], lines[number], line, *lines[number + 1 :]]) == number
    assert wrong([*lines, lines[-1]]) == len(lines) + 1


def edit(line: bytes) -> bytes:
    """Another digit, somewhere."""
    at = next(place for place in range(len(line) // 3, len(line)) if line[place : place + 1].isdigit())
    return line[:at] + (b"3" if line[at : at + 1] != b"3" else b"4") + line[at + 1 :]


def test_sums_made_anew_without_the_key_do_not_help(story: ToolCall, tmp_path: Path) -> None:
    lines = exported(tmp_path)
    for at in range(len(lines)):
        bodies = [json.loads(line) for line in lines]
        changed = bodies[at]
        for name in ("kind", "n", "sum"):
            changed = {key: value for key, value in changed.items() if key != name}
        bodies[at] = {"kind": bodies[at]["kind"], **changed, _somewhere(changed): "x"}
        assert wrong(again(bodies)) is not None
        without = [json.loads(line) for line in lines[:at] + lines[at + 1 :]]
        assert wrong(again(without)) is not None


def again(bodies: list[dict[str, Any]]) -> list[bytes]:
    writer = Writer()
    inner = [{key: value for key, value in body.items() if key not in {"n", "sum"}} for body in bodies]
    return [writer.line(body.pop("kind"), body) for body in inner]


def _somewhere(body: dict[str, Any]) -> str:
    return min(body)


def test_a_file_of_another_key_is_not_taken_for_one_with_the_noted_key(story: ToolCall, tmp_path: Path) -> None:
    noted = keys.own_fingerprint() or ""
    assert wrong(exported(tmp_path, "a"), noted) is None
    replace_key()
    lines = exported(tmp_path, "b")
    # The key before vouched for the new one.
    assert wrong(lines, noted) is None
    assert wrong(lines, "0" * 64) == 1
    assert wrong(lines_of(tmp_path / "a"), keys.own_fingerprint() or "") == 1


def test_secrets_are_kept_back_and_the_rest_still_verifies(bob: User, tmp_path: Path) -> None:
    call = ask(bob, recording(), SECRETS)
    edited = {"text": "PASSWORD=hunter23 and more", "amount": 3}
    decide.approve(approval_of(call).pk, signed_in(bob), digest=approval_of(call).digest, edited=edited)
    lines = exported(tmp_path)
    found = check(lines)
    assert (found.wrong, found.hidden) == ("", 2)
    text = b"".join(lines).decode()
    for secret in ("s3cr3t-t0ken", "hunter22", "hunter23"):
        assert secret not in text
    assert "curl -H 'Authorization: Bearer \\u2022\\u2022\\u2022' https://bob:" in text
    (event,) = [json.loads(line) for line in lines if b'"hidden":{' in line]
    assert event["row"]["data"]["edited"]["amount"] == 3
    assert sorted(event["hidden"]) == ["/edited/text", "/prompt"]
    # Nor can it be found by trying: the salt of what is kept back is not in the file.
    assert "/edited/text" not in event["salts"]
    (mine,) = [json.loads(line) for line in lines if b'"kind":"receipt"' in line]
    assert (mine["shown"][0]["whole"], mine["shown"][0]["matches"]) == (False, True)


def test_what_stands_for_a_secret_cannot_be_another_one(bob: User, tmp_path: Path) -> None:
    call = ask(bob, recording())
    decide.approve(approval_of(call).pk, signed_in(bob), edited={"text": "token=abcdefgh", "amount": 1})
    bodies = [json.loads(line) for line in exported(tmp_path)]
    for body in bodies:
        if body["kind"] == "event" and "edited" in body["row"]["data"]:
            body["hidden"]["/edited/text"] = "0" * 64
    assert wrong(again(bodies)) == next(n for n, body in enumerate(bodies, 1) if "edited" in str(body))


def test_a_part_of_the_record_is_exported_in_whole_batches(tmp_path: Path) -> None:
    now = timezone.now()
    for days in (9, 6, 3):
        with time_machine.travel(now - timedelta(days=days)):
            sealed(2)
    found = check(exported(tmp_path, since=now - timedelta(days=7), until=now - timedelta(days=5)))
    assert (found.wrong, found.batches, found.events) == ("", 1, 2)
    with pytest.raises(NothingThere):
        export(tmp_path / "none", SYSTEM, until=now - timedelta(days=20))


def test_batches_that_were_dropped_are_in_it_with_their_seals(tmp_path: Path) -> None:
    with travel(timezone.now() - timedelta(days=40)):
        sealed(2, 2)
    sealed(1, 1)
    assert sealing.drop(30, SYSTEM) == 2
    found = check(exported(tmp_path))
    assert (found.wrong, found.batches) == ("", Seal.objects.count())


def test_one_call_is_proven_by_a_file_of_its_own(story: ToolCall, tmp_path: Path) -> None:
    receipt(tmp_path / "call", story.pk, SYSTEM)
    lines = lines_of(tmp_path / "call")
    found = check(lines)
    assert (found.wrong, found.what, found.events, found.receipts) == ("", "receipt", 5, 1)
    for at in range(len(lines)):
        assert wrong([*lines[:at], edit(lines[at]), *lines[at + 1 :]]) == at + 1
    bodies = [json.loads(line) for line in lines]
    place = next(at for at, body in enumerate(bodies) if body["kind"] == "event")
    bodies[place]["row"]["means"] = "session"
    assert wrong(again(bodies)) == place + 1


def test_a_file_is_checked_where_there_are_no_settings_and_no_database(story: ToolCall, tmp_path: Path) -> None:
    lines = exported(tmp_path)
    whole = offline(tmp_path / "record.jsonl")
    assert whole.returncode == 0
    assert "Compare this with the fingerprint you noted" in whole.stdout
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:-1]))
    cut = offline(tmp_path / "cut.jsonl")
    assert (cut.returncode, cut.stdout) == (
        1,
        f"Not genuine: line {len(lines)} is missing: the file was cut off before its end.\n",
    )


def offline(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hitlchat.record", str(path)],
        cwd=ROOT,
        env={"DJANGO_SETTINGS_MODULE": "there.are.none"},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )


def test_a_file_that_is_there_is_not_written_over_and_none_is_left_half_written(tmp_path: Path) -> None:
    happen(1)
    (tmp_path / "mine").write_text("mine", encoding="ascii")
    with pytest.raises(FileExistsError):
        export(tmp_path / "mine", SYSTEM)
    assert (tmp_path / "mine").read_text(encoding="ascii") == "mine"
    with suppress(LookupError), keys.private_file(tmp_path / "other", replace=True) as file:
        file.write(b"half of it")
        raise LookupError
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "record_key"}


def test_what_is_no_such_file_at_all_is_said_to_be_none() -> None:
    for line in (b"", b"{}\n", b"[]\n", b'{"n":1}\n', b"\xff\n", b'{"kind":"x","n":1}\n'):
        assert check([line]).line == 1
    assert check([]).wrong == "is missing: the file was cut off before its end"

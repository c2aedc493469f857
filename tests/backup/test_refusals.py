"""A file that is not whole, not ours, or from another program is refused in words before anything is written."""

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from hitlchat.backup import BackupFault, BadPassphrase, Damaged, Unfit, encryption
from hitlchat.backup.archive import MANIFEST, Manifest, Writer, written
from hitlchat.backup.encryption import MAGIC, Opened, Sealed, read_passphrase
from hitlchat.backup.restoring import check
from hitlchat.health import of_code
from tests.tables import each_row

pytestmark = pytest.mark.embedded

PHRASE = "correct horse battery staple"


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses cost nothing."""
    monkeypatch.setattr(encryption, "COST", 2)


def manifest(**other: Any) -> Manifest:
    facts: dict[str, Any] = {
        "format": 1,
        "version": "0.1.0",
        "made_at": datetime(2026, 1, 1, tzinfo=UTC),
        "database": "sqlite",
        "secret_key": "",
        "migrations": sorted(of_code()),
        "counts": {},
        "columns": {},
        "sequences": [],
    }
    return Manifest(**(facts | other))


def write(to: Path, phrase: str | None = None, **other: Any) -> Path:
    with to.open("wb") as file, written(file, phrase) as archive:
        archive.add_bytes(MANIFEST, manifest(**other).model_dump_json().encode())
        archive.add_bytes("database/hitlchat.sqlite3", bytes(range(256)) * 400)
    return to


@each_row(
    "other, words",
    [
        ({"version": "9.0"}, "newer than this one"),
        ({"migrations": [("gate", "9999_newer")]}, r"newer version of hitlchat, 0.1.0 \(gate.9999_newer is unknown"),
        ({"database": "postgresql"}, "PostgreSQL; this one is on SQLite"),
        ({"format": 2}, "has format 2"),
    ],
)
def test_a_backup_that_this_version_cannot_restore_says_so(tmp_path: Path, other: dict[str, Any], words: str) -> None:
    with pytest.raises(Unfit, match=words):
        check(write(tmp_path / "file", **other), None)


@pytest.mark.parametrize("phrase", [pytest.param(None, id="plain"), pytest.param(PHRASE, id="encrypted")])
def test_a_backup_that_was_cut_or_changed_anywhere_is_refused(tmp_path: Path, phrase: str | None, cheap: None) -> None:
    whole = write(tmp_path / "file", phrase).read_bytes()
    assert check(tmp_path / "file", phrase).database == "sqlite"
    for at in range(1, len(whole), max(1, len(whole) // 60)):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        # The time and the system in gzip's own header mean nothing.
        for data in (whole[:at], changed, whole + b"x") if phrase or at > 9 else (whole[:at],):
            (tmp_path / "file").write_bytes(data)
            with pytest.raises(BackupFault):
                check(tmp_path / "file", phrase)


def names() -> Iterator[str]:
    yield from ("../evil", "/evil", "data/../../evil", "elsewhere/evil", "data", "database/hitlchat.sqlite3", MANIFEST)


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in names()])
def test_a_member_of_a_name_that_no_backup_has_is_refused(tmp_path: Path, name: str) -> None:
    with (tmp_path / "file").open("wb") as file, written(file, None) as archive:
        archive.add_bytes(MANIFEST, manifest().model_dump_json().encode())
        archive.add_bytes("database/hitlchat.sqlite3", b"x")
        archive.add_bytes(name, b"evil")
    with pytest.raises(Damaged):
        check(tmp_path / "file", None)


def test_a_file_whose_hashes_are_of_something_else_is_refused(tmp_path: Path) -> None:
    class Forger(Writer):
        def end(self) -> None:
            self._sums[-1] = f"{'0' * 64}  database/hitlchat.sqlite3\n"
            super().end()

    with (tmp_path / "file").open("wb") as file, written(file, None) as archive:
        archive.__class__ = Forger
        archive.add_bytes(MANIFEST, manifest().model_dump_json().encode())
        archive.add_bytes("database/hitlchat.sqlite3", b"x")
    with pytest.raises(Damaged):
        check(tmp_path / "file", None)


def test_without_the_passphrase_an_encrypted_backup_tells_nothing(tmp_path: Path, cheap: None) -> None:
    file = write(tmp_path / "file", PHRASE)
    assert b"manifest" not in file.read_bytes()
    with pytest.raises(BadPassphrase, match="--passphrase-file"):
        check(file, None)
    with pytest.raises(BadPassphrase, match="another passphrase"):
        check(file, PHRASE + "!")


@given(st.lists(st.integers(0, 3 * 2**20), max_size=4))
def test_what_is_sealed_in_any_pieces_opens_whole(sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encryption, "COST", 2)
        file, plain = io.BytesIO(), b"".join(bytes([size % 251]) * size for size in sizes)
        sealed = Sealed(file, PHRASE)
        for size in sizes:
            sealed.write(bytes([size % 251]) * size)
        sealed.end()
        file.seek(len(MAGIC))
        assert io.BufferedReader(Opened(file, PHRASE)).read() == plain


def test_a_passphrase_is_the_first_line_of_its_file_and_not_too_short(tmp_path: Path) -> None:
    file = tmp_path / "phrase"
    file.write_text(f"{PHRASE}\nmore\n")
    assert read_passphrase(file, is_new=True) == PHRASE
    file.write_text("short\n")
    with pytest.raises(BadPassphrase, match="at least 12"):
        read_passphrase(file, is_new=True)
    assert read_passphrase(file, is_new=False) == "short"


@pytest.mark.django_db
def test_the_commands_say_what_they_found_and_what_is_wrong(
    tmp_path: Path, cheap: None, capsys: pytest.CaptureFixture[str]
) -> None:
    file, phrase = write(tmp_path / "file", PHRASE), tmp_path / "phrase"
    phrase.write_text(PHRASE)
    call_command("restore", str(file), "--check", "--passphrase-file", str(phrase))
    assert "The backup is whole, and this version can restore it: 0 rows" in capsys.readouterr().out
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CommandError, match="altered"):
        call_command("restore", str(file), "--check", "--passphrase-file", str(phrase))
    with pytest.raises(CommandError, match="nowhere: No such file or directory"):
        call_command("restore", str(tmp_path / "nowhere"), "--check")
    phrase.write_bytes(b"\xff\n")
    with pytest.raises(CommandError, match="is no text"):
        call_command("backup", str(tmp_path / "other"), "--passphrase-file", str(phrase))
    assert not (tmp_path / "other").exists()
    with pytest.raises(CommandError, match=re.escape(f"{Path.cwd()}/nowhere/one.backup")):
        # From a unit of systemd, say, whose folder is not that of who gives the command.
        call_command("backup", "nowhere/one.backup")

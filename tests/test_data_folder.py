"""The data folder is for the user who runs the server alone, also where it was there before with a wider mode."""

import logging
import os
import socket
import stat
from pathlib import Path

import pytest

from hitlchat.base import environment
from tests import forks


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.lstat().st_mode):04o}"


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder that everyone can read, with what may be in one."""
    folder = tmp_path / "data"
    (folder / "files" / "notes").mkdir(parents=True)
    for name in ("hitlchat.sqlite3", "hitlchat.sqlite3-wal", "secret_key", "record_key", "files/notes/a.txt"):
        (folder / name).write_text("x" * 48)
        (folder / name).chmod(0o644)
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o644)
    (folder / "link").symlink_to(outside)
    for each in (folder, folder / "files", folder / "files" / "notes"):
        each.chmod(0o755)
    monkeypatch.setenv("HITLCHAT_DATA", str(folder))
    return folder


def test_what_was_open_is_closed_and_told(
    wide: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A socket's address has room for a hundred characters.
    monkeypatch.chdir(wide)
    with socket.socket(socket.AF_UNIX) as there, caplog.at_level(logging.WARNING):
        there.bind("socket")
        assert environment.data_dir(tmp_path) == wide
    modes = {path: mode(path) for path in (wide, *wide.rglob("*")) if not path.is_symlink()}
    wrong = {path for path, found in modes.items() if found not in (("0700",) if path.is_dir() else ("0600", "0700"))}
    assert wrong == set()
    assert mode(tmp_path / "outside") == "0644"
    assert f"{wide} could be reached by other users (mode 0755): now only by this one" in caplog.messages
    assert any(f"{wide / 'hitlchat.sqlite3'} could be reached" in said for said in caplog.messages)


def test_a_folder_that_is_private_is_left_as_it_is_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HITLCHAT_DATA", str(tmp_path / "new"))
    for _ in range(2):
        assert mode(environment.data_dir(tmp_path)) == "0700"
    assert caplog.messages == []


def test_a_database_that_others_could_read_is_closed_at_the_next_start_and_a_new_one_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}

    def start() -> str:
        # Whatever asks the database anything makes it.
        before = os.umask(0o022)
        try:
            code, _, errors = forks.run(
                ("manage.py", "showmigrations"), kept | {"HITLCHAT_DATA": str(folder)}, timeout=120
            )
        finally:
            os.umask(before)
        assert code == 0, errors
        return errors

    assert "could be reached by other users" in start()
    assert mode(folder) == "0700"
    assert {mode(path) for path in folder.iterdir()} == {"0600"}
    (folder / "hitlchat.sqlite3").chmod(0o644)
    assert "hitlchat.sqlite3 could be reached by other users (mode 0644)" in start()
    assert mode(folder / "hitlchat.sqlite3") == "0600"
    assert start() == ""

"""Temporary folders of killed processes are swept, and nobody else's."""

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitlchat.base import scratch
from tests.processes import ROOT, Servers, installation, migrated, servers
from tests.waiting import until

__all__ = ["installation", "migrated", "servers"]

OWNER = """
import sys
from hitlchat.base import scratch
print(scratch.make("upstream").path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory of this test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def owner(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A living process with a folder; its path is the first line it prints."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_a_folder_of_a_living_process_stays_until_that_is_killed(owner: "subprocess.Popen[str]") -> None:
    assert owner.stdout is not None
    left = Path(owner.stdout.readline().strip())
    (left / "inside").mkdir()
    (left / "inside" / "file").write_text("x", encoding="ascii")
    assert scratch.sweep() == []
    assert left.is_dir()
    owner.kill()
    owner.wait(20)
    assert scratch.sweep() == [left]
    assert not left.exists()


def test_a_folder_of_this_process_stays_and_goes_with_it(folder: Path) -> None:
    made = scratch.make("sandbox")
    assert made.path.parent == folder
    assert made.path.stat().st_mode & 0o777 == 0o700
    assert scratch.sweep() == []
    made.remove()
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_locked_is_used_all_the_same_and_never_swept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        made = scratch.make("sandbox")
    assert made.path.is_dir()
    assert scratch.sweep() == []
    made.remove()
    assert list(folder.iterdir()) == []


def test_a_folder_that_others_can_write_into_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(folder / "open"))
    with pytest.raises(PermissionError):
        scratch.make("sandbox")


def test_a_program_started_by_the_owner_does_not_keep_its_folder(folder: Path) -> None:
    made = scratch.make("upstream")
    with subprocess.Popen(["sleep", "60"], cwd=made.path, close_fds=False) as left_running:
        os.close(made._lock or -1)
        assert scratch.sweep() == [made.path]
        left_running.kill()


def test_links_and_other_names_are_left_alone(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("kept")
    (target / "file").write_text("x", encoding="ascii")
    (folder / "hitlchat-sandbox-locked-0123456789abcdef").symlink_to(target)
    (folder / "hitlchat-sandbox-abcdefgh").mkdir()
    (folder / "hitlchat-sandbox-locked-0123456789abcdeg").mkdir()
    (folder / "hitlchat-upstream-locked-0123456789abcdef").write_text("no folder", encoding="ascii")
    assert scratch.sweep() == []
    assert len(list(folder.iterdir())) == 4
    assert (target / "file").exists()


def test_a_link_inside_a_swept_folder_is_removed_and_not_followed(folder: Path, tmp_path: Path) -> None:
    made, target = scratch.make("upstream"), tmp_path / "kept"
    target.mkdir()
    (target / "file").write_text("x", encoding="ascii")
    (made.path / "link").symlink_to(target)
    os.close(made._lock or -1)
    assert scratch.sweep() == [made.path]
    assert (target / "file").exists()


def test_a_folder_that_others_may_write_is_left_alone(folder: Path) -> None:
    made = folder / "hitlchat-upstream-locked-0123456789abcdef"
    made.mkdir()
    made.chmod(0o777)
    assert scratch.sweep() == []


@pytest.mark.embedded
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_folder_of_another_user_is_left_alone(folder: Path) -> None:
    made = folder / "hitlchat-upstream-locked-0123456789abcdef"
    made.mkdir(mode=0o700)
    os.chown(made, 12345, 12345)
    assert scratch.sweep() == []


@pytest.mark.embedded
def test_a_server_sweeps_at_its_start_what_a_killed_one_left(servers: Servers, folder: Path) -> None:
    server = servers.start(TMPDIR=str(folder), TOOL_WORKERS="1")
    person = server.sign_in("alice")
    person.add_tool("echo", code='def run() -> str:\n    """Say."""\n    return "x"\n', hitlMode="DISABLED")
    person.post("/api/tools/echo/test", {"arguments": {}})
    left = until(lambda: list(folder.glob("hitlchat-sandbox-locked-*")), "the sandbox has its folder", seconds=20)
    server.kill()
    server.start()
    until(lambda: not left[0].exists(), "the folder is swept", seconds=20)

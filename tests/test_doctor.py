"""`manage.py doctor` finds what is weak and what is broken, goes on when a check fails, and tells no secret."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat import doctor
from hitlchat.doctor import Diagnosis
from hitlchat.record import sealing
from tests import forks
from tests.conftest import MakeTool
from tests.ports import free_port
from tests.processes import ROOT, Installation, installation, migrated, unmigrated
from tests.tables import each_row

__all__ = ["installation", "migrated", "unmigrated"]


def states(found: Iterator[Diagnosis]) -> set[tuple[str, str]]:
    return {(each.check, each.state) for each in found}


@pytest.fixture
def alone(settings: Settings) -> None:
    """Only this machine is answered, as by default; Django's tests add a name of their own."""
    settings.ALLOWED_HOSTS = ["127.0.0.1"]


def test_the_defaults_weaken_nothing(alone: None) -> None:
    assert states(doctor.weak_settings()) == {("settings", "ok")}


@each_row(
    "name, value",
    [
        ("HITL_ENABLED", False),
        ("HITL_ELICITATION_MAX_RISK", 3),
        ("HITL_FRESH_SIGN_IN_MINUTES", 600),
        ("HITL_QUICK_YESES", 0),
        ("HITL_RECORD_DAYS", 30),
        ("TOOLS_ENV", ["*"]),
        ("DEBUG", True),
        ("HOST", "0.0.0.0"),
        ("TRUSTED_PROXIES", 1),
        ("MCP_ALLOW_STDIO", True),
    ],
)
def test_a_setting_that_weakens_is_named_with_what_to_do(
    alone: None, settings: Settings, name: str, value: object
) -> None:
    before = getattr(settings, name)
    setattr(settings, name, value)
    (found,) = doctor.weak_settings()
    setattr(settings, name, before)
    assert (found.check, found.state) == (name, "weak")
    assert found.found
    assert found.advice


def test_private_addresses_weaken_only_a_server_that_others_reach(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["hitl.example.com"]
    names = ("MCP_ALLOW_PRIVATE", "MODEL_ALLOW_PRIVATE", "NOTICE_ALLOW_PRIVATE")
    assert states(doctor.weak_settings()) == {(name, "weak") for name in names}


def test_the_write_test_leaves_nothing_behind(settings: Settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    assert [each.check for each in doctor.disk()] == ["disk", "disk write"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_broken(settings: Settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "file"
    settings.DATA_DIR.touch()
    assert ("disk write", "broken") in states(doctor.disk())


def test_a_key_that_others_can_read_is_named_with_the_command_that_ends_it(settings: Settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    tmp_path.chmod(0o700)
    (tmp_path / "secret_key").touch(mode=0o600)
    assert states(doctor.key_files()) == {("key files", "ok")}
    (tmp_path / "secret_key").chmod(0o644)
    (found,) = doctor.key_files()
    assert (found.state, found.advice) == ("weak", f"chmod go= {tmp_path / 'secret_key'}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_files_that_the_server_may_be_unable_to_read_are_named(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root's are, where a command was run as root: a server that is somebody else does not start."""
    settings.DATA_DIR = tmp_path
    tmp_path.chmod(0o700)
    (tmp_path / "secret_key").touch(mode=0o600)
    os.chown(tmp_path, 12345, 12345)
    (found,) = doctor.key_files()
    # To give root the server's files would stop the server.
    assert (found.state, "chown" in found.advice) == ("weak", False)
    assert found.found == f"{tmp_path} belongs to another user (12345) than the one who runs this (0)."
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    (found,) = doctor.key_files()
    assert (found.state, found.advice) == ("weak", f"chown 12345 {tmp_path / 'secret_key'}")


@pytest.mark.slow("starts a program in a file system of its own")
@pytest.mark.embedded
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root can mount a file system")
def test_a_folder_for_temporary_files_that_starts_no_programs_is_broken(tmp_path: Path) -> None:
    (folder := tmp_path / "temporary").mkdir()
    mounted = 'mount -t tmpfs -o noexec none "$0" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", mounted, str(folder), sys.executable, "manage.py", "doctor", "--json"]
    variables = Installation(tmp_path).variables() | {"TMPDIR": str(folder)}
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    (found, *_) = [each for each in json.loads(done.stdout) if each["check"] == "sandbox"]
    assert (found["state"], found["found"]) == ("broken", "No tool code runs.")
    assert found["advice"].startswith(f"{folder} lets no program be started")


def test_services_that_do_not_answer_are_broken(settings: Settings) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    assert states(doctor.redis()) == {("redis", "broken")}
    assert states(doctor.mail_server()) == {("mail", "broken")}


def test_a_record_under_another_key_is_broken(
    alice: User, make_tool: MakeTool, settings: Settings, tmp_path: Path
) -> None:
    make_tool(published=False)
    sealing.seal_all()
    assert states(doctor.record()) == {("record", "ok")}
    settings.DATA_DIR = tmp_path
    settings.HITL_RECORD_KEY = ""
    assert ("record", "broken") in states(doctor.record())


@pytest.mark.postgres
def test_pools_that_want_more_connections_than_postgresql_has_are_broken(db: None, settings: Settings) -> None:
    assert ("connections", "ok") in states(doctor.data())
    settings.DATABASE_POOL_SIZE = 100_000
    assert ("connections", "broken") in states(doctor.data())


def test_a_check_that_fails_or_hangs_is_a_finding_and_the_others_go_on(settings: Settings) -> None:
    settings.EMAIL_HOST_PASSWORD = "correct horse battery"
    settings.REDIS_URL = "redis://:staple%40123@cache/0"
    ends = threading.Event()

    def fails() -> Iterator[Diagnosis]:
        yield Diagnosis("fails", "ok", "It began.")
        raise RuntimeError(f"{settings.EMAIL_HOST_PASSWORD} and {settings.REDIS_URL} are wrong")

    def hangs() -> Iterator[Diagnosis]:
        yield Diagnosis("hangs", "ok", str(ends.wait(60)))

    found = {each.check: each for each in doctor.examine({"fails": fails, "hangs": hangs, "good": good}, seconds=0.5)}
    ends.set()
    assert {name: each.state for name, each in found.items()} == {"fails": "broken", "hangs": "broken", "good": "ok"}
    assert found["fails"].found == "The check failed: RuntimeError: ••• and redis://:•••@cache/0 are wrong"


def good() -> Iterator[Diagnosis]:
    yield Diagnosis("good", "ok", "It is.")


def examined(home: Installation, **environment: str) -> tuple[int, dict[str, str]]:
    """Run the real command; its exit code, and the worst state of each check."""
    code, output, errors = forks.run(("manage.py", "doctor", "--json"), home.variables(**environment), timeout=120)
    assert errors == ""
    worst: dict[str, str] = {}
    for each in sorted(json.loads(output), key=lambda each: ["ok", "weak", "broken"].index(each["state"])):
        worst[each["check"]] = each["state"]
    return code, worst


@pytest.mark.slow("runs every check in programs of their own")
def test_the_command_ends_with_1_only_if_something_is_broken(
    installation: Installation, unmigrated: Installation
) -> None:
    installation.manage("audit", "seal")
    code, found = examined(installation, MCP_ALLOW_STDIO="1")
    assert (code, found["MCP_ALLOW_STDIO"], found["database"], found["record"]) == (0, "weak", "ok", "ok")
    # All that can be found out without tables is.
    code, found = examined(unmigrated)
    assert (code, found["database"], found["clock"], found["settings"]) == (1, "broken", "ok", "ok")
    installation.manage("doctor", "--no-color")


@pytest.mark.slow("waits for a database that is not there")
@pytest.mark.embedded
def test_a_database_that_cannot_be_reached_is_told_and_its_password_is_not(tmp_path: Path) -> None:
    url = f"postgresql://someone:correct-horse@127.0.0.1:{free_port()}/none"
    variables = Installation(tmp_path, url).variables(REDIS_URL="")
    code, output, errors = forks.run(("manage.py", "doctor"), variables, timeout=120)
    assert code == 1
    assert "Connection refused" in output.replace("\n        ", " ")
    assert "No setting weakens the gate." in output
    assert "correct-horse" not in output + errors

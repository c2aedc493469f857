"""The administrators' page about the sandbox."""

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from hitlchat import sandbox
from tools_studio.pages import status

pytestmark = pytest.mark.django_db(transaction=True)


def text(client: Client) -> str:
    return " ".join(client.get("/studio/sandbox").content.decode().split())


def test_every_wall_is_named_and_whether_it_is_up(author: Client) -> None:
    page, found = text(author), sandbox.walls()
    for name in ("interpreter", "rlimits", "no_new_privs", "landlock", "seccomp"):
        assert name in page
    assert page.count("Missing</span>") == 5 - len(found.names) - found.interpreter


def test_limits_are_told_with_their_variables(author: Client, settings: Settings) -> None:
    settings.TOOL_MEMORY_MIB = 77
    page = text(author)
    assert "<dt><code>TOOL_MEMORY_MIB</code></dt><dd>77 MiB of memory</dd>" in page


def test_what_tools_can_reach_is_told(author: Client, settings: Settings, tmp_path: Path) -> None:
    settings.TOOLS_ENV, settings.TOOL_FILES_DIR = ["SHOP_*"], tmp_path
    settings.EMAIL_BACKEND, settings.EMAIL_HOST = "django.core.mail.backends.smtp.EmailBackend", ""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("x" * 2100)
    page = text(author)
    assert "<code>SHOP_*</code>" in page
    assert "no tool can send e-mail" in page
    assert "<code>notes</code>: 1 file, 2 KiB" in page
    settings.EMAIL_HOST = "mail.example.org"
    assert "Through mail.example.org:" in text(author)


def test_sizes_follow_no_link_and_miss_no_folder(tmp_path: Path) -> None:
    assert status.folders(tmp_path / "nowhere") == []
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "a" / "deep" / "x").write_text("12345")
    (tmp_path / "a" / "away").symlink_to("/usr")
    (tmp_path / "b").symlink_to("/usr")
    (tmp_path / "file").write_text("1")
    assert [(each.name, each.files) for each in status.folders(tmp_path)] == [("a", 1)]

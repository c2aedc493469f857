"""A place for the files of tools, with something beside it that none of them may see."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from hitlchat.sandbox import HostFunction
from tools_studio.capabilities import Files
from tools_studio.capabilities.files import grants

OUTSIDE = "not for tools"
Function = Callable[..., Any]


@pytest.fixture
def base(tmp_path: Path, settings: Any) -> Path:
    """Where all tools' files are; beside it is a file that no tool may see."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key.txt").write_text(OUTSIDE)
    settings.TOOL_FILES_DIR = tmp_path / "files"
    (tmp_path / "files" / "notes").mkdir(parents=True)
    return tmp_path / "files"


@pytest.fixture
def files(base: Path) -> dict[str, Function]:
    assert base.is_dir()
    return plainly(grants(Files("write", "notes")))


def plainly(grants: dict[str, HostFunction]) -> dict[str, Function]:
    return {name.removeprefix("files."): async_to_sync(function) for name, function in grants.items()}

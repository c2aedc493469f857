"""An installation to back up in this process, and an empty one beside it to restore into; both on SQLite."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.backup import databases
from hitlchat.gate import tools
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.record import keys
from tests.conftest import MakeTool, caller, signed_in
from tests.processes import installation, migrated, servers, unmigrated

__all__ = ["installation", "migrated", "servers", "unmigrated"]

Ask = Callable[[str], ToolCall]
Elsewhere = Callable[[], AbstractContextManager[Path]]
OTHER_KEY = "another key that is long enough to be one of an installation"


@pytest.fixture
def data(settings: Settings, tmp_path: Path) -> Path:
    """The data folder of this test, with a key that is its own, a record key and a tool's file."""
    folder = tmp_path / "data"
    _stand_in(settings, folder)
    (folder / "secret_key").write_text(settings.SECRET_KEY)
    settings.HITL_RECORD_KEY = ""
    keys.own()
    (folder / "files" / "notes").mkdir(parents=True)
    (folder / "files" / "notes" / "a.txt").write_text("kept")
    return folder


@pytest.fixture
def elsewhere(settings: Settings, data: Path, tmp_path: Path) -> Elsewhere:
    """Stand in an empty installation within; it gives its data folder."""

    @contextmanager
    def stand() -> Iterator[Path]:
        folder, key = tmp_path / "elsewhere", settings.SECRET_KEY
        _stand_in(settings, folder)
        settings.SECRET_KEY = OTHER_KEY
        (folder / "secret_key").write_text(OTHER_KEY)
        with databases.connected_to(folder / "hitlchat.sqlite3"):
            yield folder
        settings.SECRET_KEY = key
        _stand_in(settings, data)

    return stand


@pytest.fixture
def ask(transactional_db: None, make_tool: MakeTool, alice: User, bob: User) -> Ask:
    """Have a tool called that asks first; the call, which waits."""
    tool = make_tool(published=False)
    tools.offer(Tool.objects.filter(pk=tool.pk), signed_in(alice), published=True)

    def call(text: str) -> ToolCall:
        return async_to_sync(submit)(CallRequest(tool.name, {"text": text}, caller(bob)))

    return call


def _stand_in(settings: Settings, folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    settings.DATA_DIR = folder
    settings.ATTACHMENTS_DIR, settings.TOOL_FILES_DIR = folder / "attachments", folder / "files"

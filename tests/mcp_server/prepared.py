"""An installation with a tool that asks, made once for a module whose tests start servers of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import Installation, _drop_database, copy_of

ECHO = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'


@dataclass(frozen=True)
class Prepared:
    home: Installation
    token: str
    inbox: str


@pytest.fixture(scope="module")
def prepared(migrated: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """With a tool that asks, and two tokens of bob: for the second, calls wait in the inbox."""
    home = copy_of(migrated, tmp_path_factory.mktemp("killed") / "data")
    home.add_tool("echo", ECHO, hitl_mode="REQUIRED")
    making = ("create_token", "bob", "--kind", "mcp", "--attended", "--by", "alice")
    inbox = home.manage(*making, "--without-elicitation", "inbox").strip()
    yield Prepared(home, home.manage(*making).strip(), inbox)
    _drop_database(home.database)


@pytest.fixture
def installation(prepared: Prepared, tmp_path: Path) -> Iterator[Installation]:
    home = copy_of(prepared.home, tmp_path / "data")
    home.environment["HITL_ELICITATION_MAX_RISK"] = "4"
    yield home
    _drop_database(home.database)

from pathlib import Path

import pytest
from django.conf import LazySettings

from tests.tools_studio.library.world import World


@pytest.fixture
def world(settings: LazySettings, tmp_path: Path) -> World:
    settings.TOOL_FILES_DIR = tmp_path / "files"
    return World()

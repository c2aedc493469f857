"""The image, built and run as docs/deploying.md says, where a Docker engine answers."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import pytest

from tests.ports import free_port
from tests.processes import ROOT
from tests.waiting import until

pytestmark = [
    pytest.mark.slow("builds an image, which takes minutes"),
    pytest.mark.embedded,
    pytest.mark.timeout(1500),
]

WALLED: Final = (
    *("--read-only", "--tmpfs", "/tmp:exec,mode=1777", "--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges", "--env", "TOOLS_REQUIRE_JAIL=1", "--network", "host"),
)
RUNS_A_TOOL: Final = """
import asyncio, os
from hitlchat import sandbox
print(os.getuid(), asyncio.run(sandbox.run("def run():\\n    return 6 * 7\\n", {})))
"""


def docker(*arguments: str, seconds: float = 120) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    command = ["docker", "info", "--format", "{{.ServerVersion}}"]
    if shutil.which("docker") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no Docker engine answers")
    name = f"hitlchat-test-{uuid4().hex[:8]}"
    docker("build", "--network", "host", "--tag", name, str(ROOT), seconds=1200)
    yield name
    docker("image", "rm", "--force", name)


@contextmanager
def serving(image: str, volume: str, port: int) -> Iterator[str]:
    settings = ("--env", f"PORT={port}", "--env", "HOST=127.0.0.1", "--volume", f"{volume}:/data")
    container = docker("run", "--detach", *WALLED, *settings, image)
    try:
        yield container
    finally:
        docker("rm", "--force", container)


def test_the_image_serves_healthily_runs_tools_behind_every_wall_and_ends_cleanly(image: str) -> None:
    """As its own user, with a root that nobody can write to."""
    volume = docker("volume", "create")
    try:
        docker("run", "--rm", *WALLED, "--volume", f"{volume}:/data", image, "migrate", "--no-input")
        with serving(image, volume, free_port()) as container:
            health = ("inspect", "--format", "{{.State.Health.Status}}", container)
            until(lambda: docker(*health) == "healthy", "the container is healthy", seconds=120)
            ran = docker("exec", container, "python", "manage.py", "shell", "-v", "0", "-c", RUNS_A_TOOL)
            assert ran.startswith("10001 ")
            assert "result=42" in ran
            docker("stop", "--time", "45", container)
            assert docker("inspect", "--format", "{{.State.ExitCode}}", container) == "0"
    finally:
        docker("volume", "rm", "--force", volume)

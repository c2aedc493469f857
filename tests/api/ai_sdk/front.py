"""The AI SDK itself, in a program of Node.js that a test leads: `front.mjs`."""

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from hitlchat.settings import BASE_DIR
from tests.mcp_server.npm_clients import find_node
from tests.waiting import until

NPM: Final = Path(os.environ.get("TEST_NPM_AI_SDK") or Path(sys.prefix) / "npm-ai-sdk")
REQUIRED: Final = bool(os.environ.get("TEST_REQUIRE_SERVICES"))
HERE: Final = Path(__file__).resolve().parent
DOCUMENTED: Final = BASE_DIR / "docs" / "front-ends.md"
SECONDS: Final = 40.0

Part = dict[str, Any]


class Front:
    """The program. `do` gives it a command and returns what it answers."""

    def __init__(self, program: "subprocess.Popen[bytes]") -> None:
        self._program = program
        self._left = b""

    def do(self, name: str, **given: Any) -> Any:
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps({"do": name, **given}).encode() + b"\n")
        self._program.stdin.flush()
        answer = json.loads(self._line())
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def _line(self) -> bytes:
        assert self._program.stdout is not None
        while b"\n" not in self._left:
            ready, _, _ = select.select([self._program.stdout], [], [], SECONDS)
            assert ready, "the front end does not answer"
            read = os.read(self._program.stdout.fileno(), 65536)
            assert read, "the front end has ended"
            self._left += read
        line, _, self._left = self._left.partition(b"\n")
        return line


class ChatOf:
    """A `Chat` of the SDK for one conversation."""

    def __init__(self, front: Front, conversation: str, messages: list[Any] | None = None) -> None:
        self.front, self.id = front, conversation
        self.do("begin", messages=messages or [])

    def do(self, name: str, **given: Any) -> Any:
        return self.front.do(name, chat=self.id, **given)

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.do("state"))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.state["messages"])

    @property
    def texts(self) -> list[str]:
        """Return what the assistant says."""
        said = [part for message in self.messages if message["role"] == "assistant" for part in message["parts"]]
        return [part["text"] for part in said if part["type"] == "text"]

    @property
    def tools(self) -> list[Part]:
        parts = [part for message in self.messages for part in message["parts"]]
        return [part for part in parts if part["type"] == "dynamic-tool" or part["type"].startswith("tool-")]

    def until(self, status: str = "ready", **more: Any) -> dict[str, Any]:
        """Wait until the chat has this status, and its calls these states."""

        def look() -> dict[str, Any]:
            state = self.state
            states = [part["state"] for part in self.tools]
            return state if state["status"] == status and states == more.get("states", states) else {}

        try:
            return until(look, f"the chat is {status} with {more}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {json.dumps(self.state)[:3000]}") from None

    def asked(self) -> Part:
        """The one part that asks for an approval, once there is one."""

        def look() -> list[Part]:
            ready = self.state["status"] == "ready"
            return [part for part in self.tools if part["state"] == "approval-requested"] if ready else []

        (found,) = until(look, "an approval is requested")
        return found

    def answer(self, part: Part, *, approved: bool, **more: Any) -> None:
        self.do("answer", id=part["approval"]["id"], approved=approved, **more)


@contextmanager
def front_for(folder: Path, base: str, *, cookie: str = "", token: str = "") -> Iterator[Front]:
    """A front end of whoever the cookies or the token stand for. `folder`: for the program, and what it makes."""
    node = find_node()
    if node is None or not (NPM / "node_modules" / "ai").exists():
        assert not REQUIRED, "tools/npm_servers installs the AI SDK from npm"
        pytest.skip("the AI SDK from npm is not installed (tools/npm_servers does that)")
    folder.mkdir(exist_ok=True)
    example = folder / "example.jsx"
    (folder / "node_modules").symlink_to(NPM / "node_modules")
    (folder / "front.mjs").write_bytes((HERE / "front.mjs").read_bytes())
    example.write_text(documented(), encoding="utf-8")
    given = {"base": base, "cookie": cookie, "token": token, "example": str(example)}
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    program = subprocess.Popen(
        [node, "front.mjs", json.dumps(given)], cwd=folder, env=kept, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield Front(program)
    finally:
        program.kill()
        program.communicate()


def documented() -> str:
    """The example as the documentation has it."""
    (found,) = re.findall(r"^```jsx\n(.*?)^```$", DOCUMENTED.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(found)

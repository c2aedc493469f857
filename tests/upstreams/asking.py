"""A server that asks back, its tools, and the person who is asked."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams import servers
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.models import UpstreamQuestion, UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft
from tests import forks
from tests.conftest import signed_in
from tests.ports import free_port
from tests.processes import Installation
from tests.upstreams.client.upstreams import Program, written
from tests.waiting import stored

PROGRAM: Final = Path(__file__).resolve().parent / "asking_server.py"
# Over HTTP and as a program, each as servers of the older and of the newer protocol do it.
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "litres": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["colour"],
}
WAYS: Final = ("http-2025", "http-2026", "stdio-2026")


OFFER: Final = """
import json, time
from django.contrib.auth.models import User
from hitlchat.gate.actor import Actor
from hitlchat.upstreams import exposure, servers
from hitlchat.upstreams.exposure import Change
from hitlchat.upstreams.servers import ServerDraft
alice = Actor(User.objects.get(username="alice").pk, "console")
server = servers.create(ServerDraft(**json.loads({draft!r})), alice)
end = time.monotonic() + 30
while time.monotonic() < end and not server.tools.exists():
    time.sleep(0.1)
exposure.apply([Change(row.pk, exposed=True, hitl_mode={mode!r}) for row in server.tools.all()], alice)
"""


@dataclass
class Counter:
    """`add` makes the server known as `alice`; `log` is what it wrote down."""

    folder: Path
    how: str
    program: Program | None = None

    @property
    def log_file(self) -> Path:
        return self.folder / "log"

    @property
    def log(self) -> list[str]:
        return written(self.log_file).splitlines()

    def start(self) -> "Counter":
        if self.how.startswith("http"):
            port = free_port()
            options = ["--era", "2025"] if self.how.endswith("2025") else []
            command = [str(PROGRAM), "http", "--port", str(port), *options]
            self.program = Program([*command, "--log", str(self.log_file)], port, "/mcp")
            self.program.start()
        return self

    def draft(self, name: str = "counter", **fields: Any) -> ServerDraft:
        if self.program is not None:
            return ServerDraft(name, url=self.program.url, **fields)
        arguments = forks.launching(PROGRAM, "stdio", "--log", str(self.log_file))
        return ServerDraft(name, "stdio", command=sys.executable, args=arguments, **fields)

    def add(self, alice: User, **fields: Any) -> UpstreamServer:
        draft = self.draft(**fields)
        return servers.create(draft, signed_in(alice), confirmed=draft.command_line)

    def offer(self, home: Installation, *, mode: str = "DISABLED") -> None:
        """Make it known to an installation whose server runs, with all its tools; over HTTP."""
        draft = {"name": "counter", "url": self.draft().url}
        home.manage("shell", "-v", "0", "-c", OFFER.format(draft=json.dumps(draft), mode=mode))

    def kill(self) -> None:
        if self.program is not None:
            self.program.kill()


StartCounter = Callable[[str], Counter]


async def open_question(person: User, count: int = 1) -> UpstreamQuestion:
    """The first of so many that wait for this person."""
    await stored(lambda: questions.open_for(person.pk).count() == count, f"{count} questions wait")
    return await in_db(lambda: questions.open_for(person.pk)[0])()


async def answer(person: User, question: UpstreamQuestion, **content: Any) -> UpstreamQuestion:
    return await in_db(questions.answer)(question.pk, signed_in(person), content)


async def decline(person: User, question: UpstreamQuestion) -> UpstreamQuestion:
    return await in_db(questions.decline)(question.pk, signed_in(person))


def executing_elsewhere(person: User, tool: Tool | None = None) -> ToolCall:
    """A call that some process executes, as far as the rows say."""
    return ToolCall.objects.create(
        tool=tool,
        tool_name=tool.name if tool else "counter_paint",
        source="upstream",
        status=Status.EXECUTING,
        caller=person,
        caller_kind="mcp",
        owner="another",
        lease_until=timezone.now() + timedelta(seconds=60),
    )


def question_of(call: ToolCall, message: str = "Which?", **columns: Any) -> UpstreamQuestion:
    """An open one of that call, or as `columns` say."""
    deadline = timezone.now() + timedelta(seconds=60)
    usual = {"server_name": "counter", "message": message, "schema": SCHEMA, "deadline": deadline}
    question = UpstreamQuestion(call=call, **usual | columns)
    questions.store(question)
    return question


def asked(call: ToolCall) -> list[UpstreamQuestion]:
    return list(UpstreamQuestion.objects.filter(call=call))

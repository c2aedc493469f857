"""Every command in a block of README.md and docs/ is run, in the order of the page, and does what is said of it.

A new one is run, too, and fails this test until it works here or is named in NOT_RUN.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.architecture.source import ROOT
from tests.documentation.blocks import Block, blocks
from tests.documentation.shell import Scratch, Shell, filled, with_terminal
from tests.ports import free_port
from tests.project_tools.test_example import example, write_app
from tests.waiting import until

MISSING: Final = [each for each in ("bash", "curl", "make", "openssl", "script") if shutil.which(each) is None]
pytestmark = [
    pytest.mark.slow("starts programs for a minute"),
    pytest.mark.embedded,
    pytest.mark.skipif(bool(MISSING), reason=f"there is no {', '.join(MISSING)}"),
]

# How a command begins, and why it is not run.
NOT_RUN: Final = {
    "git clone": "takes a repository from a network",
    "cd /opt/hitlchat && sudo": "changes the machine",
    "sudo": "changes the machine; tests/deploying looks at the files that it puts there",
    "docker": "needs a Docker engine; tests/deploying/test_image.py runs it where there is one",
    "run=": "the same",
    "$run": "the same",
    "kubectl": "needs a cluster",
    "cd deploy/kubernetes": "the same",
    "python3 -m venv var/time-server": "takes a package from a network",
    "python -m venv /tmp/audit": "the same",
    "/tmp/audit/bin/pip-audit": "sends names of packages to a database of weaknesses",
    "make chaos": "takes minutes; tests/test_chaos.py kills a few times",
}
# What a command shows, by how it begins.
SHOWS: Final = {
    "claude mcp add": "Authorization: Bearer hitl_mcp_",
    'say "http://127.0.0.1:8000/api/conversations/<conversation>"': "succeeded",
    "manage.py approvals show": "Digest: ",
    "manage.py approvals approve": "Approved. A server performs it within a few seconds.",
    "manage.py approvals decline": "Declined. It does not run.",
    "manage.py approvals extend": "The new deadline is",
    "manage.py rotate_secrets": "Nothing that stays is sealed with an older key",
    "manage.py backup": "hitlchat.backup",
    ".venv/bin/python manage.py policy simulate": "refuse: ",
    "manage.py people invite": "/join/",
    "manage.py people role": "dora is approver.",
    "manage.py create_token bob --kind mcp": "hitl_mcp_",
    "manage.py create_token bob --revoke": "was revoked",
    "manage.py create_token bob --mark": "is now trusted",
    "manage.py create_token bob --unmark": "is no longer trusted",
    "say $api/servers/shop/test": '"toolCount": 2',
    'say "$api/servers/shop/tools?state=new"': '"refund"',
    "manage.py servers tools": "refund",
    "manage.py servers expose": "refund is exposed as refund",
    "manage.py servers accept": "refund is accepted as it is now.",
    "manage.py servers add": "is added. None of its tools is exposed yet.",
}
# What is typed.
TYPED: Final = {
    "manage.py changepassword": "correct horse battery\ncorrect horse battery\n",
    "manage.py servers add depot": "a long key\n",
    "manage.py servers add clock": "yes\n",
    "manage.py servers accept": "yes\n",
}
AT_A_TERMINAL: Final = ("manage.py servers add clock", "manage.py servers accept")
# Runs until somebody ends it, and what it shows by then.
ENDLESS: Final = {"manage.py approvals watch": "Waiting for calls, to show only"}
SERVES: Final = re.compile(r"\bmake run$|manage\.py serve( |$)")
LEARNT: Final = re.compile(r'# .*"id" is (<\w+>)$')
READS: Final = re.compile(r"say (?!.* -[dX] )|manage\.py servers tools ")
UUID: Final = "01a203eb-7127-7524-8fb0-b6c0cbd25399"
PEOPLE: Final = """
from hitlchat.accounts.models import Role
from hitlchat.gate.actor import CONSOLE
from hitlchat.people import membership
for name in ("bob", "dora"):
    membership.redeem(membership.invite(Role.MEMBER, "", CONSOLE)[1], name, "correct horse")
"""


class Reader:
    """Somebody who goes through the documentation. `values`: what they put in place of what stands in the text."""

    bob: httpx2.Client

    def __init__(self, above: Path) -> None:
        self.scratch = Scratch(above)
        self.above = above
        whole = f"HITLCHAT_DATA={above}/whole manage.py restore {above}/hitlchat.backup "
        self.values: dict[str, str] = {
            "8000": str(self.scratch.port),
            "DJANGO_SUPERUSER_PASSWORD=…": "DJANGO_SUPERUSER_PASSWORD='correct horse'",
            "/opt/hitlchat": str(self.scratch.folder),
            # Not over what is there.
            "manage.py restore /srv/backups/hitlchat.backup  ": whole,
            "/srv/backups/hitlchat-": f"{self.scratch.folder}/hitlchat-",
            "/srv/backups": str(above),
            "/etc/hitlchat/backup-passphrase": "backup-passphrase",
            "/var/lib/hitlchat": str(above / "restored"),
            # That of Monday.
            "hitlchat-1.backup": "$(ls hitlchat-*.backup)",
        }
        (self.scratch.folder / "backup-passphrase").write_text("correct horse battery\n", encoding="utf-8")

    def go_through(self, block: Block) -> None:
        with self.scratch.shell() as shell, stage(self, shell, block):
            for command in block.commands:
                if not any(command.startswith(each) for each in NOT_RUN):
                    self.give(shell, command)

    def give(self, shell: Shell, command: str) -> None:
        if UUID in command:
            new = self.question()
            self.values |= {UUID: new["id"], "16e73b7bab78": new["consentDigest"][:12], "<call>": new["callId"]}
        given = filled(command, self.values)
        if words := begun(ENDLESS, command):
            shell.watch(given, words)
            return
        if SERVES.search(command.partition("#")[0].strip().removesuffix(" &")):
            shell.serve(given)
            return
        if command.startswith(AT_A_TERMINAL):
            given = with_terminal(given)
        for begin, prepare in BEFORE.items():
            if command.startswith(begin):
                prepare(self, shell)
        shows = begun(SHOWS, command)

        def look() -> list[str]:
            written = shell.run(given, begun(TYPED, command))
            is_there = shows in written and (not LEARNT.search(command) or '"id"' in written)
            # What only reads is done again until what it waits for is there.
            assert is_there or READS.match(command), f"{command}\ndid not show {shows!r}:\n{written}"
            return [written] if is_there else []

        self.learn(command, *until(look, command))

    def learn(self, command: str, written: str) -> None:
        if found := LEARNT.search(command):
            answer = json.loads(written)
            self.values[found[1]] = (answer[0] if isinstance(answer, list) else answer)["id"]
        if command.startswith("manage.py create_token bob --list"):
            number = written.split(maxsplit=1)[0]
            self.values |= {f"--{each} 7": f"--{each} {number}" for each in ("mark", "unmark", "revoke")}
        if command.startswith("say $api/servers/shop/tools/refund  "):
            self.values["<digest of what you saw>"] = json.loads(written)["digest"]
        if command.startswith("manage.py audit key"):
            self.values["<fingerprint>"] = written.strip()

    def question(self) -> dict[str, str]:
        """Have the assistant call a tool that asks bob, and return the approval."""
        before = {each["id"] for each in self.pending()}
        conversation = self.bob.post("/api/conversations", json={}).json()["id"]
        words = {"content": "Refund 12.00 EUR for order 4711"}
        assert self.bob.post(f"/api/conversations/{conversation}/messages", json=words).is_success
        (new,) = until(lambda: [each for each in self.pending() if each["id"] not in before], "the call waits")
        return new

    def pending(self) -> list[dict[str, str]]:
        return list(self.bob.get("/api/approvals?status=pending").json())


@pytest.mark.timeout(600)
def test_every_command_does_what_is_said_of_it(tmp_path: Path, subtests: pytest.Subtests) -> None:
    reader = Reader(tmp_path)
    # Clients of `/mcp` come after what makes their person.
    for block in sorted(blocks(), key=lambda each: each.commands[0].startswith("claude")):
        with subtests.test(msg=str(block)):
            reader.go_through(block)


def test_whatever_is_not_run_is_documented() -> None:
    commands = [command for block in blocks() for command in block.commands]
    assert [each for each in NOT_RUN if not any(command.startswith(each) for command in commands)] == []


def begun(table: dict[str, str], command: str) -> str:
    return next((words for begin, words in table.items() if command.startswith(begin)), "")


@contextmanager
def stage(reader: Reader, shell: Shell, block: Block) -> Iterator[None]:
    """Make what a block takes for granted."""
    make = next((make for begin, make in STAGES.items() if block.commands[0].startswith(begin)), None)
    if make is None:
        yield
        return
    with make(reader, shell):
        yield


@contextmanager
def people(_reader: Reader, shell: Shell) -> Iterator[None]:
    shell.run(f"manage.py shell -v 0 -c '{PEOPLE}'")
    yield


@contextmanager
def questions(reader: Reader, shell: Shell) -> Iterator[None]:
    """A server whose questions to bob are in their last minute from the start."""
    shell.serve("HITL_TIMEOUT_SECONDS=60 manage.py serve")
    headers = {"Authorization": f"Bearer {shell.run('manage.py create_token bob --kind approver').strip()}"}
    with httpx2.Client(base_url=reader.scratch.url, headers=headers, timeout=40, trust_env=False) as reader.bob:
        reader.question()
        yield


@contextmanager
def shop_app(reader: Reader, _shell: Shell) -> Iterator[None]:
    write_app(reader.above, example())
    yield


@contextmanager
def shop_server(reader: Reader, shell: Shell) -> Iterator[None]:
    """An MCP server with two tools, for which the addresses of the page stand, and hitlchat."""
    port, tools, log = free_port(), reader.above / "tools.json", reader.above / f"{free_port()}.log"
    offer(reader, "Pays money back.")
    program = [sys.executable, "-m", "tests.upstreams.changing_server", "http", str(tools), str(log)]
    with subprocess.Popen([*program, "--port", str(port)], cwd=ROOT, stdin=subprocess.DEVNULL) as server:
        try:
            until(lambda: log.exists() and "start" in log.read_text(), "the MCP server starts")
            address = f"http://127.0.0.1:{port}/mcp"
            reader.values |= {"https://shop.example/mcp": address, "https://depot.example/mcp": address}
            shell.run("export MCP_ALLOW_STDIO=1")
            shell.serve("manage.py serve")
            shell.run("TOKEN=$(manage.py create_token alice --kind approver)")
            # Another block has added it, and lowered what is offered.
            shell.run("manage.py servers delete shop --yes || true")
            offered = f"{reader.scratch.url}/api/exposure -X PUT -d '{{\"riskCeiling\": 5}}'"
            shell.run(f'curl -sS -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" {offered}')
            yield
        finally:
            server.kill()


def offer(reader: Reader, description: str) -> None:
    tools = {"refund": description, "list": "Lists orders."}
    (reader.above / "tools.json").write_text(json.dumps(tools), encoding="utf-8")


def change(reader: Reader, shell: Shell) -> None:
    """Have the MCP server change its tool, and wait until that is noticed."""
    offer(reader, "Pays any amount back.")
    shell.run("manage.py servers reconnect shop")
    until(lambda: "withheld" in shell.run("manage.py servers tools shop"), "the tool is withheld")


# By the first command of their block.
STAGES: Final[dict[str, Callable[[Reader, Shell], AbstractContextManager[None]]]] = {
    "manage.py create_token bob": people,
    "manage.py approvals list": questions,
    "PYTHONPATH=.. PROJECT_APPS=shop": shop_app,
    "say() {": shop_server,
    "manage.py servers list": shop_server,
}
BEFORE: Final = {"say $api/servers/shop/tools/refund  ": change, "manage.py servers accept": change}

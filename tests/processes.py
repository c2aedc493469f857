"""Real servers: `manage.py serve` in processes of their own, on data of their own, to be stopped, killed and restarted.

    def test_something(servers: Servers) -> None:
        server = servers.start(OPENAI_BASE_URL=…)
        bob = server.sign_in("bob")
        conversation = bob.post("/api/conversations", {}).json()["id"]

Where the test run itself is on PostgreSQL and Redis, so are these servers, in a database of their own.
"""

import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
from django.conf import settings
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests import forks, template
from tests.conftest import PASSWORD
from tests.ports import free_port
from tests.waiting import until

ROOT: Final = Path(__file__).resolve().parent.parent
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 40.0
LONGEST_LOG: Final = 4_000
SERVE: Final = ("manage.py", "serve", "--port")
# The same in an interpreter of its own instead of a fork.
TRULY_SERVE: Final = ("./manage.py", "serve", "--port")
# For a server that no test ends: on a busy machine nobody shall take over its runs either. And tests answer faster than
# anybody reads: after three such answers a card would ask for a value.
STEADY: Final = {"LEASE_SECONDS": "60", "HITL_QUICK_YESES": "0"}

# What a developer's shell may have set, and a server of a test must not inherit.
OURS: Final = re.compile(
    r"OPENAI_|CHAT_|DATABASE|REDIS|HITL|HOST$|PORT$|DEBUG$|HTTPS$|SECRET_KEY$|LEASE|DRAIN_|LOG_|OTEL_|TEST_|DJANGO_|ALLOWED_"
)

# What a first start would do again for each copy. Two groups of the library are enough: with all of it pages of the
# Studio cost a browser several times as much. It holds the others for deleted.
PEOPLE: Final = f"""
from django.contrib.auth.models import User
from tools_studio.library.catalogue import TOOLS
from tools_studio.library.install import install
from tools_studio.models import Shipment
install(tool for tool in TOOLS if tool.group in {{"order-desk", "messages"}})
Shipment.objects.bulk_create([Shipment(name=tool.name) for tool in TOOLS], ignore_conflicts=True)
for name in ("bob", "charlie"):
    User.objects.create_user(name, password={PASSWORD!r})
"""
TOOL: Final = """
import json, sys
from django.contrib.auth.models import User
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Tool
from tools_studio import authoring
alice = Actor(User.objects.get(username="alice").pk, "console")
tool = authoring.create(authoring.Draft(**json.loads({draft!r})), alice, confirmed=True)
Tool.objects.filter(pk=tool.pk).update(published=True)
"""

RUNS: Final = "SELECT id FROM agent_run WHERE status = '{status}'"
PUBLISH: Final = "UPDATE gate_tool SET published = {yes} WHERE name = {name}"


@dataclass(frozen=True)
class Installation:
    """One set of data: a folder, and a database inside of it or on PostgreSQL. Any number of servers may use it."""

    folder: Path
    database: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def variables(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not OURS.match(name)}
        # It would have each program compile all modules anew.
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        own = {"HITLCHAT_DATA": str(self.folder), "LEASE_SECONDS": "3", "DRAIN_SECONDS": "5", "PYTHONUNBUFFERED": "1"}
        services = {"DATABASE_URL": self.database, "REDIS_URL": settings.REDIS_URL if self.database else ""}
        return kept | own | services | self.environment | more

    def manage(self, *arguments: str, **environment: str) -> str:
        """Run a command of manage.py to its end; what it printed. AssertionError with its complaint if it failed."""
        code, output, errors = forks.run(("manage.py", *arguments), self.variables(**environment), timeout=120)
        assert code == 0, f"manage.py {arguments[0]} failed:\n{errors}"
        return output

    def add_tool(self, name: str, code: str, **draft: Any) -> None:
        """A published tool of alice; keyword arguments are those of a Draft."""
        self.manage("shell", "-v", "0", "-c", TOOL.format(draft=json.dumps({"name": name, "code": code, **draft})))

    def publish(self, name: str) -> None:
        """Put a tool into the catalog without the test run that a person would have to make."""
        if self.database:
            with psycopg.connect(self.database, connect_timeout=5) as there:
                there.execute(PUBLISH.format(yes="true", name="%s"), [name])
            return
        with closing(sqlite3.connect(self.folder / "hitlchat.sqlite3", timeout=START_SECONDS)) as here, here:
            here.execute(PUBLISH.format(yes="1", name="?"), [name])

    def runs(self, status: Literal["running", "waiting"]) -> list[str]:
        """The runs with this status: those that run ask the model, all others nothing by themselves."""
        wanted = RUNS.format(status=status)
        if self.database:
            with psycopg.connect(self.database, connect_timeout=5) as there:
                return [str(run) for (run,) in there.execute(wanted).fetchall()]
        with closing(sqlite3.connect(self.folder / "hitlchat.sqlite3", timeout=START_SECONDS)) as here:
            return [str(UUID(run)) for (run,) in here.execute(wanted).fetchall()]


class Person:
    """Someone signed in with a browser's cookies. Paths are of the server; JSON in, responses out."""

    def __init__(self, server: "Server", name: str) -> None:
        self._server = server
        self._pages: list[Page] = []
        self._client = httpx2.Client(base_url=server.url, timeout=40, trust_env=False, verify=False)
        self._client.get("/sign-in")
        form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": self.csrf}
        answer = self._client.post("/sign-in", data=form, headers=self._headers)
        assert answer.status_code == 302, f"{name} could not sign in: {answer.status_code}"

    @property
    def csrf(self) -> str:
        return self._client.cookies["csrftoken"]

    @property
    def cookies(self) -> dict[str, str]:
        return dict(self._client.cookies)

    @property
    def _headers(self) -> dict[str, str]:
        return {"X-CSRFToken": self.csrf, "Origin": self._server.url}

    def get(self, path: str, **params: str) -> httpx2.Response:
        return self._client.get(path, params=params)

    def post(self, path: str, body: Any = None) -> httpx2.Response:
        return self._client.post(path, json={} if body is None else body, headers=self._headers)

    def patch(self, path: str, body: Any) -> httpx2.Response:
        return self._client.patch(path, json=body, headers=self._headers)

    def begin(self, content: str) -> str:
        """A new conversation that begins with this message; its id."""
        form = {"content": content, "csrfmiddlewaretoken": self.csrf}
        answer = self._client.post("/chat/new", data=form, headers=self._headers)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"].rpartition("/")[2]

    def add_tool(self, name: str, **fields: Any) -> None:
        """A published tool of this person, never tried; keyword arguments are those of the REST interface."""
        answer = self.post("/api/tools", {"name": name, "confirmLowering": True, **fields})
        assert answer.is_success, answer.text
        self._server.home.publish(name)

    def calls(self, conversation: str) -> list[dict[str, Any]]:
        """The calls of all turns, in order."""
        messages = self.conversation(conversation)["messages"]
        return [call for message in messages for call in message["toolCalls"]]

    def answers(self, conversation: str) -> list[str]:
        """What the assistant has said, without turns that only called tools."""
        messages = self.conversation(conversation)["messages"]
        return [said["content"] for said in messages if said["role"] == "assistant" and said["content"]]

    def wait_for_call(self, conversation: str, status: str, count: int = 1) -> list[dict[str, Any]]:
        """The calls of the conversation, once `count` of them have this status."""

        def look() -> list[dict[str, Any]]:
            found = self.calls(conversation)
            return found if [call["status"] for call in found].count(status) == count else []

        return until(look, f"{count} calls are {status}", seconds=40)

    def wait_for_answer(self, conversation: str, words: str) -> None:
        until(lambda: words in self.answers(conversation), f"the assistant says {words!r}", seconds=40)

    def conversation(self, conversation: str) -> dict[str, Any]:
        answer = self.get(f"/api/conversations/{conversation}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def pending(self) -> list[dict[str, Any]]:
        """The approvals that wait for this person."""
        answer = self.get("/api/approvals", status="pending")
        assert answer.status_code == 200, answer.text
        return list(answer.json())

    def socket(self, conversation: str, server: "Server | None" = None) -> "Page":
        """The websocket of the conversation's page."""
        self._pages.append(Page(self, server or self._server, conversation))
        return self._pages[-1]

    def close(self) -> None:
        for page in self._pages:
            page.close()
        self._client.close()


class Page:
    """An open page of a conversation, as far as its websocket goes: frames out, HTML in."""

    def __init__(self, person: Person, server: "Server", conversation: str) -> None:
        cookie = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
        self._open = ExitStack()
        connecting = connect(
            f"{server.url.replace('http', 'ws', 1)}/ws/conversations/{conversation}",
            origin=Origin(server.url),
            additional_headers={"Cookie": cookie},
            max_size=2**24,
            proxy=None,
        )
        self.connection: ClientConnection = self._open.enter_context(connecting)
        self.seen: list[str] = []

    def send(self, **frame: Any) -> None:
        self.connection.send(json.dumps(frame))

    def until(self, words: str, seconds: float = 40.0) -> str:
        """Read on until a fragment holds `words`, and return that one."""

        def look() -> str:
            self.seen.append(str(self.connection.recv(timeout=seconds)))
            return self.seen[-1] if words in self.seen[-1] else ""

        return until(look, f"the page shows {words!r}", seconds=seconds)

    def close_code(self, seconds: float = 40.0) -> int | None:
        """Wait until the server closes the connection; the code it gave."""
        with suppress(ConnectionClosed):
            while True:
                self.connection.recv(timeout=seconds)
        return self.connection.close_code

    def close(self) -> None:
        self._open.close()


class Server:
    """One server process. `start` again after `stop` or `kill`: the same port and the same data. `program`: what Python
    is to run, with the port after it.
    """

    def __init__(self, home: Installation, environment: dict[str, str], program: Sequence[str] = SERVE) -> None:
        self.home = home
        self._program = program
        self.port = free_port()
        self._environment = environment
        self._process: subprocess.Popen[bytes] | forks.Forked | None = None
        self._people: list[Person] = []
        self._log = home.folder / f"server-{self.port}.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    def start(self) -> None:
        """Start, and wait until the server is ready."""
        with self._log.open("ab") as log:
            self._process = self._started([*self._program, str(self.port)], log.fileno())
        until(self._ready, "the server is ready", seconds=START_SECONDS)

    def _started(self, arguments: list[str], log: int) -> "subprocess.Popen[bytes] | forks.Forked":
        variables = self.home.variables(**self._environment)
        if self._program != TRULY_SERVE:
            return forks.Forked(arguments, variables, log, log)
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """SIGKILL: no chance to tidy up."""
        return self._end(signal.SIGKILL)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def limit_files(self, most: int | None) -> None:
        """Let the process write no file beyond so many bytes: each attempt fails, as on a full disk. None: no limit.

        Raises: OSError, AttributeError, where that cannot be set from outside.
        """
        assert self._process is not None
        hard = resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (hard if most is None else most, hard))

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(STOP_SECONDS)

    def sign_in(self, name: str) -> Person:
        self._people.append(Person(self, name))
        return self._people[-1]

    def close(self) -> None:
        for person in self._people:
            person.close()
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def _end(self, number: int) -> int:
        self.signal(number)
        return self.wait()

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the server ended with {self._process.returncode}:\n{self.log[-4000:]}"
        try:
            return httpx2.get(f"{self.url}/readyz", timeout=5, trust_env=False, verify=False).status_code == 200
        except httpx2.TransportError:
            return False


class Servers:
    """The server processes of one test, all on the same data unless told otherwise."""

    def __init__(self, home: Installation) -> None:
        self.home = home
        self._servers: list[Server] = []

    def start(self, program: Sequence[str] = SERVE, **environment: str) -> Server:
        server = Server(self.home, environment, program)
        self._servers.append(server)
        server.start()
        return server

    @property
    def logs(self) -> str:
        """Return the end of what each server printed."""
        return "\n".join(f"--- {server.url}\n{server.log[-LONGEST_LOG:]}" for server in self._servers)

    def close(self) -> None:
        for server in self._servers:
            server.close()


# -- Data to start from: migrated once, copied for each test ---------------------------------------------------------


@pytest.fixture(scope="session")
def migrated() -> Iterator[Installation]:
    """An empty installation with the people that tests speak of."""
    with (
        tempfile.TemporaryDirectory(prefix="hitlchat-processes-") as folder,
        peopled(Path(folder) / "template") as home,
    ):
        yield home


@contextmanager
def peopled(folder: Path) -> Iterator[Installation]:
    """Make an installation with alice, the administrator, bob and charlie; its database is dropped with the block."""
    home = _without_people(folder)
    administrator = {"USERNAME": "alice", "PASSWORD": PASSWORD, "EMAIL": "alice@example.com"}
    variables = {f"DJANGO_SUPERUSER_{name}": value for name, value in administrator.items()}
    home.manage("createsuperuser", "--noinput", "-v", "0", **variables)
    home.manage("shell", "-v", "0", "-c", PEOPLE)
    try:
        yield home
    finally:
        _drop_database(home.database)


@pytest.fixture
def installation(migrated: Installation, tmp_path: Path) -> Iterator[Installation]:
    home = copy_of(migrated, tmp_path / "data")
    yield home
    _drop_database(home.database)


@pytest.fixture
def without_people(tmp_path: Path) -> Iterator[Installation]:
    """An installation as the first `migrate` leaves it."""
    home = _without_people(tmp_path / "without-people")
    yield home
    _drop_database(home.database)


@pytest.fixture
def unmigrated(tmp_path: Path) -> Iterator[Installation]:
    """An installation whose database has no table yet."""
    (tmp_path / "unmigrated").mkdir()
    home = Installation(tmp_path / "unmigrated", _new_database(like=""))
    yield home
    _drop_database(home.database)


@pytest.fixture
def servers(installation: Installation) -> Iterator[Servers]:
    """Starts server processes on an installation of their own; all are ended with the test."""
    started = Servers(installation)
    yield started
    # pytest shows it with a test that failed.
    sys.stdout.write(started.logs)
    started.close()


def copy_of(home: Installation, folder: Path) -> Installation:
    """An installation that begins where `home` stands. No server may be running on that."""
    shutil.copytree(home.folder, folder)
    return Installation(folder, _new_database(like=home.database))


def _without_people(folder: Path) -> Installation:
    home = Installation(folder, _new_database(like=template.on_postgres()))
    if not home.database:
        template.copy_to(home.folder / "hitlchat.sqlite3")
    home.manage("migrate", "-v", "0")
    return home


def _new_database(like: str) -> str:
    """The URL of a new PostgreSQL database beside that of the test run; empty when that is on SQLite."""
    if not settings.DATABASE_URL.startswith("postgres"):
        return ""
    name = f"hitlchat_{uuid4().hex[:12]}"
    template.postgres(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{like.rpartition("/")[2]}"' if like else ""))
    return settings.DATABASE_URL.rpartition("/")[0] + f"/{name}"


def _drop_database(url: str) -> None:
    if url:
        template.postgres(f'DROP DATABASE "{url.rpartition("/")[2]}" WITH (FORCE)')

"""Programs that talk to the API, and calls for them to find."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import MakeTool, caller


class Program:
    """Talks JSON to the API as whoever `client` or the token stands for."""

    def __init__(self, client: Client, token: str = "") -> None:
        self.client = client
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api{path}", query, headers=self.headers)

    def post(self, path: str, body: Any = None) -> Any:
        return self.send("POST", path, b"" if body is None else json.dumps(body))

    def patch(self, path: str, body: Any) -> Any:
        return self.send("PATCH", path, json.dumps(body))

    def put(self, path: str, body: Any) -> Any:
        return self.send("PUT", path, json.dumps(body))

    def delete(self, path: str) -> Any:
        return self.send("DELETE", path)

    def send(self, method: str, path: str, body: str | bytes = b"") -> Any:
        """The body as it is, well-formed or not."""
        return self.client.generic(method, f"/api{path}", body, content_type="application/json", headers=self.headers)


ProgramOf = Callable[..., Program]
Ask = Callable[..., Approval]


@pytest.fixture(autouse=True)
def as_in_a_server(transactional_db: None) -> None:
    """Requests are committed: the gate works in threads of its own and announces on commit."""


@pytest.fixture
def program_of() -> ProgramOf:
    """A program with a personal token of this user."""

    def make(user: User, kind: TokenKind = TokenKind.APPROVER) -> Program:
        return Program(Client(), Token.make(user, kind))

    return make


@pytest.fixture
def alices(alice: User, program_of: ProgramOf) -> Program:
    return program_of(alice)


@pytest.fixture
def bobs(bob: User, program_of: ProgramOf) -> Program:
    return program_of(bob)


@pytest.fixture
def machine(alice: User, program_of: ProgramOf) -> Program:
    """A program that acts for alice, and is not her."""
    return program_of(alice, TokenKind.API)


@pytest.fixture
def browser_of() -> ProgramOf:
    """A browser in which this user is signed in; it sends no CSRF token unless a test adds one."""

    def make(user: User) -> Program:
        client = Client(enforce_csrf_checks=True)
        client.force_login(user)
        return Program(client)

    return make


@pytest.fixture
def ask(make_tool: MakeTool) -> Ask:
    """Have the tool `echo`, which asks every time, called on behalf of a user."""
    make_tool("echo")

    def make(user: User, **arguments: Any) -> Approval:
        return Approval.objects.get(call=called(user, "echo", arguments))

    return make


def called(user: User, tool: str, arguments: dict[str, Any], **more: Any) -> ToolCall:
    return async_to_sync(submit)(CallRequest(tool, arguments, caller(user), **more))


def performed(call_id: UUID, seconds: float = 5) -> ToolCall:
    """No server loop runs in these tests, so a call that may run has to be performed here."""
    return async_to_sync(settled)(call_id, seconds)


def problem(response: Any, status: int) -> dict[str, Any]:
    """The problem document of a response with this status."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert found["status"] == status
    assert {"type", "title", "detail"} <= found.keys()
    return found

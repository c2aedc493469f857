"""Every address and every websocket, asked for by everyone: each of them is let in as docs/access.md says."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signals
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import close_old_connections
from django.shortcuts import resolve_url
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django import Settings

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role, Token, TokenKind
from hitlchat.agent.model_client import DEMO_PATH
from hitlchat.agent.models import Conversation
from hitlchat.asgi import application, http, sockets
from hitlchat.mcp_server.server import PATH as MCP_PATH
from hitlchat.project_tools import catalogue, tool
from tests.access.house import FILE, SENT, House
from tests.access.table import ANY, YES, Row, rows
from tests.chat.conftest import served
from tests.chat.tab import ORIGIN
from tests.conftest import MakeTool
from tests.project_tools.conftest import declared
from tests.scripted_model import scripted_model
from tests.tables import rolled_back
from tests.waiting import SECONDS

__all__ = ["declared", "scripted_model", "served"]
pytestmark = pytest.mark.guarantee("SR-21", "gate:only-people")

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROWS: Final = rows()
BESIDE: Final = [row for row in ROWS if row.section == "Beside pages"]
SOCKETS: Final = [row for row in ROWS if row.section == "Websockets"]
OF_DJANGO: Final = [row for row in ROWS if row.section in ("Pages", "REST")]
# Whom to keep out is what matters most.
FIRST: Final = ("anonymous", "member", "api token")
REST_OF_THEM: Final = [name for name in ROWS[0].outcomes if name not in FIRST]
MANY: Final = pytest.mark.slow("asks for hundreds of pages")
# Addresses that no resolver of Django's knows.
NOT_DJANGO: Final = {MCP_PATH, f"{DEMO_PATH}/chat/completions"}
Communicator: Any = ApplicationCommunicator
# Where browsers send by themselves, and nothing of a person's can be changed.
NO_CSRF_TOKEN: Final = {"/csp-report"}
REFUSED: Final = (401, 403, 404, 405)

People = dict[str, Any]  # users, and None for nobody in particular


class Visitor:
    """Somebody who asks: with a session, with a token, or with nothing."""

    def __init__(self, user: User | None = None, kind: TokenKind | None = None, *, strict: bool = False) -> None:
        self.client = Client(enforce_csrf_checks=strict, raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {Token.make(user, kind)}"} if user and kind else {}
        self.session = ""
        if user and not kind:
            self.client.force_login(user)
            self.session = self.client.cookies[settings.SESSION_COOKIE_NAME].value

    @property
    def raw(self) -> list[tuple[bytes, bytes]]:
        """The headers of a request, as a server hands them on."""
        shown = {"host": "127.0.0.1:8000", **self.headers}
        if self.session:
            shown["cookie"] = f"{settings.SESSION_COOKIE_NAME}={self.session}"
        return [(name.lower().encode(), value.encode()) for name, value in shown.items()]

    def ask(self, method: str, address: str, body: bytes, content_type: str) -> str:
        """Return what comes of it, in the words of the table."""
        # A browser forgets its session at the door, and the next address is asked for as if it had not been there.
        self.client.cookies.clear()
        if self.session:
            self.client.cookies[settings.SESSION_COOKIE_NAME] = self.session
        answer: Any = self.client.generic(method, address, body, content_type=content_type, headers=self.headers)
        if answer.streaming and answer.is_async:
            # The test's own connection to the database outlives the answer.
            signals.request_finished.disconnect(close_old_connections)
            answer.close()
            signals.request_finished.connect(close_old_connections)
        elif answer.streaming:
            answer.getvalue()
        if answer.status_code == 302 and answer["Location"].startswith(f"{resolve_url(settings.LOGIN_URL)}?next="):
            return "sign in"
        return outcome(answer.status_code)


def outcome(status: int) -> str:
    return str(status) if status in REFUSED or status >= 500 else YES


@pytest.fixture
def people(alice: User, bob: User) -> People:
    """By their names in the table."""
    found = {role.value: User.objects.create_user(f"a {role.value}") for role in Role}
    for role in Role:
        roles.give(found[role.value], role)
    return {"anonymous": None, **found, "owner": bob}


@pytest.fixture
def house(
    alice: User, people: People, make_tool: MakeTool, declared: None, settings: Settings, tmp_path: Path
) -> House:
    settings.ATTACHMENTS_DIR = tmp_path
    tool(risk=3)(refund)
    catalogue.load()
    return House(alice, people["owner"], people["author"], make_tool)


def refund(order: str) -> str:
    """Pay money back."""
    return order


@pytest.fixture
def visitors(people: People) -> dict[str, Visitor]:
    """The people, and each kind of token, all of an administrator's."""
    tokens = {f"{kind.value} token": Visitor(people["administrator"], kind) for kind in TokenKind}
    return {name: Visitor(person) for name, person in people.items()} | tokens


def routes(patterns: list[Any], before: str = "/") -> Iterator[str]:
    for each in patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from routes(each.url_patterns, route)
        else:
            assert isinstance(each, URLPattern)
            yield re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)


def plain(row: Row) -> str:
    """The route without the words that say which one of several things is meant."""
    return re.sub(r": [^}]+", "", row.route)


def asked(visitor: Visitor, row: Row, method: str, house: House) -> str:
    sent = house.filled(SENT.get((method, row.route), {}))
    if sent == FILE:
        body, kind = encode_multipart(BOUNDARY, {"file": SimpleUploadedFile(FILE, b"a,b")}), MULTIPART_CONTENT
    elif row.section == "REST":
        body, kind = json.dumps(sent).encode(), "application/json"
    else:
        body, kind = urlencode(sent).encode(), "application/x-www-form-urlencoded"
    with rolled_back():
        return visitor.ask(method, house.address(row.route), body, kind)


def test_each_address_has_a_row_and_each_row_an_address() -> None:
    listed = {plain(row) for row in ROWS if row.section != "Websockets"}
    assert listed == {*routes(get_resolver().url_patterns), *NOT_DJANGO}
    # The last of the sockets refuses what no other takes.
    assert {row.route for row in SOCKETS} == {*routes(sockets[:-1])}


@pytest.mark.django_db
@pytest.mark.parametrize("name", [*FIRST, *(pytest.param(name, marks=MANY) for name in REST_OF_THEM)])
def test_everyone_is_let_in_as_the_table_says(name: str, house: House, visitors: dict[str, Visitor]) -> None:
    wrong = []
    for row in OF_DJANGO:
        for method in row.methods:
            found = asked(visitors[name], row, "GET" if method == ANY else method, house)
            if found != row.outcomes[name]:
                wrong.append(f"{method} {row.route}: {found}, and not {row.outcomes[name]}")
    assert wrong == []


@MANY
@pytest.mark.django_db
def test_no_address_takes_a_method_that_its_rows_do_not_name(house: House, visitors: dict[str, Visitor]) -> None:
    named: dict[str, set[str]] = defaultdict(set)
    for row in OF_DJANGO:
        named[plain(row)] |= {*row.methods}
    others = [(row, each) for row in OF_DJANGO for each in METHODS if not {each, ANY} & named[plain(row)]]
    taken = [(each, row.route) for row, each in others if asked(visitors[row.let_in[0]], row, each, house) != "405"]
    assert taken == []


@pytest.mark.guarantee("SR-24")
@pytest.mark.django_db
def test_no_session_changes_anything_without_a_csrf_token(house: House, people: People) -> None:
    visitors = {name: Visitor(person, strict=True) for name, person in people.items()}
    guarded = [row for row in OF_DJANGO if row.route not in NO_CSRF_TOKEN]
    changing = [(row, each) for row in guarded for each in row.methods if each not in ("GET", ANY)]
    passed = [
        (each, row.route)
        for row, each in changing
        for name in row.let_in
        if name in ("administrator", "author", "owner") and asked(visitors[name], row, each, house) != "403"
    ]
    assert passed == []


@pytest.mark.django_db(transaction=True)
async def test_what_is_beside_the_pages_lets_in_as_the_table_says(
    served: None, people: People, visitors: dict[str, Visitor]
) -> None:
    for row in BESIDE:
        for name, visitor in visitors.items():
            method = "POST" if row.methods == (ANY,) else row.methods[0]
            scope = {"type": "http", "method": method, "path": row.route, "query_string": b"", "headers": visitor.raw}
            asking = Communicator(http, scope | {"http_version": "1.1", "scheme": "http"})
            await asking.send_input({"type": "http.request", "body": b"{}"})
            began = await asking.receive_output(SECONDS)
            assert outcome(began["status"]) == row.outcomes[name], (row.route, name)
            await asking.send_input({"type": "http.disconnect"})
            await asking.wait(SECONDS)


@pytest.mark.django_db(transaction=True)
async def test_each_socket_lets_in_as_the_table_says(
    served: None, people: People, visitors: dict[str, Visitor]
) -> None:
    talk = await Conversation.objects.acreate(owner=people["owner"])
    for row in SOCKETS:
        for name, visitor in visitors.items():
            address = row.route.replace("{conversation_id}", str(talk.pk))
            socket = WebsocketCommunicator(application, address, [*visitor.raw, (b"origin", ORIGIN)])
            assert (await socket.connect(SECONDS))[0]
            first = await socket.receive_output(SECONDS)
            found = str(first["code"]) if first["type"] == "websocket.close" else YES
            assert found == row.outcomes[name], (row.route, name)
            await socket.disconnect(timeout=SECONDS)


@pytest.mark.guarantee("SR-24")
@pytest.mark.django_db(transaction=True)
async def test_a_socket_from_another_origin_is_refused_whoever_asks(
    served: None, people: People, visitors: dict[str, Visitor]
) -> None:
    talk = await Conversation.objects.acreate(owner=people["owner"])
    for row in SOCKETS:
        address = row.route.replace("{conversation_id}", str(talk.pk))
        headers = [*visitors["owner"].raw, (b"origin", b"https://evil.example")]
        assert not (await WebsocketCommunicator(application, address, headers).connect(SECONDS))[0]

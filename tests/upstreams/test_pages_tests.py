"""Before anything is saved: the risk of what is typed, and the test of a connection."""

import re
import shlex
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.upstreams.models import ServerState, UpstreamServer
from hitlchat.upstreams.pages import form
from tests.upstreams.drawers import of
from tests.upstreams.shops import Shop, listing, shop_in, somewhere, take_in
from tests.upstreams.test_pages import KEY
from tests.upstreams.test_pages_form import HTTP, STDIO, header, save

pytestmark = pytest.mark.django_db


def test_the_risk_follows_what_is_typed(alice: User) -> None:
    client = of(alice)

    def risk(**fields: str) -> str:
        return str(client.post("/servers/risk", HTTP | fields).content.decode())

    assert "no-auth-write" in risk()
    assert "no-auth" not in risk(**header("Authorization", "Bearer x"))
    assert "appears here once" in risk(url="")
    assert "It runs on this machine." in risk(url="http://localhost:9000/mcp")
    for wrong in ("http://[", "shop", "ftp://shop.example"):
        assert "appears here once" in risk(url=wrong)


def test_the_same_risk_is_not_sent_again(alice: User) -> None:
    client = of(alice)
    found = re.search(r'name="risk-mark" value="(\w+)"', client.post("/servers/risk", HTTP).content.decode())
    assert found
    assert client.post("/servers/risk", HTTP | {"risk-mark": found[1]}).status_code == 204


def test_the_risk_is_sent_again_once_the_tools_are_known(alice: User) -> None:
    server, client = somewhere(alice), of(alice)
    before = client.post("/servers/risk", HTTP | {"of": "shop"}).content.decode()
    assert "are assumed to change things" in before
    found = re.search(r'name="risk-mark" value="(\w+)"', before)
    assert found
    take_in(server, listing(remove="Remove it."))
    after = client.post("/servers/risk", HTTP | {"of": "shop", "risk-mark": found[1]})
    assert (after.status_code, b"assumed" in after.content) == (200, False)


class NotThere(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(404)

    def do_GET(self) -> None:
        self.send_error(404)


def test_a_page_that_is_not_there_says_what_the_path_often_is(alice: User) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), NotThere) as nothing:
        threading.Thread(target=nothing.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{nothing.server_port}/"
        page = save(alice, "/servers/test", **HTTP | {"url": url}).content.decode()
        nothing.shutdown()
    assert "The connection failed." in page
    assert "is often <code>/mcp</code>" in page


@pytest.mark.django_db(transaction=True)
def test_a_connection_is_tested_before_anything_is_saved(alice: User, shop: Shop) -> None:
    page = save(alice, "/servers/test", **HTTP | {"name": "", "url": shop.program.url}).content.decode()
    assert "The connection works." in page
    assert "1 tool:" in page
    assert "<code>echo</code>" in page
    assert not UpstreamServer.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_test_of_a_saved_server_leaves_its_row_alone(alice: User, shop: Shop) -> None:
    server = somewhere(alice)
    UpstreamServer.objects.filter(pk=server.pk).update(url=shop.program.url)
    before = UpstreamServer.objects.values().get()
    assert "The connection works." in save(alice, "/servers/test", of="shop", saved="1").content.decode()
    assert UpstreamServer.objects.values().get() == before
    assert before["state"] == ServerState.NEW


def test_a_test_that_fails_says_why_without_the_secret(alice: User) -> None:
    given = HTTP | {"url": "http://127.0.0.1:9/mcp"} | header("Authorization", f"Bearer {KEY}")
    page = save(alice, "/servers/test", **given).content.decode()
    assert "The connection failed." in page
    assert KEY not in page


def test_a_test_of_what_is_mistyped_names_the_fields(alice: User) -> None:
    page = save(alice, "/servers/test", **HTTP | {"url": "shop"}).content.decode()
    assert "Not tested." in page
    assert "<b>Address:</b>" in page


@pytest.mark.django_db(transaction=True)
def test_a_program_is_started_for_a_test_only_with_a_yes(alice: User, allow_stdio: None, tmp_path: Path) -> None:
    program = shop_in(tmp_path)
    given = STDIO | {"command": sys.executable, "args": form.lines(program.arguments)}
    page = save(alice, "/servers/test", **given).content.decode()
    assert "The test starts this program once on this machine" in page
    assert not program.log.exists()
    command_line = shlex.join([sys.executable, *program.arguments])
    assert "The connection works." in save(alice, "/servers/test", **given, confirmed=command_line).content.decode()
    assert program.log.exists()
    assert not UpstreamServer.objects.exists()


def test_a_test_without_the_operators_leave_starts_no_program(alice: User, settings: Settings) -> None:
    settings.MCP_ALLOW_STDIO = False
    assert "MCP_ALLOW_STDIO" in save(alice, "/servers/test", **STDIO, confirmed="shop --root '/a b'").content.decode()

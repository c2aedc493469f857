"""The page that says how to connect a client: the right address, a token if one is wanted, and formats that work."""

import json
import shlex
import shutil
import subprocess
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.accounts.models import Token
from hitlchat.gate.models import Tool
from hitlchat.mcp_server import tokens, views

pytestmark = pytest.mark.django_db

URL = "/mcp-access/connect"
HERE = "http://127.0.0.1:8000/mcp"
SECRET = "hitl_mcp_an-example_of_one"


@pytest.fixture
def page(client: Client, bob: User) -> Client:
    client.force_login(bob)
    return client


def texts(url: str = HERE) -> dict[str, list[str]]:
    return {each.id: [part.text for part in each.snippets] for each in views.clients(url, SECRET)}


def test_looking_makes_no_token_and_shows_what_stands_for_one(page: Client) -> None:
    shown = page.get(URL, headers={"host": "localhost:8123"}).content.decode()
    assert "http://localhost:8123/mcp" in shown
    assert "Bearer &lt;token&gt;" in shown
    assert not Token.objects.exists()


def test_a_press_makes_a_token_and_fills_it_in_this_once(page: Client, bob: User) -> None:
    response = page.post(URL)
    secret = response.context["secret"]
    access = tokens.find(secret)
    assert access is not None
    assert (access.user_id, access.tools, access.without_elicitation) == (bob.pk, None, "deny")
    assert Token.objects.get().expires_at is not None
    assert "Bearer " + secret in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    assert secret not in page.get(URL).content.decode()


def test_behind_https_the_address_says_so(page: Client, settings: Settings) -> None:
    settings.HTTPS = True
    assert "https://testserver/mcp" in page.get(URL).content.decode()


def test_only_administrators_are_led_to_what_is_offered(page: Client, alice: User, tool: Tool) -> None:
    shown = page.get(URL).content.decode()
    assert "/servers/tools" not in shown
    assert "That is 1 tool now" in shown
    page.force_login(alice)
    assert "/servers/tools" in page.get(URL).content.decode()


def test_files_are_json_of_the_shape_that_each_client_reads() -> None:
    found = texts()
    desktop = json.loads(found["claude-desktop"][0])["mcpServers"]["hitlchat"]
    assert (desktop["command"], desktop["args"][:3]) == ("npx", ["-y", "mcp-remote", HERE])
    assert desktop["args"][-1] == "Authorization:${AUTH_HEADER}"
    assert not any(" " in argument for argument in desktop["args"])
    assert desktop["env"] == {"AUTH_HEADER": f"Bearer {SECRET}"}
    cursor = json.loads(found["cursor"][0])["mcpServers"]["hitlchat"]
    assert cursor == {"url": HERE, "headers": {"Authorization": f"Bearer {SECRET}"}}
    code = json.loads(found["vs-code"][0])
    assert code["servers"]["hitlchat"]["headers"] == {"Authorization": f"Bearer ${{input:{code['inputs'][0]['id']}}}"}
    assert code["inputs"][0]["password"] is True
    assert SECRET not in found["vs-code"][0]
    assert found["vs-code"][1] == SECRET


def test_the_bridge_for_claude_desktop_allows_plain_http_only_where_it_has_to() -> None:
    for url, allowed in ((HERE, False), ("https://a.example/mcp", False), ("http://a.example/mcp", True)):
        assert ("--allow-http" in texts(url)["claude-desktop"][0]) is allowed


def test_commands_are_whole_words_for_a_shell() -> None:
    found = texts()
    header = ["--header", f"Authorization: Bearer {SECRET}"]
    claude = ["claude", "mcp", "add", "--transport", "http", "hitlchat", HERE, *header]
    assert words(found["claude-code"][0]) == claude
    inspector = ["npx", "@modelcontextprotocol/inspector"]
    assert words(found["inspector"][0]) == [*inspector, "--server-url", HERE, "--transport", "http", *header]
    listing = [*inspector, "--cli", HERE, "--transport", "http", *header, "--method", "tools/list"]
    assert words(found["inspector"][1]) == listing


def words(command: str) -> list[str]:
    return [word for word in shlex.split(command) if word.strip()]


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.django_db(transaction=True)
def test_the_command_for_curl_lists_the_tools(url: str, token: str, tool: Tool) -> None:
    command = {each.id: each for each in views.clients(f"{url}/mcp", token)}["curl"].snippets[0].text
    answer = subprocess.run(
        ["sh", "-c", command + " --silent --max-time 20 --noproxy '*'"], capture_output=True, check=True, text=True
    )
    lines = [line.removeprefix("data: ") for line in answer.stdout.splitlines() if "{" in line]
    result: dict[str, Any] = json.loads(lines[-1])["result"]
    assert [each["name"] for each in result["tools"]] == ["refund"]


def test_the_documentation_that_a_page_refers_to_is_one_click_away(page: Client, alice: User) -> None:
    assert 'href="/docs/mcp"' in page.get(URL).content.decode()
    page.force_login(alice)
    assert 'href="/docs/policies"' in page.get("/policies").content.decode()
    assert {page.get(f"/docs/{name}").status_code for name in ("mcp", "policies")} == {200}

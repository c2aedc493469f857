"""The page on connecting an MCP client: this installation's address, a token, and what each client needs of them."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods
from mcp_types.version import LATEST_MODERN_VERSION

from hitlchat.accounts.access import person
from hitlchat.accounts.models import TokenKind
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server import personal
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.serving import PATH
from hitlchat.mcp_server.tokens import Access
from hitlchat.upstreams import exposure

NAME_AT_CLIENT = "hitlchat"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Snippet:
    """`where` it belongs, and the text to copy there."""

    where: str
    text: str


@dataclass(frozen=True)
class Client:
    """`asks`: whether it can ask its user about a call, in a word; `about`: what else to know."""

    id: str
    name: str
    asks: str
    about: str
    snippets: tuple[Snippet, ...]


def clients(url: str, token: str) -> tuple[Client, ...]:
    """`token`: its text, or what stands for it."""
    bearer = f"Bearer {token}"
    return (
        _claude_code(url, bearer),
        _claude_desktop(url, bearer),
        _vs_code(url, token),
        _cursor(url, bearer),
        _inspector(url, bearer),
        _curl(url, bearer),
    )


def _claude_code(url: str, bearer: str) -> Client:
    command = f'claude mcp add --transport http {NAME_AT_CLIENT} {url} \\\n  --header "Authorization: {bearer}"'
    about = (
        "Add --scope user in front of the name to have it in all projects. Calls that have to be approved are asked"
        " about in a dialog in the terminal."
    )
    return Client("claude-code", "Claude Code", "Can ask", about, (Snippet("In a terminal", command),))


def _claude_desktop(url: str, bearer: str) -> Client:
    # Spaces in arguments are mangled on Windows, so the one in the header stands in a variable.
    arguments = ["-y", "mcp-remote", url, "--transport", "http-only", "--header", "Authorization:${AUTH_HEADER}"]
    if urlsplit(url).scheme == "http" and urlsplit(url).hostname not in LOOPBACK:
        arguments.append("--allow-http")
    server = {"command": "npx", "args": arguments, "env": {"AUTH_HEADER": bearer}}
    about = (
        "Its file only knows programs, so mcp-remote (npm, needs Node.js) stands between. Under Settings, Developer,"
        " Edit Config; then quit and start Claude Desktop again. What it adds as a connector signs in by OAuth, which"
        " this server does not offer."
    )
    snippet = Snippet("claude_desktop_config.json", _json({"mcpServers": {NAME_AT_CLIENT: server}}))
    return Client("claude-desktop", "Claude Desktop", "Not known to ask", about, (snippet,))


def _vs_code(url: str, token: str) -> Client:
    asked = {
        "type": "promptString",
        "id": f"{NAME_AT_CLIENT}-token",
        "description": f"Token for {NAME_AT_CLIENT}",
        "password": True,
    }
    headers = {"Authorization": f"Bearer ${{input:{NAME_AT_CLIENT}-token}}"}
    server = {"type": "http", "url": url, "headers": headers}
    about = "The file is often committed, so the token is not in it: VS Code asks for it once, and keeps it for you."
    snippets = (
        Snippet(
            ".vscode/mcp.json, or MCP: Open User Configuration",
            _json({"servers": {NAME_AT_CLIENT: server}, "inputs": [asked]}),
        ),
        Snippet("When it asks for the token", token),
    )
    return Client("vs-code", "VS Code", "Can ask", about, snippets)


def _cursor(url: str, bearer: str) -> Client:
    server = {"url": url, "headers": {"Authorization": bearer}}
    snippet = Snippet("~/.cursor/mcp.json", _json({"mcpServers": {NAME_AT_CLIENT: server}}))
    about = "In a project, .cursor/mcp.json; do not commit it with the token in it (${env:NAME} may stand for it)."
    return Client("cursor", "Cursor", "Can ask", about, (snippet,))


def _inspector(url: str, bearer: str) -> Client:
    program, server = (
        "npx @modelcontextprotocol/inspector",
        f'--transport http \\\n  --header "Authorization: {bearer}"',
    )
    snippets = (
        Snippet("In a terminal; it prints the address of its page", f"{program} --server-url {url} {server}"),
        Snippet("Without a page", f"{program} --cli {url} {server} \\\n  --method tools/list"),
    )
    about = "Of the MCP project itself, to look at servers with; needs Node.js 22. With --cli it cannot ask."
    return Client("inspector", "MCP Inspector", "Can ask on its page", about, snippets)


def _curl(url: str, bearer: str) -> Client:
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": LATEST_MODERN_VERSION, f"{prefix}/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {
        "Authorization": bearer,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": LATEST_MODERN_VERSION,
        "Mcp-Method": "tools/list",
    }
    lines = [f"curl {url}", *(f"-H '{name}: {value}'" for name, value in headers.items()), f"-d '{json.dumps(body)}'"]
    about = "Lists the tools, in the revision of MCP that needs no session."
    return Client("curl", "curl", "Cannot ask", about, (Snippet("In a terminal", " \\\n  ".join(lines)),))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


NAME = "Made on the Connect page"
VALID = timedelta(days=90)
UNKNOWN = "<token>"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """POST makes the token, whose text is in this one answer."""
    user = person(request)
    secret = _made(user) if request.method == "POST" else ""
    url = address(request)
    context = {
        "url": url,
        "secret": secret,
        "name": NAME,
        "days": VALID.days,
        "clients": clients(url, secret or UNKNOWN),
        "count": visible(Access(0, user.pk, user.get_username())).count(),
        "mode": exposure.standing().mode,
        "highest_said": settings.HITL_ELICITATION_MAX_RISK,
        "inbox_seconds": settings.MCP_INBOX_SECONDS,
    }
    return render(request, "mcp/connect.html", context)


def _made(user: User) -> str:
    return personal.make(user, TokenKind.MCP, Actor(user.pk, "session"), NAME, timezone.now() + VALID)


def address(request: HttpRequest) -> str:
    """Return the address of the MCP server, under the name by which this browser knows it."""
    scheme = "https" if settings.HTTPS else request.scheme
    return f"{scheme}://{request.get_host()}{PATH}"

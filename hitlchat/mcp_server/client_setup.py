"""Set-up of MCP clients: what to copy where, and whether each can ask its user about a call."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext_noop
from mcp_types.version import LATEST_MODERN_VERSION

NAME_AT_CLIENT = "hitlchat"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Snippet:
    """A text to copy, and `where` it belongs."""

    where: str
    text: str


@dataclass(frozen=True)
class Client:
    """An MCP client. `asks`: whether it can ask its user about a call; `about`: what else to know."""

    id: str
    name: str
    asks: str
    about: str
    snippets: tuple[Snippet, ...]


def clients(url: str, token: str) -> tuple[Client, ...]:
    """Return the set-up of each client. `token`: its text, or a placeholder."""
    bearer = f"Bearer {token}"
    first = (_claude_code(url, bearer), _claude_desktop(url, bearer), _vs_code(url, token))
    return (*first, _cursor(url, bearer), _inspector(url, bearer), _curl(url, bearer))


def _claude_code(url: str, bearer: str) -> Client:
    command = f'claude mcp add --transport http {NAME_AT_CLIENT} {url} \\\n  --header "Authorization: {bearer}"'
    about = gettext_noop(
        "Add --scope user before the name for all projects. Approval questions appear in a dialog in the terminal."
    )
    snippet = Snippet(gettext_noop("In a terminal"), command)
    return Client("claude-code", "Claude Code", gettext_noop("Can ask"), about, (snippet,))


def _claude_desktop(url: str, bearer: str) -> Client:
    # Spaces in arguments are mangled on Windows, so the one in the header stands in a variable.
    arguments = ["-y", "mcp-remote", url, "--transport", "http-only", "--header", "Authorization:${AUTH_HEADER}"]
    if urlsplit(url).scheme == "http" and urlsplit(url).hostname not in LOOPBACK:
        arguments.append("--allow-http")
    server = {"command": "npx", "args": arguments, "env": {"AUTH_HEADER": bearer}}
    about = gettext_noop(
        "Its file supports only programs, so mcp-remote (npm, needs Node.js) connects them. Open Settings, "
        "Developer, Edit Config; then restart Claude Desktop. Its connectors sign in by OAuth, which this "
        "server does not offer."
    )
    snippet = Snippet("claude_desktop_config.json", _json({"mcpServers": {NAME_AT_CLIENT: server}}))
    return Client("claude-desktop", "Claude Desktop", gettext_noop("May not be able to ask"), about, (snippet,))


def _vs_code(url: str, token: str) -> Client:
    name, said = f"{NAME_AT_CLIENT}-token", f"Token for {NAME_AT_CLIENT}"
    prompt = {"type": "promptString", "id": name, "description": said, "password": True}
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer ${{input:{name}}}"}}
    about = gettext_noop(
        "The file is often committed, so it does not contain the token: VS Code asks for it once and stores it."
    )
    file = _json({"servers": {NAME_AT_CLIENT: server}, "inputs": [prompt]})
    snippet = Snippet(".vscode/mcp.json, or MCP: Open User Configuration", file)
    secret = Snippet(gettext_noop("When it asks for the token"), token)
    return Client("vs-code", "VS Code", gettext_noop("Can ask"), about, (snippet, secret))


def _cursor(url: str, bearer: str) -> Client:
    server = {"url": url, "headers": {"Authorization": bearer}}
    snippet = Snippet("~/.cursor/mcp.json", _json({"mcpServers": {NAME_AT_CLIENT: server}}))
    about = gettext_noop("In a project, .cursor/mcp.json. Do not commit the token; use ${env:NAME} instead.")
    return Client("cursor", "Cursor", gettext_noop("Can ask"), about, (snippet,))


def _inspector(url: str, bearer: str) -> Client:
    program = "npx @modelcontextprotocol/inspector"
    server = f'--transport http \\\n  --header "Authorization: {bearer}"'
    where = gettext_noop("In a terminal; it prints the address of its page")
    page = Snippet(where, f"{program} --server-url {url} {server}")
    cli = Snippet(gettext_noop("Without a page"), f"{program} --cli {url} {server} \\\n  --method tools/list")
    about = gettext_noop("The MCP project's tool to inspect servers; needs Node.js 22. With --cli it cannot ask.")
    return Client("inspector", "MCP Inspector", gettext_noop("Can ask on its page"), about, (page, cli))


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
    about = gettext_noop("Lists the tools, with the MCP version that needs no session.")
    snippet = Snippet(gettext_noop("In a terminal"), " \\\n  ".join(lines))
    return Client("curl", "curl", gettext_noop("Cannot ask"), about, (snippet,))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)

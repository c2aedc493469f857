"""A program that is an MCP client, to be killed: it calls one tool, says on its output how far it is, and waits.

python dying_client.py URL TOKEN ERA TOOL ARGUMENTS [accept | mute]

A mute one cannot ask its user.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import httpx2

PREFIX = "io.modelcontextprotocol"
MODERN = "2026-07-28"


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def events(web: httpx2.Client, body: dict[str, Any], **headers: str) -> Iterator[dict[str, Any]]:
    with web.stream("POST", "/mcp", json={"jsonrpc": "2.0", **body}, headers=headers) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: {"):
                yield json.loads(line.removeprefix("data: "))
            elif line.startswith("{"):
                yield json.loads(line)


def older(web: httpx2.Client, params: dict[str, Any], answer: str) -> None:
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {} if answer == "mute" else {"elicitation": {}},
        "clientInfo": {"name": "dying", "version": "1"},
    }
    begun = web.post("/mcp", json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})
    web.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
    web.headers["mcp-protocol-version"] = "2025-11-25"
    web.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    say("calls")
    for event in events(web, {"id": 1, "method": "tools/call", "params": params}):
        if event.get("method") == "elicitation/create":
            say("asked")
            if answer:
                web.post("/mcp", json={"jsonrpc": "2.0", "id": event["id"], "result": {"action": answer}})
        elif event.get("id") == 1:
            say("result")


def modern(web: httpx2.Client, params: dict[str, Any], answer: str) -> None:
    meta = {f"{PREFIX}/protocolVersion": MODERN, f"{PREFIX}/clientCapabilities": {"elicitation": {"form": {}}}}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": params["name"]}
    body: dict[str, Any] = {"id": 1, "method": "tools/call", "params": params | {"_meta": meta}}
    say("calls")
    (told,) = [event["result"] for event in events(web, body, **headers) if "result" in event]
    if told.get("resultType") == "input_required":
        say("asked")
        if answer:
            more: dict[str, Any] = {
                "requestState": told["requestState"],
                "inputResponses": {"approval": {"action": answer}},
            }
            list(events(web, body | {"params": body["params"] | more}, **headers))
            say("result")


def main(url: str, token: str, era: str, tool: str, arguments: str, answer: str = "") -> None:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    with httpx2.Client(base_url=url, headers=headers, timeout=120, trust_env=False, verify=False) as web:
        params = {"name": tool, "arguments": json.loads(arguments)}
        try:
            (older if era == "2025" else modern)(web, params, answer)
        except httpx2.TransportError:
            say("lost")
        # To be killed: nothing of it ends in an orderly way.
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Somebody is deactivated at one server process, while their pages and streams are open at another."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from hitlchat.chat.consumers import CLOSE_DEACTIVATED
from tests.mcp_server.clients import MODERN
from tests.mcp_server.older import ACCEPT
from tests.processes import STEADY, Installation, Server, Servers
from tests.scripted_model import ScriptedModel, calls, scripted_model
from tests.waiting import until

__all__ = ["scripted_model"]

pytestmark = [
    pytest.mark.slow("starts processes"),
    pytest.mark.processes,
    pytest.mark.timeout(240),
    pytest.mark.servers("what a killed process leaves is what was committed"),
]

ECHO = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'


def listening(server: Server, token: str, lines: list[str]) -> None:
    """Read what /mcp tells of changes of its list, to the end."""
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": MODERN, f"{prefix}/clientCapabilities": {}}
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": ACCEPT,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    with httpx2.stream(
        "POST", f"{server.url}/mcp", json=body, headers=headers, timeout=60, trust_env=False, verify=False
    ) as stream:
        for line in stream.iter_lines():
            lines.append(line)


def bearer(token: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}, "timeout": 30, "trust_env": False, "verify": False}


def test_what_somebody_deactivated_has_open_elsewhere_is_closed_and_nothing_of_theirs_runs(
    servers: Servers, installation: Installation, scripted_model: ScriptedModel
) -> None:
    installation.add_tool("echo", ECHO, hitl_mode="REQUIRED")
    mcp, api, approver = (
        installation.manage("create_token", "bob", "--kind", kind).strip() for kind in ("mcp", "api", "approver")
    )
    here, there = (servers.start(**scripted_model.environment, **STEADY) for _ in range(2))
    bob, alice = there.sign_in("bob"), here.sign_in("alice")
    scripted_model.enqueue(calls(("echo", {"text": "never"})))
    conversation = bob.begin("go on")
    bob.wait_for_call(conversation, "waiting")
    page = bob.socket(conversation)
    lines: list[str] = []
    with ThreadPoolExecutor() as pool:
        stream = pool.submit(listening, there, mcp, lines)
        until(lambda: lines, "the stream is open", seconds=40)
        assert httpx2.get(f"{there.url}/api/calls", **bearer(api)).status_code == 200

        installation.manage("people", "deactivate", "bob")

        assert page.close_code() == CLOSE_DEACTIVATED
        stream.result(40)
    for server in (here, there):
        for token in (api, approver):
            assert httpx2.get(f"{server.url}/api/calls", **bearer(token)).status_code == 401
        assert httpx2.post(f"{server.url}/mcp", json={}, **bearer(mcp)).status_code == 401
    assert bob.get(f"/chat/{conversation}").status_code == 302
    assert bob.get("/api/calls").status_code == 401
    events = alice.get("/api/audit", name="call.withdrawn").json()
    assert [event["toolName"] for event in events] == ["echo"]
    assert alice.get("/api/audit", name="call.executing").json() == []
    assert [event["data"]["person"] for event in alice.get("/api/audit", name="person.deactivated").json()] == ["bob"]

    installation.manage("people", "reactivate", "bob")
    assert bob.get("/api/calls").status_code == 401
    assert there.sign_in("bob").get("/api/calls").status_code == 200
    assert httpx2.get(f"{here.url}/api/calls", **bearer(api)).status_code == 401

"""Clients and servers that are killed in the middle of a call, in both eras: nothing runs without a yes, nothing runs
twice, and nobody is asked in vain.
"""

import json
from contextlib import AbstractContextManager
from subprocess import Popen
from typing import Any

import pytest

from tests.mcp_server import dying_client
from tests.mcp_server.clients import Raw
from tests.mcp_server.floods import program
from tests.mcp_server.prepared import Prepared, installation, prepared
from tests.outside import Outside
from tests.processes import STEADY, Person, Server, Servers
from tests.scripted_model import Gate
from tests.waiting import until

__all__ = ["installation", "prepared"]

pytestmark = [
    pytest.mark.slow("kills programs"),
    pytest.mark.timeout(300),
    pytest.mark.servers("what a killed process leaves is what was committed"),
]
# What the death of a client does has nothing to do with the database.
of_a_client = pytest.mark.embedded
both_eras = pytest.mark.parametrize("era", ["2025", "2026"])

SECONDS = 60.0


def client(
    server: Server, token: str, era: str, tool: str = "echo", *answer: str, **arguments: Any
) -> AbstractContextManager["Popen[str]"]:
    return program(dying_client.__file__, server.url, token, era, tool, json.dumps(arguments), *answer)


def heard(started: "Popen[str]", word: str) -> None:
    """Wait until the client says so; the test's own time limit bounds it."""
    assert started.stdout is not None
    for line in started.stdout:
        if line.strip() == word:
            return
    pytest.fail(f"the client ended before it said {word!r}")


def statuses(person: Person) -> list[str]:
    return [call["status"] for call in person.get("/api/calls").json()]


def wait_for(person: Person, *wanted: str) -> None:
    until(lambda: sorted(statuses(person)) == sorted(wanted), f"the calls are {wanted}", seconds=SECONDS)


@of_a_client
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_an_older_client_killed_in_the_question_takes_it_out_of_the_inbox(servers: Servers, prepared: Prepared) -> None:
    server = servers.start(**STEADY)
    bob = server.sign_in("bob")
    with client(server, prepared.token, "2025") as started:
        heard(started, "asked")
        assert len(bob.pending()) == 1
        started.kill()
        wait_for(bob, "withdrawn")
    assert bob.pending() == []


@of_a_client
@pytest.mark.guarantee("gate:no-yes-no-run", "run:survives")
@pytest.mark.parametrize("verdict, status", [("approve", "succeeded"), ("reject", "declined")])
def test_the_question_of_a_newer_client_that_was_killed_is_still_its_users_to_decide(
    verdict: str, status: str, servers: Servers, prepared: Prepared
) -> None:
    server = servers.start(**STEADY)
    bob = server.sign_in("bob")
    with client(server, prepared.token, "2026") as started:
        heard(started, "asked")
    assert statuses(bob) == ["waiting"]
    assert bob.post(f"/api/approvals/{bob.pending()[0]['id']}/{verdict}").status_code == 200
    wait_for(bob, status)


# An older client's leaving is no wish to stop (so says MCP); a newer one's is.
@of_a_client
@both_eras
@pytest.mark.guarantee("gate:at-most-once")
@pytest.mark.parametrize("gated", [True, False], ids=["after its yes", "ungated"])
def test_a_client_killed_while_its_tool_runs_leaves_one_run_and_one_outcome(
    era: str, gated: bool, servers: Servers, prepared: Prepared, outside: Outside
) -> None:
    outside.gate = Gate()
    server = servers.start(**STEADY)
    server.sign_in("alice").add_tool(hitlMode="REQUIRED" if gated else "DISABLED", **outside.tool)
    bob = server.sign_in("bob")
    with client(server, prepared.token, era, "order", "accept", what="a lamp"):
        outside.gate.wait()
        assert statuses(bob) == ["executing"]
    if era == "2026":
        until(lambda: statuses(bob) != ["executing"], "it was told to stop", seconds=SECONDS)
    outside.gate.open()
    wait_for(bob, "succeeded" if era == "2025" else "failed")
    (call,) = bob.get("/api/calls").json()
    assert len(outside.orders) == 1
    if era == "2026":
        assert "stop" in json.dumps(call["error"])


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth")
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(1, id="one process", marks=pytest.mark.embedded),
        pytest.param(2, id="two processes", marks=pytest.mark.postgres),
    ],
)
@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_what_waits_when_its_server_ends_is_withdrawn_or_goes_on_by_whether_someone_can_still_get_the_answer(
    end: str, count: int, servers: Servers, prepared: Prepared
) -> None:
    first, *others = [servers.start() for _ in range(count)]
    with client(first, prepared.inbox, "2025", "echo", "mute", text="older, inbox") as inbox:
        heard(inbox, "calls")
        watching = (others or [first])[0].sign_in("bob")
        # First, so that it is there to come back for by the time that the older client's question is seen to be over.
        until(lambda: len(watching.pending()) == 1, "it waits in the inbox", seconds=SECONDS)
        with (
            client(first, prepared.token, "2025", text="older") as older,
            client(first, prepared.token, "2026", text="newer") as newer,
        ):
            heard(older, "asked")
            heard(newer, "asked")
            until(lambda: len(watching.pending()) == 3, "all of them wait", seconds=SECONDS)
            getattr(first, end)()
    if not others:
        first.start()
    server = (others or [first])[0]
    bob = server.sign_in("bob")
    wait_for(bob, "waiting", "waiting", "withdrawn")
    (gone,) = (call for call in bob.get("/api/calls").json() if call["status"] == "withdrawn")
    assert gone["arguments"] == {"text": "older"}
    # Whoever comes back for the other one gets its outcome, and nobody is asked a second time.
    for approval in bob.pending():
        assert bob.post(f"/api/approvals/{approval['id']}/approve").status_code == 200
    wait_for(bob, "succeeded", "succeeded", "withdrawn")
    again = await Raw(server.url, prepared.inbox).call("echo", {"text": "older, inbox"})
    assert again["result"]["content"][0]["text"] == "older, inbox"
    assert len(statuses(bob)) == 3

"""Server processes share what they know of upstream servers, die in the middle of a call, and are started again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import STEADY, Person, Server, Servers, installation, migrated, servers
from tests.scripted_model import ScriptedModel, calls, scripted_model, text
from tests.upstreams.shops import Shop, shop_in
from tests.waiting import until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.servers("what a killed process leaves is what was committed"),
    pytest.mark.slow("starts and kills server processes; test_cancelling.py has the story of two"),
]

__all__ = ["installation", "migrated", "scripted_model", "servers"]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "shop"
    folder.mkdir()
    made = shop_in(folder)
    made.offer(echo="Say the text back.", slow="Take a while.")
    made.program.start()
    yield made
    made.program.kill()


def put(person: Person, path: str, body: dict[str, Any]) -> None:
    answer = person._client.put(path, json=body, headers=person._headers)
    assert answer.is_success, answer.text


def add(server: Server, shop: Shop) -> Person:
    """Alice, who has made the shop known."""
    alice = server.sign_in("alice")
    answer = alice.post("/api/servers", {"name": "shop", "transport": "http", "url": shop.program.url})
    assert answer.status_code == 201, answer.text
    until(lambda: look(alice)["toolCount"] == 2, "its tools are known")
    return alice


def expose(alice: Person, name: str) -> None:
    put(alice, f"/api/servers/shop/tools/{name}", {"exposed": True})


def look(alice: Person) -> dict[str, Any]:
    return dict(alice.get("/api/servers/shop").json())


def published(alice: Person) -> list[str]:
    """What of the shop is in the catalog."""
    return [
        tool["name"] for tool in alice.get("/api/tools").json() if tool["source"] == "upstream" and tool["published"]
    ]


@pytest.fixture
def two(servers: Servers, scripted_model: ScriptedModel) -> tuple[Server, Server]:
    """Two processes on the same data."""
    first, second = (servers.start(**scripted_model.environment, **STEADY) for _ in range(2))
    return first, second


def approve(person: Person) -> None:
    (approval,) = person.pending()
    answer = person.post(f"/api/approvals/{approval['id']}/approve", {"consentDigest": approval["consentDigest"]})
    assert answer.status_code == 200, answer.text


def ask(person: Person, model: ScriptedModel, tool: str, arguments: dict[str, Any], answer: str) -> str:
    """A conversation in which the model calls this tool, and it waits."""
    model.enqueue(calls((tool, arguments)), text(answer))
    conversation = person.begin("Do it.")
    person.wait_for_call(conversation, "waiting")
    return conversation


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_is_exposed_anywhere_is_called_from_every_process_at_once(
    two: tuple[Server, Server], shop: Shop, scripted_model: ScriptedModel
) -> None:
    expose(add(two[0], shop), "echo")
    for number, server in enumerate(two):
        bob = server.sign_in("bob")
        conversation = ask(bob, scripted_model, "shop_echo", {"text": f"hello {number}"}, f"Said {number}.")
        assert len(shop.heard) == number
        approve(bob)
        bob.wait_for_answer(conversation, f"Said {number}.")
    assert shop.heard == ["call hello 0", "call hello 1"]


def test_a_server_that_goes_leaves_the_catalog_of_all_processes_and_comes_back_to_them(
    two: tuple[Server, Server], shop: Shop, scripted_model: ScriptedModel
) -> None:
    expose(add(two[0], shop), "echo")
    everywhere = [server.sign_in("alice") for server in two]
    assert [published(alice) for alice in everywhere] == [["shop_echo"]] * 2
    shop.program.kill()
    for alice in everywhere:
        until(lambda alice=alice: published(alice) == [], "it has left the catalog", seconds=60)  # type: ignore[misc]
        gone = look(alice)
        assert (gone["status"], bool(gone["reason"])) == ("down", True)
    shop.program.start()
    for alice in everywhere:
        until(lambda alice=alice: published(alice) == ["shop_echo"], "it is back", seconds=60)  # type: ignore[misc]
    bob = two[1].sign_in("bob")
    conversation = ask(bob, scripted_model, "shop_echo", {"text": "again"}, "Said again.")
    approve(bob)
    bob.wait_for_answer(conversation, "Said again.")
    assert shop.heard == ["call again"]


@pytest.mark.guarantee("gate:at-most-once", "gate:truth", "run:survives")
def test_a_call_during_which_the_process_is_killed_is_unknown_and_never_made_again(
    servers: Servers, shop: Shop, scripted_model: ScriptedModel
) -> None:
    server = servers.start(**scripted_model.environment)
    expose(add(server, shop), "slow")
    bob = server.sign_in("bob")
    conversation = ask(bob, scripted_model, "shop_slow", {"seconds": 60}, "Nobody knows.")
    approve(bob)
    until(lambda: "slow began" in shop.heard, "the upstream has begun")
    server.kill()
    server.start()
    bob.wait_for_call(conversation, "unknown")
    bob.wait_for_answer(conversation, "Nobody knows.")
    assert shop.heard.count("slow began") == 1
    assert "may or may not have happened" in str(scripted_model.requests[-1])

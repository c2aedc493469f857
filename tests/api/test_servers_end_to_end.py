"""The whole way over REST, with real servers: connect, expose, use in a conversation, decline, approve, accept."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.processes import STEADY, Person, Server, Servers, installation, migrated, servers
from tests.scripted_model import ScriptedModel, calls, scripted_model, text
from tests.upstreams.conftest import shop
from tests.upstreams.shops import SAYS_IT_BACK, Shop
from tests.waiting import until

__all__ = ["installation", "migrated", "scripted_model", "servers", "shop"]

# A server process has to be set up and started first.
pytestmark = [pytest.mark.embedded, pytest.mark.timeout(180)]


@pytest.fixture
def hitlchat(servers: Servers, scripted_model: ScriptedModel) -> Server:
    return servers.start(**scripted_model.environment, **STEADY)


@pytest.fixture
def alices(hitlchat: Server) -> Iterator[httpx2.Client]:
    """A program with alice's personal approver token."""
    token = hitlchat.home.manage("create_token", "alice", "--kind", "approver").strip()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(
        base_url=f"{hitlchat.url}/api", headers=headers, timeout=40, trust_env=False, verify=False
    ) as client:
        yield client


def send(client: httpx2.Client, method: str, path: str, **body: Any) -> dict[str, Any]:
    answer = client.request(method, path, json=body)
    assert answer.is_success, answer.text
    return dict(answer.json())


@pytest.mark.slow("starts servers")
def test_a_tool_is_exposed_over_rest_and_runs_in_a_conversation_after_a_yes_and_not_before(
    hitlchat: Server, alices: httpx2.Client, shop: Shop, scripted_model: ScriptedModel
) -> None:
    send(alices, "POST", "/servers", name="shop", url=shop.program.url)
    until(lambda: alices.get("/servers/shop").json()["toolCount"] == 1, "its tools are known")
    send(alices, "PUT", "/servers/shop/tools/echo", exposed=True, promptTemplate="Say “{args.text}”?")
    tried = send(alices, "POST", "/servers/shop/test")
    assert (tried["ok"], tried["tools"]) == (True, ["echo"])
    bob = hitlchat.sign_in("bob")
    declined(bob, scripted_model)
    assert shop.heard == []
    approved(bob, scripted_model)
    assert shop.heard == ["call hello"]


def declined(bob: Person, model: ScriptedModel) -> None:
    model.enqueue(calls(("shop_echo", {"text": "no"})), text("Then not."))
    conversation = bob.begin("Say no.")
    bob.wait_for_call(conversation, "waiting")
    (approval,) = bob.pending()
    assert approval["prompt"] == "Say “no”?"
    bob.post(f"/api/approvals/{approval['id']}/reject", {"reason": "No."})
    bob.wait_for_call(conversation, "declined")
    bob.wait_for_answer(conversation, "Then not.")


def approved(bob: Person, model: ScriptedModel) -> None:
    model.enqueue(calls(("shop_echo", {"text": "hello"})), text("Said."))
    conversation = bob.begin("Say hello.")
    bob.wait_for_call(conversation, "waiting")
    (approval,) = bob.pending()
    bob.post(f"/api/approvals/{approval['id']}/approve")
    (call,) = bob.wait_for_call(conversation, "succeeded")
    assert call["result"] == {"result": "hello"}
    bob.wait_for_answer(conversation, "Said.")


@pytest.mark.slow("a second story with an upstream server")
def test_a_change_at_the_upstream_is_seen_and_accepted_over_rest(
    hitlchat: Server, alices: httpx2.Client, shop: Shop
) -> None:
    send(alices, "POST", "/servers", name="shop", url=shop.program.url)
    until(lambda: alices.get("/servers/shop").json()["toolCount"] == 1, "its tools are known")
    send(alices, "PUT", "/servers/shop/tools/echo", exposed=True)
    odd = alices.get("/servers/shop/tools/a%2Fb%3F%23")
    assert (odd.status_code, odd.headers["content-type"]) == (404, "application/problem+json")
    shop.offer(echo=SAYS_IT_BACK + " Twice.")
    assert send(alices, "POST", "/servers/shop/reconnect")["name"] == "shop"
    until(lambda: alices.get("/servers/shop/tools/echo").json()["state"] == "withheld", "the change is seen")
    held = alices.get("/servers/shop/tools/echo").json()
    assert [each["where"] for each in held["differences"]] == ["/description"]
    accepted = send(alices, "POST", "/servers/shop/tools/echo/accept", digest=held["digest"])
    assert (accepted["state"], accepted["differences"]) == ("exposed", [])
    assert alices.get("/tools/shop_echo").json()["description"] == f"{SAYS_IT_BACK} Twice."
    assert shop.heard == []

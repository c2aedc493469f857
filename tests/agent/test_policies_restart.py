"""Rules are settings: with a restart they are others, and calls that were judged before are still there."""

import pytest

from hitlchat.gate.status import Status
from tests.processes import STEADY, Servers
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = [pytest.mark.embedded, pytest.mark.slow("starts two servers")]

DENY = '[{"policy": "deny_list", "tools": ["note"], "reason": "Notes are closed."}]'
ASKS = '[{"policy": "always_ask", "tools": ["*"]}]'
ALLOWS = '[{"policy": "never_ask", "tools": ["*"]}]'
CODE = 'def run(text: str = "") -> str:\n    """Keep a note."""\n    return "kept"\n'


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "later,status",
    [
        pytest.param(DENY, Status.WITHDRAWN, id="tight"),
        pytest.param(ALLOWS, Status.SUCCEEDED, id="loose"),
    ],
)
def test_what_waits_over_a_change_of_the_rules(
    later: str, status: Status, servers: Servers, scripted_model: ScriptedModel
) -> None:
    servers.home.add_tool("note", CODE, hitl_mode="CONDITIONAL")
    scripted_model.enqueue(calls(("note", {"text": "a"})), text("Done."))
    first = servers.start(**scripted_model.environment, HITL_POLICIES=ASKS)
    bob = first.sign_in("bob")
    conversation = bob.begin("Note this")
    bob.wait_for_call(conversation, "waiting")
    first.stop()

    second = servers.start(**scripted_model.environment, **STEADY, HITL_POLICIES=later)
    bob = second.sign_in("bob")
    (approval,) = bob.pending()
    assert bob.calls(conversation)[0]["status"] == "waiting"
    assert bob.post(f"/api/approvals/{approval['id']}/approve", {}).status_code == 200
    (call,) = bob.wait_for_call(conversation, status.value)
    assert (call["result"] == "kept") is (status == Status.SUCCEEDED)
    assert call["isAutomatic"] is False
    bob.wait_for_answer(conversation, "Done.")
    told = second.home.manage("policy", "simulate", "note", "--user", "bob", HITL_POLICIES=later)
    assert told.startswith("refuse: Notes are closed." if later == DENY else "allow: ")

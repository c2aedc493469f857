"""Second opinion over REST: who turns it on, the caution of an approval, and the yes that says that it was read."""

import pytest
from django.contrib.auth.models import User

from hitlchat.agent import second as agents
from hitlchat.gate import second
from hitlchat.gate.models import Decision
from hitlchat.gate.second import Caution
from tests.api.conftest import Ask, ProgramOf


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_caution_is_in_the_approval_and_its_tick_in_the_body_of_the_yes(
    bob: User, ask: Ask, program_of: ProgramOf
) -> None:
    approval, program = ask(bob), program_of(bob)
    path = f"/approvals/{approval.pk}"
    assert program.get(path).json()["caution"] is None
    asked = second.begin(approval.call_id, "gpt", takes_tick=True)
    assert asked is not None
    assert second.keep(asked, Caution("The text is another one."))
    caution = {"text": "The text is another one.", "model": "gpt", "takesTick": True}
    assert program.get(path).json()["caution"] == caution
    refused = program.post(f"{path}/approve")
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["cautionRead"])
    refused = program.post(f"{path}/approve", {"cautionRead": "yes"})
    assert (refused.status_code, Decision.objects.count()) == (422, 0)
    assert program.post(f"{path}/approve", {"cautionRead": True}).json()["status"] == "approved"


def test_administrators_turn_it_on_and_off_and_see_how_it_did(alice: User, bob: User, program_of: ProgramOf) -> None:
    program = program_of(alice)
    assert program.get("/second-opinion").json()["mode"] == "off"
    chosen = program.put("/second-opinion", {"mode": "tick"}).json()
    assert (chosen["mode"], chosen["endpoint"], chosen["asked"], chosen["failed"]) == ("tick", "environment", 0, 0)
    assert program.put("/second-opinion", {"mode": "allow"}).status_code == 422
    assert program.put("/second-opinion", {"mode": "tick", "endpoint": "nowhere"}).status_code == 422
    for verb in (program_of(bob).get, lambda path: program_of(bob).put(path, {"mode": "off"})):
        assert verb("/second-opinion").status_code == 403
    assert agents.chosen().mode == "tick"
    program.put("/second-opinion", {"mode": "off"})

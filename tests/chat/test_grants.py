"""Over a conversation's socket: a grant given, the meter as calls use it, revoked."""

import re
from typing import Any

import pytest
from django.test import Client

from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Approval, Decision, Grant
from tests.agent.talk import Talk, in_database
from tests.chat.tab import Tab
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def waiting(talk: Talk, tab: Tab, scripted_model: ScriptedModel) -> Approval:
    """A call that waits on bob's open page, of a tool about which policies decide."""
    await in_database(recorded_tool)("send", risk_level=2, hitl_mode="CONDITIONAL")
    scripted_model.enqueue(calls(("send", {"text": "one"})))
    await tab.send(type="say", content="Send them")
    approval = await talk.only()
    await tab.until("data-approve")
    return approval


def yes(approval: Approval, scope: Scope, **changed: Any) -> dict[str, Any]:
    answer = {"type": "decide", "approval": str(approval.pk), "verdict": "approve", "digest": approval.digest}
    return answer | {"grant": scope.as_json} | changed


async def test_the_meter_follows_the_calls_until_it_asks_again(
    tab: Tab, talk: Talk, waiting: Approval, recorder: Recorder, scripted_model: ScriptedModel, bobs_client: Client
) -> None:
    scripted_model.enqueue(calls(("send", {"text": "two"})), calls(("send", {"text": "three"})), text("Sent."))
    recorder.hold("send")
    await tab.send(**yes(waiting, Scope(calls=1, this_conversation=True)))
    await tab.until("runs without asking: 1 of 1 left")
    recorder.let_go("send")
    again = await talk.only()
    assert again.call.arguments == {"text": "three"}
    assert recorder.entered == [("send", {"text": "one"}), ("send", {"text": "two"})]
    page = await in_database(bobs_client.get)(f"/chat/{talk.conversation.pk}")
    assert "runs without asking:" not in page.content.decode()
    assert "Not asked because of a grant: send runs" in page.content.decode()
    assert "A grant was given with it: send runs without asking for the next call" in page.content.decode()
    await talk.approve(again)
    await tab.until("Sent.")


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_revoked_on_the_page_it_asks_again(
    tab: Tab, talk: Talk, waiting: Approval, recorder: Recorder, scripted_model: ScriptedModel, bobs_client: Client
) -> None:
    scripted_model.enqueue(text("Sent."))
    await tab.send(**yes(waiting, Scope(minutes=30)))
    await tab.until("runs without asking: until ")
    await tab.until("Sent.")
    meter = f"/chat/{talk.conversation.pk}/grants"
    shown = (await in_database(bobs_client.get)(meter)).content.decode()
    assert "Revoke" in shown
    (seen,) = re.findall(r'"seen": "(\w+)"', shown)
    # Asked for again now and then, since time passes without telling anyone.
    assert (await in_database(bobs_client.get)(meter, {"seen": seen})).status_code == 204
    grant = await Grant.objects.aget()
    await tab.send(type="revoke-grant", grant=str(grant.pk))
    while "runs without asking" in await tab.until('id="grants"'):
        pass
    scripted_model.enqueue(calls(("send", {"text": "two"})), text("Not sent then."))
    await tab.send(type="say", content="More")
    await talk.decline(await talk.only())
    await tab.until("Not sent then.")
    assert recorder.entered == [("send", {"text": "one"})]
    await tab.send(type="revoke-grant", grant=str(waiting.pk))
    await tab.until("no grant with this id for you")


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_grant_that_is_none_decides_nothing(tab: Tab, waiting: Approval, recorder: Recorder) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"grant": "{}"}, "Expected an object with exactly"),
        ({"grant": {"calls": 5}}, "no valid “grant”"),
        ({"grant": Scope().as_json}, "needs a limit"),
        ({"edited": "{}", "shown": ""}, "only as requested"),
        ({"digest": "0" * 64}, "not the one you were shown"),
    ]
    for changed, told in rows:
        await tab.send(**yes(waiting, Scope(calls=5), **changed))
        await tab.until(told)
        assert not await Decision.objects.aexists()
        assert not await Grant.objects.aexists()
        assert recorder.entered == []

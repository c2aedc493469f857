"""Asking why, on the open page of a conversation: what others asked comes into the card that stays there."""

import pytest
from django.test import Client

from tests.agent.talk import Talk, in_database
from tests.chat.tab import Tab
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_the_answer_comes_to_the_card_over_the_socket_and_nothing_runs(
    tab: Tab, talk: Talk, bobs_client: Client, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send", risk_level=2)
    gate = Gate()
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text(gate, "You asked me to."))
    await tab.send(type="say", content="Send it")
    approval = await talk.only()
    assert "being asked" not in await tab.until(f'id="why-{approval.pk}"')
    await in_database(bobs_client.post)(f"/approvals/{approval.pk}/why", {"question": "Why?"})
    shown = await tab.until("The model is being asked.")
    assert f'id="why-{approval.pk}" hx-swap-oob="true"' in shown
    gate.open()
    await tab.until("You asked me to.")
    assert recorder.entered == []
    scripted_model.enqueue(text("Then not."))
    await talk.decline(approval)
    await tab.until_no_card()
    await talk.over()

"""A caution that comes while the card is open in a chat: the page is sent the card anew, and needs its tick."""

import pytest

from hitlchat.gate import second
from hitlchat.gate.models import Approval
from hitlchat.gate.second import Caution
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.chat.tab import Tab
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)


def caution(approval: Approval) -> None:
    asked = second.begin(approval.call_id, "gpt", takes_tick=True)
    assert asked is not None
    assert second.keep(asked, Caution("The text is another one."))


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:seen")
async def test_a_caution_draws_the_open_card_anew_and_a_yes_without_the_tick_does_not_count(
    tab: Tab, talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("Sent."))
    await tab.send(type="say", content="Send it")
    approval = await talk.only()
    await tab.until(f'id="ask-{approval.pk}"')
    await in_database(caution)(approval)
    assert "The text is another one." in await tab.until(f'id="ask-{approval.pk}-cautioned"')
    yes = {"type": "decide", "approval": str(approval.pk), "verdict": "approve", "digest": approval.digest}
    await tab.send(**yes)
    await tab.until("A second model cautions about this call")
    assert (await Approval.objects.select_related("call").aget(pk=approval.pk)).call.status == Status.WAITING
    await tab.send(**yes, caution_read="yes")
    await talk.over()
    assert [name for name, _ in recorder.entered] == ["send"]

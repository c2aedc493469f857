"""A call that others decide, on the open page of whom it is called for."""

import re
from html import unescape
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.gate import decide, handling
from hitlchat.gate.models import Approval, Decision
from tests.agent.talk import Talk, in_database
from tests.chat.conftest import OpenTab
from tests.chat.tab import Tab
from tests.conftest import signed_in
from tests.gate.deciding_people import approver, rule
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text

SIGN_IN_AGAIN: Final = "/sign-in/again?next="

pytestmark = pytest.mark.django_db(transaction=True)


def prepared(alice: User, **rules: Any) -> tuple[User, User]:
    people = approver("dora"), approver("erik")
    rule(recorded_tool("send", risk_level=2), alice, **rules)
    return people


def frame(approval: Approval, verdict: str = "approve") -> dict[str, str]:
    return {"type": "decide", "approval": str(approval.pk), "verdict": verdict, "digest": approval.digest}


@pytest.mark.guarantee("gate:only-people", "gate:no-yes-no-run")
async def test_the_modal_says_who_decides_follows_each_yes_and_goes_once_it_is_decided(
    tab: Tab, talk: Talk, alice: User, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    dora, erik = await in_database(prepared)(alice, quorum=2, not_the_requester=True)
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("Sent."))
    await tab.send(type="say", content="Send it")
    approval = await talk.only()
    shown = await tab.until(f'id="ask-{approval.pk}-others"')
    assert "2 different approvers have to approve. Never bob" in shown
    assert "data-approve" not in shown
    await tab.send(**frame(approval))
    await tab.until("You cannot decide this call")
    await tab.send(**frame(approval, "decline"))
    await tab.until("You cannot decide this call")
    await in_database(decide.approve)(approval.pk, signed_in(dora))
    assert "hx-swap-oob" in await tab.until("1 of 2 approved, by <bdi>dora</bdi>")
    assert recorder.entered == []
    await in_database(handling.take_up)(approval.pk, signed_in(erik))
    await tab.until("<bdi>erik</bdi> is on it until")
    await in_database(decide.approve)(approval.pk, signed_in(erik))
    await tab.until_no_card()
    await talk.over()
    assert recorder.entered == [("send", {"text": "hi"})]


async def test_who_is_one_of_several_takes_their_yes_back_on_the_page(
    tab: Tab, talk: Talk, alice: User, bob: User, scripted_model: ScriptedModel
) -> None:
    await in_database(prepared)(alice, quorum=2)
    await in_database(_let_decide)(bob)
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("Not sent."))
    await tab.send(type="say", content="Send it")
    approval = await talk.only()
    await tab.until("data-approve")
    await tab.send(**frame(approval))
    assert "data-approve" not in await tab.until("Withdraw your approval")
    await tab.send(**frame(approval))
    await tab.until("You already approved this")
    await tab.send(type="take-back", call=str(approval.call_id))
    await tab.until("data-approve")
    assert not await Decision.objects.aexists()
    await tab.send(**frame(approval, "decline"))
    await talk.over()


@pytest.mark.guarantee("gate:only-people", "SR-25")
async def test_the_highest_risk_needs_a_fresh_sign_in_on_the_page_too(
    tab: Tab, talk: Talk, scripted_model: ScriptedModel, bobs_client: Client
) -> None:
    await in_database(recorded_tool)("wipe", risk_level=5)
    scripted_model.enqueue(calls(("wipe", {"text": "hi"})), text("Done."))
    await tab.send(type="say", content="Wipe it")
    approval = await talk.only()
    assert SIGN_IN_AGAIN not in await tab.until("data-approve")
    await in_database(_long_ago)(bobs_client)
    await tab.send(**frame(approval))
    await tab.until("within the last 15 minutes")
    assert not await Decision.objects.aexists()
    await in_database(_long_ago)(bobs_client, None)
    await tab.send(**frame(approval))
    await talk.over()
    assert await Decision.objects.acount() == 1


async def test_the_card_says_that_a_sign_in_is_too_old_as_soon_as_and_as_long_as_it_is(
    tab: Tab, open_tab: OpenTab, talk: Talk, scripted_model: ScriptedModel, bobs_client: Client
) -> None:
    await in_database(recorded_tool)("wipe", risk_level=5)
    scripted_model.enqueue(calls(("wipe", {"text": "hi"})), text("Done."))
    await tab.send(type="say", content="Wipe it")
    approval = await talk.only()
    card = await tab.until("data-approve")
    page = f"/chat/{talk.conversation.pk}"
    assert SIGN_IN_AGAIN not in card + await in_database(_get)(bobs_client, page)
    look = re.compile(r'hx-get="(/approvals/[^"]+/who[^"]+)"')
    fresh, *_ = look.findall(card)
    assert await in_database(_get)(bobs_client, unescape(fresh)) == ""
    await in_database(_long_ago)(bobs_client)
    old = await in_database(_get)(bobs_client, unescape(fresh))
    assert SIGN_IN_AGAIN in old
    assert SIGN_IN_AGAIN in await in_database(_get)(bobs_client, page)
    assert SIGN_IN_AGAIN in await (await open_tab()).until("data-approve")
    await in_database(_long_ago)(bobs_client, None)
    (stale,) = look.findall(old)
    assert SIGN_IN_AGAIN not in await in_database(_get)(bobs_client, unescape(stale))
    await tab.send(**frame(approval, "decline"))
    await talk.over()


def _get(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def _let_decide(user: User) -> None:
    roles.give(user, Role.APPROVER)


def _long_ago(client: Client, at: str | None = "2020-01-01T00:00:00+00:00") -> None:
    session = client.session
    session["signed_in_at"] = at or timezone.now().isoformat()
    session.save()

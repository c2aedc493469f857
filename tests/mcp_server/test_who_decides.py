"""Where others decide, or several people, the word of one person's client is not enough."""

import asyncio
from functools import partial

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import Group, User
from mcp_types import ElicitRequestURLParams

from hitlchat.gate import decide, ruling
from hitlchat.gate.models import Approval, DecidedBy, Decision, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask_over_mcp, fresh, recording, word
from tests.gate.deciding_people import approver, rule
from tests.gate.racing import meanwhile
from tests.mcp_server.clients import connected, yes
from tests.waiting import soon

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]


@pytest.mark.parametrize("rules", [{}, {"quorum": 2}, {"decided_by": DecidedBy.REQUESTER}], ids=str)
@pytest.mark.guarantee("SR-25")
def test_the_word_of_a_client_decides_nothing_under_rules(
    rules: dict[str, object], alice: User, bob: User, tool: Tool
) -> None:
    approver("dora")
    if rules.get("decided_by") == DecidedBy.REQUESTER:
        finance = Group.objects.create(name="finance")
        rules = rules | {"escalate_to": finance, "escalate_after_seconds": 60}
    rule(tool, alice, **rules)
    call = ask_over_mcp(bob, tool)
    for answer in (decide.approve, decide.decline):
        with pytest.raises(decide.NoSuchApproval):
            answer(approval_of(call).pk, word(call))
    assert (fresh(call).status, Decision.objects.count()) == (Status.WAITING, 0)


def test_rules_that_come_in_that_moment_count(alice: User, bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    change = partial(ruling.change, tool, Rules(DecidedBy.APPROVERS), signed_in(alice))
    with meanwhile(change), pytest.raises(decide.AlreadySettled):
        decide.approve(approval_of(call).pk, word(call))
    assert (fresh(call).status, Decision.objects.count()) == (Status.WITHDRAWN, 0)


async def test_a_client_that_could_ask_is_sent_to_the_page_and_others_decide(
    url: str, token: str, alice: User, bob: User, entered: list[ToolCall]
) -> None:
    dora = await in_thread(approver)("dora")
    await in_thread(lambda: rule(recording(), alice, not_the_requester=True))()
    user = yes()
    async with connected(url, token, "2026", user) as client:
        (listed,) = (await client.list_tools()).tools
        assert (listed.meta or {})["hitlchat/signedInOnly"] is True
        calling = asyncio.create_task(client.call_tool("refund", {"text": "hello"}))
        await soon(lambda: user.questions, "the user is sent to the page")
        (question,) = user.questions
        assert isinstance(question, ElicitRequestURLParams)
        approval = await Approval.objects.aget()
        assert entered == []
        await in_thread(decide.approve)(approval.pk, signed_in(dora))
        assert not (await calling).is_error
    assert len(entered) == 1

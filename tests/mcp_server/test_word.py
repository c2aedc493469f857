"""The word of an MCP client, as far as the gate takes it: for a call of its own, up to the risk that is allowed."""

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.gate import decide
from hitlchat.gate.models import Decision, Tool, ToolCall
from hitlchat.gate.settling import resolve
from hitlchat.gate.status import Status
from tests.gate.asking import approval_of, ask, ask_over_mcp, fresh, recording, word

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]


def test_it_decides_no_call_that_came_in_another_way_or_of_someone_else(bob: User, charlie: User, tool: Tool) -> None:
    for kind in ("chat", "api", "studio"):
        refused(ask(bob, tool, kind=kind), bob)
    refused(ask_over_mcp(bob, tool), charlie)


@pytest.mark.guarantee("SR-26")
def test_it_decides_up_to_the_risk_that_is_allowed(bob: User, db: None, settings: Settings) -> None:
    tools = [recording(f"tool{level}", risk_level=level) for level in range(6)]
    for most, tool in enumerate(tools):
        settings.HITL_ELICITATION_MAX_RISK = most
        call = ask_over_mcp(bob, tool)
        decide.approve(approval_of(call).pk, word(call))
        assert fresh(call).status == Status.APPROVED
        for riskier in tools[most + 1 : most + 2]:
            refused(ask_over_mcp(bob, riskier), bob)


def test_a_tool_that_became_riskier_meanwhile_counts_as_what_it_is_now(bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    Tool.objects.update(risk_level=5)
    refused(call, bob)


def test_it_marks_no_call_as_done_whose_outcome_is_unknown(bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    ToolCall.objects.filter(pk=call.pk).update(status=Status.UNKNOWN)
    with pytest.raises(decide.NoSuchApproval):
        resolve(call.pk, "done", word(call))


def refused(call: ToolCall, user: User) -> None:
    with pytest.raises(decide.NoSuchApproval):
        decide.approve(approval_of(call).pk, word(call, user))
    with pytest.raises(decide.NoSuchApproval):
        decide.decline(approval_of(call).pk, word(call, user))
    assert fresh(call).status == Status.WAITING
    assert not Decision.objects.filter(approval__call=call).exists()

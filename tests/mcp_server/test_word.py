"""The word of an MCP client, as far as the gate takes it: for a call of its own, up to the risk that is allowed, where
nobody but its user has to decide.
"""

from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import Group, User
from pytest_django import Settings

from hitlchat import settings as defaults
from hitlchat.accounts.models import Token
from hitlchat.gate import decide, ruling
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, DecidedBy, Decision, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.settling import resolve
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, ask_over_mcp, fresh, mark, recording, word
from tests.gate.deciding_people import approver, rule
from tests.gate.racing import meanwhile

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]


def refused(call: ToolCall, actor: Actor) -> None:
    for answer in (decide.approve, decide.decline):
        with pytest.raises(decide.NoSuchApproval):
            answer(approval_of(call).pk, actor)
    assert fresh(call).status == Status.WAITING
    assert not Decision.objects.filter(approval__call=call).exists()


def test_it_decides_no_call_that_came_in_another_way_or_of_someone_else(bob: User, charlie: User, tool: Tool) -> None:
    for kind in ("chat", "api", "studio"):
        call = ask(bob, tool, kind=kind)
        refused(call, word(call))
    call = ask_over_mcp(bob, tool)
    refused(call, word(call, charlie))


def test_that_of_another_client_of_the_same_person_counts_for_nothing(bob: User, tool: Tool) -> None:
    call, other = ask_over_mcp(bob, tool), ask_over_mcp(bob, recording("other"))
    for token_id in (other.token_id, None):
        refused(call, Actor(bob.pk, "elicitation", token_id=token_id))


def test_out_of_the_box_it_counts_up_to_l1() -> None:
    assert defaults.HITL_ELICITATION_MAX_RISK == 1


@pytest.mark.guarantee("SR-26")
def test_it_decides_up_to_the_risk_that_is_allowed(bob: User, db: None, settings: Settings) -> None:
    tools = [recording(f"tool{level}", risk_level=level) for level in range(6)]
    for most, tool in enumerate(tools):
        settings.HITL_ELICITATION_MAX_RISK = most
        call = ask_over_mcp(bob, tool)
        decide.approve(approval_of(call).pk, word(call))
        assert fresh(call).status == Status.APPROVED
        for riskier in tools[most + 1 : most + 2]:
            call = ask_over_mcp(bob, riskier)
            refused(call, word(call))


def test_a_tool_that_became_riskier_meanwhile_counts_as_what_it_is_now(bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    Tool.objects.update(risk_level=5)
    refused(call, word(call))


def test_it_marks_no_call_as_done_whose_outcome_is_unknown(bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    ToolCall.objects.filter(pk=call.pk).update(status=Status.UNKNOWN)
    with pytest.raises(decide.NoSuchApproval):
        resolve(call.pk, "done", word(call))


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("when", ["never", "asked", "answered"])
def test_the_mark_has_to_be_there_when_it_is_asked_and_when_it_is_answered(when: str, bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool, attended=when == "asked")
    mark(call.token_id, attended=when == "answered")
    refused(call, word(call))


@pytest.mark.parametrize("when", ["asked", "answered"])
def test_that_a_signed_in_person_must_decide_holds_from_when_it_is_asked_or_answered(
    when: str, bob: User, tool: Tool
) -> None:
    tool.signed_in_only = when == "asked"
    tool.save(update_fields=["signed_in_only"])
    call = ask_over_mcp(bob, tool)
    Tool.objects.update(signed_in_only=when == "answered")
    refused(call, word(call))
    decide.approve(approval_of(call).pk, signed_in(bob))
    assert fresh(call).status == Status.APPROVED


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize(
    "change",
    [
        partial(Tool.objects.update, signed_in_only=True),
        partial(Tool.objects.update, risk_level=5),
        partial(Token.objects.update, attended=False),
    ],
    ids=["the setting", "the risk", "the mark"],
)
def test_what_comes_between_the_clients_yes_and_its_record_counts(
    change: Callable[[], int], bob: User, tool: Tool
) -> None:
    call = ask_over_mcp(bob, tool)
    with meanwhile(change), pytest.raises(decide.NoSuchApproval):
        decide.approve(approval_of(call).pk, word(call))
    assert (fresh(call).status, Decision.objects.count()) == (Status.WAITING, 0)


@pytest.mark.guarantee("gate:one-outcome")
def test_a_person_who_was_faster_is_still_told_apart_from_the_setting(bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    overtaking = partial(decide.decline, approval_of(call).pk, signed_in(bob))
    with meanwhile(overtaking), pytest.raises(decide.AlreadySettled):
        decide.approve(approval_of(call).pk, word(call))
    assert fresh(call).status == Status.DECLINED


def test_it_decides_nothing_of_a_deleted_tool_or_with_a_deleted_token(bob: User, tool: Tool) -> None:
    call, other = ask_over_mcp(bob, tool), ask_over_mcp(bob, recording("other"))
    tool.delete()
    refused(call, word(call))
    Token.objects.all().delete()
    refused(other, word(other))


def test_only_a_question_that_says_plainly_that_it_is_enough_is_answered_so(bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    disclosure = approval_of(call).disclosure
    others: list[dict[str, object]] = [
        disclosure | {"attended": value} for value in (None, "true", 1, {"attended": True})
    ]
    del disclosure["signedInOnly"]
    for frozen in (*others, disclosure):
        Approval.objects.update(disclosure=frozen)
        refused(call, word(call))


@pytest.mark.parametrize("rules", [{}, {"quorum": 2}, {"decided_by": DecidedBy.REQUESTER}], ids=str)
@pytest.mark.guarantee("SR-25")
def test_it_decides_nothing_under_rules(rules: dict[str, object], alice: User, bob: User, tool: Tool) -> None:
    approver("dora")
    if rules.get("decided_by") == DecidedBy.REQUESTER:
        finance = Group.objects.create(name="finance")
        rules = rules | {"escalate_to": finance, "escalate_after_seconds": 60}
    rule(tool, alice, **rules)
    call = ask_over_mcp(bob, tool)
    refused(call, word(call))


def test_rules_that_come_in_that_moment_count(alice: User, bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    change = partial(ruling.change, tool, Rules(DecidedBy.APPROVERS), signed_in(alice))
    with meanwhile(change), pytest.raises(decide.AlreadySettled):
        decide.approve(approval_of(call).pk, word(call))
    assert (fresh(call).status, Decision.objects.count()) == (Status.WITHDRAWN, 0)

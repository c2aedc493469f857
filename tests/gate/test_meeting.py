"""Where grants, rules of who decides, joined calls, limits and texts meet."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group, User
from django.utils import timezone

from hitlchat.approvals.inbox import lines
from hitlchat.gate import decide, editing, who
from hitlchat.gate.counting import AlreadyCounted
from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import DecidedBy, Decision, Grant, Tool, ToolCall, new_id
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, events, fresh, recording, run, say_yes, status
from tests.gate.deciding_people import escalated, members, rule
from tests.gate.granting import HERE, runs

pytestmark = pytest.mark.django_db


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_no_to_what_is_asked_again_ends_the_grant_given_with_the_yes_before(
    bob: User, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [Preview(text="Refunds 1 EUR"), Preview(text="Refunds 9 EUR")]
    tool = recording(mode="CONDITIONAL", source="previewing")
    call = ask(bob, tool, conversation_id=HERE)
    say_yes(bob, call, grant=Scope(calls=5))
    assert not run(call)
    let_in = ask(bob, tool, conversation_id=HERE)
    assert (fresh(call).round, let_in.status) == (2, Status.ALLOWED)
    decide.decline(approval_of(call).pk, signed_in(bob))
    grant = Grant.objects.get()
    assert (grant.end, grant.ended_by_id) == ("revoked", bob.pk)
    assert "declined when it was asked about again" in grant.why
    assert status(let_in) == Status.WITHDRAWN
    assert not runs(bob, tool)
    assert entered == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:truth")
def test_a_no_is_one_to_identical_calls_too_when_a_yes_bears_a_later_time(
    alice: User, bob: User, finance: Group, tool: Tool
) -> None:
    dora, erik = members(finance, "dora", "erik")
    rule(tool, alice, group=finance, quorum=2)
    here = new_id()
    first, second = (ask(bob, tool, conversation_id=here) for _ in range(2))
    with time_machine.travel(timezone.now() + timedelta(seconds=30)):
        say_yes(dora, first)
    decide.decline(approval_of(first).pk, signed_in(erik), reason="Too risky")
    for call in (first, second):
        assert status(call) == Status.DECLINED
        assert decide.given(approval_of(call).decisions.all()) == "Too risky"


@pytest.mark.django_db(transaction=True)
def test_identical_calls_that_others_may_decide_later_are_joined_too(
    alice: User, bob: User, finance: Group, tool: Tool
) -> None:
    (dora,) = members(finance, "dora")
    rule(tool, alice, decided_by=DecidedBy.REQUESTER, escalate_to=finance, escalate_after_seconds=60)
    here = new_id()
    first, second = (ask(bob, tool, conversation_id=here) for _ in range(2))
    say_yes(bob, first)
    assert [status(call) for call in (first, second)] == [Status.APPROVED, Status.WITHDRAWN]
    early, *late = (ask(bob, tool, conversation_id=here) for _ in range(3))
    escalated(early)
    decide.decline(approval_of(early).pk, signed_in(dora))
    # Not hers yet: they wait for an answer of whoever may give one.
    assert [status(call) for call in (early, *late)] == [Status.DECLINED, Status.WAITING, Status.WAITING]


def test_a_yes_that_counts_again_since_its_person_is_back_can_be_the_last(
    alice: User, bob: User, finance: Group, tool: Tool
) -> None:
    dora, erik = members(finance, "dora", "erik")
    rule(tool, alice, group=finance, quorum=2)
    call = ask(bob, tool)
    say_yes(dora, call)
    finance.user_set.remove(dora)
    say_yes(erik, call)
    with pytest.raises(AlreadyCounted, match="1 of 2"):
        say_yes(erik, call)
    finance.user_set.add(dora)
    assert status(call) == Status.WAITING
    assert who.stance_of(approval_of(call), signed_in(erik)).stance == "may"
    say_yes(erik, call)
    assert (status(call), Decision.objects.count()) == (Status.APPROVED, 2)
    assert run(call)


def test_more_time_is_for_all_calls_of_one_card(bob: User, tool: Tool) -> None:
    here, soon = new_id(), timezone.now() + timedelta(seconds=30)
    first, second, other = (
        ask(bob, tool, arguments, conversation_id=here) for arguments in (None, None, {"text": "x"})
    )
    for late, call in enumerate((first, second, other)):
        ToolCall.objects.filter(pk=call.pk).update(deadline=soon + timedelta(seconds=late))
    until = editing.extend(approval_of(first).pk, signed_in(bob)).deadline
    assert until == soon + editing.MORE
    assert [fresh(call).deadline for call in (second, other)] == [until, soon + timedelta(seconds=2)]
    assert events(second) == ["call.waiting", "call.extended"]
    assert [(line.approval.call_id, line.times) for line in lines.of(bob.pk).lines] == [(other.pk, 1), (first.pk, 2)]

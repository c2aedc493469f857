"""Earned rules at the same moment as something else: the last of a day's budget, a no, the start of a call."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate import decide, earned, lab
from hitlchat.gate.models import Grant, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, run, status
from tests.gate.earning import NOTHING, history, keep, published, refund, small
from tests.gate.granting import again
from tests.gate.racing import meanwhile, one_behind_the_other, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("row locks tell two at a time apart")]


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-outcome")
def test_of_many_calls_that_want_the_last_of_the_budget_one_runs_and_the_others_ask(alice: User, bob: User) -> None:
    tool = refund()
    history(bob, tool)
    rule = published(alice, tool, perDay=2, perPerson=2)
    assert small(bob, tool).status == Status.ALLOWED
    requests = [
        CallRequest(tool.name, {"order": f"B-{n}", "amount": 12}, caller(bob), conversation_id=new_id(), heard=NOTHING)
        for n in range(6)
    ]
    judged = [async_to_sync(prepare)(request) for request in requests]
    assert all(each.grants for each in judged)
    ends = together(*(partial(admit, each) for each in judged))
    assert sorted(call.status for call in ends) == ["allowed"] + ["waiting"] * 5
    assert (again(rule).used, ToolCall.objects.filter(grant=rule).count()) == (2, 2)


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("is_before", [True, False])
def test_of_a_no_and_a_call_like_it_no_call_runs_after_the_no(is_before: bool, alice: User, bob: User) -> None:
    tool = refund()
    history(bob, tool)
    rule = published(alice, tool, perPerson=1)
    ready, over = small(bob, tool), small(bob, tool)
    request = CallRequest(tool.name, {"order": "B-1", "amount": 12}, caller(alice), heard=NOTHING)
    judged = async_to_sync(prepare)(request)
    assert judged.grants == (again(rule),)
    says_no = partial(decide.decline, approval_of(over).pk, signed_in(bob))
    if is_before:
        says_no()
        assert admit(judged).status == Status.WAITING
    else:
        together(says_no, partial(admit, judged))
    assert again(rule).end == "declined"
    for call in ToolCall.objects.filter(grant=rule):
        assert not run(call)
        assert status(call) == Status.WITHDRAWN
    assert status(ready) == Status.WITHDRAWN


def a_no_and_a_publication(alice: User, bob: User) -> tuple[Tool, Callable[[], Any], Callable[[], Any]]:
    """A tool of which a call waits: bob's no to that, and alice's publication of the rule that is proposed."""
    tool = refund()
    history(bob, tool)
    waiting = small(bob, tool)
    (found,) = earned.proposals()
    publish = partial(lab.publish, keep(alice, found.draft).pk, signed_in(alice), "So.", confirmed=True)
    return tool, partial(decide.decline, approval_of(waiting).pk, signed_in(bob)), publish


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("is_after", [True, False])
def test_of_a_no_and_a_rule_that_is_published_just_then_no_call_runs_on_the_rule_after_both(
    is_after: bool, alice: User, bob: User
) -> None:
    tool, says_no, publish = a_no_and_a_publication(alice, bob)
    if is_after:
        with meanwhile(publish):
            says_no()
    else:
        together(says_no, publish)
    assert not Grant.objects.filter(end="").exists()
    assert small(bob, tool).status == Status.WAITING


@pytest.mark.postgres
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_rule_comes_into_force_after_a_no_that_is_on_its_way_or_not_at_all(alice: User, bob: User) -> None:
    _, says_no, publish = a_no_and_a_publication(alice, bob)
    _, published_so = one_behind_the_other(says_no, publish)
    assert isinstance(published_so, lab.CannotPublish)


@pytest.mark.postgres
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_is_asked_while_a_rule_is_published_waits_for_that_and_a_no_to_it_ends_the_rule(
    alice: User, bob: User
) -> None:
    tool, _, publish = a_no_and_a_publication(alice, bob)
    _, new = one_behind_the_other(publish, partial(small, bob, tool))
    assert (new.status, Grant.objects.get().end) == (Status.WAITING, "")
    decide.decline(approval_of(new).pk, signed_in(bob))
    assert Grant.objects.get().end == "declined"


@pytest.mark.postgres
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_of_two_calls_that_want_the_last_of_the_budget_one_waits_for_what_becomes_of_the_other(
    alice: User, bob: User
) -> None:
    tool = refund()
    history(bob, tool)
    published(alice, tool, perDay=1, perPerson=1)
    first, second = (
        async_to_sync(prepare)(CallRequest(tool.name, {"order": order, "amount": 12}, caller(bob), heard=NOTHING))
        for order in ("B-1", "B-2")
    )
    ends = one_behind_the_other(partial(admit, first), partial(admit, second))
    assert [call.status for call in ends] == [Status.ALLOWED, Status.WAITING]

"""An approval taken back: possible until the call starts, and then told truthfully."""

import json
from functools import partial

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import perform, results
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.decide import NoSuchApproval, TooLate, take_back, take_back_approval
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, run, status
from tests.gate.racing import meanwhile, together
from tests.tables import each_row

pytestmark = pytest.mark.django_db


@pytest.mark.guarantee("gate:truth")
def test_what_was_approved_and_has_not_started_is_withdrawn_and_the_model_told(
    bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = approved(bob, tool)
    take_back(call.pk, signed_in(bob))
    assert not run(call)
    assert entered == []
    assert events(call) == ["call.waiting", "call.approved", "call.withdrawn"]
    told = json.loads(results.for_model(fresh(call)))
    assert told["status"] == "withdrawn"
    assert "not executed" in told["message"]
    assert "taken back" in told["reason"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:one-outcome")
@each_row("round_", range(5))
def test_of_taking_back_and_starting_exactly_one_happens(
    round_: int, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = approved(bob, tool)
    both = partial(take_back, call.pk, signed_in(bob)), partial(perform.claim, call.pk)
    back, claimed = together(*(both if round_ % 2 else both[::-1]), meet_at_first_write=True)[
        :: 1 if round_ % 2 else -1
    ]
    started = isinstance(back, TooLate)
    assert started == (claimed is not None)
    assert status(call) == (Status.EXECUTING if started else Status.WITHDRAWN)


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:truth")
def test_whoever_is_too_late_is_told_that_the_call_started(bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    with (
        meanwhile(lambda: perform.claim(call.pk)),
        pytest.raises(TooLate, match="cannot be stopped"),
    ):
        take_back(call.pk, signed_in(bob))
    assert status(call) == Status.EXECUTING


@pytest.mark.guarantee("gate:truth")
def test_of_a_call_that_ran_it_is_said_how_it_ended(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    call = approved(bob, tool)
    assert run(call)
    with pytest.raises(TooLate, match="Outcome: succeeded"):
        take_back(call.pk, signed_in(bob))


def test_of_a_call_that_was_withdrawn_otherwise_it_is_said_that_it_did_not_run(bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    take_back(call.pk, signed_in(bob))
    with pytest.raises(TooLate, match="Status: withdrawn"):
        take_back_approval(approval_of(call).pk, signed_in(bob))


@pytest.mark.guarantee("gate:only-people")
def test_only_the_person_who_approved_takes_it_back(bob: User, charlie: User, tool: Tool) -> None:
    call = approved(bob, tool)
    for actor in (signed_in(charlie), SYSTEM, Actor(bob.pk, "elicitation")):
        with pytest.raises(NoSuchApproval):
            take_back(call.pk, actor)
    assert status(call) == Status.APPROVED


def test_what_waits_is_declined_and_not_taken_back(bob: User, tool: Tool) -> None:
    call = ask(bob, tool)
    with pytest.raises(NoSuchApproval):
        take_back(call.pk, signed_in(bob))
    with pytest.raises(NoSuchApproval):
        take_back_approval(call.pk, signed_in(bob))
    assert status(call) == Status.WAITING

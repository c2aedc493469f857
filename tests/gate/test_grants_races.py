"""Grants at the same moment as something else: the last use, the start of a call, an end."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from hitlchat.gate import perform
from hitlchat.gate.grants import giving
from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Grant, Oversight, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import is_requested
from hitlchat.gate.submit import CallRequest, Prepared, admit, prepare
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, ask, fresh, say_yes, status
from tests.gate.granting import again, conditional, covered, granted, runs
from tests.gate.racing import Work, database_fails_at, meanwhile, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("row locks tell two at a time apart")]


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-outcome", "SR-43")
def test_of_many_calls_that_want_the_last_use_one_runs_and_the_others_ask(bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=1)
    judged = [async_to_sync(prepare)(CallRequest(tool.name, {"text": str(n)}, caller(bob))) for n in range(8)]
    assert all(each.grants for each in judged)
    ends = together(*(partial(admit, each) for each in judged), meet_at_first_write=True)
    assert sorted(call.status for call in ends) == ["allowed"] + ["waiting"] * 7
    assert again(grant).used == 1
    assert ToolCall.objects.filter(grant=grant).count() == 1
    # Those that lost are asked about like any other, and may be granted.
    lost = next(call for call in ends if call.status == Status.WAITING)
    assert approval_of(lost).disclosure["reason"] == "Asked because no rule allows this call without asking."
    say_yes(bob, lost, grant=Scope(calls=1))


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_is_judged_before_and_recorded_after_a_revocation_asks(bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=5)
    judged = async_to_sync(prepare)(CallRequest(tool.name, {"text": "a"}, caller(bob)))
    with meanwhile(partial(giving.revoke, grant.pk, signed_in(bob))):
        assert admit(judged).status == Status.WAITING
    assert again(grant).used == 0


def test_two_turns_with_the_same_tools_in_another_order_do_not_wait_for_each_other_for_ever(bob: User) -> None:
    tools = [conditional(name=name) for name in ("one", "two")]
    for tool in tools:
        granted(bob, tool, calls=50)
    requests = [CallRequest(tool.name, {"text": "a"}, caller(bob)) for tool in tools]
    judged = [async_to_sync(prepare)(request) for request in requests]

    def turn(prepared: list[Prepared]) -> list[str]:
        with transaction.atomic():
            giving.hold(grant for each in prepared for grant in each.grants)
            return [admit(each).status for each in prepared]

    works = [partial(turn, judged[::step]) for step in (1, -1)]
    assert together(*works * 4) == [["allowed", "allowed"]] * 8
    assert {grant.used for grant in Grant.objects.all()} == {8}


@pytest.mark.guarantee("gate:one-outcome")
@pytest.mark.parametrize("round_", range(4))
def test_of_revoking_and_starting_either_nothing_starts_or_what_started_is_told_to_stop(round_: int, bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=5)
    call = covered(bob, tool)
    works: list[Work] = [partial(giving.revoke, grant.pk, signed_in(bob)), partial(perform.claim, call.pk)]
    ends = together(*works[:: 1 if round_ % 2 else -1], meet_at_first_write=True)
    assert [end for end in ends if isinstance(end, BaseException)] == []
    started = any(isinstance(end, ToolCall) for end in ends)
    assert status(call) == (Status.EXECUTING if started else Status.WITHDRAWN)
    assert is_requested(fresh(call)) == started


def _revoke(grant: Grant) -> None:
    """As somebody does who is killed before anything else."""
    Grant.objects.filter(pk=grant.pk).update(end="revoked", why="bob revoked it")


def _end_time(grant: Grant) -> None:
    Grant.objects.filter(pk=grant.pk).update(until=timezone.now() - timedelta(seconds=1))


def _have_others_decide(grant: Grant) -> None:
    Oversight.objects.create(tool=Tool.objects.get(), decided_by="approvers", digest="d" * 64)


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize(
    "end, why",
    [
        (_revoke, "was revoked: bob revoked it"),
        (_end_time, "is void: the record of the grant was changed"),
        (_have_others_decide, "is void: who decides about the tool was changed"),
    ],
)
def test_the_start_itself_looks_at_the_grant_once_more(
    end: Callable[[Grant], None], why: str, bob: User, entered: list[ToolCall]
) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=5)
    call = covered(bob, tool)
    with meanwhile(partial(end, grant)):
        assert perform.claim(call.pk) is None
    assert (status(call), entered) == (Status.ALLOWED, [])
    assert perform.claim(call.pk) is None
    assert fresh(call).reason == f"Not run: its grant {why}."


@pytest.mark.guarantee("gate:fail-closed")
@pytest.mark.parametrize("statement", ['INSERT INTO "gate_toolcall"', 'INSERT INTO "gate_auditevent"'])
def test_a_use_that_cannot_be_recorded_whole_is_none(statement: str, bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=2)
    with database_fails_at(statement), pytest.raises(Exception, match="went away"):
        ask(bob, tool)
    assert again(grant).used == 0
    assert not ToolCall.objects.filter(grant=grant).exists()


@pytest.mark.guarantee("gate:fail-closed")
def test_a_grant_that_cannot_be_recorded_decides_nothing(bob: User) -> None:
    tool = conditional()
    call = ask(bob, tool)
    with database_fails_at('INSERT INTO "gate_grant"'), pytest.raises(Exception, match="went away"):
        say_yes(bob, call, grant=Scope(calls=5))
    assert (status(call), approval_of(call).decisions.count()) == (Status.WAITING, 0)
    assert not runs(bob, tool)


def test_of_two_answers_with_grants_one_counts(bob: User) -> None:
    call = ask(bob, conditional())
    works = [partial(say_yes, bob, call, grant=Scope(calls=n)) for n in (1, 2)]
    together(*works, meet_at_first_write=True)
    assert Grant.objects.count() == 1


def test_a_tool_that_is_changed_between_the_question_and_the_yes_gets_none(bob: User) -> None:
    call = ask(bob, conditional())
    with meanwhile(partial(Tool.objects.update, definition_hash="e" * 64)):
        say_yes(bob, call, grant=Scope(calls=5))
    tool = Tool.objects.get()
    assert not runs(bob, tool)
    assert Grant.objects.get().end == "voided"

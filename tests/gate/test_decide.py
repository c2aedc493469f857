"""A person's answer: who may give it, when it comes too late, and what an edit may do."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db.models import F
from django.utils import timezone

from hitlchat.gate import decide, deciders, stopping
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.decide import AlreadySettled, BadEdit, NoSuchApproval, OtherDigest
from hitlchat.gate.models import AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, recording, run, say_yes, status
from tests.tables import each_row

pytestmark = pytest.mark.django_db

EDITS: dict[str, Any] = {
    "wrong type": {"text": 5},
    "missing": {},
    "a field too many": {"text": "a", "tool": "other"},
    "too large": {"text": "x" * 300_000},
    "NaN": {"text": "a", "amount": float("nan")},
}


def overdue(call: ToolCall) -> None:
    ToolCall.objects.filter(pk=call.pk).update(deadline=timezone.now() - timedelta(seconds=1))


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_an_approved_call_runs_once_and_a_declined_one_never(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    yes, no = ask(bob, tool), ask(bob, tool)
    say_yes(bob, yes)
    decide.decline(approval_of(no).pk, signed_in(bob), reason=" not today ")
    assert (run(yes), run(yes), run(no)) == (True, False, False)
    assert [call.pk for call in entered] == [yes.pk]
    assert (status(yes), status(no)) == (Status.SUCCEEDED, Status.DECLINED)
    assert Decision.objects.get(approval__call=no).reason == "not today"


@pytest.mark.guarantee("gate:only-people")
@each_row("means", ["system", "mcp", "api", "", "Session", "elicitation"])
def test_only_a_person_known_as_one_can_decide(means: Any, bob: User, waiting: ToolCall) -> None:
    for answer in (decide.approve, decide.decline):
        with pytest.raises(NoSuchApproval):
            answer(approval_of(waiting).pk, Actor(bob.pk, means))
    assert status(waiting) == Status.WAITING
    assert not Decision.objects.exists()


@pytest.mark.guarantee("gate:only-people", "SR-18")
@each_row("kind", ["chat", "studio", "api", "mcp"])
def test_neither_the_agent_nor_the_system_can_decide(kind: str, bob: User, waiting: ToolCall) -> None:
    for actor in (SYSTEM, caller(bob, kind).actor, Actor(None, "session")):
        with pytest.raises(NoSuchApproval):
            decide.approve(approval_of(waiting).pk, actor)
    assert status(waiting) == Status.WAITING


@pytest.mark.guarantee("gate:only-people", "SR-16", "SR-21")
def test_to_others_it_looks_as_if_there_were_none(alice: User, charlie: User, waiting: ToolCall) -> None:
    with pytest.raises(NoSuchApproval) as unknown:
        decide.approve(uuid4(), signed_in(charlie))
    for other in (charlie, alice):
        for answer in (decide.approve, decide.decline):
            with pytest.raises(NoSuchApproval) as foreign:
                answer(approval_of(waiting).pk, signed_in(other))
            assert str(foreign.value) == str(unknown.value)
        assert not deciders.seen_by(other.pk).exists()
    assert status(waiting) == Status.WAITING


@pytest.mark.guarantee("SR-21")
def test_to_others_a_settled_one_looks_the_same(bob: User, charlie: User, waiting: ToolCall) -> None:
    say_yes(bob, waiting)
    with pytest.raises(NoSuchApproval):
        decide.decline(approval_of(waiting).pk, signed_in(charlie))
    assert status(waiting) == Status.APPROVED


def test_the_person_asked_sees_what_waits_and_what_waited(bob: User, tool: Tool) -> None:
    waiting, settled = ask(bob, tool), approved(bob, tool)
    assert {approval.call for approval in deciders.waiting_for(bob.pk)} == {waiting}
    assert {approval.call for approval in deciders.seen_by(bob.pk)} == {waiting, settled}


@pytest.mark.guarantee("gate:one-outcome")
@each_row("first", ["approve", "decline", "expire", "withdraw"])
def test_a_second_answer_is_told_the_first(first: str, bob: User, tool: Tool, waiting: ToolCall) -> None:
    approval, bobs = approval_of(waiting).pk, signed_in(bob)
    match first:
        case "approve":
            decide.approve(approval, bobs)
        case "decline":
            decide.decline(approval, bobs)
        case "expire":
            overdue(waiting)
            assert decide.expire_overdue() == 1
        case "withdraw":
            stopping.withdraw_tool(tool.pk, actor=SYSTEM, why="the run was stopped")
    outcome = status(waiting)
    for answer in (decide.approve, decide.decline):
        with pytest.raises(AlreadySettled) as late:
            answer(approval, bobs)
        assert late.value.call.status == outcome == status(waiting)
    assert Decision.objects.count() == (first in ("approve", "decline"))


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_row("answer", [decide.approve, decide.decline])
def test_a_late_answer_is_refused_without_any_sweeper(
    answer: Any, bob: User, waiting: ToolCall, entered: list[ToolCall]
) -> None:
    overdue(waiting)
    with pytest.raises(AlreadySettled) as late:
        answer(approval_of(waiting).pk, signed_in(bob))
    assert late.value.call.status == Status.EXPIRED == status(waiting)
    assert events(waiting) == ["call.waiting", "call.expired"]
    assert not Decision.objects.exists()
    assert not run(waiting)
    assert entered == []


@pytest.mark.servers("PostgreSQL has a clock of its own, and takes text in another way")
@pytest.mark.guarantee("gate:fail-closed", "SR-17")
def test_the_databases_clock_judges_and_not_that_of_the_process(bob: User, waiting: ToolCall) -> None:
    overdue(waiting)
    with time_machine.travel(timezone.now() - timedelta(hours=1)), pytest.raises(AlreadySettled):
        say_yes(bob, waiting)
    assert status(waiting) == Status.EXPIRED


def test_a_call_in_time_does_not_expire(waiting: ToolCall) -> None:
    assert decide.expire_overdue() == 0
    assert not decide.expire(waiting)
    assert status(waiting) == Status.WAITING


@pytest.mark.guarantee("gate:same-call")
def test_a_yes_to_something_else_than_what_waits_counts_for_nothing(bob: User, tool: Tool) -> None:
    shown, waiting = ask(bob, tool, {"text": "small"}), ask(bob, tool, {"text": "large"})
    for digest in (approval_of(shown).digest, "", "0" * 64, approval_of(waiting).digest.upper()):
        with pytest.raises(OtherDigest):
            say_yes(bob, waiting, digest=digest)
    assert status(waiting) == Status.WAITING
    say_yes(bob, waiting, digest=approval_of(waiting).digest)
    assert status(waiting) == Status.APPROVED


@pytest.mark.guarantee("gate:same-call", "SR-10")
def test_an_edited_call_runs_with_the_edited_arguments(bob: User, waiting: ToolCall, entered: list[ToolCall]) -> None:
    before = approval_of(waiting)
    say_yes(bob, waiting, edited={"text": "goodbye"})
    decision, after = Decision.objects.get(), approval_of(waiting)
    assert (after.disclosure, after.digest) == (before.disclosure, before.digest)
    assert decision.edited_arguments == {"text": "goodbye", "amount": 1}
    assert decision.digest != before.digest
    assert run(waiting)
    assert [(call.arguments, call.tool_name) for call in entered] == [(decision.edited_arguments, "refund")]
    assert AuditEvent.objects.get(name="call.approved").data["edited"] == decision.edited_arguments


@pytest.mark.guarantee("SR-10")
def test_an_edit_that_does_not_fit_approves_nothing(subtests: pytest.Subtests, bob: User, waiting: ToolCall) -> None:
    for case, edited in EDITS.items():
        with subtests.test(case=case):
            with pytest.raises(BadEdit) as refused:
                say_yes(bob, waiting, edited=edited)
            assert 0 < len(str(refused.value)) < 1000
            assert status(waiting) == Status.WAITING
            assert not Decision.objects.exists()


@pytest.mark.guarantee("SR-11")
def test_an_edit_cannot_change_the_tool(bob: User, waiting: ToolCall, entered: list[ToolCall]) -> None:
    recording("other", input_schema={"type": "object"})
    with pytest.raises(BadEdit, match="tool"):
        say_yes(bob, waiting, edited={"text": "a", "toolName": "other", "tool": "other"})
    assert entered == []


@pytest.mark.guarantee("gate:same-call")
@pytest.mark.parametrize("edited", [1.0, True, "1"], ids=["float", "bool", "text"])
def test_an_edit_that_python_takes_for_equal_is_an_edit(edited: object, bob: User, entered: list[ToolCall]) -> None:
    call = ask(bob, recording(input_schema={"type": "object"}), {"amount": 1})
    say_yes(bob, call, edited={"amount": edited})
    assert run(call)
    assert repr(entered[0].arguments) == repr({"amount": edited})


def test_an_edit_that_changes_nothing_is_none(bob: User, waiting: ToolCall) -> None:
    say_yes(bob, waiting, edited={"amount": 1, "text": "hello"})
    decision = Decision.objects.get()
    assert decision.edited_arguments is None
    assert decision.digest == approval_of(waiting).digest


def test_a_call_of_a_deleted_tool_cannot_be_edited(bob: User, waiting: ToolCall) -> None:
    Tool.objects.all().delete()
    with pytest.raises(BadEdit, match="deleted"):
        say_yes(bob, waiting, edited={"text": "other"})


@pytest.mark.servers("PostgreSQL has a clock of its own, and takes text in another way")
@each_row("reason", ["\x00", "half \ud800", "x" * 10_000, "<b>no</b>", ""])
def test_no_reason_keeps_a_decline_from_counting(reason: str, bob: User, waiting: ToolCall) -> None:
    decide.decline(approval_of(waiting).pk, signed_in(bob), reason=reason)
    assert status(waiting) == Status.DECLINED
    assert len(Decision.objects.get().reason) <= 500


@pytest.mark.guarantee("gate:truth", "SR-26")
def test_the_decision_says_who_answered_and_how_they_were_known(bob: User, tool: Tool) -> None:
    for means in ("session", "token", "console"):
        call = ask(bob, tool)
        decide.approve(approval_of(call).pk, Actor(bob.pk, means))
        decision = Decision.objects.get(approval__call=call)
        assert (decision.person, decision.means, decision.verdict) == (bob, means, "approve")
        event = AuditEvent.objects.get(call=call, name="call.approved")
        assert (event.actor_id, event.means, event.data["digest"]) == (bob.pk, means, approval_of(call).digest)


def test_a_call_judged_before_its_tool_changed_is_never_run(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    request = CallRequest(tool.name, {"text": "a"}, caller(bob))
    prepared = async_to_sync(prepare)(request)
    Tool.objects.update(definition_hash="e" * 64, description=F("name"))
    call = admit(prepared)
    say_yes(bob, call)
    assert not run(call)
    assert fresh(call).status == Status.WITHDRAWN
    assert entered == []

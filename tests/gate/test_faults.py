"""Whatever fails, the tool is not run without a yes, and what happened is told truthfully."""

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import OperationalError
from pytest_django import Settings

from hitlchat.gate import perform, results
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.perform import NotClaimed
from hitlchat.gate.settling import settled
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import Status
from tests.gate.asking import approved, ask, events, fresh, recording, run, say_yes, status
from tests.gate.racing import database_fails_at
from tests.tables import each_row

pytestmark = [pytest.mark.django_db, pytest.mark.guarantee("gate:fail-closed")]

SELECT_CALL = 'SELECT "gate_toolcall"'


@each_row("condition", ["1 +", 'args["no"]', '"false"', "[x for x in range(10**12)]"])
@pytest.mark.guarantee("SR-17")
def test_a_policy_that_fails_asks(condition: str, bob: User, entered: list[ToolCall]) -> None:
    call = ask(bob, recording(mode="CONDITIONAL", condition=condition))
    assert status(call) == Status.WAITING
    assert not run(call)
    assert entered == []


@each_row("source", ["missing", "nowhere", "unmakeable"])
def test_a_source_that_is_not_there_makes_the_call_fail(
    source: str, bob: User, entered: list[ToolCall], caplog: pytest.LogCaptureFixture
) -> None:
    call = approved(bob, recording(source=source))
    assert run(call)
    assert (status(call), entered) == (Status.FAILED, [])
    assert "failed outside the tool itself" in caplog.text


def test_a_source_that_raises_makes_the_call_fail_without_telling_its_secrets(
    bob: User, entered: list[ToolCall], caplog: pytest.LogCaptureFixture
) -> None:
    call = approved(bob, recording(source="raising"))
    run(call)
    assert len(entered) == 1
    assert fresh(call).status == Status.FAILED
    assert "secret" in caplog.text
    assert "secret" not in results.for_model(fresh(call))


@pytest.mark.guarantee("gate:truth")
def test_a_tool_that_fails_is_told_as_failed(bob: User) -> None:
    call = approved(bob, recording(source="failing"))
    run(call)
    assert fresh(call).error == {"kind": "error", "message": "no such order", "line": 3}
    assert fresh(call).result is None


@pytest.mark.guarantee("gate:truth")
def test_a_result_that_cannot_be_kept_is_told_as_one(bob: User, entered: list[ToolCall]) -> None:
    call = approved(bob, recording(source="nonsense"))
    run(call)
    assert len(entered) == 1
    assert fresh(call).status == Status.FAILED
    assert "was run" in fresh(call).error["message"]
    assert fresh(call).output == "half a character \ufffd and NUL \ufffd"


@pytest.mark.servers("what a killed process leaves is what was committed")
@pytest.mark.parametrize("statement", ["SELECT", 'UPDATE "gate_toolcall"', 'INSERT INTO "gate_auditevent"'])
@pytest.mark.guarantee("SR-17")
def test_a_database_that_goes_away_before_the_start_keeps_the_tool_from_running(
    statement: str, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = approved(bob, tool)
    with database_fails_at(statement), pytest.raises(OperationalError):
        run(call)
    assert (status(call), entered) == (Status.APPROVED, [])
    assert run(call)
    assert len(entered) == 1


@pytest.mark.servers("what a killed process leaves is what was committed")
@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:at-most-once")
def test_a_database_that_goes_away_after_the_tool_ran_leaves_an_unknown_outcome(
    bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = approved(bob, tool)
    claimed = perform.claim(call.pk)
    assert claimed is not None
    with database_fails_at('UPDATE "gate_toolcall"'), pytest.raises(OperationalError):
        async_to_sync(perform.execute)(claimed)
    ToolCall.objects.filter(pk=call.pk).update(lease_until=call.created_at)
    perform.beat()
    assert perform.lose_overdue() == [call.pk]
    assert (status(call), len(entered)) == (Status.UNKNOWN, 1)
    assert not run(call)


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_row("state", ["waiting", "approved", "executed"])
def test_nothing_is_executed_that_was_not_claimed_for_it(
    state: str, bob: User, waiting: ToolCall, entered: list[ToolCall]
) -> None:
    if state != "waiting":
        say_yes(bob, waiting)
    if state == "executed":
        assert run(waiting)
    with pytest.raises(NotClaimed):
        async_to_sync(perform.execute)(fresh(waiting))
    assert len(entered) == (state == "executed")


@pytest.mark.guarantee("gate:at-most-once")
def test_a_claim_that_came_too_late_to_be_used_is_not_used(
    bob: User, tool: Tool, entered: list[ToolCall], settings: Settings
) -> None:
    settings.LEASE_SECONDS = 0
    call = approved(bob, tool)
    claimed = perform.claim(call.pk)
    assert claimed is not None
    async_to_sync(perform.execute)(claimed)
    assert entered == []
    assert (status(call), fresh(call).error["kind"]) == (Status.FAILED, "late")


def test_waiting_for_a_result_is_bounded_and_starts_nothing_unapproved(
    waiting: ToolCall, entered: list[ToolCall]
) -> None:
    assert async_to_sync(settled)(waiting.pk, 0.01).status == Status.WAITING
    assert entered == []


def test_who_waits_for_an_approved_call_gets_its_result(bob: User, tool: Tool) -> None:
    assert async_to_sync(settled)(approved(bob, tool).pk, 10).result == "done"


def test_a_result_nobody_waits_for_changes_nothing(bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    run(call)
    perform.settle(call.pk, ToolResult.failure("error", "second"))
    assert (status(call), fresh(call).error) == (Status.SUCCEEDED, None)
    assert events(call).count("call.failed") == 0

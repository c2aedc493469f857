"""The record: one event for each move, for good, or else no move."""

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, OperationalError
from django.db.models import ProtectedError

from hitlchat.gate import decide, perform
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.settling import resolve
from hitlchat.gate.status import Status
from hitlchat.gate.transition import move
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, recording, run, say_yes, status
from tests.gate.racing import database_fails_at
from tests.tables import each_row

pytestmark = [pytest.mark.django_db, pytest.mark.guarantee("audit:complete")]

NOBODY = 10**6


def test_each_step_of_a_call_leaves_one_event_in_order(bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    run(call)
    assert events(call) == ["call.waiting", "call.approved", "call.executing", "call.succeeded"]
    failing = approved(bob, recording("other", source="failing"))
    run(failing)
    assert events(failing)[-1] == "call.failed"


def test_an_event_tells_who_and_how_and_what_was_consented_to(bob: User, waiting: ToolCall) -> None:
    say_yes(bob, waiting)
    asked, answered = AuditEvent.objects.filter(call=waiting)
    assert asked.data["digest"] == answered.data["digest"] == approval_of(waiting).digest
    assert asked.data["approval"] == answered.data["approval"] == str(approval_of(waiting).pk)
    assert (answered.actor_id, answered.means) == (bob.pk, "session")
    assert asked.at <= answered.at


def test_what_ends_an_unknown_outcome_is_on_record(bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    perform.claim(call.pk)
    move(fresh(call), Status.UNKNOWN, actor=SYSTEM)
    resolve(call.pk, "done", signed_in(bob))
    event = AuditEvent.objects.filter(call=call).last()
    assert event is not None
    assert (event.name, event.actor_id, event.data["marked"]) == ("call.succeeded", bob.pk, "done")
    assert event.data["by"] == {"id": bob.pk, "name": "bob"}


@pytest.mark.django_db(transaction=True)
def test_an_event_is_neither_changed_nor_deleted(waiting: ToolCall) -> None:
    rows = AuditEvent.objects.filter(call=waiting)
    (event,) = rows
    for tamper in (
        lambda: rows.update(name="call.declined"),
        lambda: AuditEvent.objects.bulk_update([event], ["name"]),
        rows.delete,
        lambda: AuditEvent.objects.all().delete(),
        event.save,
        event.delete,
    ):
        with pytest.raises(PermissionError):
            tamper()
    assert events(waiting) == ["call.waiting"]


def test_what_has_events_cannot_be_deleted(bob: User, tool: Tool, waiting: ToolCall) -> None:
    say_yes(bob, waiting)
    for row in (waiting, bob, approval_of(waiting)):
        with pytest.raises(ProtectedError):
            row.delete()
    tool.delete()
    assert events(waiting) == ["call.waiting", "call.approved"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:fail-closed")
@pytest.mark.servers("PostgreSQL checks references at another moment")
def test_a_move_whose_event_is_refused_by_the_database_is_not_made(waiting: ToolCall) -> None:
    with pytest.raises(IntegrityError):
        move(fresh(waiting), Status.APPROVED, actor=Actor(NOBODY, "session"))
    assert status(waiting) == Status.WAITING
    assert events(waiting) == ["call.waiting"]


@pytest.mark.guarantee("gate:fail-closed", "SR-17")
@each_row("statement", ['INSERT INTO "gate_auditevent"', 'INSERT INTO "gate_decision"', 'UPDATE "gate_toolcall"'])
def test_a_yes_that_cannot_be_recorded_whole_is_none(
    statement: str, bob: User, waiting: ToolCall, entered: list[ToolCall]
) -> None:
    with database_fails_at(statement), pytest.raises(OperationalError):
        say_yes(bob, waiting)
    assert status(waiting) == Status.WAITING
    assert events(waiting) == ["call.waiting"]
    assert not Decision.objects.exists()
    assert not run(waiting)
    assert entered == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:fail-closed", "SR-17")
@each_row("table", ["gate_toolcall", "gate_approval", "gate_auditevent"])
def test_a_question_that_cannot_be_recorded_whole_is_not_asked(table: str, bob: User, tool: Tool) -> None:
    with database_fails_at(f'INSERT INTO "{table}"'), pytest.raises(DatabaseError):
        ask(bob, tool)
    assert not ToolCall.objects.exists()
    assert not AuditEvent.objects.exists()


@each_row("start", ["BEGIN", 'UPDATE "gate_toolcall"', 'INSERT INTO "gate_auditevent"'])
def test_a_decline_that_cannot_be_recorded_leaves_the_question_open(start: str, bob: User, waiting: ToolCall) -> None:
    with database_fails_at('UPDATE "gate_toolcall"' if start == "BEGIN" else start), pytest.raises(OperationalError):
        decide.decline(approval_of(waiting).pk, signed_in(bob))
    assert status(waiting) == Status.WAITING

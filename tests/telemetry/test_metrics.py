"""The numbers: every decision once, wherever and whenever it was made, and the same from every process."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from hitlchat.accounts.models import Role, Token, TokenKind
from hitlchat.accounts.roles import give
from hitlchat.agent.loop import HARD_STOP, STUCK, WRAPPED_UP
from hitlchat.gate import decide, settling, stopping
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, Oversight, Tool, ToolCall
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.gate.transition import note
from hitlchat.telemetry import metrics
from hitlchat.telemetry.models import Mark, Total
from tests.api.conftest import program_of
from tests.conftest import MakeTool, caller, signed_in
from tests.gate.asking import approval_of, approved, ask, ask_over_mcp, recording, run, word
from tests.gate.conftest import entered, tool

__all__ = ["entered", "program_of", "tool"]
pytestmark = pytest.mark.django_db(transaction=True)


def numbers() -> dict[str, dict[str, float]]:
    """Each sample by its name and then by the values of its labels, in the order of their names."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[" ".join(value for _, value in sorted(sample.labels.items()))] = (
                sample.value
            )
    return found


def decisions() -> dict[str, float]:
    return numbers().get("mcp_hitl_decision_total", {})


@pytest.mark.servers("PostgreSQL computes times and sums in its own way")
def test_every_decision_counts_once_wherever_it_was_made(
    bob: User, tool: Tool, program_of: Any, client: Client, settings: Settings
) -> None:
    at_the_console, over_rest, on_the_page, late, left = (
        approval_of(ask(bob, tool, {"text": f"call {number}"})) for number in range(5)
    )
    over_mcp = approval_of(ask_over_mcp(bob, tool))
    call_command("approvals", "decline", str(at_the_console.pk), "--as", "bob")
    program_of(bob).post(f"/approvals/{over_rest.pk}/approve")
    client.force_login(bob)
    client.post(f"/approvals/{on_the_page.pk}/decide", {"verdict": "approve", "digest": on_the_page.digest})
    settings.HITL_ELICITATION_MAX_RISK = 2
    decide.approve(over_mcp.pk, word(over_mcp.call))
    stopping.withdraw_call(left.call_id, actor=SYSTEM, why="nobody wants it any more")
    ToolCall.objects.filter(pk=late.call_id).update(deadline=timezone.now() - timedelta(seconds=1))
    settling.sweep()
    found = numbers()
    assert found["mcp_hitl_decision_total"] == {
        "approved chat": 2, "declined chat": 1, "expired chat": 1, "withdrawn chat": 1, "approved server": 1,
    }  # fmt: skip
    assert found["hitlchat_answers_total"] == {
        "token approve": 1, "session approve": 1, "elicitation approve": 1, "console decline": 1,
    }  # fmt: skip
    assert found["hitlchat_approvals_waiting"] == {"": 0}
    # Looked at again, nothing counts twice.
    assert numbers()["mcp_hitl_decision_total"] == found["mcp_hitl_decision_total"]


def test_what_nobody_could_be_asked_about_is_told_from_what_a_policy_refused(
    bob: User, tool: Tool, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "hitlchat.gate")
    settings.HITL_MAX_WAITING_PER_CALLER = 0
    ask(bob, tool)
    assert decisions() == {"nobody_asked chat": 1}
    assert numbers()["hitlchat_calls_total"] == {"nobody_asked L2 recording": 1}
    assert [vars(line)["nobodyAsked"] for line in caplog.records if vars(line).get("event") == "hitl.refused"] == [True]


def test_one_of_several_yeses_is_an_answer_and_only_the_last_a_decision(bob: User, alice: User, tool: Tool) -> None:
    for person in (alice, bob):
        give(person, Role.ADMINISTRATOR)
    Oversight.objects.create(tool=tool, decided_by="approvers", quorum=2, digest="d" * 64)
    found = approval_of(ask(bob, tool))
    decide.approve(found.pk, signed_in(User.objects.get(pk=alice.pk)))
    assert decisions() == {}
    decide.approve(found.pk, signed_in(User.objects.get(pk=bob.pk)))
    assert decisions() == {"approved chat": 1}
    assert numbers()["hitlchat_answers_total"] == {"session approve": 2}


@pytest.mark.servers("PostgreSQL computes times and sums in its own way")
def test_the_time_to_a_decision_is_from_the_question_to_the_answer(bob: User, tool: Tool) -> None:
    call = ask(bob, tool)
    with time_machine.travel(timezone.now() + timedelta(seconds=45)):
        decide.decline(approval_of(call).pk, signed_in(bob))
    found = numbers()
    assert found["hitlchat_decision_seconds_bucket"]["30.0 declined"] == 0
    assert found["hitlchat_decision_seconds_bucket"]["60.0 declined"] == 1
    assert found["hitlchat_decision_seconds_bucket"]["+Inf declined"] == 1
    assert found["hitlchat_decision_seconds_sum"]["declined"] == pytest.approx(45, abs=5)
    assert found["hitlchat_decision_seconds_count"] == {"approved": 0, "declined": 1, "answered": 0}


@pytest.mark.servers("PostgreSQL computes times and sums in its own way")
def test_calls_count_by_what_became_of_them_their_source_and_risk(bob: User) -> None:
    run(approved(bob, recording("good", risk_level=3)))
    run(approved(bob, recording("bad", source="failing")))
    async_to_sync(submit)(CallRequest("no_such\x1btool", {}, caller(bob)))
    assert numbers()["hitlchat_calls_total"] == {
        "succeeded L3 recording": 1, "failed L2 failing": 1, "rejected L0 none": 1
    }  # fmt: skip


def test_what_the_sandbox_stopped_counts_by_why(bob: User, make_tool: MakeTool, settings: Settings) -> None:
    settings.TOOL_CPU_SECONDS = 0.2
    endless = 'def run() -> str:\n    """Never ends."""\n    while True:\n        pass\n'
    make_tool("endless", code=endless)
    make_tool("outside", code='import os\n\ndef run() -> str:\n    """Look around."""\n    return os.getcwd()\n')
    for name in ("endless", "outside"):
        run(approved(bob, Tool.objects.get(name=name), {}))
    assert numbers()["hitlchat_sandbox_blocks_total"].keys() <= {"limit", "denied"}
    assert numbers()["hitlchat_sandbox_blocks_total"]["limit"] == 1
    assert sum(numbers()["hitlchat_calls_total"].values()) == 2


def test_loop_guards_count_by_what_they_did() -> None:
    for name in (WRAPPED_UP, WRAPPED_UP, HARD_STOP, STUCK):
        note(None, name, actor=SYSTEM)
    assert numbers()["hitlchat_loop_guard_total"] == {"wrap-up": 2, "hard-stop": 1, "repeated": 1}


def test_waiting_approvals_and_the_age_of_the_oldest(bob: User, tool: Tool) -> None:
    assert numbers()["hitlchat_approvals_oldest_seconds"] == {"": 0}
    call = ask(bob, tool)
    ToolCall.objects.filter(pk=call.pk).update(created_at=timezone.now() - timedelta(minutes=2))
    ask(bob, tool, {"text": "another"})
    assert numbers()["hitlchat_approvals_waiting"] == {"": 2}
    assert numbers()["hitlchat_approvals_oldest_seconds"][""] == pytest.approx(120, abs=10)


def stops(*ids: int) -> None:
    """As the record has them of other processes, which commit them in any order."""
    AuditEvent.objects.bulk_create([AuditEvent(id=id, name=HARD_STOP, means="system") for id in ids])


@pytest.mark.servers("PostgreSQL computes times and sums in its own way")
def test_what_was_committed_late_is_not_missed_and_what_is_old_is_folded_without_changing_a_number(db: None) -> None:
    def told() -> float:
        return numbers()["hitlchat_loop_guard_total"]["hard-stop"]

    many = metrics.FEW + 100
    stops(*range(1, many), many + 1)
    assert (told(), Total.objects.count()) == (many, 0)
    stops(many)
    assert (told(), Total.objects.count()) == (many + 1, 0)
    with time_machine.travel(timezone.now() + metrics.LATE_COMMIT + timedelta(seconds=1)):
        stops(many + 2)
        assert told() == many + 2
        assert Total.objects.get().value == Mark.objects.get().event_id >= many
        stops(many + 3)
        assert told() == many + 3
    # A few that are old are folded too: old ones may be dropped from the record some day.
    with time_machine.travel(timezone.now() + metrics.LATE_COMMIT + metrics.OLD + timedelta(minutes=1)):
        assert (told(), Total.objects.get().value) == (many + 3, many + 3)


def test_a_look_takes_as_many_statements_however_long_the_record_is(bob: User, tool: Tool) -> None:
    def looks() -> int:
        with CaptureQueriesContext(connection) as asked:
            metrics.text()
        return len(asked)

    metrics.text()
    first = looks()
    for number in range(5):
        decide.decline(approval_of(ask(bob, tool, {"text": f"call {number}"})).pk, signed_in(bob))
    assert looks() == first <= 10


Look = Callable[..., int]


@pytest.fixture
def look(client: Client) -> Look:
    def look(secret: str = "") -> int:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return client.get("/metrics", headers=headers).status_code

    return look


def test_only_administrators_and_the_token_for_it_read_the_numbers(
    look: Look, client: Client, alice: User, bob: User, settings: Settings
) -> None:
    assert (look(), look("wrong")) == (401, 401)
    settings.HITL_METRICS_TOKEN = "a token for prometheus"
    assert (look("a token for prometheus"), look("a token for")) == (200, 401)
    assert look(Token.make(alice, TokenKind.API)) == 200
    assert look(Token.make(bob, TokenKind.APPROVER)) == look(Token.make(alice, TokenKind.MCP)) == 401
    client.force_login(bob)
    assert look() == 401
    client.force_login(alice)
    # Whoever shows a credential is judged by it alone.
    assert (look(), look("wrong")) == (200, 401)
    assert client.post("/metrics").status_code == 405


def test_no_label_has_a_text_of_anybody(bob: User) -> None:
    for name in ("secret_tool_name", "other"):
        ask(bob, recording(name), {"text": "a secret argument"})
    note(None, "run.something_else", actor=SYSTEM)
    told = metrics.text().decode()
    for each in ("secret", "bob", "refund", "something_else"):
        assert each not in told

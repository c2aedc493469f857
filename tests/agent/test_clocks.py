"""Clocks that disagree or are set back: what a process holds is judged by the database's clock."""

from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.agent import runs
from hitlchat.agent.models import Conversation, Run
from hitlchat.gate import perform
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from tests.conftest import MakeTool, caller
from tests.outside import Outside
from tests.processes import Servers
from tests.scripted_model import Gate, ScriptedModel, calls, text
from tests.waiting import until

pytestmark = [
    pytest.mark.servers("what a killed process leaves is what was committed"),
    pytest.mark.slow("waits for the ends of leases, and shifts clocks of processes"),
]

needs_redis = pytest.mark.skipif(not settings.REDIS_URL, reason="needs Redis (REDIS_URL)")
LATER = timedelta(hours=1)
# Longer than a process of a busy machine may be kept waiting: nobody shall rightly take over from the other.
LEASE_SECONDS = 9


@pytest.mark.postgres
@needs_redis
@pytest.mark.guarantee("gate:truth")
def test_processes_whose_clocks_differ_leave_each_other_their_calls_and_runs(
    servers: Servers, outside: Outside, scripted_model: ScriptedModel
) -> None:
    environment = scripted_model.environment | {"LEASE_SECONDS": str(LEASE_SECONDS)}
    right = servers.start(**environment)
    early, late = (servers.start(("tests/shifted.py", ahead), **environment) for ahead in ("-60", "60"))
    right.sign_in("alice").add_tool(hitlMode="REQUIRED", **outside.tool)
    outside.gate = Gate()
    conversations = {}
    # Somebody else at each, who has one question to answer.
    for person in (right.sign_in("bob"), late.sign_in("charlie"), early.sign_in("alice")):
        scripted_model.enqueue(calls(("order", {"what": "a lamp"})))
        conversations[person] = person.begin("Order a lamp")
        person.wait_for_call(conversations[person], "waiting")
    scripted_model.enqueue(*[text("It is ordered.")] * len(conversations))
    for person in conversations:
        (approval,) = person.pending()
        person.post(f"/api/approvals/{approval['id']}/approve")
    until(lambda: len(outside.orders) == len(conversations), "all of them are ordering")
    # Each sweeps meanwhile, and finds the leases of the others: longer than they last, so that they were renewed.
    _swept(servers.home.database)
    assert (
        _count(servers.home.database, "SELECT count(DISTINCT owner) FROM gate_toolcall WHERE status = 'executing'") == 3
    )
    outside.gate.open()
    for person, conversation in conversations.items():
        person.wait_for_answer(conversation, "It is ordered.")
    assert _count(servers.home.database, "SELECT count(*) FROM gate_auditevent WHERE name = 'call.unknown'") == 0
    assert len(outside.orders) == len(conversations)


def _swept(database: str) -> None:
    """Wait until each lease of what executes was renewed for longer than it lasts."""
    query = "SELECT extract(epoch FROM {}(lease_until)) FROM gate_toolcall WHERE status = 'executing'"
    begun = _count(database, query.format("max"))
    renewed = query.format("min")
    until(lambda: _count(database, renewed) > begun + LEASE_SECONDS, "leases are renewed for longer than they last")


def _count(database: str, query: str) -> float:
    with closing(psycopg.connect(database, connect_timeout=5)) as there:
        return float((there.execute(query.encode()).fetchone() or [0])[0] or 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("run:survives")
def test_what_a_dead_process_held_is_taken_over_after_its_clock_was_set_back(
    bob: User, make_tool: MakeTool, settings: Settings
) -> None:
    settings.LEASE_SECONDS = 3
    make_tool(hitl_mode="DISABLED")
    _, claim = runs.start(Conversation.objects.create(owner=bob), "hello")
    call = ToolCall.objects.create(
        tool_name="echo", status=Status.EXECUTING, caller=bob, caller_kind=caller(bob).kind, owner="gone"
    )
    for rows in (Run.objects.all(), ToolCall.objects.all()):
        rows.update(lease_until=timezone.now() + LATER)
    assert (runs.claim_lapsed(), perform.lose_overdue()) == ([], [])
    assert until(runs.claim_lapsed, "the run is taken over", seconds=10)[0].run_id == claim.run_id
    until(lambda: call.pk in perform.lose_overdue() or _is_unknown(call), "the call is given up", seconds=10)
    assert _is_unknown(call)


def _is_unknown(call: ToolCall) -> bool:
    return ToolCall.objects.get(pk=call.pk).status == Status.UNKNOWN

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
@pytest.mark.parametrize("ahead", ["60", "-60"])
@pytest.mark.guarantee("gate:truth")
def test_processes_whose_clocks_differ_leave_each_other_their_calls_and_runs(
    ahead: str, servers: Servers, outside: Outside, scripted_model: ScriptedModel
) -> None:
    environment = scripted_model.environment | {"LEASE_SECONDS": str(LEASE_SECONDS)}
    first = servers.start(**environment)
    other = servers.start(("-m", "tests.shifted", ahead), **environment)
    first.sign_in("alice").add_tool(hitlMode="REQUIRED", **outside.tool)
    outside.gate = Gate()
    for server in (first, other):
        scripted_model.enqueue(calls(("order", {"what": "a lamp"})), text("It is ordered."))
        bob = server.sign_in("bob")
        conversation = bob.begin("Order a lamp")
        bob.wait_for_call(conversation, "waiting")
        (approval,) = bob.pending()
        bob.post(f"/api/approvals/{approval['id']}/approve")
        outside.gate.wait()
        # Both sweep meanwhile, and find the lease of the other: longer than it lasts, so that it was renewed.
        _swept(servers.home.database)
        outside.gate.open()
        bob.wait_for_answer(conversation, "It is ordered.")
        outside.gate = Gate()
    assert _count(servers.home.database, "SELECT count(*) FROM gate_auditevent WHERE name = 'call.unknown'") == 0
    assert len(outside.orders) == 2


def _swept(database: str) -> None:
    """Wait until the lease of what executes was renewed for longer than it lasts."""
    query = "SELECT extract(epoch FROM max(lease_until)) FROM gate_toolcall"
    begun = _count(database, query)
    until(lambda: _count(database, query) > begun + LEASE_SECONDS, "the lease is renewed for longer than it lasts")


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

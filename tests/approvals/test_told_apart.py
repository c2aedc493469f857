"""Why a call did not run is told apart wherever it is told (SR-48)."""

import json
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate import decide, results, stopping
from hitlchat.gate.models import AuditEvent, Tool, ToolCall
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, fresh, recording
from tests.gate.policy_rules import REFUSES

pytestmark = pytest.mark.django_db(transaction=True)


def timed_out(bob: User, tool: Tool, settings: Settings) -> ToolCall:
    call = ask(bob, tool)
    ToolCall.objects.filter(pk=call.pk).update(deadline=timezone.now() - timedelta(seconds=1))
    decide.expire_overdue()
    return call


def cancelled(bob: User, tool: Tool, settings: Settings) -> ToolCall:
    call = ask(bob, tool)
    stopping.withdraw_call(call.pk, actor=signed_in(bob), why="its caller went away")
    return call


def declined(bob: User, tool: Tool, settings: Settings) -> ToolCall:
    call = ask(bob, tool)
    decide.decline(approval_of(call).pk, signed_in(bob))
    return call


def answered(bob: User, tool: Tool, settings: Settings) -> ToolCall:
    call = ask(bob, tool)
    decide.answer(approval_of(call).pk, signed_in(bob), "Customer 12")
    return call


def refused_by_policy(bob: User, tool: Tool, settings: Settings) -> ToolCall:
    settings.HITL_POLICIES = [REFUSES]
    call = ask(bob, tool)
    settings.HITL_POLICIES = []
    return call


def nobody_asked(bob: User, tool: Tool, settings: Settings) -> ToolCall:
    settings.HITL_MAX_WAITING_PER_CALLER = 0
    return ask(bob, tool)


# What each is called: as a value, and on the page.
WAYS: dict[Callable[[User, Tool, Settings], ToolCall], tuple[str, str]] = {
    timed_out: ("expired", "Expired"),
    cancelled: ("withdrawn", "Withdrawn"),
    declined: ("declined", "Declined"),
    answered: ("answered", "Answered by a person"),
    refused_by_policy: ("refused", "Refused"),
    nobody_asked: ("nobody_asked", "Nobody could be asked"),
}


@pytest.mark.guarantee("gate:truth", "SR-48")
def test_each_way_not_to_run_is_a_value_of_its_own_everywhere(bob: User, client: Client, settings: Settings) -> None:
    tool = recording()
    calls = {way: fresh(way(bob, tool, settings)) for way in WAYS}
    client.force_login(bob)
    exported = _exported(client)
    for way, (value, label) in WAYS.items():
        call = calls[way]
        assert json.loads(results.for_model(call))["status"] == value
        assert client.get(f"/api/calls/{call.pk}").json()["outcome"] == value
        assert exported[str(call.pk)] == value
        page = client.get(f"/history/{call.pk}").content.decode()
        assert re.findall(r'class="status" data-status="(\w+)">.*?</svg>([^<]+)<', page) == [(value, label)]
        assert [each["id"] for each in client.get("/api/calls", {"outcome": value}).json()] == [str(call.pk)]
        assert _on_record(call) == value


def _exported(client: Client) -> dict[str, str]:
    text = client.post("/history/export", {"format": "jsonl"}).getvalue().decode()
    return {row["id"]: row["outcome"] for row in map(json.loads, text.splitlines()[:-1])}


def _on_record(call: ToolCall) -> str:
    """As its last event has it."""
    event = AuditEvent.objects.filter(call=call).latest("id")
    return "nobody_asked" if event.data.get("nobodyAsked") else event.name.removeprefix("call.")

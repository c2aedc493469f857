"""`manage.py policy replay` over a hundred thousand recorded calls: how long it takes, and whether memory grows."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from bench import people, sizes
from bench.deciding import Person
from bench.figures import Figure
from bench.measure import Stopwatch
from hitlchat.gate import decide
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, Decision, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from tests.conftest import PASSWORD

CALLS, AT_ONCE = sizes.of((100_000, 2000), (200, 100))
DAYS, FEW_DAYS = 30, 3
GOAL_SECONDS = 30.0
# What another heap of the same size differs by, and so says nothing.
GOAL_GROWTH = 8.0
# manage.py, which says at its end what it took.
STATUS = "of the process"
COMMAND = f"""
import sys
from pathlib import Path
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv[1:])
print({STATUS!r}, Path("/proc/self/status").read_text(encoding="ascii"))
"""
# Of so many calls one was declined.
RARE = 50
CONDITION = 'args["amount"] > 100 and "finance" not in caller["groups"]'
RULES: list[dict[str, Any]] = [
    {"policy": "caller_kind", "tools": ["*"], "kinds": ["mcp"], "verdict": "ask"},
    {"policy": "deny_list", "tools": ["delete_*"], "reason": "Not here."},
]
DRAFTS: dict[str, dict[str, Any]] = {
    "another mode": {"tools": {"gated": {"hitlMode": "DISABLED"}}},
    "a condition": {"tools": {"gated": {"hitlMode": "CONDITIONAL", "condition": CONDITION}}},
    "a condition and two policies": {
        "tools": {"gated": {"hitlMode": "CONDITIONAL", "condition": CONDITION}},
        "policies": RULES,
    },
}


@dataclass(frozen=True)
class Run:
    """One run of the command: seconds, those of processors, the most memory that it took, and the answer."""

    seconds: float
    cpu: float
    mib: float
    found: dict[str, Any]


def measure() -> Iterator[Figure]:
    people.ready()
    others = [User.objects.create_user(f"replay-{number}", password=PASSWORD) for number in range(10)]
    with Stopwatch() as watch:
        _fill(Person.of(people.bob()), others)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    yield Figure(f"put {CALLS:,} calls on record, for this bench", watch.wall, "s", note=f"{watch.cpu:.0f} s CPU")
    for words, draft in DRAFTS.items():
        few, every = _replayed(draft, FEW_DAYS), _replayed(draft, DAYS)
        assert every.found["calls"] == CALLS, every.found
        note = f"{every.cpu:.1f} s CPU with the sandbox, {every.found['asked']:,} ask"
        yield Figure(f"replay of {CALLS:,} calls, {words}", every.seconds, "s", goal=GOAL_SECONDS, note=note)
        note = f"{every.mib:.0f} MiB, {few.mib:.0f} for {few.found['calls']:,} calls"
        yield Figure(
            f"more memory than for a tenth of them, {words}", every.mib - few.mib, "MiB", goal=GOAL_GROWTH, note=note
        )


def _replayed(draft: dict[str, Any], days: int) -> Run:
    path = Path(settings.DATA_DIR) / "draft.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(draft), encoding="utf-8")
    words = ["manage.py", "policy", "replay", "--draft", str(path), "--days", str(days), "--json"]
    began, used = time.monotonic(), _cpu_of_children()
    done = subprocess.run([sys.executable, "-c", COMMAND, *words], stdout=subprocess.PIPE, text=True, check=True)
    answer, _, status = done.stdout.partition(STATUS)
    # What the process took at most. The figure that its parent may ask for has what the parent took before.
    kib = int(status.split("VmHWM:")[1].split()[0])
    return Run(time.monotonic() - began, _cpu_of_children() - used, kib / 2**10, json.loads(answer))


def _cpu_of_children() -> float:
    """Return what all processes took that have ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def _fill(person: Person, others: list[User]) -> None:
    """Half asked about, half run unasked, evenly over the days; rows like one that the gate made."""
    like = person.asked()
    decide.approve(like.pk, Actor(person.user.pk, "session"), digest=like.digest)
    decision: dict[str, Any] = {**Decision.objects.filter(approval=like).values().get()}
    columns: dict[str, Any] = {**ToolCall.objects.filter(pk=like.call_id).values().get()}
    # The one call that all the others are like is none of them.
    ToolCall.objects.filter(pk=like.call_id).update(created_at=timezone.now() - timedelta(days=2 * DAYS))
    free = Tool.objects.get(name="free")
    step = timedelta(days=DAYS - 0.01) / CALLS
    newest = timezone.now()
    for start in range(0, CALLS, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, CALLS))
        calls = [_call(columns, number, newest - step * number, others, free) for number in numbers]
        ToolCall.objects.bulk_create(calls)
        asked = [_approval(like, call) for call in calls if call.deadline]
        Approval.objects.bulk_create(asked)
        Decision.objects.bulk_create(_decision(decision, each) for each in asked)


def _call(columns: dict[str, Any], number: int, at: Any, others: list[User], free: Tool) -> ToolCall:
    asked = number % 2 == 0
    return ToolCall(
        **columns
        | {"id": new_id(), "created_at": at, "started_at": at, "settled_at": at, "result": {"sent": True}}
        | {"arguments": columns["arguments"] | {"amount": number % 200}, "caller_id": others[number % len(others)].pk}
        | {"status": Status.DECLINED if asked and number % RARE == 0 else Status.SUCCEEDED}
        | ({} if asked else {"deadline": None, "tool_id": free.pk, "tool_name": free.name})
    )


def _approval(like: Approval, call: ToolCall) -> Approval:
    disclosure = like.disclosure | {"arguments": call.arguments}
    return Approval(
        call=call, prompt=like.prompt, disclosure=disclosure, digest=like.digest, created_at=call.created_at
    )


def _decision(columns: dict[str, Any], asked: Approval) -> Decision:
    shown = asked.created_at + timedelta(seconds=2)
    times = {"first_shown_at": shown, "decided_at": shown + timedelta(seconds=20)}
    return Decision(**columns | {"id": new_id(), "approval_id": asked.pk} | times)

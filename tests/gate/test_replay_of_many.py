"""A replay of a long made history, of each call of which it is known what must come out; and one that is cancelled."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from hitlchat.gate import replay
from hitlchat.gate.draft import read
from hitlchat.gate.models import Approval, Decision, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from tests.architecture.source import ROOT
from tests.gate.asking import recording
from tests.processes import Installation, installation, migrated
from tests.waiting import until

__all__ = ["installation", "migrated"]

MANY, AT_ONCE = 20_000, 2000
STEP: Final = timedelta(days=29) / MANY
LOOKED_SECONDS: Final = 7
TYPED, OUTSIDE = [{"path": "/amount", "from": "person"}], [{"path": "/amount", "from": "outside"}]
DRAFT: Final[dict[str, Any]] = {
    "tools": {"refund": {"hitlMode": "CONDITIONAL", "condition": 'args["amount"] > 100 or args_from_outside'}},
    "policies": [
        {"policy": "caller_kind", "tools": ["refund"], "kinds": ["mcp"], "verdict": "refuse"},
        {"policy": "deny_list", "tools": ["wipe"], "reason": "Nothing is wiped from here."},
    ],
}


@dataclass(frozen=True)
class Made:
    """The call of one number: how it was made, and what follows from that."""

    number: int

    @property
    def name(self) -> str:
        return ("refund", "refund", "look", "wipe")[self.number % 4]

    @property
    def kind(self) -> str:
        return "mcp" if self.number % 7 == 0 else "chat"

    @property
    def amount(self) -> int:
        return self.number * 37 % 200

    @property
    def is_asked(self) -> bool:
        return self.name == "refund" and self.number % 10 != 9

    @property
    def is_outside(self) -> bool:
        """Of what nobody was asked about, nobody knows."""
        return not self.is_asked or self.number % 11 == 0

    @property
    def is_declined(self) -> bool:
        return self.is_asked and self.number % 5 == 0

    @property
    def verdict(self) -> str:
        if self.name != "refund":
            return "refuse" if self.name == "wipe" else "allow"
        if self.kind == "mcp":
            return "refuse"
        return "ask" if self.amount > 100 or self.is_outside else "allow"

    def call(self, tools: dict[str, Tool], bob: User, at: datetime) -> ToolCall:
        status = Status.DECLINED if self.is_declined else Status.SUCCEEDED
        # Whoever approved it changed it: what counts is what was asked.
        edited = self.is_asked and self.number % 3 == 0
        return ToolCall(
            id=new_id(),
            tool=tools[self.name],
            tool_name=self.name,
            status=status,
            caller_kind=self.kind,
            caller=bob,
            arguments={"text": "a", "amount": 0 if edited else self.amount},
            deadline=at if self.is_asked else None,
            created_at=at,
        )

    def approval(self, call: ToolCall) -> Approval:
        origins = OUTSIDE if self.is_outside else TYPED
        shown = {"arguments": {"text": "a", "amount": self.amount}, "provenance": origins}
        return Approval(call=call, prompt="Give back", disclosure=shown, digest="d" * 64, created_at=call.created_at)


def decision(approval: Approval, bob: User) -> Decision:
    shown = approval.created_at
    columns: dict[str, Any] = {"verdict": "decline" if approval.call.status == Status.DECLINED else "approve"}
    columns |= {"first_shown_at": shown, "decided_at": shown + timedelta(seconds=LOOKED_SECONDS)}
    return Decision(approval=approval, person=bob, means="session", digest=approval.digest, **columns)


@pytest.fixture
def history(bob: User) -> dict[int, ToolCall]:
    """The calls by their number, the newest first."""
    tools = {"refund": recording(), "look": recording("look", mode="DISABLED"), "wipe": recording("wipe")}
    now, found = timezone.now(), dict[int, ToolCall]()
    for start in range(0, MANY, AT_ONCE):
        made = [Made(number) for number in range(start, start + AT_ONCE)]
        calls = {each: each.call(tools, bob, now - STEP * each.number) for each in made}
        approvals = [each.approval(call) for each, call in calls.items() if each.is_asked]
        ToolCall.objects.bulk_create(calls.values())
        Approval.objects.bulk_create(approvals)
        Decision.objects.bulk_create(decision(each, bob) for each in approvals)
        found |= {each.number: call for each, call in calls.items()}
    return found


@pytest.mark.django_db
@pytest.mark.slow("judges twenty thousand calls, twice")
def test_a_replay_says_of_a_long_made_history_what_is_known_of_it(history: dict[int, ToolCall], tmp_path: Path) -> None:
    made = [Made(number) for number in history]
    verdicts = Counter(each.verdict for each in made)
    declined = [history[each.number].pk for each in made if each.is_declined and each.verdict == "allow"]
    saved = [each for each in made if each.is_asked and each.verdict != "ask"]
    assert len(declined) > 100
    assert min(verdicts.values()) > 1000
    (tmp_path / "draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    out = StringIO()
    call_command("policy", "replay", "--draft", str(tmp_path / "draft.json"), "--json", stdout=out)
    assert json.loads(out.getvalue()) == {
        "calls": MANY,
        "asked": verdicts["ask"],
        "refused": verdicts["refuse"],
        "allowed": verdicts["allow"],
        "declinedThatWouldHaveRun": len(declined),
        "wouldHaveRunThoughDeclined": [str(pk) for pk in declined[: replay.MOST_NAMED]],
        "askedBefore": sum(each.is_asked for each in made),
        "questionsSaved": len(saved),
        "questionsAdded": sum(each.verdict == "ask" and not each.is_asked for each in made),
        "secondsSaved": len(saved) * LOOKED_SECONDS,
        "errors": 0,
        "error": "",
        "raised": 0,
        "gone": 0,
        "leftOut": 0,
    }
    # Under the rules in force `refund` and `wipe` ask, and `look` never does.
    differ = [each for each in made if each.verdict != ("allow" if each.name == "look" else "ask")]
    compared = replay.compare(read(DRAFT), read({}), 30, most=MANY, seconds=600)
    assert compared.differing == len(differ)
    named = [(each.call, each.one) for each in compared.differences]
    assert named == [(history[each.number].pk, each.verdict) for each in differ[: replay.MOST_NAMED]]


FILL: Final = f"""
from django.contrib.auth.models import User
from hitlchat.gate.models import Tool, ToolCall, new_id
tool, bob = Tool.objects.first(), User.objects.get(username="bob")
ToolCall.objects.bulk_create(
    (
        ToolCall(id=new_id(), tool=tool, tool_name=tool.name, status="succeeded", caller_kind="chat", caller=bob)
        for _ in range({MANY})
    ),
    batch_size={AT_ONCE},
)
print(tool.name)
"""
SEEN: Final = """
import hashlib
from django.apps import apps
found = hashlib.sha256()
for model in apps.get_models():
    for row in model.objects.order_by("pk").values_list():
        found.update(repr(row).encode())
print(found.hexdigest())
"""
CODES: Final = {
    signal.SIGINT: "the person presses Ctrl+C",
    signal.SIGTERM: "it is ended",
    signal.SIGKILL: "it is killed",
}


def descendants(pid: int) -> Iterator[int]:
    for each in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in each.read_text(encoding="ascii").split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from descendants(child)


def is_worker(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == "monty"
    except OSError:
        return False


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()[0] != "Z"
    except OSError:
        return False


def left_there(home: Installation) -> tuple[str, list[str]]:
    """Return what is in the database, and which files there are beside those that SQLite makes and removes."""
    stored = home.manage("shell", "-v", "0", "-c", SEEN)
    names = sorted(str(each.relative_to(home.folder)) for each in home.folder.rglob("*"))
    return stored, [name for name in names if not name.endswith(("-wal", "-shm"))]


@pytest.mark.slow("fills a database, and ends three processes")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_replay_that_is_cancelled_leaves_nothing_behind(installation: Installation, tmp_path: Path) -> None:
    name = installation.manage("shell", "-v", "0", "-c", FILL).strip()
    draft = tmp_path / "draft.json"
    # Each takes a while, so that the replay is in the middle of them.
    condition = "len([x for x in range(20000)]) < 1"
    draft.write_text(
        json.dumps({"tools": {name: {"hitlMode": "CONDITIONAL", "condition": condition}}}), encoding="utf-8"
    )
    command = [sys.executable, "manage.py", "policy", "replay", "--draft", str(draft), "--json"]
    before = left_there(installation)
    for number in CODES:
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(
            command, cwd=ROOT, env=installation.variables(), start_new_session=True, **quiet
        ) as process:
            until(lambda: any(is_worker(each) for each in descendants(process.pid)), "it judges, in the sandbox")
            below = [*descendants(process.pid)]
            os.kill(process.pid, number)
            assert process.wait(30) != 0
        until(lambda: not any(map(runs, below)), f"{CODES[number]}: its processes end")  # noqa: B023
    assert left_there(installation) == before

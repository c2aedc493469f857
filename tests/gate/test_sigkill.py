"""A process that dies without a word, at every step of a call: never a run without a yes, never a second run."""

import os
import signal
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from hitlchat.gate import decide, perform
from hitlchat.gate.models import Decision, ToolCall
from hitlchat.gate.settling import sweep
from hitlchat.gate.status import Status
from tests import forks
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, events, recording, run, status
from tests.gate.deciding_people import approver, rule

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.guarantee("gate:at-most-once"),
    pytest.mark.servers("what a killed process leaves is what was committed"),
]

KILLS = pytest.mark.slow("kills another process")


def die(where: str, call: ToolCall, effects: Path, person: User | None = None) -> None:
    """Let another process answer and execute `call`, and be killed on the way. `person`: who says yes in it."""
    environment = {**os.environ, "DIES": where, "EFFECTS": str(effects)}
    database = str(connection.settings_dict["NAME"])
    who = person.pk if person else call.caller_id
    arguments = ("tests/gate/dying.py", database, str(call.pk), str(who))
    code, _, errors = forks.run(arguments, environment, timeout=40)
    assert code == -signal.SIGKILL, errors


def time_passes(call: ToolCall) -> None:
    """Long enough for the lease of whoever executes `call` to lapse, if someone does; then a sweeper comes by."""
    ToolCall.objects.filter(pk=call.pk, lease_until__isnull=False).update(lease_until=call.created_at)
    sweep()


def done(effects: Path) -> list[str]:
    return effects.read_text(encoding="ascii").split() if effects.exists() else []


@pytest.mark.guarantee("SR-12")
def test_of_three_calls_killed_after_their_effect_none_happens_twice(bob: User, tmp_path: Path) -> None:
    tool, effects = recording(source="appending"), tmp_path / "effects"
    calls = [ask(bob, tool) for _ in range(3)]
    for call in calls:
        die("in the tool", call, effects)
        assert status(call) == Status.EXECUTING
        assert not run(call)
        time_passes(call)
        assert status(call) == Status.UNKNOWN
        assert not run(call)
    for call in calls:
        time_passes(call)
    assert done(effects) == [str(call.pk) for call in calls]
    assert events(calls[0])[-1] == "call.unknown"


@KILLS
@pytest.mark.parametrize("where,happened", [("after the claim", False), ("while recording the result", True)])
@pytest.mark.guarantee("SR-12")
def test_a_process_killed_around_the_tool_leaves_an_unknown_outcome(
    where: str, happened: bool, bob: User, tmp_path: Path
) -> None:
    call = ask(bob, recording(source="appending"))
    die(where, call, tmp_path / "effects")
    time_passes(call)
    assert status(call) == Status.UNKNOWN
    assert not run(call)
    assert len(done(tmp_path / "effects")) == happened


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_process_killed_while_recording_the_yes_has_recorded_none(bob: User, tmp_path: Path) -> None:
    call = ask(bob, recording(source="appending"))
    die("while answering", call, tmp_path / "effects")
    time_passes(call)
    assert status(call) == Status.WAITING
    assert events(call) == ["call.waiting"]
    assert not Decision.objects.exists()
    assert not run(call)
    assert done(tmp_path / "effects") == []


@KILLS
@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("where, yes", [("after the answer", 1), ("while answering", 0)])
def test_a_process_killed_around_the_first_of_two_yeses_leaves_what_was_counted_and_nothing_runs(
    where: str, yes: int, alice: User, bob: User, tmp_path: Path
) -> None:
    tool = recording(source="appending")
    people = [approver(name) for name in ("dora", "emil", "fred")]
    rule(tool, alice, quorum=2)
    call = ask(bob, tool)
    die(where, call, tmp_path / "effects", people[0])
    time_passes(call)
    assert (status(call), Decision.objects.count(), run(call)) == (Status.WAITING, yes, False)
    for person in people[1 : 3 - yes]:
        assert status(call) == Status.WAITING
        decide.approve(approval_of(call).pk, signed_in(person))
    assert (status(call), done(tmp_path / "effects")) == (Status.APPROVED, [])


@KILLS
@pytest.mark.parametrize("where", ["in the preview", "between preview and claim", "while claiming"])
def test_a_process_killed_around_the_second_preview_leaves_the_call_to_another(
    where: str, bob: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ask(bob, recording(source="dying"))
    die(where, call, tmp_path / "effects")
    time_passes(call)
    assert status(call) == Status.APPROVED
    assert done(tmp_path / "effects") == []
    monkeypatch.setenv("EFFECTS", str(tmp_path / "effects"))
    monkeypatch.setenv("DIES", "")
    assert run(call)
    assert not run(call)
    assert done(tmp_path / "effects") == [str(call.pk)]


@KILLS
@pytest.mark.parametrize("where", ["after the answer", "while claiming"])
def test_a_process_killed_before_the_claim_leaves_the_call_to_another(where: str, bob: User, tmp_path: Path) -> None:
    call = ask(bob, recording(source="appending"))
    die(where, call, tmp_path / "effects")
    time_passes(call)
    assert status(call) == Status.APPROVED
    assert perform.claim(call.pk) is not None
    assert perform.claim(call.pk) is None
    assert done(tmp_path / "effects") == []

"""The console at a real terminal, which is a pseudo-terminal with the command behind it."""

import json
import os
import pty
import re
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from django.contrib.auth.models import User
from django.db import connection

from hitlchat.gate import decide
from hitlchat.gate.models import Approval, Decision
from tests import forks
from tests.conftest import signed_in
from tests.gate.asking import ask, recording, status
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.django_db(transaction=True)

PROMPT: Final = 'Type "approve", "change", "decline" or "later":'


class Typist:
    """`manage.py approvals` at a terminal of its own, on the database of this test run."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        ours, theirs = pty.openpty()
        self._ours, self.screen = ours, ""
        command = ("manage.py", "approvals", *arguments)
        self.process = forks.Forked(command, environment, theirs, theirs, entry=theirs)
        os.close(theirs)

    def reads(self, words: str) -> str:
        """What stands on the screen once `words` do."""
        return until(lambda: self.screen if words in self._look() else "", words, seconds=SECONDS)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ends(self) -> int:
        until(lambda: (self._look(), self.process.poll() is not None)[1], "its end", seconds=SECONDS)
        self._look()
        return self.process.wait(SECONDS)

    def close(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(SECONDS)
        os.close(self._ours)

    def _look(self) -> str:
        while select.select([self._ours], [], [], 0)[0]:
            # A terminal whose program has ended cannot be read.
            try:
                read = os.read(self._ours, 65536)
            except OSError:
                break
            if not read:
                break
            self.screen += re.sub(r"\x1b\[[0-9;]*m", "", read.decode()).replace("\r\n", "\n")
        return self.screen


At = Callable[..., Typist]


@pytest.fixture
def at(tmp_path: Path) -> Iterator[At]:
    """Start the command with these arguments."""
    started: list[Typist] = []
    names = connection.settings_dict
    url = (
        f"sqlite:///{names['NAME']}"
        if connection.vendor == "sqlite"
        else f"postgresql://{names['USER']}@{names['HOST']}:{names['PORT']}/{names['NAME']}"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEST_", "REDIS", "OPENAI_"))}
    own = {"DATABASE_URL": url, "HITLCHAT_DATA": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"}

    def start(*arguments: str) -> Typist:
        started.append(Typist(kept | own, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_it_shows_what_comes_and_takes_whole_words_that_were_typed_after_the_card(at: At, bob: User) -> None:
    calls = [ask(bob, recording(f"tool{number}"), {"text": f"hello {number}"}) for number in range(3)]
    desk = at("watch", "--as", "bob", "--for", "bob")
    desk.type("approve\n")
    for typed in ("", "yes", "Approved"):
        desk.reads(PROMPT)
        desk.screen = ""
        desk.type(f"{typed}\n")
        desk.reads("one of the four")
    assert Decision.objects.count() == 0
    # In the order in which their time runs out.
    for typed, told in (("approve", "A server performs it"), ("decline", "Reason"), ("later", "still waiting")):
        desk.reads(PROMPT)
        desk.screen = desk.screen.replace(PROMPT, "asked")
        desk.type(f"{typed}\n")
        desk.reads(told)
        if typed == "decline":
            desk.type("Too risky\n")
            desk.reads("It does not run")
    assert [status(call).value for call in calls] == ["approved", "declined", "waiting"]
    assert [each.means for each in Decision.objects.all()] == ["console", "console"]
    assert Decision.objects.get(verdict="decline").reason == "Too risky"
    assert "hello 1" in desk.screen
    assert "Digest:" in desk.screen
    desk.type("\x04")
    assert desk.ends() == 0
    assert "Stopped" in desk.screen
    assert "Traceback" not in desk.screen


@pytest.mark.guarantee("gate:same-call")
def test_changed_arguments_are_shown_before_the_yes_to_them(at: At, bob: User) -> None:
    call = ask(bob, recording(), {"text": "hello"})
    desk, shown = at("watch", "--as", "bob", "--plain"), ""
    for words, typed in (
        ("later", "change"),
        ("as JSON", '{"text": 7}'),
        ("as JSON", '{"text": "bye"}'),
        ("to leave it", "approve"),
    ):
        shown += desk.reads(words)
        desk.screen = ""
        desk.type(f"{typed}\n")
    desk.reads("A server performs it")
    assert "Argument text, asked: **hello**" in shown
    assert "Argument text, yours: **bye**" in shown
    call.refresh_from_db()
    assert (call.status, call.arguments["text"]) == ("approved", "bye")


@pytest.mark.slow("another program at a terminal")
def test_what_is_decided_elsewhere_is_said_and_the_next_one_comes(at: At, bob: User) -> None:
    first, second = ask(bob, recording("first")), ask(bob, recording("second"))
    desk = at("watch", "--as", "bob")
    desk.reads("Type")
    decide.decline(Approval.objects.get(call=first).pk, signed_in(bob))
    desk.reads("This call already has its outcome. Declined. Declined by bob, signed in.")
    desk.reads(str(Approval.objects.get(call=second).pk))
    assert status(second).value == "waiting"


@pytest.mark.slow("another program at a terminal")
def test_approve_at_a_terminal_shows_all_that_is_risky_and_wants_the_word(at: At, bob: User) -> None:
    call = ask(bob, recording(risk_level=4), {"text": "z" * 3000 + "END"})
    found = Approval.objects.get(call=call)
    for typed, code, words in (
        ("\n", 0, "still waiting"),
        ("\x04", 1, "Nothing was decided"),
        ("approve\n", 0, "Approved"),
    ):
        desk = at("approve", str(found.pk), "--as", "bob", "--plain")
        assert "END" in desk.reads("to leave it")
        desk.type(typed)
        assert desk.ends() == code
        assert words in desk.screen
    assert status(call).value == "approved"


@pytest.mark.slow("another program at a terminal")
def test_as_json_it_tells_what_begins_and_ends_to_wait_and_asks_nothing(at: At, bob: User) -> None:
    call = ask(bob, recording(), {"text": "\x1b[31mred"})
    desk = at("watch", "--json")
    desk.reads('"waiting"')
    decide.decline(Approval.objects.get(call=call).pk, signed_in(bob))
    desk.reads('"declined"')
    events = [json.loads(line) for line in desk.screen.splitlines() if line.startswith("{")]
    assert [event["event"] for event in events] == ["waiting", "declined"]
    assert {event["callId"] for event in events} == {str(call.pk)}
    assert "Type" not in desk.screen
    os.killpg(desk.process.pid, signal.SIGINT)
    assert desk.ends() == 0

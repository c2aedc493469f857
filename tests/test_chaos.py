"""The harness of `make chaos`: it comes to an end, finds nothing, and would say so if it did."""

import os
import re
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

import httpx2
import pytest
from django.conf import settings

from chaos import truth
from chaos.chats import EXPIRES, SECONDS_TO_ANSWER, Deed
from chaos.line import Line
from tests.architecture.source import ROOT
from tests.outside import Outside, outside
from tests.processes import Servers, installation, migrated, servers
from tests.run import OF_A_PASS
from tests.scripted_model import ScriptedModel, calls, scripted_model, text
from tests.shifted import BACKWARDS, FORWARDS, JUMP
from tests.waiting import until

__all__ = ["installation", "migrated", "outside", "scripted_model", "servers"]

# In each of two places, so that a run of all tests has sixty.
KILLS = 30
NOT_RUN = '{"status": "declined", "executed": false}'


def yes(person: str = "bob", what: str = "7", after: int = 3, answer: int | None = 200, at: float = 0.0) -> Deed:
    return Deed("a call", "approve", person, what, after, answer, at)


RAN = truth.Case(
    call="a call",
    tool="order",
    status="succeeded",
    what="7",
    runs=(("7", 3),),
    deeds=(yes(),),
    consents=frozenset({"bob"}),
    told=frozenset({"ordered"}),
)
WAITS = truth.Case("a call", "order", "waiting", "7")
NO = Deed("a call", "reject", "bob", "7", 0, 200)


@pytest.mark.parametrize(
    "case,said",
    [
        (replace(RAN, runs=(("7", 3), ("7", 4))), "ran 2 times"),
        (replace(RAN, runs=(), told=frozenset()), "is said to have succeeded, and never ran"),
        (replace(RAN, runs=(("8", 3),), deeds=(yes(what="8"),)), "ran with '8', and is on record with '7'"),
        (replace(RAN, deeds=()), "ran with '7' before 1 said yes to that: []"),
        (replace(RAN, deeds=(yes(after=4),)), "ran with '7' before 1 said yes to that: []"),
        (replace(RAN, deeds=(yes(), yes()), quorum=2, consents=frozenset("ab")), "before 2 said yes to that: ['bob']"),
        (replace(RAN, consents=frozenset()), "ran with a yes on record of [] alone"),
        (replace(RAN, status="withdrawn", told=frozenset()), "ran, and is on record as withdrawn"),
        (replace(RAN, status="approved", told=frozenset()), "is approved although nothing goes on any more"),
        (replace(RAN, told=frozenset({NOT_RUN})), "the model was told"),
        (replace(RAN, runs=(), status="unknown"), "the model was told 'ordered', and it ran 0 times"),
        (replace(WAITS, deeds=(yes(),)), "lost the yes of ['bob']: it is waiting"),
        (replace(WAITS, deeds=(yes(),), status="expired"), "lost the yes of ['bob']: it is expired"),
        (replace(WAITS, deeds=(NO,)), "lost a no: it is waiting"),
        (replace(WAITS, status="expired"), "waited for an answer that nobody gave, and is expired"),
        (replace(WAITS, began=(60, 61), until=SECONDS_TO_ANSWER), "from a moment -60.0 s after its message"),
        (replace(WAITS, began=(60, 61), until=SECONDS_TO_ANSWER + 99), "38.0 s after it was seen to wait"),
        (replace(WAITS, tool=EXPIRES, status="expired", until=9, settled=7), "expired 2.0 s before its deadline"),
        (replace(RAN, deeds=(yes(at=10),), until=9), "took a yes of bob 1.0 s after its deadline"),
        (replace(RAN, deeds=(yes(at=10, answer=None),), until=9), "by its deadline only [] had said yes"),
    ],
)
def test_whatever_must_not_be_is_a_violation(case: truth.Case, said: str) -> None:
    assert any(said in each for each in truth.violations(case))


@pytest.mark.parametrize(
    "case",
    [
        RAN,
        WAITS,
        replace(RAN, status="unknown", told=frozenset({'{"status": "unknown"}'})),
        replace(RAN, runs=(), status="unknown", told=frozenset()),
        replace(RAN, deeds=(yes(answer=None),), status="failed", told=frozenset()),
        replace(WAITS, deeds=(NO,), status="declined", told=frozenset({NOT_RUN})),
        replace(WAITS, deeds=(yes(answer=None),)),
        replace(WAITS, deeds=(yes(answer=409),)),
        replace(WAITS, tool=EXPIRES, status="expired"),
        replace(WAITS, tool=EXPIRES, status="expired", began=(6, 7), until=9.5, settled=9.5),
        replace(WAITS, tool=EXPIRES, status="expired", deeds=(yes(at=10, answer=409),), until=9, settled=11),
        replace(RAN, deeds=(yes(at=8),), until=9),
    ],
)
def test_what_a_fault_may_leave_behind_is_none(case: truth.Case) -> None:
    assert [*truth.violations(case)] == []


def test_a_run_without_a_call_on_record_is_a_stray() -> None:
    assert [*truth.strays([RAN], ["7", "8"])] == ["order '8' ran without a call on record"]


def test_a_line_that_was_cut_breaks_connections_and_passes_on_what_comes_later(outside: Outside) -> None:
    line = Line(outside.url)
    order = b"POST /orders HTTP/1.0\r\nContent-Length: 4\r\n\r\nlamp"
    with socket.create_connection(("127.0.0.1", urlsplit(line.url).port), timeout=10) as there:
        there.sendall(order[:-1])
        until(lambda: line.connections == 1, "the line passes it on")
        line.cut(0)
        with suppress(ConnectionResetError):
            assert there.recv(8) == b""
    with socket.create_connection(("127.0.0.1", urlsplit(line.url).port), timeout=10) as there:
        there.sendall(order)
        assert there.recv(8) == b"HTTP/1.0"
    assert outside.orders == ["lamp"]


@pytest.mark.embedded
@pytest.mark.guarantee("gate:fail-closed")
def test_without_room_on_the_disk_no_yes_counts_and_with_room_again_all_goes_on(
    servers: Servers, outside: Outside, scripted_model: ScriptedModel
) -> None:
    server = servers.start(**scripted_model.environment)
    server.sign_in("alice").add_tool(hitlMode="REQUIRED", **outside.tool)
    scripted_model.enqueue(calls(("order", {"what": "a lamp"})), text("It is ordered."))
    bob = server.sign_in("bob")
    conversation = bob.begin("Order a lamp")
    bob.wait_for_call(conversation, "waiting")
    (approval,) = bob.pending()
    server.limit_files(0)
    assert bob.post(f"/api/approvals/{approval['id']}/approve").status_code == 503
    assert (outside.orders, [each["id"] for each in bob.pending()]) == ([], [approval["id"]])
    server.limit_files(None)
    assert bob.post(f"/api/approvals/{approval['id']}/approve").status_code == 200
    bob.wait_for_answer(conversation, "It is ordered.")
    assert len(outside.orders) == 1


def test_a_clock_jumps_at_a_signal(servers: Servers) -> None:
    server = servers.start(("tests/shifted.py", "0"))

    def is_ahead(by: timedelta) -> bool:
        cookie = SimpleCookie(httpx2.get(f"{server.url}/sign-in", trust_env=False).headers["set-cookie"])["csrftoken"]
        time = parsedate_to_datetime(cookie["expires"]) - timedelta(seconds=int(cookie["max-age"]))
        return abs(time - datetime.now(UTC) - by) < JUMP / 2

    assert is_ahead(timedelta())
    server.signal(FORWARDS)
    until(partial(is_ahead, JUMP), "the clock has jumped ahead")
    server.signal(BACKWARDS)
    until(partial(is_ahead, timedelta()), "the clock has jumped back")


@pytest.mark.slow("kills servers, thirty times")
@pytest.mark.servers("two processes share the work there, and lose sight of PostgreSQL and Redis")
@pytest.mark.timeout(900)
@pytest.mark.guarantee("gate:at-most-once", "gate:no-yes-no-run", "run:survives")
def test_thirty_kills_break_no_promise() -> None:
    place = {"TEST_DATABASE_URL": settings.DATABASE_URL, "TEST_REDIS_URL": settings.REDIS_URL}
    where = ["--on", "servers" if settings.DATABASE_URL else "sqlite"]
    command = [sys.executable, "-m", "chaos", "--kills", str(KILLS), *where]
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_PASS}
    done = subprocess.run(command, cwd=ROOT, env=kept | place, capture_output=True, text=True, timeout=850, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert f"kill {KILLS}" in done.stdout
    assert re.search(r"^violations 0, seed \d+", done.stdout, re.MULTILINE)
    assert re.search(r"^[1-9]\d* runs counted outside", done.stdout, re.MULTILINE)

"""What a run of the harness plays on: data of its own, tools that only count, servers, a model, and lines to cut."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from django.conf import settings
from django.db import connection

from chaos.chats import DECIDERS, EXPIRES, SECONDS_TO_ANSWER, SOON, Town
from chaos.line import Line
from chaos.model import Model
from chaos.moments import Moments, Pause
from tests.conftest import PASSWORD
from tests.outside import Outside, opened
from tests.processes import SERVE, Installation, Server, Servers, peopled

ENVIRONMENT: Final = {
    "HITL_MAX_WAITING_PER_CALLER": "100000",
    "HITL_TIMEOUT_SECONDS": str(SECONDS_TO_ANSWER),
    "HITL_RECORD_SECONDS": "2",
    "LOG_LEVEL": "WARNING",
}
# How many seconds the clocks of two processes are from the right time, one of them behind.
WRONG_CLOCKS: Final = (60, 300)
LONGEST_ORDER: Final = 0.4
PREPARE: Final = f"""
from django.contrib.auth.models import User
from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.gate import ruling
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import DecidedBy, Tool
from hitlchat.gate.oversight import Rules
roles.give(User.objects.create_user("dora", password={PASSWORD!r}), Role.APPROVER)
alice = Actor(User.objects.get(username="alice").pk, "console")
for name in {[*DECIDERS]!r}:
    tool = Tool.objects.get(name=name)
    ruling.change(tool, Rules(decided_by=DecidedBy.APPROVERS, quorum=2), alice, confirmed=True)
"""


@dataclass
class Stage:
    home: Installation
    servers: list[Server]
    lines: dict[str, Line]
    counter: Outside
    model: Model
    moments: Moments
    town: Town


@contextmanager
def staged(random: Random) -> Iterator[Stage]:
    """Set everything up: one process on SQLite; two on PostgreSQL and Redis, with lines and wrong clocks."""
    moments = Moments()
    with peopled(Path(settings.DATA_DIR)) as home, opened() as counter:
        counter.gate = Pause(random, LONGEST_ORDER, moments, begin="in the tool", end="settling")
        _prepare(home, counter)
        lines = {"PostgreSQL": Line(home.database), "Redis": Line(settings.REDIS_URL)} if home.database else {}
        by_line = {f"{'DATABASE' if name == 'PostgreSQL' else 'REDIS'}_URL": each.url for name, each in lines.items()}
        model, started = Model(random, moments), Servers(home)
        try:
            ahead = random.uniform(*WRONG_CLOCKS)
            programs = [("tests/shifted.py", str(each)) for each in (ahead, -ahead)] if lines else [SERVE]
            servers = [started.start(each, **model.environment, **ENVIRONMENT, **by_line) for each in programs]
            yield Stage(home, servers, lines, counter, model, moments, Town.of(servers, moments, counter, random))
        finally:
            started.close()
            model.close()


def _prepare(home: Installation, counter: Outside) -> None:
    for name in ("order", EXPIRES, *DECIDERS):
        seconds = SOON if name == EXPIRES else None
        home.add_tool(**counter.tool | {"name": name, "hitl_mode": "REQUIRED", "deadline_seconds": seconds})
    home.manage("shell", "-v", "0", "-c", PREPARE)
    if home.database:
        connection.settings_dict["NAME"] = home.database.rpartition("/")[2]
        connection.close()

"""A process that answers a call with yes, executes it, and dies by SIGKILL at the point that DIES names.

Arguments: the name of the database, the id of the call, the id of the person. EFFECTS names the file of side effects.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final
from uuid import UUID

import django
from django.conf import settings
from django.db import connection

database, call_id, user_id = sys.argv[1:]
settings.DATABASES["default"]["NAME"] = database
django.setup()

from asgiref.sync import async_to_sync  # noqa: E402

from hitlchat.gate import decide, perform  # noqa: E402
from hitlchat.gate.actor import Actor  # noqa: E402
from hitlchat.gate.models import Approval  # noqa: E402
from tests.gate.sources_for_tests import SOURCES  # noqa: E402

settings.TOOL_SOURCES = SOURCES
DIES: Final = os.environ["DIES"]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(point: str, statement: str) -> Any:
    def wrapper(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith(statement):
            die()
        return execute(sql, *rest)

    return connection.execute_wrapper(wrapper) if point == DIES else nullcontext()


with die_at("while answering", 'INSERT INTO "gate_decision"'):
    decide.approve(Approval.objects.get(call_id=UUID(call_id)).pk, Actor(int(user_id), "session"))
if DIES == "after the answer":
    die()
with (
    die_at("while claiming", 'INSERT INTO "gate_auditevent"'),
    die_at("between preview and claim", 'UPDATE "gate_toolcall"'),
):
    call = async_to_sync(perform.start)(UUID(call_id))
assert call is not None
if DIES == "after the claim":
    die()
with die_at("while recording the result", 'INSERT INTO "gate_auditevent"'):
    async_to_sync(perform.execute)(call)

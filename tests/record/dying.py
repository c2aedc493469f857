"""A process that seals and dies by SIGKILL: before its seal is stored, or after. Arguments: database, where."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import django
from django.conf import settings
from django.db import connection

database, where = sys.argv[1:]
settings.DATABASES["default"]["NAME"] = database
django.setup()

from hitlchat.record.sealing import seal  # noqa: E402


def die(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    if where == "before" and sql.startswith('INSERT INTO "gate_seal"'):
        execute(sql, *rest)
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(sql, *rest)


with connection.execute_wrapper(die):
    assert seal() is not None
os.kill(os.getpid(), signal.SIGKILL)

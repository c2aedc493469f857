"""Data of its own for one bench: a folder that is removed, a database, people and two tools."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import django
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections

from tests import template

ARGUMENTS = {"order_id": "A-1042", "amount": 12.5, "reason": "It arrived damaged, the box was open."}
SCHEMA = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "description": "The order's number."},
        "amount": {"type": "number", "exclusiveMinimum": 0, "description": "In euros."},
        "reason": {"type": "string", "default": "", "description": "What the customer said."},
    },
    "required": ["order_id", "amount"],
    "additionalProperties": False,
}


@contextmanager
def home() -> Iterator[Path]:
    """Django, set up on new and empty data. Before it nothing of hitlchat may have been imported."""
    folder = Path(tempfile.mkdtemp(prefix="hitlchat-bench-"))
    given = os.environ.get("DATABASE_URL", "")
    database = _create(given) if given.startswith("postgres") else ""
    try:
        if not database:
            template.copy_to(folder / "hitlchat.sqlite3")
        for name in (
            "OPENAI_BASE_URL",
            "OPENAI_API_KEY",
            "OPENAI_MODEL",
            "OPENAI_API",
            "HITL_ENABLED",
            "HITL_POLICIES",
            "DEBUG",
        ):
            os.environ.pop(name, None)
        os.environ |= {
            "HITLCHAT_DATA": str(folder),
            "DATABASE_URL": database,
            "DJANGO_SETTINGS_MODULE": "bench.settings",
            "HITL_TIMEOUT_SECONDS": "86400",
        }
        django.setup()
        _discard_logs()
        if database:
            call_command("migrate", verbosity=0, interactive=False)
        yield folder
    finally:
        if settings.configured:
            _leave()
        if database:
            _postgres(given, f'DROP DATABASE IF EXISTS "{database.rpartition("/")[2]}" WITH (FORCE)')
        shutil.rmtree(folder, ignore_errors=True)


def _leave() -> None:
    connections.close_all()
    close_pool = getattr(connection, "close_pool", None)  # PostgreSQL's
    if close_pool is not None:
        close_pool()


def _discard_logs() -> None:
    """Log lines are formatted and written as ever, since they cost; nobody reads them."""
    sink = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sink)


def _create(url: str) -> str:
    name = f"hitlchat_bench_{uuid4().hex[:12]}"
    _postgres(url, f'CREATE DATABASE "{name}"')
    return f"{url.rpartition('/')[0]}/{name}"


def _postgres(url: str, statement: str) -> None:
    with psycopg.connect(f"{url.rpartition('/')[0]}/postgres", autocommit=True, connect_timeout=5) as there:
        there.execute(statement.encode())

"""Health of the process and its database, and whether the database's migrations fit the running code."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import get_template
from django.views.decorators.csrf import requires_csrf_token

from hitlchat.base import database
from hitlchat.base.background import Busy, OwnThreads, failing
from hitlchat.record import sealing

BEHIND: Final = "not migrated"
AHEAD: Final = "migrated by a newer version"
OLDER: Final = "older than the migrations of this version"
# It still had the steps that the migrations of this version replace.
LAST_WITH_STEPS: Final = "ad15939"
# A write is tried no more often than that, however many ask; where it failed, sooner again.
FRESH_SECONDS: Final = {True: 5.0, False: 1.0}
# Supervisors give up soon; a database that hangs does not answer at all.
PATIENCE_SECONDS: Final = 0.8
LOCK_MILLISECONDS: Final = 500
LEAST_FREE_BYTES: Final = 2**22
AS_IT_IS: Final = "UPDATE django_migrations SET name = name WHERE id = (SELECT min(id) FROM django_migrations)"

Name = tuple[str, str]
Handler = Callable[[HttpRequest], HttpResponse]

logger = logging.getLogger(__name__)


@cache
def of_code() -> dict[Name, frozenset[Name]]:
    """Map each migration of the running code to those it replaces."""
    found = MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {}
    return {(app, name): frozenset(found[app, name].replaces) for app, name in found}


def migration_fault() -> tuple[str, str]:
    """Return the fault and a sentence for the operator; both empty where the database fits.

    Raises: DatabaseError
    """
    applied = {*MigrationRecorder(connection).applied_migrations()}
    if sentence := too_new(applied):
        return AHEAD, sentence
    if sentence := unfinished(applied):
        return OLDER, sentence
    if any(name not in applied and not (replaced and replaced <= applied) for name, replaced in of_code().items()):
        return BEHIND, (
            "The database is not migrated. Run `manage.py migrate` first (`make run` does so automatically)."
        )
    return "", ""


def unknown(applied: set[Name]) -> list[Name]:
    """List applied migrations that are unknown, of apps that are here: an operator's app may have been removed.

    Versions before 0.1.0 squashed their migrations once before.
    """
    apps = {app for app, _ in of_code()}
    unknown = applied.difference(of_code(), *of_code().values())
    return sorted((app, name) for app, name in unknown if app in apps and "_squashed_" not in name)


def too_new(applied: set[Name]) -> str:
    """Return advice for a database with migrations that only a newer version has; empty for others."""
    if not (newer := unknown(applied)):
        return ""
    return (
        f"The database was migrated by a newer version of hitlchat ({'.'.join(newer[0])} is unknown "
        "here). Start that version, or restore a backup from before the migration."
    )


def unfinished(applied: set[Name]) -> str:
    """Return advice for a database that has only some of the migrations that one of this version replaces."""
    if not any(
        name not in applied and replaced & applied and not replaced <= applied for name, replaced in of_code().items()
    ):
        return ""
    return (
        "The database is from a version before 0.1.0, whose migrations are not part of this version. "
        f"Check out {LAST_WITH_STEPS}, run `manage.py migrate` there, then return to this version and run it again."
    )


def healthz(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


def readyz(_request: HttpRequest) -> JsonResponse:
    """Answer 503 while the database is away, of another version, or takes no writes.

    Else with the age of the oldest event that is not sealed, and the workers whose last try failed, if any.
    """
    found = prober.look()
    if found.trouble:
        return JsonResponse({"status": "unavailable", "database": found.trouble}, status=503)
    record = {"oldestUnsealedSeconds": round(found.unsealed, 1), "overdue": sealing.is_overdue(found.unsealed)}
    return JsonResponse({"status": "ok", "record": record} | ({"failing": sorted(failing)} if failing else {}))


PROBES: Final = {"/healthz": healthz, "/readyz": readyz}


def answer_probes(get_response: Handler) -> Handler:
    """Answer supervisors before anything else does: by whatever name they call the server."""

    def middleware(request: HttpRequest) -> HttpResponse:
        return PROBES.get(request.path, get_response)(request)

    return middleware


@requires_csrf_token
def server_error(_request: HttpRequest, *_args: Any) -> HttpResponse:
    trouble = database.trouble(sys.exc_info()[1])
    page = get_template("500.html").render({"trouble": database.SENTENCES.get(trouble, "")})
    return HttpResponse(page, status=503 if trouble else 500)


class Found(NamedTuple):
    """A look at the database; `unsealed`: how old its oldest unsealed event is, in seconds."""

    trouble: str = ""
    unsealed: float = 0.0


class Prober:
    """Looks in a thread of its own, one at a time, so that a database that hangs costs one thread and no answer."""

    def __init__(self) -> None:
        self._lock, self._thread = threading.Lock(), OwnThreads("readyz", 1)
        self._found, self._at = Found(), float("-inf")

    def look(self) -> Found:
        """Return the last look at the database, or a new one if that is old."""
        with self._lock:
            if time.monotonic() - self._at >= FRESH_SECONDS[not self._found.trouble]:
                try:
                    self._found = self._thread.submit(_find).result(PATIENCE_SECONDS)
                except (Busy, TimeoutError):
                    self._found = Found("does not answer")
                except DatabaseError as error:
                    logger.warning("The database is not ready: %s", error)
                    self._found = Found(database.trouble(error) or "unreachable")
                self._at = time.monotonic()
            return self._found


prober = Prober()


def _find() -> Found:
    disk = os.statvfs(settings.DATA_DIR)
    if connection.vendor == "sqlite" and disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:
        return Found(database.FULL)
    if fault := migration_fault()[0]:
        return Found(fault)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"PRAGMA busy_timeout={LOCK_MILLISECONDS}")
        with transaction.atomic():
            if connection.vendor == "postgresql":
                cursor.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
            # A row as it is: that takes the lock and the log of a decision, and nobody hears of it.
            cursor.execute(AS_IT_IS)
    return Found(unsealed=sealing.unsealed_seconds())

"""Violations of the pages' content policy, as browsers report them: one line of the log a kind.

Whoever likes can send reports. So a report says no more in the log than which directive forbade what origin, and of so
many kinds in an hour each is told once.
"""

import logging
import re
import time
from threading import Lock
from typing import Any, Final
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hitlchat.base import canonical

LARGEST: Final = 16 * 2**10
MOST_KINDS: Final = 20
HOUR: Final = 3600.0
DIRECTIVE: Final = re.compile(r"[a-z]+(?:-[a-z]+){1,3}")
# As `inline`, `eval` and `data` are reported.
KEYWORD: Final = re.compile(r"[a-z-]{1,20}")
HOST: Final = re.compile(r"[a-z0-9.-]{1,100}")

logger = logging.getLogger(__name__)


# The kinds that this process has logged within an hour, and when.
logged: dict[tuple[str, str], float] = {}
_lock = Lock()


@csrf_exempt
@require_POST
def report(request: HttpRequest) -> HttpResponse:
    """Take a report, as `report-uri` has browsers send it, without a session or a token."""
    if len(request.body) > LARGEST:
        return HttpResponse(status=413)
    kind = _kind(request.body)
    if kind is None:
        return HttpResponse(status=400)
    if _is_new(kind):
        logger.warning("A browser reports that %s of a page kept it from %s", *kind)
    return HttpResponse(status=204)


def _is_new(kind: tuple[str, str]) -> bool:
    """Count the kind, and return whether to log it."""
    now = time.monotonic()
    with _lock:
        for each, at in [*logged.items()]:
            if now - at >= HOUR:
                del logged[each]
        if kind in logged or len(logged) >= MOST_KINDS:
            return False
        logged[kind] = now
        return True


def _kind(body: bytes) -> tuple[str, str] | None:
    """Return the directive and the origin or keyword that it forbade; None if this is no report."""
    try:
        sent = canonical.loads(body)
    except canonical.NotJson:
        return None
    found: Any = sent.get("csp-report") if isinstance(sent, dict) else None
    if not isinstance(found, dict):
        return None
    directive = str(found.get("effective-directive") or found.get("violated-directive")).partition(" ")[0]
    if len(directive) > 40 or not DIRECTIVE.fullmatch(directive):
        return None
    return directive, _origin(str(found.get("blocked-uri", "")))


def _origin(blocked: str) -> str:
    if KEYWORD.fullmatch(blocked):
        return blocked
    try:
        parts = urlsplit(blocked)
        host = parts.hostname or ""
    except ValueError:
        return "an unreadable address"
    return f"{parts.scheme}://{host}" if KEYWORD.fullmatch(parts.scheme) and HOST.fullmatch(host) else "something else"

"""For administrators: which walls stand around tools, what tools may use, and what they do now."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from hitlchat import sandbox
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from tools_studio import mailing
from tools_studio.more import sizes
from tools_studio.more.access import administrator_only
from tools_studio.pages.listing import side

# Of each variable that bounds a run: its unit, and what it bounds.
LIMITS = {
    "TOOL_CPU_SECONDS": ("s", "of computing for one run"),
    "TOOL_WALL_SECONDS": ("s", "for one run in all, waiting included"),
    "TOOL_SLEEP_SECONDS": ("s", "of sleeping in one run"),
    "TOOL_MEMORY_MIB": ("MiB", "of memory"),
    "TOOL_HOST_CALLS": ("calls", "of functions from hitl in one run"),
    "TOOL_HELPER_CALLS": ("calls", "of helper functions in one run"),
    "TOOL_SOURCE_KIB": ("KiB", "of code"),
    "TOOL_ARGUMENT_KIB": ("KiB", "of arguments, also of each function from hitl"),
    "TOOL_RESULT_KIB": ("KiB", "of result"),
    "TOOL_OUTPUT_KIB": ("KiB", "of printed output that is kept"),
    "TOOL_WORKERS": ("runs", "at the same time in each process, at most half of them for one person"),
    "TOOL_QUEUE_SECONDS": ("s", "of waiting for a free worker, then a call is withdrawn"),
}
MOST_RUNNING = 50


@administrator_only
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    running = ToolCall.objects.filter(status=Status.EXECUTING).select_related("caller").order_by("started_at")
    context: dict[str, Any] = {
        "sandbox": sandbox.status(),
        "limits": [(name, getattr(settings, name), *words) for name, words in LIMITS.items()],
        "running": running[:MOST_RUNNING],
        "email": _email(),
        "env_patterns": settings.TOOLS_ENV,
        "folders": sizes.folders(settings.TOOL_FILES_DIR),
        **side(request),
    }
    return render(request, "studio/status.html", context)


def _email() -> str:
    """Where tools' e-mail goes, in words; empty when it is not set up."""
    if settings.EMAIL_BACKEND != mailing.SMTP:
        return f"{settings.EMAIL_BACKEND.rpartition('.')[2]}, as {settings.DEFAULT_FROM_EMAIL}"
    if not settings.EMAIL_HOST:
        return ""
    return f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}, as {settings.DEFAULT_FROM_EMAIL}"

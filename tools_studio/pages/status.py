"""The status page for administrators: walls around tools, what tools may use, what they keep and do now."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from hitlchat import sandbox
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.sandbox.limits import KIB, in_words
from tools_studio.capabilities import store
from tools_studio.pages.listing import side
from tools_studio.pages.page import administrator_only

MOST_COUNTED = 20_000
MOST_FOLDERS = 200


@dataclass(frozen=True)
class FolderSize:
    """`whole` is False where there were too many files to count them all."""

    name: str
    files: int
    size: int
    whole: bool = True

    @property
    def words(self) -> str:
        rounded = self.size if self.size < KIB else self.size - self.size % KIB
        many = f"{'' if self.whole else 'over '}{self.files:,} {'file' if self.files == 1 else 'files'}"
        return f"{many}, {in_words(rounded)}"


def folders(base: Path) -> list[FolderSize]:
    """Return one for each folder below `base`; none if it does not exist yet."""
    try:
        with os.scandir(base) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST_FOLDERS) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    return [_size(base / name) for name in names]


def _size(folder: Path) -> FolderSize:
    sizes = list(islice(_files(folder), MOST_COUNTED + 1))
    counted = sizes[:MOST_COUNTED]
    return FolderSize(folder.name, len(counted), sum(counted), len(sizes) <= MOST_COUNTED)


def _files(folder: Path) -> Iterator[int]:
    """The size of each file below; what goes away meanwhile is left out, and no link is followed."""
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118
            except FileNotFoundError:
                continue


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
        "folders": folders(settings.TOOL_FILES_DIR),
        **side(request),
    }
    return render(request, "studio/status.html", context)


def _email() -> str:
    """Return where tools' e-mail goes, in words; empty when it is not set up."""
    if settings.EMAIL_BACKEND != store.SMTP:
        return f"{settings.EMAIL_BACKEND.rpartition('.')[2]}, as {settings.DEFAULT_FROM_EMAIL}"
    if not settings.EMAIL_HOST:
        return ""
    return f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}, as {settings.DEFAULT_FROM_EMAIL}"

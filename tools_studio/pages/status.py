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
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from hitlchat import sandbox
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.tools import AGENT
from hitlchat.sandbox.limits import KIB, in_words
from tools_studio.capabilities import store
from tools_studio.pages.page import administrator_only, side

MOST_COUNTED = 20_000
MOST_FOLDERS = 200
# Of each variable that bounds a run: its unit, and what it bounds.
LIMITS = {
    "TOOL_CPU_SECONDS": ("s", gettext_noop("of computing for one run")),
    "TOOL_WALL_SECONDS": ("s", gettext_noop("for one run in all, waiting included")),
    "TOOL_SLEEP_SECONDS": ("s", gettext_noop("of sleeping in one run")),
    "TOOL_MEMORY_MIB": ("MiB", gettext_noop("of memory")),
    "TOOL_HOST_CALLS": ("calls", gettext_noop("of functions from hitl in one run")),
    "TOOL_HELPER_CALLS": ("calls", gettext_noop("of helper functions in one run")),
    "TOOL_SOURCE_KIB": ("KiB", gettext_noop("of code")),
    "TOOL_ARGUMENT_KIB": ("KiB", gettext_noop("of arguments, also of each function from hitl")),
    "TOOL_RESULT_KIB": ("KiB", gettext_noop("of result")),
    "TOOL_OUTPUT_KIB": ("KiB", gettext_noop("of printed output that is kept")),
    "TOOL_WORKERS": ("runs", gettext_noop("at the same time in each process, at most half of them for one person")),
    "TOOL_QUEUE_SECONDS": ("s", gettext_noop("of waiting for a free worker, then a call is withdrawn")),
}
MOST_RUNNING = 50


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
        many = ngettext("{count} file", "{count} files", self.files)
        if not self.whole:
            many = _("over {count} files")
        return f"{many.format(count=number_format(self.files, force_grouping=True))}, {in_words(rounded)}"


def folders(base: Path) -> list[FolderSize]:
    """Return the sizes of the folders below `base`, which may not exist yet."""
    try:
        with os.scandir(base) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST_FOLDERS) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    counted = [(name, list(islice(_files(base / name), MOST_COUNTED + 1))) for name in names]
    return [
        FolderSize(name, len(sizes[:MOST_COUNTED]), sum(sizes[:MOST_COUNTED]), len(sizes) <= MOST_COUNTED)
        for name, sizes in counted
    ]


def _files(folder: Path) -> Iterator[int]:
    """Yield the size of each file below `folder`, following no link."""
    for path, _folders, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118
            except FileNotFoundError:
                continue


@administrator_only.reads
def page(request: HttpRequest) -> HttpResponse:
    # An agent takes no worker, and may wait for days.
    running = ToolCall.objects.filter(status=Status.EXECUTING).exclude(source=AGENT).select_related("caller")
    context: dict[str, Any] = {
        "sandbox": sandbox.status(),
        "limits": [(name, getattr(settings, name), *words) for name, words in LIMITS.items()],
        "running": running.order_by("started_at")[:MOST_RUNNING],
        "email": _email(),
        "env_patterns": settings.TOOLS_ENV,
        "folders": folders(settings.TOOL_FILES_DIR),
        **side(request),
    }
    return render(request, "studio/status.html", context)


def _email() -> str:
    """Return where tools' e-mail goes, in words; empty when it is not set up."""
    way = settings.EMAIL_BACKEND.rpartition(".")[2]
    if settings.EMAIL_BACKEND == store.SMTP:
        if not settings.EMAIL_HOST:
            return ""
        way = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    return _("{way}, as {sender}").format(way=way, sender=settings.DEFAULT_FROM_EMAIL)

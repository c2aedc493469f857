"""PDFs: their text, read by a program of its own (pdf_program.py) within limits of time, memory and output, behind
the walls that a tool's worker has too: it can open no file but Python's modules, and reach nobody.
"""

import json
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _

from hitlchat.agent.attachments.kinds import BadFile
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Problem

JAIL: Final = Path(__file__).parents[2] / "base" / "jail.py"
PROGRAM: Final = Path(__file__).with_name("pdf_program.py")
SECONDS: Final = 8
MEBIBYTES: Final = 512
AT_ONCE: Final = 2
# It ends itself by then, unless the machine keeps it from working.
WALL_SECONDS: Final = 2 * SECONDS + 5
# As jail.py ends without a wall that was demanded.
NO_WALL: Final = 70
TOO_LONG: Final = frozenset({-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM})

_places = threading.BoundedSemaphore(AT_ONCE)


class Busy(Problem):
    """Others have PDFs read already, as many as may be at once."""

    status = 503


class Unsafe(Problem):
    """A wall is missing that was demanded."""

    status = 503


class BadPdf(BadFile):
    """The PDF gives no text; the sentence says why."""

    status = 422


@dataclass(frozen=True)
class Extract:
    """Text from the first `read` of so many pages."""

    text: str
    pages: int
    read: int


@dataclass(frozen=True)
class Limits:
    characters: int
    seconds: int = SECONDS
    mebibytes: int = MEBIBYTES


def extract(data: bytes, name: str, limits: Limits) -> Extract:
    """Return the text of the PDF, up to one character more than are wanted. Raises: BadPdf, Busy, Unsafe."""
    if not _places.acquire(timeout=WALL_SECONDS):
        raise Busy(_("Too many PDFs are being read. Try again in a moment."))
    try:
        found = _run(data, name, limits)
    finally:
        _places.release()
    if found.get("fault") == "encrypted":
        raise BadPdf(_("“%(name)s” is password-protected. Attach a copy without a password.") % {"name": name})
    if found.get("fault") == "large":
        raise BadPdf(
            _("“%(name)s” is too large when unpacked. Attach a smaller PDF, or paste the text.") % {"name": name}
        )
    text = storable(found["text"])
    if not text.strip():
        sentence = _("“%(name)s” contains no text, and may be a scan. Attach its pages as images, or paste the text.")
        raise BadPdf(sentence % {"name": name})
    return Extract(text, found["pages"], found["read"])


def command(limits: Limits, program: Path = PROGRAM) -> list[str]:
    """Return what reads a PDF from its input, behind as many walls as there are, or all."""
    how = "all" if settings.TOOLS_REQUIRE_JAIL else "has"
    bounds = (limits.seconds, limits.mebibytes, limits.characters)
    return [sys.executable, "-I", str(JAIL), "run", how, str(program), *map(str, bounds)]


def _run(data: bytes, name: str, limits: Limits) -> dict[str, Any]:
    # A file, since the kernel bounds what the program writes to it.
    with tempfile.TemporaryFile() as output:
        try:
            ended = subprocess.run(  # noqa: S603
                command(limits),
                input=data,
                stdout=output,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                check=False,
                timeout=WALL_SECONDS,
            ).returncode
        except subprocess.TimeoutExpired:
            ended = -signal.SIGKILL
        if ended in TOO_LONG:
            sentence = _("“%(name)s” takes longer than %(seconds)s seconds to read. It may be damaged, or very large.")
            raise BadPdf(sentence % {"name": name, "seconds": limits.seconds})
        if ended == NO_WALL:
            raise Unsafe(
                _(
                    "PDFs cannot be read: TOOLS_REQUIRE_JAIL requires a jail that this machine does not support. "
                    "Paste the text instead."
                )
            )
        output.seek(0)
        with suppress(ValueError):
            if ended == 0 and isinstance(found := json.loads(output.read()), dict):
                return found
    sentence = _("“%(name)s” cannot be read. The file is damaged, or needs more than %(memory)s MiB of memory.")
    raise BadPdf(sentence % {"name": name, "memory": limits.mebibytes})

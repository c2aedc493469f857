"""The text of a PDF: a program of its own, since a PDF may be made to fill memory or never to end.

    python -I jail.py run HOW pdf_program.py SECONDS MEBIBYTES CHARACTERS < file.pdf

Writes one JSON object: {"text", "pages", "read"}, or {"fault": "encrypted" or "large"}. It ends by a signal, or with
an error, on what goes beyond its limits or is no PDF.
"""

import io
import json
import resource
import signal
import sys

from pypdf import PdfReader
from pypdf.errors import LimitReachedError, PyPdfError

# What a damaged page makes its reader raise.
FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, PyPdfError, RuntimeError, TypeError, ValueError)


def confine(seconds: int, mebibytes: int, characters: int) -> None:
    """Bound what this process may use; it can never get more again."""
    memory, output = mebibytes * 2**20, 12 * characters + 2**16
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, output),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    signal.alarm(2 * seconds)


def text_of(data: bytes, characters: int) -> dict[str, object]:
    """Return the text of the pages, of those that come before there is enough of it."""
    reader = PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        return {"fault": "encrypted"}
    texts: list[str] = []
    size = read = 0
    is_large = False
    for page in reader.pages:
        if size > characters:
            break
        try:
            found = page.extract_text().strip()
        except LimitReachedError:
            # Of what a page may unpack to; those that follow may have text.
            is_large = True
            continue
        except FAULTS:
            continue
        finally:
            read += 1
        texts.append(found)
        size += len(found) + 2
    if is_large and not size:
        return {"fault": "large"}
    return {"text": "\n\n".join(filter(None, texts))[: characters + 1], "pages": len(reader.pages), "read": read}


def main() -> None:
    seconds, mebibytes, characters = map(int, sys.argv[1:])
    data = sys.stdin.buffer.read()
    confine(seconds, mebibytes, characters)
    found = text_of(data, characters)
    sys.stdout.buffer.write(json.dumps(found).encode("ascii"))

"""The high-water mark: the last seal that this process has seen, noted beside the database. A record that has lost its
end, seals and all, is whole in itself; only what was noted elsewhere tells.
"""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from hitlchat.gate.models import Seal


@dataclass(frozen=True)
class Mark:
    number: int
    hash: str


class BadMark(ValueError):
    """The file is there and cannot be read."""


def file() -> Path:
    return Path(settings.DATA_DIR) / "record_mark"


def noted() -> Mark | None:
    """None: nothing was noted here yet. BadMark."""
    try:
        said = json.loads(file().read_text(encoding="ascii"))
        return Mark(int(said["number"]), str(said["hash"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise BadMark(f"{file()} cannot be read; delete it if you know why.") from error


def advance() -> Mark | None:
    """Note the last seal, if the one that was noted before is still in the record; else that one, which is missing, and
    nothing is noted. BadMark."""
    before = noted()
    if before is not None and not Seal.objects.filter(pk=before.number, hash=before.hash).exists():
        return before
    last = Seal.objects.order_by("-number").first()
    if last is not None and (before is None or last.number > before.number):
        _write(Mark(last.number, last.hash))
    return None


def _write(mark: Mark) -> None:
    draft = file().with_name(f"record_mark.{secrets.token_hex(8)}")
    draft.write_text(json.dumps({"number": mark.number, "hash": mark.hash}), encoding="ascii")
    draft.replace(file())

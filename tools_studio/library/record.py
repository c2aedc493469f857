"""The recorded hashes of the tools that ship. `python -m tools_studio.library.record` renews them after an edit."""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools_studio.library.catalogue import TOOLS, ShippedTool

RECORDED = Path(__file__).with_name("recorded.json")


def fingerprint(code: str, capabilities: Mapping[str, Any]) -> str:
    """The SHA-256 of a tool's code and its canonical capabilities, in hexadecimal digits."""
    text = json.dumps({"code": code, "capabilities": capabilities}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def of_file(shipped: ShippedTool) -> str:
    """The fingerprint of the tool as its file is now. OSError, UnicodeDecodeError: the file cannot be read."""
    return fingerprint(shipped.source, shipped.capabilities)


def recorded(path: Path = RECORDED) -> dict[str, str]:
    """The recorded fingerprints by name; a record that cannot be read vouches for nothing."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_genuine(shipped: ShippedTool, record: Mapping[str, str]) -> bool:
    """Return whether the tool's file is what was recorded."""
    try:
        return record.get(shipped.name) == of_file(shipped)
    except (OSError, UnicodeDecodeError):
        return False


def renew(path: Path = RECORDED) -> int:
    """Record every file as it is now, and return how many entries were added, changed or removed."""
    before, now = recorded(path), {shipped.name: of_file(shipped) for shipped in TOOLS}
    path.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return len({name for name, _ in before.items() ^ now.items()})


if __name__ == "__main__":
    sys.stdout.write(f"{len(TOOLS)} tools recorded, {renew()} of them anew\n")

"""The tools that ship: catalogue.toml describes them, and their code is in files that only the sandbox ever runs.

`python -m tools_studio.library.catalogue` renews the recorded hashes of these files after an edit.
"""

import hashlib
import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_HERE = Path(__file__).parent
RECORDED = _HERE / "recorded.json"


@dataclass(frozen=True)
class ShippedTool:
    """A tool to start with. Tools of one `group` share one store; `example` are arguments to try.

    `variables` are name, whether it is a secret, and value (empty: to be given). `set_up`: what a person must do before
    publishing it; if empty, it is published when installed.
    """

    name: str
    title: str
    group: str
    category: str
    prompt_template: str
    example: dict[str, Any]
    tags: tuple[str, ...] = ()
    hitl_mode: Literal["REQUIRED", "DISABLED"] = "REQUIRED"
    capabilities: dict[str, Any] = field(default_factory=dict)
    variables: tuple[tuple[str, bool, str], ...] = ()
    set_up: str = ""
    folder: Path = _HERE / "tools"

    @property
    def path(self) -> Path:
        return self.folder / self.group.replace("-", "_") / f"{self.name}.py"

    @property
    def source(self) -> str:
        """The tool's code. OSError: the file is not there."""
        return self.path.read_text(encoding="utf-8")


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


TOOLS = tuple(
    ShippedTool(**{name: _frozen(value) for name, value in each.items()})
    for each in tomllib.loads((_HERE / "catalogue.toml").read_text(encoding="utf-8"))["tools"]
)


def fingerprint(code: str, capabilities: Mapping[str, Any]) -> str:
    """The SHA-256 of a tool's code and its canonical capabilities, in hexadecimal digits."""
    text = json.dumps({"code": code, "capabilities": capabilities}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def of_file(shipped: ShippedTool) -> str:
    """Return the fingerprint of the tool's file as it is now. Raises: OSError, UnicodeDecodeError"""
    return fingerprint(shipped.source, shipped.capabilities)


def recorded(path: Path = RECORDED) -> dict[str, str]:
    """Return the recorded fingerprints by name; none if the record cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_genuine(shipped: ShippedTool, record: Mapping[str, str]) -> bool:
    try:
        return record.get(shipped.name) == of_file(shipped)
    except (OSError, UnicodeDecodeError):
        return False


def renew(path: Path = RECORDED) -> int:
    """Record every file as it is now, and return how many entries changed."""
    before, now = recorded(path), {shipped.name: of_file(shipped) for shipped in TOOLS}
    path.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return len({name for name, _ in before.items() ^ now.items()})


if __name__ == "__main__":
    sys.stdout.write(f"{len(TOOLS)} tools recorded, {renew()} of them anew\n")

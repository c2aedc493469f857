"""The tools that ship: catalogue.toml describes them, and their code is in files that only the sandbox ever runs."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class ShippedTool:
    """A tool to start with. Tools of one `group` share one store; `example` are arguments to try.

    `variables` are name, whether it is a secret, and value (empty: to be given). `set_up` says what a person has to do
    before the tool can be published; where nothing is said, it is published from the beginning.
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

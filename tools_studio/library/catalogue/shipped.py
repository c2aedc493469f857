"""A shipped tool's description. Its code is the file of its name, which only the sandbox ever runs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_TOOLS = Path(__file__).parent.parent / "tools"


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
    folder: Path = _TOOLS

    @property
    def path(self) -> Path:
        return self.folder / self.group.replace("-", "_") / f"{self.name}.py"

    @property
    def source(self) -> str:
        """The tool's code. OSError: the file is not there."""
        return self.path.read_text(encoding="utf-8")


def pure(name: str, title: str, prompt_template: str, example: dict[str, Any], **more: Any) -> ShippedTool:
    """A tool that only works something out of its arguments, and so never asks."""
    return ShippedTool(
        name=name, title=title, prompt_template=prompt_template, example=example, hitl_mode="DISABLED", **more
    )

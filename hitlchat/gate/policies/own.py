"""A rule that is a class of the operator's own."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from hitlchat.gate import canonical
from hitlchat.gate.policies.verdicts import ORDER, Outcome
from hitlchat.gate.policies.views import ToolView


@dataclass(frozen=True)
class Own:
    """`options` are what the class was made with; `version` is its own word for how it judges, if it has one."""

    path: str
    options: dict[str, Any]
    policy: Any = field(compare=False, repr=False)
    version: str | int | None = None

    is_own: ClassVar[bool] = True

    @property
    def strongest(self) -> Outcome:
        return "refuse"

    @property
    def name(self) -> str:
        return self.path

    @property
    def groups(self) -> frozenset[str]:
        return frozenset()

    @property
    def sentence(self) -> str:
        """The first line of its docstring, if it has one."""
        doc = (type(self.policy).__doc__ or "").strip().partition("\n")[0][:200]
        options = f" with {canonical.pretty(self.options)}" if self.options else ""
        return f"{doc or 'What this class says, which its code alone knows.'} ({self.path}{options})"

    @property
    def evaluate(self) -> Any:
        """As it is, so that it can be seen whether it is asynchronous."""
        return self.policy.evaluate

    def to_dict(self) -> dict[str, Any]:
        return {"policy": self.path, **self.options}

    def may_fail_about(self, _tool: ToolView) -> bool:
        return True

    def outcomes(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset(ORDER)

"""What every rule offers, bundled or not."""

from typing import Any, Protocol

from hitlchat.gate.policies.verdicts import Outcome
from hitlchat.gate.policies.views import CallView, Context, ToolView


class Rule(Protocol):
    @property
    def is_own(self) -> bool:
        """Other people's code: it may hang, raise, and answer anything."""

    @property
    def strongest(self) -> Outcome:
        """The strictest thing that it may say."""

    @property
    def name(self) -> str:
        """As in the settings."""

    @property
    def sentence(self) -> str:
        """What it does, in plain words."""

    @property
    def groups(self) -> frozenset[str]:
        """The groups of people that it names."""

    def may_fail_about(self, tool: ToolView) -> bool:
        """Can it come to no answer about `tool`, which has a person asked whatever the tool's mode is?"""

    def to_dict(self) -> dict[str, Any]:
        """As in the settings, with every option spelled out; loading it gives an equal rule."""

    def outcomes(self, tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        """What it could say about calls of `tool` from there, as far as its options tell."""

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        """A `Said`, or a coroutine that gives one."""


def words(names: tuple[str, ...], joint: str = "or") -> str:
    """`a, b or c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"

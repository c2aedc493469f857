"""A helper module: pure functions that tools may import without a capability, run by a keeper."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_monty import ExternalModule


@dataclass(frozen=True)
class HelperModule:
    """An importable module. `chance` are the names that need the capability `random`; they have stubs of their own."""

    name: str
    functions: Mapping[str, Callable[..., Any]]
    stubs: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    chance: frozenset[str] = frozenset()
    chance_stubs: str = ""

    @property
    def names(self) -> list[str]:
        """Everything it offers, as people look it up."""
        return sorted([*self.functions, *self.constants], key=str.lower)

    def external(self, powers: frozenset[str] | None) -> ExternalModule:
        """The module as the interpreter imports it; with `powers`, declared to the type checker as they allow."""
        stubs = None
        if powers is not None:
            stubs = self.stubs + (self.chance_stubs if "random" in powers else "")
        return ExternalModule({**dict.fromkeys(self.functions, _elsewhere), **self.constants}, stubs=stubs)


def _elsewhere(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError("the driver answers every call itself")

"""Python functions of the operator's own Django project as tools: `from hitlchat.project_tools import tool`.

A declaration is only noted here; catalogue.py looks at it later, since the names in its annotations may be defined
below it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

DEFAULT_SECONDS = 60
HIGHEST_RISK = 5


class ToolError(Exception):
    """Raised by a tool's function: the model, and the person who approved the call, are told its message."""


class Options(TypedDict, total=False):
    hitl: Literal["REQUIRED", "CONDITIONAL", "DISABLED"]
    risk: int
    title: str
    prompt: str
    condition: str | Function
    deadline_seconds: int
    signed_in_only: bool
    timeout_seconds: float
    name: str
    destructive: bool
    preview: Function


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The options of `@tool(…)`. `risk` None counts as the highest. `signed_in_only`: the word of an MCP client is not
    enough.
    """

    hitl: str | None = None
    risk: int | None = None
    title: str = ""
    prompt: str = ""
    condition: str | Function = ""
    deadline_seconds: int | None = None
    signed_in_only: bool = False
    timeout_seconds: float = DEFAULT_SECONDS
    name: str = ""
    destructive: bool = False
    preview: Function | None = None


@dataclass(frozen=True)
class Declaration:
    function: Function
    chosen: Chosen = field(default_factory=Chosen)

    @property
    def path(self) -> str:
        """Module and function, such as shop.tools.refund."""
        return f"{self.module}.{getattr(self.function, '__qualname__', repr(self.function))}"

    @property
    def module(self) -> str:
        return str(getattr(self.function, "__module__", "?"))

    @property
    def name(self) -> str:
        return self.chosen.name or getattr(self.function, "__name__", "")


# In the order in which Python came across them.
DECLARED: list[Declaration] = []


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(**options: Unpack[Options]) -> Callable[[F], F]: ...


def tool(function: F | None = None, /, **options: Unpack[Options]) -> F | Callable[[F], F]:
    """Make a function of this project a tool, as it stands in `tools.py` of an installed app. It stays callable.

    Without `risk` it counts as L5. Without `hitl` its risk decides: L0 never asks, everything above asks every time.
    TypeError for an option that does not exist; what else is wrong stops the start of the server.
    """
    chosen = Chosen(**options)

    def note(noted: F) -> F:
        DECLARED.append(Declaration(noted, chosen))
        return noted

    return note if function is None else note(function)

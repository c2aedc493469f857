"""Limits of one run, from the settings, and the words for it when it uses more."""

from dataclasses import dataclass, field, fields
from typing import Any, Final

from django.conf import settings

KIB = 1024
MIB = 1024 * KIB
SPARE_SUSPENSIONS = 500


def _setting(variable: str, unit: int = 1) -> Any:
    """Return a field whose default is so many units of a setting, which is named as its environment variable is."""
    return field(default_factory=lambda: getattr(settings, variable) * unit, metadata={"setting": (variable, unit)})


@dataclass(frozen=True)
class Limits:
    """The bounds of one run; what is not given comes from the settings.

    `cpu_seconds` counts the tool's own work, and once more the work of the helper functions it calls, never a wait for
    the host; `wall_seconds` counts everything. `argument_bytes` also bounds the arguments of each host and helper call.
    `adjustable` names the fields whose value is the setting's, so that a message can name the variable.
    """

    cpu_seconds: float = _setting("TOOL_CPU_SECONDS")
    wall_seconds: float = _setting("TOOL_WALL_SECONDS")
    memory_bytes: int = _setting("TOOL_MEMORY_MIB", MIB)
    recursion: int = 200
    host_calls: int = _setting("TOOL_HOST_CALLS")
    helper_calls: int = _setting("TOOL_HELPER_CALLS")
    sleep_seconds: float = _setting("TOOL_SLEEP_SECONDS")
    source_bytes: int = _setting("TOOL_SOURCE_KIB", KIB)
    argument_bytes: int = _setting("TOOL_ARGUMENT_KIB", KIB)
    result_bytes: int = _setting("TOOL_RESULT_KIB", KIB)
    output_bytes: int = _setting("TOOL_OUTPUT_KIB", KIB)
    adjustable: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.adjustable is None:
            same = tuple(name for name in VARIABLES if getattr(self, name) == configured(name))
            object.__setattr__(self, "adjustable", same)

    @property
    def suspensions(self) -> int:
        """Return how often the interpreter may ask for anything: imports and look-ups of undefined names count, too."""
        return self.host_calls + 2 * self.helper_calls + SPARE_SUSPENSIONS

    def named(self, name: str) -> str:
        """Return the end of a message about the limit `name`: the variable, if that is what set it."""
        return f" ({VARIABLES[name][0]})" if name in (self.adjustable or ()) else ""


# The setting of each limit that has one, and how many units of the limit one of the setting is.
VARIABLES: Final[dict[str, tuple[str, int]]] = {
    each.name: each.metadata["setting"] for each in fields(Limits) if each.metadata
}


def configured(name: str) -> Any:
    """Return the setting of the limit `name`, in the limit's unit."""
    variable, unit = VARIABLES[name]
    return getattr(settings, variable) * unit


def in_words(size: int) -> str:
    """A size as people read it: `64 KiB`, `1.5 MiB`, `300 bytes`."""
    if size >= MIB:
        return f"{size / MIB:g} MiB"
    if size >= KIB:
        return f"{size / KIB:g} KiB"
    return f"{size} bytes"

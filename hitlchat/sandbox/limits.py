"""Limits of one run, from the settings, and the words for it when it uses more."""

from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

KIB = 1024
MIB = 1024 * KIB
SPARE_SUSPENSIONS = 500

# field: (setting and environment variable, how many units of the field one of the variable is)
VARIABLES = {
    "cpu_seconds": ("TOOL_CPU_SECONDS", 1),
    "wall_seconds": ("TOOL_WALL_SECONDS", 1),
    "memory_bytes": ("TOOL_MEMORY_MIB", MIB),
    "host_calls": ("TOOL_HOST_CALLS", 1),
    "helper_calls": ("TOOL_HELPER_CALLS", 1),
    "sleep_seconds": ("TOOL_SLEEP_SECONDS", 1),
    "source_bytes": ("TOOL_SOURCE_KIB", KIB),
    "argument_bytes": ("TOOL_ARGUMENT_KIB", KIB),
    "result_bytes": ("TOOL_RESULT_KIB", KIB),
    "output_bytes": ("TOOL_OUTPUT_KIB", KIB),
}


def configured(name: str) -> Any:
    """Return the setting of the limit `name`, in the limit's unit."""
    variable, unit = VARIABLES[name]
    return getattr(settings, variable) * unit


def _from_settings(name: str) -> Any:
    return field(default_factory=lambda: configured(name))


@dataclass(frozen=True)
class Limits:
    """The bounds of one run; what is not given comes from the settings.

    `cpu_seconds` counts the tool's own work, and once more the work of the helper functions it calls, never a wait for
    the host; `wall_seconds` counts everything. `argument_bytes` also bounds the arguments of each host and helper call.
    `adjustable` names the fields whose value is the setting's, so that a message can name the variable.
    """

    cpu_seconds: float = _from_settings("cpu_seconds")
    wall_seconds: float = _from_settings("wall_seconds")
    memory_bytes: int = _from_settings("memory_bytes")
    recursion: int = 200
    host_calls: int = _from_settings("host_calls")
    helper_calls: int = _from_settings("helper_calls")
    sleep_seconds: float = _from_settings("sleep_seconds")
    source_bytes: int = _from_settings("source_bytes")
    argument_bytes: int = _from_settings("argument_bytes")
    result_bytes: int = _from_settings("result_bytes")
    output_bytes: int = _from_settings("output_bytes")
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


def in_words(size: int) -> str:
    """A size as people read it: `64 KiB`, `1.5 MiB`, `300 bytes`."""
    if size >= MIB:
        return f"{size / MIB:g} MiB"
    if size >= KIB:
        return f"{size / KIB:g} KiB"
    return f"{size} bytes"

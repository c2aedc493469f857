"""What one run may use, and the words for it when it uses more."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Limits:
    """The bounds of one run.

    `cpu_seconds` counts the tool's own work, never a wait for the host; `wall_seconds` counts everything.
    `argument_bytes` also bounds the arguments of each host call.
    """

    cpu_seconds: float = 2.0
    wall_seconds: float = 30.0
    memory_bytes: int = 64 * MIB
    recursion: int = 200
    host_calls: int = 200
    sleep_seconds: float = 10.0
    source_bytes: int = 64 * KIB
    argument_bytes: int = 256 * KIB
    result_bytes: int = 256 * KIB
    output_bytes: int = 64 * KIB


def in_words(size: int) -> str:
    """A size as people read it: `64 KiB`, `1.5 MiB`, `300 bytes`."""
    if size >= MIB:
        return f"{size / MIB:g} MiB"
    if size >= KIB:
        return f"{size / KIB:g} KiB"
    return f"{size} bytes"

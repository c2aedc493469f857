"""Whether a call that failed had run, from the kind of its recorded error: the one place that says so."""

from typing import Any

# Provably not entered, or not sent.
NEVER_RAN = frozenset({"arguments", "busy", "changed", "late", "unavailable", "unreachable", "unsent"})
# By what came back.
RAN = frozenset({"error", "result", "timeout", "tool"})
_NOT_RUN = "It was not run"


def ran(error: dict[str, Any]) -> bool | None:
    """None: its kind does not tell."""
    kind = error.get("kind")
    return None if kind not in NEVER_RAN | RAN else kind in RAN


def sentence(error: dict[str, Any]) -> str:
    """What happened, for a person."""
    line = f" (line {error['line']})" if error.get("line") else ""
    lead = {True: "It was run and failed", False: _NOT_RUN, None: "It failed"}[ran(error)]
    return f"{lead}{line}: {str(error.get('message', '')).removeprefix(f'{_NOT_RUN}: ')}"

"""Which waiting calls are identical: those whose cards would show the same."""

from typing import Any

from hitlchat.gate import canonical

OF_ONE_CALL = ("call", "deadline", "whoDecides")


def sameness(shown: dict[str, Any]) -> str:
    """The digest of all that a disclosure says but of which call and until when; empty where calls are not joined."""
    if shown["conversation"] is None:
        return ""
    # After how long others may decide too is a rule; at what time is of the one call, like its deadline.
    rules = {name: part for name, part in shown["whoDecides"].items() if name != "escalatesAt"}
    return canonical.sha256({name: part for name, part in shown.items() if name not in OF_ONE_CALL} | {"rules": rules})

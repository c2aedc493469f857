"""How whoever decided was known, in words. What a client calls itself is a claim, in quotes that it cannot end."""

from hitlchat.gate import canonical
from hitlchat.gate.models import Decision
from hitlchat.gate.storable import storable

LONGEST_CLAIM = 100


def claim(name: str) -> str:
    """What a client calls itself, as it is kept: at most LONGEST_CLAIM characters, of which the last says if it was
    cut."""
    kept = storable(name).strip()
    return kept if len(kept) <= LONGEST_CLAIM else kept[: LONGEST_CLAIM - 1] + "…"


def how(decision: Decision) -> str:
    """To be read behind the name of a person, and to be shown like any text of others."""
    match decision.means:
        case "session":
            return "signed in"
        case "token":
            return f"with the approver token {_quoted(decision.token_name)}" if decision.token_name else "with a token"
        case "console":
            return "at the console"
        case "elicitation":
            return _said_so(decision)
        case other:
            return f"known by {_quoted(other)}"


def _said_so(decision: Decision) -> str:
    who = f"the MCP client that calls itself {_quoted(decision.client)}" if decision.client else "a nameless MCP client"
    token = f" (token {_quoted(decision.token_name)})" if decision.token_name else ""
    return f"or so says {who}{token}"


def _quoted(text: str) -> str:
    return canonical.pretty(text)

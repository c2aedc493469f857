"""What hitlchat promises, each with an id. A test that holds one says so: `@pytest.mark.guarantee("gate:truth")`.

A tool that requires approval never runs without an explicit human yes for exactly that call.
"""

from typing import Final

GUARANTEES: Final[dict[str, str]] = {
    "gate:no-yes-no-run": "A gated call is never executed before its approval is complete, from any entry point",
    "gate:one-funnel": (
        "Every route into tool execution (chat, resume, sub-agent, MCP old and new, REST, Studio test, command)"
        " passes the one gate; a test walks them all"
    ),
    "gate:one-outcome": (
        "Of any number of simultaneous decisions, exactly one outcome is recorded; the others are told so"
    ),
    "gate:same-call": (
        "What executes is byte for byte what was shown: tool, definition, arguments, caller;"
        " any difference voids the approval"
    ),
    "gate:at-most-once": (
        "An approved call starts at most once, also across SIGKILL; an interrupted one is unknown,"
        " never silently re-run"
    ),
    "gate:fail-closed": ('An error in policy, store, channel, renderer or clock means "not run", recorded as such'),
    "gate:only-people": (
        "No agent, tool, or MCP/API credential can decide; the decider is the signed-in person. The word of an MCP"
        " client counts only where an administrator said that a person sits at it, and up to L1 unless set otherwise"
    ),
    "gate:seen": (
        "No yes counts for a card whose head and unfolded arguments have not been in view of who gave it, nor one that"
        " came from a press begun before the card stood still, from a press that is no new act (the pointer was there"
        " already), or from a letter that somebody typed"
    ),
    "gate:truth": (
        "Declined, expired, withdrawn, refused, failed and unknown are different everywhere,"
        " also in what the model reads"
    ),
    "run:survives": (
        "A waiting conversation survives reload, restart and another process answering; nothing is held in memory"
    ),
    "record:proves": (
        "Nobody who holds the database but not the key can change, remove, add or reorder what people read without"
        " `audit verify` naming it; nothing that a model or tool writes can stop the sealing"
    ),
    "audit:complete": (
        "Every ask, decision, expiry, automatic permission, start and end has an append-only record of what was shown"
        " and why"
    ),
}

# Guarantees (or parts of one) that no test holds yet, each with the reason. The list may only shrink.
PENDING: Final[dict[str, str]] = {}

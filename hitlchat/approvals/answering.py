"""The answer that a page's form gives. Parsed strictly: the unexpected decides nothing."""

from uuid import UUID

from django.http import QueryDict

from hitlchat.gate import decide, editing, reasons
from hitlchat.gate.actor import Actor

NEITHER = "Nothing was decided: the answer was neither approve nor decline."


def answer(approval_id: UUID, actor: Actor, sent: QueryDict) -> str:
    """Carry it out; returns why nothing was decided, or nothing. What decide.py raises, BadReason."""
    # One verdict and one digest: of two, nobody can say which was meant (SR-13).
    match sent.getlist("verdict"), sent.getlist("digest"), sent.getlist("edited"), sent.getlist("shown"):
        case ["approve"], [str(digest)], [], []:
            decide.approve(approval_id, actor, digest=digest)
        case ["approve"], [str(digest)], [str(edited)], [str(shown)]:
            editing.approve(approval_id, actor, digest=digest, edited=edited, shown=shown)
        case ["decline"], _, _, _:
            decide.decline(approval_id, actor, reason=reasons.checked(sent.get("reason", "")))
        case _:
            return NEITHER
    return ""

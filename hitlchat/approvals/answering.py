"""The answer that a page's form gives. Parsed strictly: the unexpected decides nothing."""

from uuid import UUID

from django.http import QueryDict

from hitlchat.gate import decide, editing
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import Looked, claimed
from hitlchat.gate.grants import scope
from hitlchat.gate.grants.scope import BadGrant, Scope

NEITHER = "Nothing was decided: the answer was neither approve nor decline."


def answer(approval_id: UUID, actor: Actor, sent: QueryDict) -> str:
    """Carry it out; returns why nothing was decided, or nothing. What decide.py raises, BadReason, BadGrant."""
    looked = Looked(claimed(sent.get("opened")))
    # One verdict and one digest: of two, nobody can say which was meant (SR-13).
    match sent.getlist("verdict"), sent.getlist("digest"), sent.getlist("edited"), sent.getlist("shown"):
        case ["approve"], [str(digest)], [], []:
            decide.approve(approval_id, actor, digest=digest, grant=_grant(sent.getlist("grant")), looked=looked)
        case ["approve"], [str(digest)], [str(edited)], [str(shown)] if "grant" not in sent:
            editing.approve(approval_id, actor, digest=digest, edited=edited, shown=shown, looked=looked)
        case ["decline"], _, _, _:
            decide.decline(approval_id, actor, reason=decide.checked_reason(sent.get("reason", "")), looked=looked)
        case _:
            return NEITHER
    return ""


def _grant(sent: list[str]) -> Scope | None:
    if len(sent) > 1:
        raise BadGrant({"grant": "Expected one grant."})
    return scope.read(sent[0]) if sent else None

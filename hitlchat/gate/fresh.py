"""A yes to what carries the highest risk needs a person who has just given their password (SR-25)."""

from datetime import timedelta

from django.conf import settings
from django.db.models import DateTimeField, Q, Value
from django.db.models.functions import Now
from django.db.models.lookups import GreaterThan, LessThan

from hitlchat import database
from hitlchat.gate.actor import Actor
from hitlchat.gate.deciders import NotEntitled
from hitlchat.gate.models import Approval, Tool
from hitlchat.gate.oversight import HIGHEST_RISK

# The clocks of this server and of its database may differ by so much.
SLACK = timedelta(minutes=1)


class SignInAgain(NotEntitled):
    """They may decide, once they have signed in again."""

    def __init__(self) -> None:
        minutes = settings.HITL_FRESH_SIGN_IN_MINUTES
        super().__init__(
            f"To approve a call of risk L{HIGHEST_RISK} you must have signed in within the last {minutes} minutes."
        )


class OnlySignedIn(NotEntitled):
    """However they are known, it is not by having signed in."""

    def __init__(self) -> None:
        super().__init__(
            f"Only a person who has just signed in on a page here can approve a call of risk L{HIGHEST_RISK}."
        )


def require(actor: Actor, approval: Approval) -> None:
    """SignInAgain, OnlySignedIn: this yes would not count. A client's word has rules of its own."""
    if actor.means == "elicitation" or not is_asked_of(approval):
        return
    if actor.means != "session":
        raise OnlySignedIn
    if not is_fresh(actor):
        raise SignInAgain


def is_asked_of(approval: Approval) -> bool:
    """By what it was when it was asked, and by what its tool is now."""
    call = approval.call
    now = call.tool.risk_level if call.tool else 0
    return max(call.risk_level, now) >= HIGHEST_RISK


def is_fresh(actor: Actor) -> bool:
    at, now = actor.signed_in_at, database.now()
    return at is not None and now - lasts() < at < now + SLACK


def still(actor: Actor) -> Q:
    """Of the row of a call, in the very moment that it is moved, and by the database's clock."""
    if actor.means == "elicitation":
        return Q()
    risky = Tool.objects.filter(risk_level__gte=HIGHEST_RISK).values("pk")
    mild = Q(risk_level__lt=HIGHEST_RISK) & ~Q(tool_id__in=risky)
    if actor.means != "session" or actor.signed_in_at is None:
        return mild
    until, since = (_value(actor.signed_in_at + by) for by in (lasts(), -SLACK))
    return mild | Q(GreaterThan(until, Now()), LessThan(since, Now()))


def lasts() -> timedelta:
    return timedelta(minutes=settings.HITL_FRESH_SIGN_IN_MINUTES)


def _value(at: object) -> Value:
    return Value(at, output_field=DateTimeField())

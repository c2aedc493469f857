"""The scope of a grant in words, the same before the click, in the list and on the record."""

from datetime import datetime

from django.utils import timezone

from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Grant


def offer(tool_name: str, scope: Scope) -> str:
    """What the click would do. `scope` is a checked one."""
    return f"Approve this, and run {tool_name} without asking {_bounds(scope, 'in this conversation')}."


def sentence(grant: Grant) -> str:
    return f"{grant.tool_name} runs without asking {bounds(grant)}."


def bounds(grant: Grant) -> str:
    scope = Scope(
        same_arguments=bool(grant.arguments_digest),
        this_conversation=grant.conversation_id is not None,
        calls=grant.calls,
        until=grant.until,
        condition=grant.condition,
    )
    return _bounds(scope, "in one conversation")


def left(grant: Grant) -> str:
    """How much of it there still is, short."""
    count = f"{grant.left} of {grant.calls} left" if grant.calls else ""
    until = f"until {clock(grant.until)}" if grant.until else ""
    return ", ".join(filter(None, (count, until))) or "as long as this conversation goes on"


def used(grant: Grant) -> str:
    if grant.calls:
        return f"used {grant.used} of {grant.calls}"
    return {0: "not used yet", 1: "used once"}.get(grant.used, f"used {grant.used} times")


def reason(grant: Grant) -> str:
    """Why a call was not asked about, with `used` counting it already."""
    given = f"given by {grant.person.get_username()} at {clock(grant.given_at)}"
    which = f"use {grant.used} of {grant.calls}" if grant.calls else f"use {grant.used}"
    return f"Not asked because of a grant: {sentence(grant).rstrip('.')} ({given}; this is {which})."


def ended(grant: Grant) -> str:
    """For whoever revoked it just now, if it had not ended before."""
    how = grant.get_end_display().lower()
    return f"{grant.tool_name} asks again, unless another grant covers the call: this one is {how}."


def clock(at: datetime) -> str:
    """In the server's time zone, which is named; with the day if it is not today's."""
    local = timezone.localtime(at)
    day = "" if local.date() == timezone.localdate() else f"{local.day} {local:%b} "
    return f"{day}{local:%H:%M %Z}"


def _bounds(scope: Scope, where: str) -> str:
    count = "for the next call" if scope.calls == 1 else f"for the next {scope.calls} calls" if scope.calls else ""
    words = ["with exactly these arguments" if scope.same_arguments else "", count]
    words.append(where if scope.this_conversation else "")
    said = " ".join(filter(None, words))
    said += f", until {clock(scope.until)}" if scope.until else ""
    said += f", while {scope.condition} holds" if scope.condition else ""
    return said.removeprefix(", ")

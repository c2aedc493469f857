"""Does a grant still stand, and for which calls? Whatever is not as it was when it was given means: not any more."""

from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Now

from hitlchat.accounts.models import Token
from hitlchat.base import canonical
from hitlchat.gate import oversight, policy
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import CallerKind, Grant, HitlMode, Tool, ToolCall
from hitlchat.gate.oversight import HIGHEST_RISK

# By the database's clock, like a deadline; of the grant's own row alone, so that it can stand in an UPDATE of it.
NOT_ENDED: Final = Q(end="")
IN_TIME: Final = Q(until=None) | Q(until__gt=Now())
ANY_LEFT: Final = Q(calls=None) | Q(used__lt=F("calls"))
ACTIVE: Final = NOT_ENDED & IN_TIME & ANY_LEFT

# Of a person who gives one: a client's word or a console is not enough.
MEANS: Final = ("session", "token")
ASKS_EVERY_TIME: Final = "the tool asks every time now"

# What is frozen when it is given, but for the times.
FROZEN: Final = (
    *("id", "approval_id", "person_id", "tool_id", "tool_name", "source", "definition_hash", "risk_level", "rule"),
    *("caller_kind", "token_id", "arguments_digest", "conversation_id", "calls", "condition"),
)


def may_give(actor: Actor) -> bool:
    return actor.user_id is not None and actor.means in MEANS


def may_be_granted(tool: Tool) -> bool:
    """Return whether any call of it may ever run on a grant."""
    return tool.hitl_mode == HitlMode.CONDITIONAL and tool.risk_level < HIGHEST_RISK


def seal(grant: Grant) -> str:
    """SHA-256 over all that was frozen when it was given."""
    columns = [getattr(grant, name) for name in FROZEN]
    times = [at and at.timestamp() for at in (grant.given_at, grant.until)]
    return canonical.sha256([*(each if isinstance(each, int | None) else str(each) for each in columns), *times])


def why_void(grant: Grant) -> str | None:
    """Return what is no longer as it was, in words; None if all is.

    `grant` is read with its person and its tool, and that with its oversight.
    """
    tool = grant.tool
    if tool is None:
        return "the tool was deleted"
    if grant.seal != seal(grant):
        return "the record of the grant was changed"
    if not grant.person.is_active:
        return "the account of the person who gave it was deactivated"
    if not tool.published and grant.caller_kind != CallerKind.STUDIO:
        return "the tool was unpublished"
    return next((words for words, is_same in _comparisons(grant, tool) if not is_same), None)


def _comparisons(grant: Grant, tool: Tool) -> list[tuple[str, bool]]:
    return [
        ("the tool's name changed", tool.name == grant.tool_name),
        ("the tool's source changed", tool.source == grant.source),
        ("the tool's definition or connection changed", tool.definition_hash == grant.definition_hash),
        ("the tool's risk changed", tool.risk_level == grant.risk_level),
        ("the token it was given for was revoked or expired", _has_token(grant)),
        ("who decides about the tool was changed", not hasattr(tool, "oversight")),
        (ASKS_EVERY_TIME, tool.hitl_mode != HitlMode.REQUIRED),
        ("the rules that it was given under changed", policy.rule_of(tool) == grant.rule),
        ("no call of this tool may run on a grant any more", may_be_granted(tool)),
    ]


def like(call: ToolCall) -> Q:
    """Return the condition on grants' own columns: those that are for calls like this one."""
    return scope(call.arguments, call.conversation_id, call.token_id) & Q(
        person_id=call.caller_id,
        tool_id=call.tool_id,
        tool_name=call.tool_name,
        source=call.source,
        definition_hash=call.definition_hash,
        risk_level=call.risk_level,
        rule=call.rule,
        caller_kind=call.caller_kind,
    )


def _has_token(grant: Grant) -> bool:
    return grant.token_id is None or Token.valid().filter(pk=grant.token_id, user_id=grant.person_id).exists()


def scope(arguments: dict[str, Any], conversation_id: UUID | None, token_id: int | None) -> Q:
    """The same for what each grant chooses to be about. None would be no comparison: it has a question of its own."""
    any_or_these = Q(arguments_digest="") | Q(arguments_digest=canonical.sha256(arguments))
    here = Q(conversation_id=None)
    here |= Q(conversation_id=conversation_id) if conversation_id is not None else Q()
    return any_or_these & here & (Q(token_id__isnull=True) if token_id is None else Q(token_id=token_id))


def still_stands(call: ToolCall) -> Q:
    """Return the condition, in the moment that a call is moved, that the grant it runs on was not ended.

    A read of another table, which may be a moment old: whoever ends a grant then finds the call executing and has it
    stopped (giving.py), so that neither slips through.
    """
    if call.grant_id is None:
        return Q()
    return Q(grant_id__in=Grant.objects.filter(NOT_ENDED & IN_TIME).values("pk")) & oversight.stands()


def reason(call: ToolCall) -> str | None:
    """Return why a call that was not asked about because of a grant must not start; None if it may, or runs on none."""
    if call.grant_id is None:
        return None
    grant = Grant.objects.select_related("tool__oversight", "person").get(pk=call.grant_id)
    if grant.end:
        return f"its grant was {grant.get_end_display().lower()}: {grant.why}"
    if why := why_void(grant):
        return f"its grant is void: {why}"
    if not Grant.objects.filter(IN_TIME, pk=grant.pk).exists():
        return "the time of its grant was over"
    return None if Grant.objects.filter(like(call), pk=grant.pk).exists() else "its grant is for other calls"

"""The scope of a grant: checked when it is given, in words, and while in force.

Whatever is not as it was when the grant was given means that it is in force no more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.accounts.models import Token
from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import part, translatable
from hitlchat.base.statements import Where, condition
from hitlchat.gate import oversight, policy, question, sources
from hitlchat.gate.models import CallerKind, Grant, HitlMode, Tool, ToolCall, delegation
from hitlchat.gate.models.calls import MOST_CALLS
from hitlchat.gate.oversight import HIGHEST_RISK

LONGEST: Final = timedelta(hours=24)
MOST_MINUTES: Final = 24 * 60
LONGEST_CONDITION: Final = 500
NAMES: Final = ("sameArguments", "thisConversation", "calls", "minutes", "until", "condition")
UNBOUNDED: Final = (
    "A grant needs a limit: a number of calls, a time, or this conversation. “The same arguments” or a "
    "condition alone is not enough."
)

# What puts a text into the language of a page; without one it is English, as it is stored.
Say = Callable[[str], str]

# By the database's clock, like a deadline; of the grant's own row alone, so that it can stand in an UPDATE of it.
NOT_ENDED: Final = Q(end="")
IN_TIME: Final = Q(until=None) | Q(until__gt=Now())
ANY_LEFT: Final = Q(calls=None) | Q(used__lt=F("calls"))
ACTIVE: Final = NOT_ENDED & IN_TIME & ANY_LEFT

# An earned rule, which covers the calls of everybody. Without a use for so long it decays.
EARNED: Final = Q(approval=None)
DECAY: Final = timedelta(days=30)

# Of a person who gives one: a client's word or a console is not enough.
MEANS: Final = ("session", "token")

# What is frozen when it is given, but for the times.
FROZEN: Final = (
    *("id", "approval_id", "person_id", "tool_id", "tool_name", "source", "definition_hash", "risk_level", "rule"),
    *("caller_kind", "token_id", "arguments_digest", "conversation_id", "calls", "condition"),
)
BUDGET: Final = ("per_day", "per_person")


class BadGrant(Invalid):
    """No such grant can be given, so nothing was decided.

    `errors`: by the name of the part, or by “grant” for all of it, what was expected.
    """

    within = "grant"


@dataclass(frozen=True)
class Scope:
    """`minutes` from the moment of the yes, or `until` a time; empty parts bound nothing."""

    same_arguments: bool = False
    this_conversation: bool = False
    calls: int | None = None
    minutes: int | None = None
    until: datetime | None = None
    condition: str = ""

    @property
    def as_json(self) -> str:
        """Return the scope for a form of ours; `read` takes it."""
        until = self.until and self.until.isoformat()
        values = (self.same_arguments, self.this_conversation, self.calls, self.minutes, until, self.condition)
        return canonical.dumps(dict(zip(NAMES, values, strict=True)))


def read(text: str) -> Scope:
    """Return the scope that `as_json` wrote. Raises: BadGrant."""
    try:
        found = canonical.loads(text)
        if not isinstance(found, dict) or set(found) != set(NAMES):
            raise BadGrant({"grant": f"Expected an object with exactly {', '.join(NAMES)}."})
        until = found["until"]
        if not (until is None or isinstance(until, str)):
            raise BadGrant({"until": "Expected a time, as 2026-01-31T14:30:00+00:00."})
        return _typed(found, None if until is None else datetime.fromisoformat(until))
    except ValueError as error:
        raise error if isinstance(error, BadGrant) else BadGrant({"grant": f"Unreadable: {error}."}) from error


def checked(scope: Scope, now: datetime, *, has_conversation: bool) -> Scope:
    """Return the scope with the time as `until`, within all limits; `now` by the database's clock. Raises: BadGrant."""
    errors = dict(_errors(scope, now, has_conversation=has_conversation))
    if errors:
        raise BadGrant(errors)
    until = scope.until if scope.minutes is None else now + timedelta(minutes=scope.minutes)
    return replace(scope, minutes=None, until=until, condition=scope.condition.strip())


def offer(tool_name: str, scope: Scope, say: Say = str) -> str:
    """Return what the click would do. `scope` is a checked one."""
    bounds = _bounds(scope, part("in this conversation"))
    return say(translatable(f"Approve, and run {tool_name} without asking {bounds}."))


def sentence(grant: Grant, say: Say = str) -> str:
    tool, bounds = grant.tool_name, bounds_of(grant)
    return say(translatable(f"{tool} runs without asking {bounds}."))


def bounds_of(grant: Grant) -> str:
    if grant.is_earned:
        return part(
            f"while {grant.condition} holds, at most {grant.per_day} times a day and {grant.per_person} for one person"
        )
    scope = Scope(
        same_arguments=bool(grant.arguments_digest),
        this_conversation=grant.conversation_id is not None,
        calls=grant.calls,
        until=grant.until,
        condition=grant.condition,
    )
    return _bounds(scope, part("in one conversation"))


def left(grant: Grant, say: Say = str) -> str:
    """Return how much of it there still is, short."""
    many, until = gettext_noop("{left} of {calls} left"), gettext_noop("until {time}")
    count = say(many).format(left=grant.left, calls=grant.calls) if grant.calls else ""
    time = say(until).format(time=clock(grant.until)) if grant.until else ""
    return ", ".join(filter(None, (count, time))) or say(gettext_noop("as long as this conversation goes on"))


def used(grant: Grant, say: Say = str) -> str:
    if grant.calls:
        return say(gettext_noop("used {used} of {calls}")).format(used=grant.used, calls=grant.calls)
    words = {0: gettext_noop("not used yet"), 1: gettext_noop("used once")}
    return say(words.get(grant.used, gettext_noop("used {used} times"))).format(used=grant.used)


def reason(grant: Grant) -> str:
    """Return why a call was not asked about, with `used` counting it already."""
    tool, bounds, person, given = grant.tool_name, bounds_of(grant), grant.person.get_username(), clock(grant.given_at)
    if grant.is_earned:
        return translatable(
            f"Not asked because of an earned rule: {tool} runs without asking {bounds} (published by {person} at"
            f" {given}; this is use {grant.used})."
        )
    if not grant.calls:
        return translatable(
            f"Not asked because of a grant: {tool} runs without asking {bounds} (given by {person} at {given}; this is"
            f" use {grant.used})."
        )
    return translatable(
        f"Not asked because of a grant: {tool} runs without asking {bounds} (given by {person} at {given}; this is use"
        f" {grant.used} of {grant.calls})."
    )


def ended_how(grant: Grant, say: Say = str) -> str:
    """Return how it ended, for whoever revoked it just now, if it had not ended before."""
    how = say(grant.get_end_display()).lower()
    words = say(gettext_noop("{tool} asks again, unless another grant covers the call: this one is {how}."))
    return words.format(tool=grant.tool_name, how=how)


def clock(at: datetime) -> str:
    """Return a time in the server's time zone, which is named; with the day if it is not today's."""
    local = timezone.localtime(at)
    day = "" if local.date() == timezone.localdate() else f"{local.day} {local:%b} "
    return f"{day}{local:%H:%M %Z}"


def may_be_granted(tool: Tool) -> bool:
    """Return whether any call of it may ever run on a grant."""
    return tool.hitl_mode == HitlMode.CONDITIONAL and tool.care < HIGHEST_RISK and not question.is_one(tool)


def may_earn(tool: Tool) -> bool:
    """Return whether a rule may ever be earned for it, by its own settings; `tool` is read with its oversight."""
    simple = not tool.signed_in_only and not hasattr(tool, "oversight") and not question.is_one(tool)
    return simple and tool.published and tool.care < HIGHEST_RISK


def seal(grant: Grant) -> str:
    """SHA-256 over all that was frozen when it was given."""
    columns = [getattr(grant, name) for name in (*FROZEN, *(BUDGET if grant.is_earned else ()))]
    # Each use of an earned rule puts off its end.
    times = [at and at.timestamp() for at in (grant.given_at, None if grant.is_earned else grant.until)]
    return canonical.sha256([*(each if isinstance(each, int | None) else str(each) for each in columns), *times])


def why_void(grant: Grant) -> str | None:
    """Return what is no longer as it was, in words; None if all is.

    `grant` is read with its person and its tool, and that with its oversight.
    """
    tool = grant.tool
    if tool is None:
        return gettext_noop("the tool was deleted")
    if grant.seal != seal(grant):
        return gettext_noop("the record of the grant was changed")
    if not grant.person.is_active:
        return gettext_noop("the account of the person who gave it was deactivated")
    if not tool.published and grant.caller_kind != CallerKind.STUDIO:
        return sources.why_unpublished(tool) or gettext_noop("the tool was unpublished")
    has_token = grant.token_id is None or Token.valid().filter(pk=grant.token_id, user_id=grant.person_id).exists()
    comparisons = [
        (gettext_noop("the tool's name changed"), tool.name == grant.tool_name),
        (gettext_noop("the tool's source changed"), tool.source == grant.source),
        (gettext_noop("the tool's definition or connection changed"), tool.definition_hash == grant.definition_hash),
        (gettext_noop("the tool's risk changed"), tool.risk_level == grant.risk_level),
        (gettext_noop("the token it was given for was revoked or expired"), has_token),
        (gettext_noop("who decides about the tool was changed"), not hasattr(tool, "oversight")),
        (gettext_noop("the tool asks every time now"), tool.hitl_mode != HitlMode.REQUIRED),
        (gettext_noop("the rules that it was given under changed"), policy.rule_of(tool) == grant.rule),
        (gettext_noop("no call of this tool may run on a grant any more"), may_be_granted(tool)),
        (gettext_noop("no rule can be earned for this tool any more"), not grant.is_earned or may_earn(tool)),
    ]
    return next((words for words, is_same in comparisons if not is_same), None)


def fixed(call: ToolCall) -> dict[str, Any]:
    """Return the columns of a grant that are the same for every call it covers."""
    same = ("tool_id", "tool_name", "source", "definition_hash", "risk_level", "rule", "caller_kind")
    return {"person_id": call.caller_id, **{column: getattr(call, column) for column in same}}


def like(call: ToolCall) -> Q:
    """Return the condition on grants' own columns: those that are for calls like this one."""
    same = fixed(call)
    theirs = Q(person_id=same.pop("person_id")) | EARNED
    return matching(call.arguments, call.conversation_id, call.token_id) & theirs & Q(**same)


def has_budget(call: ToolCall) -> Q:
    """Return the condition on an earned rule's row that its budget of today has a use left for this call."""
    today = timezone.localtime(call.created_at).replace(hour=0, minute=0, second=0, microsecond=0)
    used = ToolCall.objects.filter(grant=OuterRef("pk"), created_at__gte=today).order_by()

    def count(rows: QuerySet[ToolCall]) -> Coalesce:
        return Coalesce(Subquery(rows.values("grant").annotate(uses=Count("pk")).values("uses")), 0)

    return Q(per_day__gt=count(used), per_person__gt=count(used.filter(caller_id=call.caller_id)))


def matching(arguments: dict[str, Any], conversation_id: UUID | None, token_id: int | None) -> Q:
    """The same for what each grant chooses to be about. None would be no comparison: it has a question of its own.

    “This conversation” is the one that the person sees, with all that agents do for it.
    """
    any_or_these = Q(arguments_digest__in=["", canonical.sha256(canonical.alike(arguments))])
    here = Q(conversation_id=None)
    here |= Q(conversation_id=delegation.root(conversation_id)) if conversation_id is not None else Q()
    return any_or_these & here & (Q(token_id__isnull=True) if token_id is None else Q(token_id=token_id))


def still_stands(call: ToolCall) -> Where:
    """Return the condition, in the moment that a call is moved, that the grant it runs on was not ended.

    A read of another table, which may be a moment old: whoever ends a grant then finds the call executing and has it
    stopped (giving.py), so that neither slips through.
    """
    if call.grant_id is None:
        return Where()
    return _is_not_ended()


def why_not_run(call: ToolCall) -> str | None:
    """Return why a call that was not asked about because of a grant must not start; None if it may, or runs on none."""
    if call.grant_id is None:
        return None
    grant = Grant.objects.select_related("tool__oversight", "person").get(pk=call.grant_id)
    if grant.end:
        label = grant.get_end_display().lower()
        return translatable(f"its grant was {label}: {grant.why}")
    if why := why_void(grant):
        return translatable(f"its grant is void: {why}")
    if not Grant.objects.filter(IN_TIME, pk=grant.pk).exists():
        return gettext_noop("the time of its grant was over")
    covers = Grant.objects.filter(like(call), pk=grant.pk).exists()
    return None if covers else gettext_noop("its grant is for other calls")


@condition
def _is_not_ended() -> Q:
    return Q(grant_id__in=Grant.objects.filter(NOT_ENDED & IN_TIME).values("pk")) & oversight.stands()


def _typed(found: dict[str, Any], until: datetime | None) -> Scope:
    wrong = {
        name: "Expected true or false."
        for name in ("sameArguments", "thisConversation")
        if not isinstance(found[name], bool)
    }
    wrong |= {} if isinstance(found["condition"], str) else {"condition": "Expected a text."}
    numbers = ("calls", "minutes")
    wrong |= {name: "Expected a whole number." for name in numbers if type(found[name]) not in (int, type(None))}
    if wrong:
        raise BadGrant(wrong)
    same, here, calls, minutes, _, condition = (found[name] for name in NAMES)
    return Scope(same, here, calls, minutes, until, condition)


def _errors(scope: Scope, now: datetime, *, has_conversation: bool) -> Iterator[tuple[str, str]]:
    if scope.calls is None and scope.minutes is None and scope.until is None and not scope.this_conversation:
        yield "grant", UNBOUNDED
    if scope.this_conversation and not has_conversation:
        yield "thisConversation", "This call belongs to no conversation."
    if scope.calls is not None and not 1 <= scope.calls <= MOST_CALLS:
        yield "calls", translatable(f"Expected a whole number from 1 to {MOST_CALLS}.")
    yield from _of_time(scope, now)
    if len(scope.condition) > LONGEST_CONDITION or storable(scope.condition) != scope.condition:
        yield "condition", translatable(f"Expected an expression of at most {LONGEST_CONDITION} characters.")


def _of_time(scope: Scope, now: datetime) -> Iterator[tuple[str, str]]:
    if scope.minutes is not None and scope.until is not None:
        yield "minutes", "Expected either “minutes” or “until”, not both."
    elif scope.minutes is not None and not 1 <= scope.minutes <= MOST_MINUTES:
        yield "minutes", translatable(f"Expected a whole number from 1 to {MOST_MINUTES} (24 hours).")
    elif scope.until is not None and scope.until.tzinfo is None:
        yield "until", "Expected a time with its offset, as 2026-01-31T14:30:00+00:00."
    elif scope.until is not None and not now < scope.until <= now + LONGEST:
        yield "until", "Expected a time within the next 24 hours."


def _bounds(scope: Scope, where: str) -> str:
    words = [part("with exactly these arguments")] if scope.same_arguments else []
    if scope.calls:
        words.append(part("for the next call") if scope.calls == 1 else part(f"for the next {scope.calls} calls"))
    parts = [" ".join([*words, where] if scope.this_conversation else words)]
    if scope.until:
        parts.append(part(f"until {clock(scope.until)}"))
    if scope.condition:
        parts.append(part(f"while {scope.condition} holds"))
    return ", ".join(filter(None, parts))

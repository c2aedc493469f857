"""Replay: what the gate would have said of recorded calls under a draft of rules. It only reads.

Each call is judged with its arguments as they were before any edit, its caller and its time; tools, groups and the
strictness of conversations are those of now. Grants play no part: a change of the rules ends them. An earned rule of
the draft counts by its budget, and does not end at a no.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Final, Literal
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet
from django.utils import timezone

from hitlchat.base.database import in_db
from hitlchat.base.problems import Problem
from hitlchat.base.sentences import translatable
from hitlchat.gate import oversight, policy, provenance, stated
from hitlchat.gate.actor import Caller
from hitlchat.gate.attention import IDLE_SECONDS
from hitlchat.gate.draft import Draft
from hitlchat.gate.grants.scope import may_be_granted
from hitlchat.gate.models import Decision, HitlMode, Tool, ToolCall, delegation
from hitlchat.gate.policies import Allow, Ask, Judgement, Refuse
from hitlchat.gate.policies.loading import Rule
from hitlchat.gate.status import Status

USUAL_DAYS: Final = 30
MOST_DAYS: Final = 3660
# How many are in memory at a time.
AT_A_TIME: Final = 500
# So many of the declined calls are named; the others are only counted.
MOST_NAMED: Final = 1000
# A verdict that takes so long is slow, as is one that is ended at a limit, and so many of them are enough.
SLOW_SECONDS: Final = 1.0
MOST_SLOW: Final = 10
# Of a request, which somebody waits for.
MOST_AT_ONCE: Final = 10_000
MOST_SECONDS: Final = 20.0
YIELD_AFTER: Final = 50
EARNED: Final = "Not asked because of an earned rule."

# Of a recorded call. Whole rows of models would take longer than all the rest.
_COLUMNS: Final = (
    *("id", "arguments", "caller_id", "caller_kind", "conversation_id", "created_at", "deadline", "status", "token_id"),
    *("tool_id", "caller__username", "approval__disclosure"),
)
Row = Any
Word = Literal["allow", "ask", "refuse"]


class TooSlow(Problem):
    """Going on would take for ever."""

    status = 422


@dataclass
class Replayed:
    """The outcome. `errors`: calls about which a rule or condition gave no answer, and `error` what came of the first.
    `raised`: those of them whose tool's condition raised an error.

    `gone`: calls that cannot be judged, as their tool was deleted. `left_out`: older ones, for which there was no time.
    """

    calls: int = 0
    asked: int = 0
    refused: int = 0
    allowed: int = 0
    declined_that_would_have_run: int = 0
    would_have_run_though_declined: list[UUID] = field(default_factory=list)
    asked_before: int = 0
    questions_saved: int = 0
    questions_added: int = 0
    seconds_saved: int = 0
    errors: int = 0
    error: str = ""
    raised: int = 0
    gone: int = 0
    left_out: int = 0

    @property
    def minutes_saved(self) -> int:
        return round(self.seconds_saved / 60)


@dataclass(frozen=True)
class Difference:
    """A call of which two drafts say something else."""

    call: UUID
    one: Word
    other: Word


@dataclass
class Compared:
    """Two drafts over the same calls, with how many they differ on; the newest of these are named."""

    one: Replayed
    other: Replayed
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)


def replay(
    draft: Draft,
    days: int = USUAL_DAYS,
    *,
    tools: Collection[UUID] | None = None,
    most: int | None = None,
    seconds: float | None = None,
) -> Replayed:
    """Judge the calls of the last `days`, the newest first: at most so many, for about so many seconds.

    `tools`: only their calls. Raises: TooSlow
    """
    return _Run([draft], _recorded(days, tools), most, seconds).replayed()[0].found


def compare(one: Draft, other: Draft, days: int, *, most: int, seconds: float) -> Compared:
    """Judge the same calls by two drafts: those of their tools, or all if either has policies. Raises: TooSlow"""
    tools = one.tools.keys() | other.tools.keys() if one.rules is other.rules is None else None
    run = _Run([one, other], _recorded(days, tools), most, seconds)
    first, second = run.replayed()
    return Compared(first.found, second.found, run.differing, run.differences)


def _recorded(days: int, tools: Collection[UUID] | None) -> QuerySet[ToolCall]:
    every = ToolCall.objects.filter(created_at__gte=timezone.now() - timedelta(days=days))
    return every if tools is None else every.filter(tool__in=tools)


class _Run:
    """One replay by one draft or more, chunk by chunk: what is in memory is no more than a chunk."""

    def __init__(self, drafts: list[Draft], calls: QuerySet[ToolCall], most: int | None, seconds: float | None) -> None:
        # A rejected call never came before the rules.
        self.calls = calls.exclude(status=Status.REJECTED).order_by("-created_at", "-id")
        self.by = [_Under(draft) for draft in drafts]
        self.most, self.until = most, None if seconds is None else time.monotonic() + seconds
        self.count, self.differing, self.differences = 0, 0, list[Difference]()

    def replayed(self) -> "list[_Under]":
        gone = self.calls.filter(tool=None).count()
        every = left = self.calls.exclude(tool=None)
        while chunk := self._next(left):
            judged = async_to_sync(self._judged)(chunk)
            self._add(judged)
            if judged:
                # The bound on the time alone is what an index answers. Not added to those of the chunks before, or each
                # would take longer than the last.
                last = judged[-1][0]
                older = Q(created_at__lt=last.created_at) | Q(id__lt=last.id)
                left = every.filter(older, created_at__lte=last.created_at)
            if len(judged) < len(chunk):
                break
        left_out = left.count()
        for each in self.by:
            each.found.gone, each.found.left_out = gone, left_out
        return self.by

    @property
    def is_over(self) -> bool:
        return self.until is not None and time.monotonic() > self.until

    def _next(self, left: QuerySet[ToolCall]) -> list[Row]:
        size = AT_A_TIME if self.most is None else min(AT_A_TIME, self.most - self.count)
        chunk = list(left.values_list(*_COLUMNS, named=True)[:size])
        for each in self.by:
            each.meet({call.tool_id for call in chunk})
        return chunk

    async def _judged(self, chunk: list[Row]) -> list[tuple[Row, list[Judgement]]]:
        """Return calls with their verdicts by each draft, up to where the time is over. Raises: TooSlow"""
        facts = await in_db(_known)(chunk)
        judges = [await each.judges(chunk, facts) for each in self.by]
        judged = []
        for number, call in enumerate(chunk):
            if self.is_over:
                break
            # The server's loop may be the one that this runs on.
            if number % YIELD_AFTER == 0:
                await asyncio.sleep(0)
            under = zip(self.by, judges, strict=True)
            judged.append((call, [await each.verdict(call, theirs[call.id]) for each, theirs in under]))
        return judged

    def _add(self, judged: list[tuple[Row, list[Judgement]]]) -> None:
        self.count += len(judged)
        for number, each in enumerate(self.by):
            each.add([(call, judgements[number]) for call, judgements in judged])
        for call, judgements in judged:
            words = [_word(each) for each in judgements]
            if words[0] != words[-1]:
                self.differing += 1
                if self.differing <= MOST_NAMED:
                    self.differences.append(Difference(call.id, words[0], words[-1]))


class _Under:
    """Recorded calls under one draft, and what came of them so far."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.tools: dict[UUID, Tool] = {}
        # Those that the record does not show as they are: what would run unasked is asked about.
        self.unstated: set[UUID] = set()
        self.found, self.slow = Replayed(), 0
        # Of the earned rules of the draft, by tool, day, and person.
        self.uses: Counter[tuple[UUID, date, int | None]] = Counter()

    def meet(self, tools: set[UUID]) -> None:
        """Read what is not there yet of these tools."""
        for tool in Tool.objects.filter(pk__in=tools - self.tools.keys()):
            self.tools[tool.pk] = self.draft.tools.get(tool.pk, tool)
            # A draft is taken for what the record would show once it is saved.
            if tool.pk not in self.draft.tools and not stated.is_as_stated(tool):
                self.unstated.add(tool.pk)

    async def verdict(self, call: Row, judge: "_Recorded") -> Judgement:
        tool, began = self.tools[call.tool_id], time.monotonic()
        outside = judge.args_from_outside
        judgement = await judge.judge(
            tool, judge.arguments, judge.caller, call.conversation_id, args_from_outside=outside
        )
        if tool.pk in self.unstated:
            judgement = await policy.held_to_record(tool, judgement)
        if judgement.only_the_tool_asks and judge.is_earned and may_be_granted(tool) and self._has_budget(call):
            judgement = replace(judgement, verdict=Allow(EARNED))
        self.found.raised += judge.has_raised
        self.slow += judge.was_ended or time.monotonic() - began >= SLOW_SECONDS
        if self.slow >= MOST_SLOW:
            raise TooSlow(
                translatable(
                    f"Stopped: the rules or the condition took too long {self.slow} times, last for {tool.name}."
                )
            )
        return judgement

    def _has_budget(self, call: Row) -> bool:
        """Use up one call of an earned rule, if its budget of that day has one left."""
        rule, day = self.draft.earned[call.tool_id], timezone.localtime(call.created_at).date()
        every, own = (call.tool_id, day, None), (call.tool_id, day, call.caller_id)
        if self.uses[every] >= rule.per_day or self.uses[own] >= rule.per_person:
            return False
        self.uses.update([every, own])
        return True

    async def judges(self, chunk: list[Row], facts: "_Known") -> "dict[UUID, _Recorded]":
        """Return a judge for each call. Their conditions are evaluated already, those of one tool together."""
        judges = {call.id: _Recorded(call, facts, self.draft.rules) for call in chunk}
        for earning, rule in self.draft.earned.items():
            same = [judge for judge in judges.values() if judge.call.tool_id == earning and judge.caller.kind == "chat"]
            given = [{policy.ARGUMENTS: judge.arguments, policy.OUTSIDE: judge.args_from_outside} for judge in same]
            for judge, is_true in zip(same, await policy.hold_together(rule.condition, given), strict=True):
                judge.is_earned = bool(is_true)
        of_tools = defaultdict(list)
        for call in chunk:
            tool = self.tools[call.tool_id]
            if tool.hitl_mode == HitlMode.CONDITIONAL and tool.condition.strip():
                of_tools[tool.condition].append(judges[call.id])
        for condition, same in of_tools.items():
            given = [
                {
                    policy.ARGUMENTS: judge.arguments,
                    "caller": await judge.of_caller(condition, judge.caller, judge.call.conversation_id),
                    policy.OUTSIDE: judge.args_from_outside,
                }
                for judge in same
            ]
            for judge, is_true in zip(same, await policy.hold_together(condition, given), strict=True):
                judge.holds_already = is_true
        return judges

    def add(self, judged: list[tuple[Row, Judgement]]) -> None:
        found, saved = self.found, []
        for call, judgement in judged:
            asks, was_asked = isinstance(judgement.verdict, Ask), call.deadline is not None
            found.calls += 1
            found.asked += asks
            found.refused += isinstance(judgement.verdict, Refuse)
            found.asked_before += was_asked
            found.questions_added += asks and not was_asked
            if isinstance(judgement.verdict, Allow):
                found.allowed += 1
                if call.status == Status.DECLINED:
                    found.declined_that_would_have_run += 1
                    found.would_have_run_though_declined += [call.id] * (
                        found.declined_that_would_have_run <= MOST_NAMED
                    )
            if not judgement.is_sure:
                found.errors += 1
                found.error = found.error or judgement.verdict.reason
            if was_asked and not asks:
                saved.append(call.id)
        found.questions_saved += len(saved)
        answers = Decision.objects.filter(approval__call__in=saved, first_shown_at__isnull=False)
        for decided_at, shown_at in answers.order_by().values_list("decided_at", "first_shown_at"):
            assert shown_at is not None
            found.seconds_saved += min(max(0, int((decided_at - shown_at).total_seconds())), IDLE_SECONDS)


@dataclass(frozen=True)
class _Known:
    """Facts of the calls of a chunk: by person, and by conversation."""

    groups: dict[int, list[str]]
    roots: dict[UUID, UUID]
    agents: dict[UUID | None, delegation.Agents]
    words: dict[UUID, str]
    every_group: frozenset[str]


class _Recorded(policy.Judge):
    """The gate's judge of one recorded call, with what it knew of the call, and rules that may be others."""

    def __init__(self, call: Row, facts: _Known, drafted: tuple[Rule, ...] | None) -> None:
        self.call, self.facts_of_chunk, self.drafted = call, facts, drafted
        self.caller = Caller(call.caller_kind, call.caller_id, call.caller__username, call.token_id)
        shown: dict[str, Any] = call.approval__disclosure or {}
        # As they were asked about: an edit changes those of the call.
        self.arguments: dict[str, Any] = shown["arguments"] if shown else call.arguments
        self.args_from_outside = provenance.is_from_outside(shown.get("provenance"))
        self.holds_already: bool | None = None
        # Whether an earned rule of the draft is about it; not if that gave no answer.
        self.is_earned = False
        # Whether the condition was, at a limit.
        self.was_ended = False
        # Whether it raised an error.
        self.has_raised = False

    def rules(self) -> tuple[Rule, ...]:
        return super().rules() if self.drafted is None else self.drafted

    async def facts(self, rules: tuple[Rule, ...], caller: Caller, conversation_id: UUID | None) -> policy.Facts:
        return policy.Facts(
            groups=frozenset(await self.groups(caller)),
            known_groups=self.facts_of_chunk.every_group & {name for rule in rules for name in rule.groups},
            conversation_id=conversation_id and self.facts_of_chunk.roots[conversation_id],
            agents=tuple(each["tool"] for each in self.facts_of_chunk.agents.get(conversation_id, [])),
            now=self.call.created_at,
        )

    async def groups(self, caller: Caller) -> list[str]:
        return self.facts_of_chunk.groups.get(caller.user_id, [])

    async def asks(self, conversation_id: UUID, risk: int) -> Ask | None:
        return oversight.asks_under(self.facts_of_chunk.words[conversation_id], risk)

    def approved_before(self, tool: Tool, arguments: dict[str, Any], user_id: int) -> bool:
        return policy.approved_before(tool, arguments, user_id, self.call.created_at)

    async def holds(self, condition: str, given: dict[str, Any]) -> bool:
        if self.holds_already is not None:
            return self.holds_already
        try:
            return await super().holds(condition, given)
        except policy.AtALimit:
            self.was_ended = True
            raise
        except policy.Raised:
            self.has_raised = True
            raise


def _word(judgement: Judgement) -> Word:
    if isinstance(judgement.verdict, Allow):
        return "allow"
    return "refuse" if isinstance(judgement.verdict, Refuse) else "ask"


def _known(chunk: list[Row]) -> _Known:
    groups: dict[int, list[str]] = defaultdict(list)
    named = Group.objects.filter(user__in={call.caller_id for call in chunk})
    for person, name in named.order_by("name").values_list("user", "name"):
        groups[person].append(name)
    conversations = {call.conversation_id for call in chunk if call.conversation_id}
    return _Known(
        groups=groups,
        roots=delegation.roots(conversations),
        agents=delegation.agents_of(conversations),
        words=oversight.strictness_of_each(conversations),
        every_group=frozenset(Group.objects.values_list("name", flat=True)),
    )

"""Earned rules: conditions that the record bears out, under which calls of a tool need not ask any more.

They are proposed from what people said, as drafts for the lab, and never applied by themselves. A published one is a
grant for everybody's calls (grants/giving.py): with a budget, until it decays or somebody says no to a call like it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import canonical, database
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable
from hitlchat.gate import meant, policy, provenance, sources, tools
from hitlchat.gate.actor import Actor
from hitlchat.gate.draft import EarnedGiven
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.models import CallerKind, Decision, Grant, Hindsight, HitlMode, Tool, ToolCall, Verdict, delegation
from hitlchat.gate.policies.loading import in_force
from hitlchat.gate.status import Status

# What is older says little of what people want now; and of a tool no more calls are read.
PERIOD: Final = timedelta(days=90)
MOST_READ: Final = 2000
# Fewer yeses, or all within fewer days, prove nothing.
LEAST: Final = 20
LEAST_DAYS: Final = 3
# A value that is named was approved so often; more values than that are no choice.
LEAST_OF_VALUE: Final = 3
MOST_VALUES: Final = 5
LONGEST_ID: Final = 64
# So often what people said no to is cut away from what they approved.
ROUNDS: Final = 4
MOST_TOOLS: Final = 50
# Who gets something, where something goes, and what destroys, is only ever one of the values that were approved.
NAMED: Final = (meant.RECIPIENT, meant.ADDRESS, meant.FLAG)
MARKS: Final = ("-", "_")
# After an answer; one that was taken back is a no as well.
NOES: Final = (Status.DECLINED, Status.ANSWERED, Status.WITHDRAWN)
OUTSIDE: Final = f"not {policy.OUTSIDE}"

NO_RULE: Final = gettext_noop(
    "No rule can be earned for this tool: it is of the highest risk, asks a question, needs a signed-in person, has "
    "its own rules about who decides, or does not ask."
)
OTHER_MODE: Final = gettext_noop("A tool with an earned rule has the mode “Policies decide”: the draft has to set it.")
TOO_FEW: Final = gettext_noop("The record does not bear this out: too few calls like this were approved and read.")
SAID_NO: Final = gettext_noop("The record speaks against it: people said no to calls like this.")
NEWS: Final = gettext_noop("Somebody has just answered a call of this tool with no. Look again.")
ANOTHER: Final = gettext_noop("An earned rule of this tool is in force. End it first.")


class NotBorneOut(Invalid):
    """The rule does not come into force; the message says why."""

    field = "earned"


@dataclass(frozen=True)
class Case:
    """A recorded call that a person answered, with its arguments as they were asked about."""

    id: UUID
    arguments: dict[str, Any]
    is_yes: bool
    day: date
    person: int
    deciders: frozenset[int]


@dataclass(frozen=True)
class Evidence:
    """The calls of a tool that bear a rule out: of those like it, the approved ones, and what speaks `against` it.
    `other_noes`: the noes to calls of the tool that are not like it. `noes`: how many there were before it was read.
    """

    approved: int
    people: int
    days: int
    against: tuple[UUID, ...]
    other_noes: tuple[UUID, ...]
    noes: int

    @property
    def like_it(self) -> int:
        return self.approved + len(self.against)

    @property
    def is_enough(self) -> bool:
        return not self.against and self.approved >= LEAST and self.days >= LEAST_DAYS


@dataclass(frozen=True)
class Proposal:
    tool: Tool
    rule: EarnedGiven
    evidence: Evidence

    @property
    def draft(self) -> dict[str, Any]:
        """Return the draft that would publish it. A tool that asked every time goes on to ask about all other calls."""
        columns: dict[str, Any] = {}
        if self.tool.hitl_mode == HitlMode.REQUIRED:
            # Where policies are set, none of them may let a call run that asks now.
            columns = {"hitlMode": HitlMode.CONDITIONAL.value, "condition": "True" if in_force() else ""}
        return {"tools": {self.tool.name: {**columns, "earned": self.rule.model_dump(by_alias=True)}}}


@dataclass(frozen=True)
class _Test:
    """What one argument has to be like, as a part of the condition."""

    name: str
    code: str
    holds: Callable[[Any], bool]


def sentence(rule: EarnedGiven) -> str:
    when, day, one = rule.condition, rule.per_day, rule.per_person
    return translatable(
        f"Calls run without asking while {when} holds, at most {day} times a day and {one} for one person."
    )


def proposals() -> list[Proposal]:
    """Return what the record bears out, by the names of the tools. It only reads."""
    asked = ToolCall.objects.filter(created_at__gte=_since(), deadline__isnull=False, status=Status.SUCCEEDED)
    often = asked.order_by().values("tool").annotate(count=Count("pk")).filter(count__gte=LEAST).order_by("-count")
    ids = [row["tool"] for row in often.exclude(tool=None)[:MOST_TOOLS]]
    without = Tool.objects.exclude(grants__in=Grant.objects.filter(scope.EARNED & scope.NOT_ENDED))
    found = without.select_related("oversight").filter(pk__in=ids).order_by("name")
    return [made for tool in found if can_earn(tool) and (made := _proposal(tool)) is not None]


def can_earn(tool: Tool) -> bool:
    """Return whether a rule may be proposed and published for it, as it is."""
    # Where its settings are in code, it cannot be let off from asking every time.
    is_settable = tool.hitl_mode == HitlMode.CONDITIONAL or sources.configurable(tool.source) is not None
    return scope.may_earn(tool) and tool.hitl_mode != HitlMode.DISABLED and is_settable


def evidence_for(tool: Tool, condition: str) -> Evidence:
    """Return what the record says of a rule with this condition. What gives no answer counts against it."""
    noes, cases = _noes(tool), _cases(tool)
    given = [{policy.ARGUMENTS: case.arguments, policy.OUTSIDE: False} for case in cases]
    holds = async_to_sync(policy.hold_together)(condition, given)
    against = [case.id for case, is_like in zip(cases, holds, strict=True) if not case.is_yes and is_like is not False]
    yeses = [case for case, is_like in zip(cases, holds, strict=True) if case.is_yes and is_like]
    return _evidence(yeses, against, cases, noes)


def check(tool: Tool, rule: EarnedGiven) -> Evidence:
    """Return the evidence for a rule that is to be published. Raises: NotBorneOut"""
    found = evidence_for(tool, rule.condition)
    if not found.is_enough:
        raise NotBorneOut(SAID_NO if found.against else TOO_FEW)
    return found


def put_in_force(tool_id: UUID, rule: EarnedGiven, evidence: Evidence, actor: Actor) -> Grant:
    """Publish a rule, within the transaction that sets its tool. Raises: NotBorneOut"""
    tool = Tool.objects.select_related("oversight").get(pk=tool_id)
    if not can_earn(tool):
        raise NotBorneOut(NO_RULE)
    if not scope.may_be_granted(tool):
        raise NotBorneOut(OTHER_MODE)
    if giving.earned().filter(scope.NOT_ENDED, tool_id=tool.pk).exists():
        raise NotBorneOut(ANOTHER)
    # A no that is on its way is there once this is locked, or comes after it, and then finds that there is a rule. What
    # is asked meanwhile waits, since whoever publishes has locked the tool that a new call refers to.
    list(ToolCall.objects.select_for_update(of=("self",)).filter(tool=tool, status=Status.WAITING).order_by("pk"))
    if _noes(tool) > evidence.noes:
        raise NotBorneOut(NEWS)
    now, columns = database.now(), ("source", "definition_hash", "risk_level")
    assert actor.user_id is not None
    found = Grant(
        person_id=actor.user_id,
        tool=tool,
        tool_name=tool.name,
        **{name: getattr(tool, name) for name in columns},
        rule=policy.rule_of(tool),
        caller_kind=CallerKind.CHAT.value,
        condition=rule.condition.strip(),
        per_day=rule.per_day,
        per_person=rule.per_person,
        given_at=now,
        until=now + scope.DECAY,
    )
    facts = {"approved": evidence.approved, "people": evidence.people, "days": evidence.days}
    tools.look_for_earned(tool.pk)
    giving.put_in_force(found, actor, evidence=facts | {"otherNoes": len(evidence.other_noes)})
    return found


def _since() -> datetime:
    return timezone.now() - PERIOD


def _proposal(tool: Tool) -> Proposal | None:
    noes, cases = _noes(tool), _cases(tool)
    found = _sound([case for case in cases if case.is_yes], [case for case in cases if not case.is_yes])
    if found is None:
        return None
    tests, yeses = found
    condition = _condition(tests, yeses)
    evidence = _evidence(yeses, [], cases, noes)
    if not evidence.is_enough or len(condition) > scope.LONGEST_CONDITION:
        return None
    # As many as there were on the busiest day, of all and of one person.
    per_day = max(Counter(case.day for case in yeses).values())
    per_person = max(Counter((case.day, case.person) for case in yeses).values())
    given = {"condition": condition, "perDay": per_day, "perPerson": per_person}
    return Proposal(tool, EarnedGiven.model_validate(given), evidence)


def _evidence(yeses: Sequence[Case], against: Sequence[UUID], cases: Sequence[Case], noes: int) -> Evidence:
    all_noes = [case.id for case in cases if not case.is_yes]
    return Evidence(
        approved=len(yeses),
        people=len(frozenset().union(*(case.deciders for case in yeses))),
        days=len({case.day for case in yeses}),
        against=tuple(against),
        other_noes=tuple(each for each in all_noes if each not in against),
        noes=noes,
    )


def _noes(tool: Tool) -> int:
    """Count what speaks against any call of the tool; a yes to other arguments does, too."""
    answers = Decision.objects.filter(approval__call__tool=tool)
    regrets = Hindsight.objects.filter(call__tool=tool, verdict=Hindsight.Verdict.SHOULD_ASK)
    return answers.exclude(verdict=Verdict.APPROVE, edited_arguments=None).count() + regrets.count()


def _cases(tool: Tool) -> list[Case]:
    """Return the calls of a tool, as it is now, that say something, the newest first: each repetition once."""
    like_now = {name: getattr(tool, name) for name in ("source", "definition_hash")}
    rows = ToolCall.objects.filter(
        Q(deadline__isnull=False) | Q(hindsight__verdict=Hindsight.Verdict.SHOULD_ASK),
        tool=tool,
        tool_name=tool.name,
        caller_kind=CallerKind.CHAT,
        created_at__gte=_since(),
        settled_at__isnull=False,
        **like_now,
    ).order_by("-created_at", "-id")
    columns = ("id", "arguments", "status", "created_at", "caller_id", "conversation_id", "oversight_digest")
    calls = list(rows.values_list(*columns, "hindsight__verdict", "approval__disclosure", named=True)[:MOST_READ])
    answers: dict[UUID, list[Decision]] = {}
    given = Decision.objects.filter(approval__call__in=[call.id for call in calls]).select_related("approval")
    for answer in given.defer("approval__disclosure", "approval__prompt"):
        answers.setdefault(answer.approval.call_id, []).append(answer)
    roots = delegation.roots({call.conversation_id for call in calls if call.conversation_id})
    seen, found = set(), []
    for call in calls:
        case = _case(call, answers.get(call.id, []))
        if case is None:
            continue
        # What an agent repeats in one conversation is one piece of evidence.
        where = roots.get(call.conversation_id, call.id)
        key = (where, case.is_yes, canonical.sha256(canonical.alike(case.arguments)))
        if key not in seen:
            seen.add(key)
            found.append(case)
    return found


def _case(call: Any, answers: Collection[Decision]) -> Case | None:
    """Return what a call says of its like; None if nothing: nobody answered, or not so that they can have read it."""
    shown: Mapping[str, Any] = call.approval__disclosure or {}
    is_edited = any(answer.edited_arguments is not None for answer in answers)
    is_no = call.hindsight__verdict == Hindsight.Verdict.SHOULD_ASK or is_edited or (answers and call.status in NOES)
    if not is_no:
        is_read = call.status == Status.SUCCEEDED and bool(answers) and all(map(_is_read, answers))
        if not is_read or call.oversight_digest or provenance.is_from_outside(shown.get("provenance")):
            return None
    return Case(
        id=call.id,
        arguments=shown["arguments"] if shown else call.arguments,
        is_yes=not is_no,
        day=timezone.localtime(call.created_at).date(),
        person=call.caller_id,
        deciders=frozenset(answer.person_id for answer in answers),
    )


def _is_read(answer: Decision) -> bool:
    """Return whether a signed-in person gave this yes, with the card before them for as long as reading it takes."""
    in_person = answer.verdict == Verdict.APPROVE and answer.means in scope.MEANS
    return in_person and answer.first_shown_at is not None and not answer.hurried


def _sound(yes: list[Case], no: list[Case]) -> tuple[list[_Test], list[Case]] | None:
    """Return what the most approved calls have in common and no other call has; None if there is no such thing."""
    yes = _of_one_shape(yes)
    for _ in range(ROUNDS):
        tests = _tests(yes) if len(yes) >= LEAST else None
        if tests is None:
            return None
        yes, against = _matching(yes, tests, yes), _matching(no, tests, yes)
        if not against:
            return tests, yes
        yes = max(_parts(yes, against), key=lambda part: _worth(part, no), default=[])
    return None


def _of_one_shape(yes: list[Case]) -> list[Case]:
    shapes = Counter(frozenset(case.arguments) for case in yes)
    return [case for case in yes if frozenset(case.arguments) == shapes.most_common(1)[0][0]]


def _worth(part: list[Case], no: list[Case]) -> tuple[bool, int, int]:
    """Rank a part of the approved calls: by how many others are like it, and how large it is."""
    tests = _tests(part) if len(part) >= LEAST else None
    return (tests is not None, -len(_matching(no, tests or [], part)), len(part))


def _matching(cases: list[Case], tests: list[_Test], of: list[Case]) -> list[Case]:
    names = of[0].arguments.keys() if of else set()
    alike = [case for case in cases if case.arguments.keys() == names]
    return [case for case in alike if all(test.holds(case.arguments[test.name]) for test in tests)]


def _parts(yes: list[Case], against: list[Case]) -> Iterator[list[Case]]:
    """Yield the approved calls below or above all the others in one number, and those without a value of theirs."""
    for name in yes[0].arguments:
        values = [case.arguments[name] for case in against]
        if all(_is_number(case.arguments[name]) for case in (*yes, *against)):
            yield [case for case in yes if case.arguments[name] < min(values)]
            yield [case for case in yes if case.arguments[name] > max(values)]
        else:
            theirs = {canonical.dumps(value) for value in values}
            yield [case for case in yes if canonical.dumps(case.arguments[name]) not in theirs]


def _tests(yes: list[Case]) -> list[_Test] | None:
    """Return a test for each argument that these calls pass, but for rare values; None if one has no bounds."""
    found = []
    for name in sorted(yes[0].arguments):
        test = _test(name, [case.arguments[name] for case in yes])
        if test is None:
            return None
        found.append(test)
    return found


def _test(name: str, values: list[Any]) -> _Test | None:
    where = f"{policy.ARGUMENTS}[{name!r}]"
    is_named = any(meant.weight(name, value) in NAMED for value in values)
    counted = Counter(canonical.dumps(value) for value in values)
    often = sorted(text for text, count in counted.items() if count >= LEAST_OF_VALUE)
    if all(_is_number(value) for value in values) and not is_named and len(counted) > 1:
        low, high = min(values), max(values)
        # To Python, true and false are 1 and 0.
        no_truth = f" and not isinstance({where}, bool)" if low <= 1 and high >= 0 else ""
        code = f"{low!r} <= {where} <= {high!r}{no_truth}"
        return _Test(name, code, lambda value: _is_number(value) and low <= value <= high)
    if often and len(often) <= MOST_VALUES and (is_named or len(often) == len(counted)):
        chosen = [canonical.loads(text) for text in often]
        if not all(isinstance(each, str) for each in chosen):
            # So that 1 is not true, within a list neither.
            where, chosen = f"repr({where})", [repr(each) for each in chosen]
        code = f"{where} in {chosen!r}" if len(chosen) > 1 else f"{where} == {chosen[0]!r}"
        return _Test(name, code, lambda value: canonical.dumps(value) in often)
    if not is_named and all(_is_id(value) for value in values):
        longest = max(map(len, values))
        bare = where + "".join(f".replace({mark!r}, '')" for mark in MARKS)
        code = f"len({where}) <= {longest} and {where}.isascii() and {bare}.isalnum()"
        return _Test(name, code, lambda value: _is_id(value) and len(value) <= longest)
    return None


def _condition(tests: list[_Test], yes: list[Case]) -> str:
    """Return the condition: another argument more, or one less, makes it another kind of call."""
    shape = f"sorted({policy.ARGUMENTS}) == {sorted(yes[0].arguments)!r}"
    return " and ".join([shape, *(test.code for test in tests), OUTSIDE])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_id(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > LONGEST_ID:
        return False
    bare = value
    for mark in MARKS:
        bare = bare.replace(mark, "")
    return bare.isascii() and bare.isalnum()

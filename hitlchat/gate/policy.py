"""Must a person be asked about this call? All rules are heard, and the strictest one wins.

Conditions of tools are here too: a wrong one is named when it is saved, and not only when it is needed.
"""

import ast
import asyncio
import builtins
import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, assert_never
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat import sandbox
from hitlchat.base import canonical, schemas
from hitlchat.base.database import in_db
from hitlchat.base.schemas import shown
from hitlchat.base.sentences import translatable
from hitlchat.gate import oversight, question, sources, stated
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import HitlMode, Tool, ToolCall, delegation
from hitlchat.gate.policies import (
    Abstain,
    Allow,
    Ask,
    CallView,
    Context,
    Judgement,
    Refuse,
    Said,
    Spoke,
    ToolView,
    Unusable,
    strictest,
)
from hitlchat.gate.policies.loading import Rule, Unloadable, consult, fingerprint, in_force
from hitlchat.gate.status import Status

CONDITION_SECONDS = 5.0
LONGEST_FAULT = 200
# The latest ones: what was approved longer ago is asked about again.
LOOKED_THROUGH = 1000
SIGNED_IN = ("session", "token", "console")
OFF: Final = "Not asked because approvals are switched off for this whole installation (HITL_ENABLED=0)."
NOT_STATED = gettext_noop("Asked because the record does not show that this tool may run without asking.")
# What a condition may use, and what of the caller.
ARGUMENTS: Final = "args"
OUTSIDE: Final = "args_from_outside"
CALLER: Final = {"kind": "chat", "user": "ann", "conversation": None, "groups": ["staff"]}
_METHODS: Final = {"copy", "get", "items", "keys", "values"}
# Faults of the condition itself, whatever the values are.
_OWN_FAULTS: Final = ("AttributeError: ", "NameError: ", "TypeError: ")
_UNKNOWN: Final = "…"
# Each by itself, as if it were the only one: what one raises is no other one's.
_TOGETHER: Final = """
def run(calls):
    found = []
    for each in calls:
        try:
            found.append(condition(*each))
        except Exception:
            found.append(None)
    return found
"""
_SAMPLES: Final[Mapping[str, Any]] = {"string": "12", "integer": 12, "number": 1.5, "boolean": True}
_LONGEST_MESSAGE: Final = 300

logger = logging.getLogger(__name__)


class NoAnswer(ValueError):
    """A condition says neither yes nor no; the message says why, as the end of a sentence about it."""


class AtALimit(NoAnswer):
    """A condition was ended at a limit."""


class Raised(NoAnswer):
    """A condition raised an error about these arguments."""


def rule_of(tool: Tool) -> str:
    """Return what decides about calls of `tool`, as one comparable word.

    A verdict holds as long as this stays the same.
    """
    rules = fingerprint()
    return canonical.sha256([settings.HITL_ENABLED, tool.hitl_mode, tool.condition, *([rules] if rules else [])])


@dataclass(frozen=True)
class Facts:
    """What rules know besides the call: the person's groups, and which of the groups that they name exist.

    `conversation_id`: the one that the person sees. `agents`: through which the call comes, the outermost first.
    """

    groups: frozenset[str]
    known_groups: frozenset[str]
    conversation_id: UUID | None
    agents: tuple[str, ...]
    now: datetime


@dataclass(frozen=True)
class _Query:
    """What `judge` is asked."""

    tool: Tool
    arguments: dict[str, Any]
    caller: Caller
    conversation_id: UUID | None
    args_from_outside: bool


class Judge:
    """The judge of calls by the rules and the facts of this moment; a replay has others."""

    def rules(self) -> tuple[Rule, ...]:
        """Return the rules of the installation. Raises: Unloadable"""
        return in_force()

    async def facts(self, rules: tuple[Rule, ...], caller: Caller, conversation_id: UUID | None) -> Facts:
        return await in_db(_facts)(rules, caller, conversation_id)

    async def groups(self, caller: Caller) -> list[str]:
        return await in_db(sorted)(Group.objects.filter(user=caller.user_id).values_list("name", flat=True))

    async def asks(self, conversation_id: UUID, risk: int) -> Ask | None:
        """Return why the conversation asks about a call of this risk by itself, if it does."""
        return await in_db(oversight.asks_about)(conversation_id, risk)

    def approved_before(self, tool: Tool, arguments: dict[str, Any], user_id: int) -> bool:
        return approved_before(tool, arguments, user_id)

    async def of_caller(self, condition: str, caller: Caller, conversation_id: UUID | None) -> dict[str, Any]:
        """Return what a condition may ask of who calls: the database only where it does. NoAnswer."""
        conversation = conversation_id and str(conversation_id)
        facts = {"kind": caller.kind, "user": caller.user_name, "conversation": conversation}
        if "caller" not in condition:
            return facts
        try:
            return {**facts, "groups": await self.groups(caller)}
        except Exception as error:
            logger.exception("The groups of person %s could not be read for a condition", caller.user_id)
            raise NoAnswer("could not be evaluated.") from error

    async def holds(self, condition: str, given: dict[str, Any]) -> bool:
        """Return whether a condition holds for what it is given by name. Raises: NoAnswer"""
        return await holds(condition, given)

    async def judge(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        caller: Caller,
        conversation_id: UUID | None = None,
        *,
        args_from_outside: bool = True,
    ) -> Judgement:
        """Judge the call. Never raises: whatever goes wrong while deciding means that a person is asked.

        `args_from_outside`: whether a value comes from outside, or may, as where nobody knows.
        """
        judged = await self._judged(_Query(tool, arguments, caller, conversation_id, args_from_outside))
        if conversation_id is None:
            return judged
        try:
            # Also where approvals are switched off for the installation.
            ask = await self.asks(conversation_id, tool.risk_level)
        except Exception:
            logger.exception("What the conversation %s asks about could not be read", conversation_id)
            ask = Unusable(oversight.UNREADABLE)
        if ask is None:
            return judged
        # The conversation asks where nothing else does; it softens no refusal.
        verdict = ask if isinstance(judged.verdict, Allow) else judged.verdict
        spoke = (*judged.spoke, Spoke.of("conversation", ask, "conversation"))
        return replace(judged, verdict=verdict, spoke=spoke)

    async def _judged(self, query: _Query) -> Judgement:
        tool, caller = query.tool, query.caller
        if not settings.HITL_ENABLED and not question.is_one(tool):
            return Judgement.alone("HITL_ENABLED", Allow(OFF), "installation")
        heard: list[Said] = []
        try:
            if rules := self.rules():
                facts = await self.facts(rules, caller, query.conversation_id)
                call = CallView(
                    tool_name=tool.name,
                    arguments=copy.deepcopy(query.arguments),
                    caller_kind=caller.kind,
                    user_id=caller.user_id,
                    user_name=caller.user_name,
                    groups=facts.groups,
                    conversation_id=facts.conversation_id,
                    agents=facts.agents,
                    args_from_outside=query.args_from_outside,
                )
                before = partial(self.approved_before, tool, call.arguments, caller.user_id)
                view, context = view_of(tool), Context(facts.now, before, facts.known_groups)
                heard += await asyncio.gather(*(consult(rule, call, view, context) for rule in rules))
        except Unloadable as error:
            logger.error("The policies of this installation cannot be read: %s", error)  # noqa: TRY400
            why = gettext_noop("Asked because the policies of this installation (HITL_POLICIES) do not load.")
            rules, heard = (), [Unusable(why)]
        except Exception:
            logger.exception("The policies could not be asked about a call to %s", tool.name)
            why = gettext_noop("Asked because the data that the policies need could not be read.")
            rules, heard = (), [Unusable(why)]
        names = [rule.name for rule in rules] or ["HITL_POLICIES"] * len(heard)
        name, own = await self._of_tool(query)
        spoke = Spoke.of_those(zip(names, heard, strict=True), "settings") + Spoke.of_those([(name, own)], "tool")
        return _together(tool, heard, own, spoke)

    async def _of_tool(self, query: _Query) -> tuple[str, Said]:
        """Return which of the tool's own settings speaks, and what it says."""
        if question.is_one(query.tool):
            return "mode", Ask(gettext_noop("Asked because only a person can give the answer."))
        try:
            mode = HitlMode(query.tool.hitl_mode)
        except ValueError:
            return "mode", Unusable(gettext_noop("Asked because this tool's mode is unknown."))
        match mode:
            case HitlMode.DISABLED:
                return "mode", Allow(gettext_noop("Not asked because this tool is set to never ask."))
            case HitlMode.REQUIRED:
                return "mode", Ask(gettext_noop("This tool always needs approval."))
            case HitlMode.CONDITIONAL:
                return "condition", await self._condition(query)
            case _:
                assert_never(mode)

    async def _condition(self, query: _Query) -> Said:
        condition = query.tool.condition
        if not condition.strip():
            return Abstain()
        try:
            is_true = await _by_its_source(query)
            if is_true is None:
                of_caller = await self.of_caller(condition, query.caller, query.conversation_id)
                given = {ARGUMENTS: query.arguments, "caller": of_caller, OUTSIDE: query.args_from_outside}
                is_true = await self.holds(condition, given)
        except NoAnswer as error:
            return Unusable(f"Asked because this tool's condition {error}")
        if is_true:
            return Ask(f"Asked because the condition “{condition.strip()}” is true.")
        return Allow(f"Not asked because the condition “{condition.strip()}” is false.")


# The one that decides.
judge: Final = Judge().judge


async def held_to_record(tool: Tool, judged: Judgement) -> Judgement:
    """Ask about a call that would run unasked, unless the record says that its tool is guarded as it is."""
    if not isinstance(judged.verdict, Allow) or not settings.HITL_ENABLED:
        return judged
    try:
        if await in_db(stated.is_as_stated)(tool):
            return judged
    except Exception:
        logger.exception("What the record states of the tool %s could not be read", tool.name)
    ask = Unusable(NOT_STATED)
    return Judgement(ask, (*judged.spoke, Spoke.of("record", ask, "installation")))


async def holds(condition: str, given: Mapping[str, Any]) -> bool:
    """Return whether a condition holds for what it is given by name. NoAnswer."""
    try:
        async with asyncio.timeout(CONDITION_SECONDS):
            report = await sandbox.run(condition_source(condition, ", ".join(given)), given)
    except Exception as error:
        logger.exception("The condition %r could not be evaluated", condition)
        raise (AtALimit if isinstance(error, TimeoutError) else NoAnswer)("could not be evaluated.") from error
    if report.fault is not None:
        # The message may quote an argument: not so much of it that it could pose as the card's own words.
        reason = f"failed: {report.fault.message[:LONGEST_FAULT]}"
        raise {"limit": AtALimit, "error": Raised}.get(report.fault.kind, NoAnswer)(reason)
    if not isinstance(report.result, bool):
        raise NoAnswer("gave neither true nor false.")
    return report.result


async def hold_together(condition: str, given: Sequence[Mapping[str, Any]]) -> list[bool | None]:
    """Return for each of `given` what `holds` would, evaluated in one run; None where only `holds` itself can tell."""
    fits = [_fits(each) for each in given]
    if not given or misread_condition(condition, {}):
        # What is no expression could end the function that it is put into.
        return [None] * len(given)
    names = ", ".join(given[0])
    calls = [[*each.values()] for each, is_fit in zip(given, fits, strict=True) if is_fit]
    source = f"{condition_source(condition, names, 'condition')}\n{_TOGETHER}"
    limits = sandbox.Limits(argument_bytes=len(given) * sandbox.Limits().argument_bytes)
    try:
        async with asyncio.timeout(CONDITION_SECONDS):
            report = await sandbox.run(source, {"calls": calls}, limits=limits)
    except TimeoutError:
        return [None] * len(given)
    if report.fault is not None or not isinstance(report.result, list) or len(report.result) != len(calls):
        return [None] * len(given)
    found = iter(report.result)
    answers = [next(found) if is_fit else None for is_fit in fits]
    return [each if isinstance(each, bool) else None for each in answers]


def view_of(tool: Tool) -> ToolView:
    return ToolView(**{field.name: getattr(tool, field.name) for field in fields(ToolView)})


def approved_before(tool: Tool, arguments: dict[str, Any], user_id: int, until: datetime | None = None) -> bool:
    """Return whether that person said yes, signed in, to a call of `tool` as it is now, from where it is, with exactly
    `arguments`, and the call succeeded; by the time of `until`, if that is given.
    """
    wanted = canonical.dumps(canonical.alike(arguments))
    rows = ToolCall.objects.filter(
        # What was enough for a yes once need not be enough now.
        oversight.stands(),
        caller_id=user_id,
        tool_id=tool.pk,
        tool_name=tool.name,
        source=tool.source,
        definition_hash=tool.definition_hash,
        status=Status.SUCCEEDED,
        started_at__isnull=False,
        approval__isnull=False,
    ).select_related("approval")
    if until is not None:
        rows = rows.filter(settled_at__lte=until)
    return any(
        canonical.dumps(canonical.alike(row.arguments)) == wanted and _said_yes(row, tool, user_id)
        for row in rows.order_by("-created_at", "-id")[:LOOKED_THROUGH].iterator()
    )


def condition_source(condition: str, names: str, entry: str = "run") -> str:
    """Return the code that evaluates a condition, as a function with the parameters `names`."""
    return f"def {entry}({names}):\n    return (\n{condition}\n)"


def misread_condition(condition: str, schema: Mapping[str, Any]) -> str:
    """Return what is wrong with a condition by its text alone, in a sentence; empty if it may be fine.

    `schema`: that of the arguments.
    """
    if not condition.strip():
        return ""
    try:
        tree = ast.parse(f"(\n{condition}\n)", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        return translatable(f"Not a Python expression: {said[:_LONGEST_MESSAGE]}.")
    return next(filter(None, _misread_parts(tree, schema)), "")


async def condition_fault(condition: str, schema: Mapping[str, Any]) -> str:
    """Return what is wrong with a condition: by its text, and by how it runs with arguments as `schema` has them."""
    if not condition.strip():
        return ""
    if why := misread_condition(condition, schema):
        return why
    problems = await sandbox.check(condition_source(condition, f"{ARGUMENTS}: dict, caller: dict, {OUTSIDE}: bool"))
    if found := next((each.message for each in problems if each.line is not None), ""):
        return _would_fail(found)
    arguments = {name: _sample(schema["properties"][name], schema) for name in _argument_names(schema)}
    # Of all arguments the schema says which they are.
    is_known = _UNKNOWN not in arguments.values()
    report = await sandbox.run(
        condition_source(condition, f"{ARGUMENTS}, caller, {OUTSIDE}"),
        {ARGUMENTS: arguments, "caller": CALLER, OUTSIDE: False},
    )
    if report.fault is None:
        if isinstance(report.result, bool) or not is_known:
            return ""
        return translatable(f"Expected True or False, not {shown(report.result)}.")
    is_own = report.fault.kind in {"syntax", "denied"} or report.fault.message.startswith(_OWN_FAULTS)
    return _would_fail(report.fault.message) if is_own and is_known else ""


def _facts(rules: tuple[Rule, ...], caller: Caller, conversation_id: UUID | None) -> Facts:
    """Read what rules may know of the caller and the conversation."""
    named = frozenset(name for rule in rules for name in rule.groups)
    own = Group.objects.filter(user=caller.user_id).values_list("name", flat=True)
    return Facts(
        groups=frozenset(own),
        known_groups=frozenset(Group.objects.filter(name__in=named).values_list("name", flat=True)) if named else named,
        conversation_id=conversation_id and delegation.root(conversation_id),
        agents=tuple(each["tool"] for each in delegation.agents(conversation_id)),
        now=timezone.now(),
    )


def _fits(given: Mapping[str, Any]) -> bool:
    """Return whether a run by itself takes these arguments."""
    try:
        sandbox.check_arguments(given, sandbox.Limits())
    except sandbox.Stopped:
        return False
    return True


def _said_yes(call: ToolCall, tool: Tool, user_id: int) -> bool:
    """Return whether the person approved the call while signed in, of the tool from where it is now."""
    shown_tool: Any = call.approval.disclosure.get("tool", {})
    if (shown_tool.get("id"), shown_tool.get("origin")) != (str(tool.pk), tool.origin):
        return False
    answers = call.approval.decisions.filter(person_id=user_id, round=call.round)
    return answers.filter(verdict="approve", means__in=SIGNED_IN).exists()


def _together(tool: Tool, heard: list[Said], own: Said, spoke: tuple[Spoke, ...]) -> Judgement:
    # A tool that never asks is not asked about because a rule says so; only because one could not say anything.
    counts = [each for each in heard if isinstance(each, Refuse | Unusable)] if tool.hitl_mode == "DISABLED" else heard
    # The tool's own word last: of two that are equally strict, the first one is told.
    found = strictest([*counts, own])
    if isinstance(found, Abstain):
        return Judgement.alone(
            "mode", Ask(gettext_noop("Asked because no rule allows this call without asking.")), "tool"
        )
    return Judgement(found, spoke, is_sure=not any(isinstance(each, Unusable) for each in [*heard, own]))


async def _by_its_source(query: _Query) -> bool | None:
    """Return what the source of the tool says of its condition; None if that is an expression. NoAnswer."""
    try:
        found: object = await sources.condition_of(query.tool, query.arguments, query.caller)
    except Exception as error:
        logger.exception("The condition of the tool %s could not be evaluated", query.tool.name)
        raise NoAnswer("could not be evaluated.") from error
    if found is not None and not isinstance(found, bool):
        raise NoAnswer("gave neither true nor false.")
    return found


def _would_fail(message: str) -> str:
    return translatable(f"It would fail: {message[:_LONGEST_MESSAGE].rstrip('.')}.")


def _misread_parts(tree: ast.Expression, schema: Mapping[str, Any]) -> Iterator[str]:
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="args" | "caller" as of), attr=attr):
                if not (node in called and attr in _METHODS):
                    yield translatable(f'Write {of}["{attr}"], not {of}.{attr}.')
            case ast.Subscript(value=ast.Name(id="args" | "caller" as of), slice=ast.Constant(value=str(name))):
                yield _no_member(of, name, schema)
            case ast.Name(id=name) if name not in {*own, *dir(builtins), ARGUMENTS, "caller", OUTSIDE}:
                if name in _argument_names(schema):
                    yield translatable(f'Write args["{name}"], not {name}.')
                else:
                    yield translatable(
                        f"There is no {name} in a condition; expected args, caller or args_from_outside."
                    )


def _argument_names(schema: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return [*properties] if isinstance(properties, dict) else []


def _no_member(of: str, name: str, schema: Mapping[str, Any]) -> str:
    names = _argument_names(schema) if of == ARGUMENTS else [*CALLER]
    is_open = of == ARGUMENTS and schema.get("additionalProperties") is not False
    if is_open or name in names:
        return ""
    known = f"one of {', '.join(map(shown, names))}" if names else "none"
    return translatable(f"There is no {of}[{shown(name)}]; expected {known}.")


def _sample(part: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value that a call may have for an argument; `_UNKNOWN` where the schema does not say which."""
    found = schemas.plain(part if isinstance(part, dict) else {}, schema)
    if found.choices:
        return found.choices[0][0]
    match found.schema.get("type"):
        case "array":
            return [_sample(found.schema.get("items"), schema)] if "$ref" not in str(found.schema.get("items")) else []
        case "object":
            return {}
        case str(kind):
            return _SAMPLES.get(kind, _UNKNOWN)
    return _UNKNOWN

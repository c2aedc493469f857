"""Loading: from the settings to rules, also rules made of rules; one rule is asked about one call.

Whatever goes wrong means ask.
"""

import asyncio
import copy
import inspect
import logging
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Final

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import ValidationError

from hitlchat.base import canonical
from hitlchat.base.background import Busy, OwnThreads
from hitlchat.base.canonical import storable
from hitlchat.gate.policies import (
    ORDER,
    Abstain,
    Allow,
    Ask,
    CallView,
    Context,
    Outcome,
    Refuse,
    Said,
    ToolView,
    Unusable,
    combined,
    strictest,
    together,
)
from hitlchat.gate.policies.bundled import SIMPLE, Bundled

logger = logging.getLogger(__name__)

LONGEST_REASON: Final = 300
LONGEST_METADATA: Final = 2000
# A rule that hangs keeps its thread for ever.
MOST_THREADS: Final = 64

ANY_OF: Final = "any_of"
# How the sentence of each begins.
COMPOSED: Final[dict[str, str]] = {
    ANY_OF: "Whichever of these is strictest:",
    "all_of": "Where all of these apply, whichever is mildest:",
}
NAMES: Final = (*SIMPLE, *COMPOSED)
MOST_POLICIES: Final = 50
SETTING: Final = "HITL_POLICIES"
DEEPEST: Final = 4

_own_threads = OwnThreads("policy", MOST_THREADS)


class NoAnswer(Exception):
    """A rule gave no answer; the message says why, in words for a person."""


class Unloadable(ValueError):
    """The settings do not say what the rules are; the message names the entry, the field and what was expected."""


@dataclass(frozen=True)
class Own:
    """A rule of other people's code, which may hang, raise, and answer anything.

    `options` are what the class was made with; `version` is its own word for how it judges, if it has one.
    """

    path: str
    options: dict[str, Any]
    policy: Any = field(compare=False, repr=False)
    version: str | int | None = None

    strongest: ClassVar[Outcome] = "refuse"
    groups: ClassVar[frozenset[str]] = frozenset()

    @property
    def name(self) -> str:
        return self.path

    @property
    def sentence(self) -> str:
        doc = (type(self.policy).__doc__ or "").strip().partition("\n")[0][:200]
        options = f" with {canonical.pretty(self.options)}" if self.options else ""
        return f"{doc or 'What this class says, which its code alone knows.'} ({self.path}{options})"

    @property
    def evaluate(self) -> Any:
        """Return the answer as it is, so that it can be seen whether it is asynchronous."""
        return self.policy.evaluate

    def to_dict(self) -> dict[str, Any]:
        return {"policy": self.path, **self.options}

    def may_fail_about(self, _tool: ToolView) -> bool:
        return True

    def outcomes(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset(ORDER)


@dataclass(frozen=True)
class Composed:
    """Rules of which the strictest counts (`any_of`), or the mildest if all of them speak (`all_of`)."""

    name: str
    policies: tuple["Rule", ...]

    @property
    def strongest(self) -> Outcome:
        pick = max if self.name == ANY_OF else min
        return ORDER[pick(ORDER.index(rule.strongest) for rule in self.policies)]

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(name for rule in self.policies for name in rule.groups)

    @property
    def sentence(self) -> str:
        return f"{COMPOSED[self.name]} {' '.join(f'({n}) {rule.sentence}' for n, rule in enumerate(self.policies, 1))}"

    def to_dict(self) -> dict[str, Any]:
        return {"policy": self.name, "policies": [rule.to_dict() for rule in self.policies]}

    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Said:
        heard = await asyncio.gather(*(consult(rule, call, tool, context) for rule in self.policies))
        # What these would have said is not known: no milder word of another one may stand for it.
        broken = [each for each in heard if isinstance(each, Unusable)]
        return strictest([*broken, strictest(heard) if self.name == ANY_OF else together(heard)])

    def may_fail_about(self, tool: ToolView) -> bool:
        return any(rule.may_fail_about(tool) for rule in self.policies)

    def outcomes(self, tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        possible = [rule.outcomes(tool, caller_kind) for rule in self.policies]
        if self.name == ANY_OF:
            return combined(*possible)
        failing: frozenset[Outcome] = frozenset({"ask"} if self.may_fail_about(tool) else ())
        return combined(*possible, all_speak=True) | failing


# What a person reads of each rule, and how the gate asks it, is described at Bundled.
Rule = Bundled | Composed | Own


async def consult(rule: Rule, call: CallView, tool: ToolView, context: Context) -> Said:
    try:
        if not isinstance(rule, Own):
            answer = rule.evaluate(call, tool, context)
            return await answer if inspect.isawaitable(answer) else answer
        # Each its own arguments: what one rule changes in them, no other one may see.
        alone = replace(call, arguments=copy.deepcopy(call.arguments))
        return _read(await _in_time(_entered(rule, alone, tool, context)))
    except NoAnswer as why:
        logger.warning("Policy %s, call to %s: %s", rule.name, call.tool_name, why)
        return Unusable(f"Asked because the policy {rule.name} {why}.")
    except Exception:
        logger.exception("Policy %s failed about a call to %s", rule.name, call.tool_name)
        return Unusable(f"Asked because the policy {rule.name} failed.")


def in_force() -> tuple[Rule, ...]:
    """The rules of this installation. Unloadable."""
    return load(settings.HITL_POLICIES)


def fingerprint() -> Any:
    """Return what `in_force` gives, as JSON that is the same as long as the rules are."""
    try:
        return [[rule.to_dict(), _versions(rule)] for rule in in_force()]
    except Unloadable as error:
        return str(error)


def load(entries: Any, where: str = SETTING) -> tuple[Rule, ...]:
    """Return the rules of `entries`, which are to be found at `where`. Unloadable."""
    try:
        found = _attempt(canonical.dumps(entries), where)
    except canonical.NotJson as error:
        raise Unloadable(f"{where} is not valid JSON: {error}.") from error
    if isinstance(found, str):
        raise Unloadable(found)
    return found


async def _entered(rule: Rule, call: CallView, tool: ToolView, context: Context) -> Any:
    try:
        if inspect.iscoroutinefunction(rule.evaluate):
            return await rule.evaluate(call, tool, context)
        return await asyncio.wrap_future(_own_threads.submit(rule.evaluate, call, tool, context))
    except Busy as error:
        raise NoAnswer(f"could not be run, since {MOST_THREADS} policies are already hanging") from error
    except (SystemExit, KeyboardInterrupt) as error:
        # They would end the whole server.
        raise NoAnswer(f"tried to end the server ({type(error).__name__})") from error
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        # Whatever else a class may be derived from: above here nobody expects it.
        logger.exception("A policy ended in an unusual way")
        raise NoAnswer(f"ended with {type(error).__name__}") from error


async def _in_time(work: Awaitable[Any]) -> Any:
    task = asyncio.ensure_future(work)
    try:
        # Not asyncio.timeout: that waits for the end of what was cancelled, and so for what doesn't end.
        done, _ = await asyncio.wait([task], timeout=settings.HITL_POLICY_SECONDS)
    finally:
        task.cancel()
    if not done:
        raise NoAnswer(f"gave no answer within {settings.HITL_POLICY_SECONDS} seconds")
    if task.cancelled():
        raise NoAnswer("cancelled itself")
    return task.result()


def _read(answer: Any) -> Said:
    """Return exactly one of the four answers: what a class derived from one means, nobody can say."""
    if type(answer) is Abstain:
        return answer
    kind = type(answer)
    if kind not in (Allow, Ask, Refuse):
        if inspect.iscoroutine(answer):
            answer.close()
        raise NoAnswer(f"answered with {kind.__name__}, which is neither Allow, Ask, Refuse nor Abstain")
    if type(answer.reason) is not str or not answer.reason.strip():
        raise NoAnswer("gave no reason as text")
    plain: Said = kind(storable(answer.reason.strip()[:LONGEST_REASON]), _metadata(answer.metadata))
    return plain


def _metadata(given: Any) -> dict[str, Any]:
    """Return it as plain JSON, of which a rule keeps nothing in its hands."""
    expected = f"gave metadata that is not a JSON object of at most {LONGEST_METADATA:,} characters"
    try:
        if type(given) is dict and all(type(name) is str for name in given):
            text = canonical.dumps(given)
            if len(text) <= LONGEST_METADATA:
                found: dict[str, Any] = canonical.loads(text)
                return found
    except canonical.NotJson:
        pass
    raise NoAnswer(expected)


# Also of what does not load, which would otherwise be looked for again with every call.
@lru_cache(maxsize=64)
def _attempt(text: str, where: str) -> tuple[Rule, ...] | str:
    try:
        return tuple(_rules(canonical.loads(text), where, 0))
    except Unloadable as error:
        return str(error)


def _rules(entries: Any, where: str, depth: int) -> Iterator[Rule]:
    if not isinstance(entries, list):
        raise Unloadable(f"{where} must be a list of policies, not {_kind(entries)}.")
    if len(entries) > MOST_POLICIES:
        raise Unloadable(f"{where} has {len(entries)} policies; at most {MOST_POLICIES} are expected.")
    for number, entry in enumerate(entries, 1):
        yield _rule(entry, f"{where}, entry {number}", depth)


def _rule(entry: Any, where: str, depth: int) -> Rule:
    if not isinstance(entry, dict):
        raise Unloadable(f'{where} must be an object such as {{"policy": "always_ask", …}}, not {_kind(entry)}.')
    options = dict(entry)
    word = options.pop("policy", None)
    if isinstance(word, str) and word in SIMPLE:
        return _simple(word, options, f"{where} ({word})")
    if isinstance(word, str) and word in COMPOSED:
        return _composed(word, options, f"{where} ({word})", depth)
    if isinstance(word, str) and all(part.isidentifier() for part in word.split(".")) and "." in word:
        return _own(word, options, f"{where} ({word})")
    raise Unloadable(f"{where}: “policy” must be one of {', '.join(NAMES)}, or the dotted path of a class.")


def _simple(word: str, options: dict[str, Any], where: str) -> Rule:
    try:
        return SIMPLE[word].model_validate_json(canonical.dumps(options))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f"{part}" for part in first["loc"])
        fields = [f"“{field.alias or name}”" for name, field in SIMPLE[word].model_fields.items()]
        instead = f"; it has {', '.join(fields)}" if "extra" in first["type"] else ""
        raise Unloadable(f"{where}, field “{place}”: {first['msg']}{instead}.") from error


def _composed(word: str, options: dict[str, Any], where: str, depth: int) -> Rule:
    if set(options) != {"policies"} or not options["policies"]:
        raise Unloadable(f"{where} must have the field “policies”, a list of at least one, and no other.")
    if depth + 1 >= DEEPEST:
        raise Unloadable(f"{where} is nested too deeply: at most {DEEPEST} levels are expected.")
    return Composed(word, tuple(_rules(options["policies"], f"{where}, “policies”", depth + 1)))


def _own(path: str, options: dict[str, Any], where: str) -> Rule:
    try:
        policy = import_string(path)(**options)
        version = getattr(policy, "version", None)
        can_judge = callable(getattr(policy, "evaluate", None))
    except Exception as error:
        logger.exception("The policy %s could not be made", path)
        raise Unloadable(f"{where} could not be made with these options: {type(error).__name__}: {error}.") from error
    if not can_judge:
        raise Unloadable(f"{where} has no method evaluate(call, tool, context).")
    return Own(path, options, policy, version if isinstance(version, str | int) else None)


def _versions(rule: Rule) -> list[Any]:
    if isinstance(rule, Composed):
        return [_versions(each) for each in rule.policies]
    return [rule.version] if isinstance(rule, Own) else []


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")

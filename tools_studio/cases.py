"""Test cases and test runs: what to try a tool with, what is expected, and what the last run proves."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from hitlchat.base import canonical, database, diff
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate import schema, sources, tools
from hitlchat.gate.actor import SYSTEM, Caller
from hitlchat.gate.card import Effect, effect
from hitlchat.gate.models import CallerKind, Tool, ToolCall
from hitlchat.gate.results import MESSAGES
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tools_studio.language import signature
from tools_studio.language.snippet import SignatureError
from tools_studio.models import Expectation, Script, TestCase
from tools_studio.spec import AuthoringError

State = Literal["passed", "failed", "waiting", "running", "unsettled", "stale", "new"]

LABELS: dict[State, str] = {
    "passed": gettext_noop("Passed"),
    "failed": gettext_noop("Failed"),
    "waiting": gettext_noop("Waiting for an answer"),
    "running": gettext_noop("Still running"),
    "unsettled": gettext_noop("Not run"),
    "stale": gettext_noop("Not run since the last edit"),
    "new": gettext_noop("Never run"),
}
UNDER_WAY = (Status.ALLOWED, Status.APPROVED, Status.EXECUTING)
FAILURES = (Status.FAILED, Status.REJECTED)
MOST_CASES = 50
LONGEST_NAME = 120
LONGEST_EXPECTED_BYTES = 64 * 1024


def keep(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Make `arguments` the tool's example, unless its definition has changed meanwhile.

    That makes no new version: an example does not change what the tool does.
    """
    same = Q(definition_hash=tool.definition_hash)
    tools.change(tool.pk, {"example": dict(arguments)}, SYSTEM, only_if=same)


def fitting(example: dict[str, Any] | None, code: str) -> dict[str, Any] | None:
    """Return `example` if the signature in `code` still takes it, else None."""
    if example is None:
        return None
    try:
        schema.validate(signature.read(code).input_schema, example)
    except (SignatureError, schema.BadArguments, schema.BadSchema):
        return None
    return example


async def attempt(tool_name: str, arguments: dict[str, Any], caller: Caller, seconds: float) -> ToolCall:
    """Call the tool through the gate, like everyone, and wait at most so long unless it asks."""
    call = await submit(CallRequest(tool_name, arguments, caller))
    return await settled(call.pk, seconds) if call.status == Status.ALLOWED else call


def passed(tool: Tool) -> ToolCall | None:
    """Return the last successful test run of exactly this definition."""
    return _passed(tool=tool, definition_hash=tool.definition_hash).order_by("-created_at").first()


def with_tested(tools: QuerySet[Tool]) -> QuerySet[Tool]:
    """Annotate each tool with `tested`: whether a test run of its present definition succeeded."""
    return tools.annotate(tested=Exists(_passed(tool=OuterRef("pk"), definition_hash=OuterRef("definition_hash"))))


def _passed(**which: Any) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(**which, caller_kind=CallerKind.STUDIO, status=Status.SUCCEEDED)


async def look(tool: Tool, arguments: dict[str, Any], caller: Caller) -> Effect | None:
    """Return the preview of such a call as its card would show it; None without one. Raises: BadArguments"""
    shown = await sources.preview_of(tool, await sources.accepted(tool, arguments), caller)
    return effect(shown) if shown else None


@dataclass(frozen=True)
class Outcome:
    """`reason` is a sentence; `lines` show what was expected against what came."""

    state: State
    reason: str = ""
    lines: list[diff.Line] = field(default_factory=list)

    @property
    def label(self) -> str:
        return LABELS[self.state]


def outcome_of(case: TestCase, tool: Tool) -> Outcome:
    """Return the outcome of the last run of `case`. A run of another definition of the tool proves nothing."""
    call = case.last_call
    if call is None:
        return Outcome("new")
    if call.definition_hash != tool.definition_hash:
        return Outcome("stale")
    if call.status == Status.WAITING:
        return Outcome("waiting", "Test runs need approval, too.")
    if call.status in UNDER_WAY:
        return Outcome("running")
    if call.status == Status.SUCCEEDED or call.status in FAILURES:
        return _judged(case, call)
    return Outcome("unsettled", call.reason or MESSAGES.get(Status(call.status), ""))


def tally(outcomes: Iterable[Outcome]) -> str:
    """`5 of 6 passed, 1 waits for an answer`."""
    states = [each.state for each in outcomes]
    waiting = states.count("waiting")
    words = _("{passed} of {all} passed").format(passed=states.count("passed"), all=len(states))
    waits = ngettext(", {count} waits for an answer", ", {count} wait for an answer", waiting)
    return words + (waits.format(count=waiting) if waiting else "")


def text_of(value: Any) -> str:
    """Return a result as people read it, and as `contains` searches it."""
    return value if isinstance(value, str) else canonical.pretty(value, indent=2)


def _judged(case: TestCase, call: ToolCall) -> Outcome:
    # What went wrong in the tool, or with its arguments.
    error = str((call.error or {}).get("message", "")) if call.status == Status.FAILED else None
    if call.status == Status.REJECTED:
        error = call.reason
    if case.expectation == Expectation.FAILS:
        if error is None:
            words = _("It was expected to fail, but returned: {result}").format(result=text_of(call.result)[:500])
            return Outcome("failed", words)
        if str(case.expected or "") not in error:
            lines = _against(case.expected or "", error)
            return Outcome("failed", "The tool failed as expected, but with a different message.", lines)
        return Outcome("passed")
    if error is not None:
        return Outcome("failed", _("It failed: {error}").format(error=error))
    match case.expectation:
        case Expectation.EQUALS if canonical.dumps(call.result) != canonical.dumps(case.expected):
            return Outcome("failed", "The result differs.", _against(case.expected, call.result))
        case Expectation.CONTAINS if str(case.expected) not in text_of(call.result):
            return Outcome("failed", "The result does not contain it.", _against(case.expected, call.result))
    return Outcome("passed")


def _against(expected: Any, actual: Any) -> list[diff.Line]:
    texts = text_of(expected), text_of(actual)
    if texts[0] == texts[1]:  # a text against something else that reads the same
        texts = canonical.pretty(expected), canonical.pretty(actual)
    return diff.lines(*texts)


@dataclass(frozen=True)
class Case:
    """A test case as its author gives it. `expected` is any JSON for `equals`, a text for `contains` and `fails`."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    expectation: str = Expectation.ANYTHING.value
    expected: Any = None


def problems(case: Case) -> dict[str, str]:
    found: dict[str, str] = {}
    if not 1 <= len(case.name) <= LONGEST_NAME or case.name != case.name.strip() or storable(case.name) != case.name:
        found["name"] = translatable(f"Expected a name of 1 to {LONGEST_NAME} characters, without spaces around it.")
    if case.expectation not in Expectation.values:
        found["expectation"] = translatable(f"Expected one of {', '.join(Expectation.values)}.")
    elif wrong := _wrong_expected(case):
        found["expected"] = wrong
    if too_large := _too_large(case.arguments, canonical.most_argument_bytes()):
        found["arguments"] = too_large
    if too_large := _too_large(case.expected, LONGEST_EXPECTED_BYTES):
        found["expected"] = too_large
    return found


def _wrong_expected(case: Case) -> str | None:
    match case.expectation:
        case Expectation.ANYTHING:
            return None if case.expected is None else "This test only expects a run without an error: leave this out."
        case Expectation.CONTAINS:
            is_text = isinstance(case.expected, str) and case.expected != ""
            return None if is_text else "Expected a text that the result is to contain."
        case Expectation.FAILS:
            return (
                None if isinstance(case.expected, str) else "Expected a text from its error message, or an empty one."
            )
    return None


def _too_large(value: Any, most: int) -> str | None:
    try:
        size = len(canonical.dumps(value))
    except canonical.NotJson as error:
        return translatable(f"It is not JSON: {error}.")
    return translatable(f"At most {most:,} bytes, not {size:,}.") if size > most else None


def add(tool: Tool, case: Case, last_call: ToolCall | None = None) -> TestCase:
    """Store a new test case of `tool`. Raises: AuthoringError"""
    if found := problems(case):
        raise AuthoringError(found)
    with transaction.atomic():
        # Locked, so that two at once cannot both be the fiftieth.
        script = Script.objects.select_for_update().get(pk=tool.pk)
        if script.cases.count() >= MOST_CASES:
            raise AuthoringError({"name": f"A tool has at most {MOST_CASES} tests. Delete one first."})
        with database.unique(AuthoringError({"name": f"There is already a test named {case.name!r}."})):
            return TestCase.objects.create(script=script, last_call=last_call, **asdict(case))


def put(tool: Tool, wanted: Iterable[Case]) -> None:
    """Store all of them, each in place of one with its name. Raises: AuthoringError, too many, or unsound"""
    script: Script = tool.script
    for case in wanted:
        if found := problems(case):
            raise AuthoringError(found)
        script.cases.filter(name=case.name).exclude(**asdict(case)).delete()
        if not script.cases.filter(name=case.name).exists():
            TestCase.objects.create(script=script, **asdict(case))
    if script.cases.count() > MOST_CASES:
        raise AuthoringError({"name": f"With the existing ones, the tool would have more than {MOST_CASES} tests."})


def of(row: TestCase) -> Case:
    return Case(row.name, row.arguments, row.expectation, row.expected)


def rows(tool: Tool) -> QuerySet[TestCase]:
    return TestCase.objects.filter(script_id=tool.pk).select_related("last_call__approval")


async def run(row: TestCase, tool: Tool, caller: Caller, seconds: float) -> ToolCall:
    """Make a test run with the case's arguments, and store the call with the case."""
    call = await attempt(tool.name, row.arguments, caller, seconds)
    await in_db(TestCase.objects.filter(pk=row.pk).update)(last_call=call)
    return call


async def run_all(rows: Iterable[TestCase], tool: Tool, caller: Caller, seconds: float) -> int:
    """Run them one after the other, and return how many were left when the time was up."""
    ends, not_run = time.monotonic() + seconds, 0
    for row in rows:
        left = ends - time.monotonic()
        if left > 0:
            await run(row, tool, caller, left)
        else:
            not_run += 1
    return not_run

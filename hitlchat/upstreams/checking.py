"""What speaks against a change of one tool, in sentences."""

from collections.abc import Iterator

from hitlchat.base.canonical import storable
from hitlchat.gate import prompt
from hitlchat.gate.models import LONGEST_DEADLINE, HitlMode
from hitlchat.upstreams import judging
from hitlchat.upstreams.changes import USUAL, Change, settled
from hitlchat.upstreams.models import ComposedTool, ToolEvent
from hitlchat.upstreams.risk import aliases, limits
from hitlchat.upstreams.risk.phrases import blocks
from hitlchat.upstreams.risk.scan import Known

LONGEST = {"description": limits.LONGEST_DESCRIPTION, "prompt_template": 500, "condition": 2000}
WORDS = {"description": "Description", "prompt_template": "Approval prompt", "condition": "Condition"}
_FIELDS = {"Alias": "alias", "HITL mode": "hitl_mode", "Seconds to answer": "deadline_seconds"} | {
    label: field for field, label in WORDS.items()
}
OWN_WORDS = "Give it a description of your own."


def check(row: ComposedTool, change: Change, ceiling: int, known: Known) -> list[str]:
    """Empty if the change can be made. `row` has been assessed, and `known` are the names of what is not its own."""
    plain = (*_texts(row, change), *_rules(row, change))
    return [*plain, *_exposing(row, change, ceiling), *_speaking(row, change, known)]


def suspicion(row: ComposedTool) -> str | None:
    """What has to be read before anyone is let near the tool, as its server lists it now."""
    findings = judging.findings_of(row.warnings)
    if not blocks(findings):
        return None
    said = next(found.sentence for found in findings if found.severity == "block")
    return f"Its texts are suspicious ({said}) Read the warnings, and say that you did."


def sending_elsewhere(row: ComposedTool, known: Known) -> Iterator[str]:
    """Of what models are told once an exposed tool is what its server lists now."""
    if row.exposed:
        yield from _elsewhere(row.description or row.seen.get("description", ""), known)


def field_of(problem: str) -> str:
    """Which member of a change the sentence speaks of."""
    if field := _FIELDS.get(problem.partition(":")[0]):
        return field
    if problem.startswith(("It has changed since you looked", "It has changed again")):
        return "digest"
    if problem.endswith("changed this meanwhile. Look at it once more."):
        return "settled"
    if problem.endswith(OWN_WORDS):
        return "description"
    return "warnings_read" if problem.endswith("say that you did.") else "exposed"


def _texts(row: ComposedTool, change: Change) -> Iterator[str]:
    for field, most in LONGEST.items():
        text = getattr(change, field) or ""
        if len(text) > most:
            yield f"{WORDS[field]}: at most {most:,} characters, not {len(text):,}."
        elif storable(text) != text:
            yield f"{WORDS[field]}: it has a character that cannot be kept, such as U+0000."
    if change.digest is not None and change.digest != row.seen_digest:
        yield "It has changed since you looked at it. Look at it once more."
    elif change.settled is not None and change.settled != settled(row):
        yield f"{_who_changed(row)} changed this meanwhile. Look at it once more."


def _who_changed(row: ComposedTool) -> str:
    last = ToolEvent.objects.filter(tool=row, actor__isnull=False).select_related("actor").order_by("pk").last()
    return last.actor.get_username() if last and last.actor else "Somebody"


def _rules(row: ComposedTool, change: Change) -> Iterator[str]:
    if change.hitl_mode is not None and change.hitl_mode not in HitlMode.values:
        yield f"HITL mode: expected REQUIRED, CONDITIONAL or DISABLED, not {change.hitl_mode[:20]!r}."
    if change.deadline_seconds not in {None, USUAL} and not 1 <= change.deadline_seconds <= LONGEST_DEADLINE:
        yield f"Seconds to answer: expected a whole number from 1 to {LONGEST_DEADLINE:,} (30 days), or none."
    record = row.seen if change.exposes(row) or not row.pinned else row.pinned
    properties = record.get("inputSchema", {}).get("properties", {})
    try:
        prompt.check(change.prompt_template or "", properties if isinstance(properties, dict) else {})
    except prompt.BadTemplate as error:
        yield f"Approval prompt: {error}"
    if change.condition and change.condition.strip():
        try:
            compile(f"(\n{change.condition}\n)", "condition", "eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            yield f"Condition: not a Python expression: {_wrong(error, change.condition)}"


def _wrong(error: Exception, condition: str) -> str:
    """What and, of several lines, where: the line as it was typed, which stands in brackets here."""
    if not isinstance(error, SyntaxError):
        return str(error)[:200]
    lines = condition.count("\n") + 1
    where = f" in line {min(max((error.lineno or 0) - 1, 1), lines)}" if lines > 1 else ""
    return f"{error.msg[:200]}{where}."


def _exposing(row: ComposedTool, change: Change, ceiling: int) -> Iterator[str]:
    if not change.exposes(row):
        return
    if not row.listed:
        yield "Its server does not list it any more."
    for problem in row.problems:
        yield f"It cannot be offered: {problem}"
    if row.held:
        yield "It changed after it was accepted. Look at the difference and accept it first."
    if row.risk_inherent > ceiling:
        yield f"Its risk is L{row.risk_inherent}; at most L{ceiling} is offered here."
    if not change.warnings_read and (said := suspicion(row)):
        yield said


def _speaking(row: ComposedTool, change: Change, known: Known) -> Iterator[str]:
    """Of what will be told to models, wherever it is or becomes exposed."""
    is_told = row.exposed if change.exposed is None else change.exposed
    if not is_told or (row.exposed and change.description is None):
        return
    own = row.description if change.description is None else change.description
    record = row.pinned if row.exposed and row.pinned else row.seen
    yield from _elsewhere(own or record.get("description", ""), known)


def _elsewhere(description: str, known: Known) -> Iterator[str]:
    for found in aliases.speaking(description, known.tools, known.servers):
        yield f"{found.sentence} {OWN_WORDS}"

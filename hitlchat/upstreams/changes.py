"""Requested changes to upstream tools: whether they are valid, and whether they reduce oversight."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.gate import loosening as gate
from hitlchat.gate import policy, prompt, spec
from hitlchat.gate.loosening import Guard, guard_of
from hitlchat.gate.models import LONGEST_DEADLINE, HitlMode
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState, Vouch
from hitlchat.upstreams.risk import aliases, limits
from hitlchat.upstreams.risk.scan import OtherNames, findings_of

# What an administrator decides of an exposed tool: members of a Change, fields of each form, and of its history.
FIELDS = ("alias", *spec.SETTINGS, "description", "vouch", "vouch_note")
# In place of seconds to answer: those of the installation.
USUAL = 0
LONGEST = {name: spec.LONGEST[name] for name in ("prompt_template", "condition")}
LONGEST |= {"description": limits.LONGEST_DESCRIPTION, "vouch_note": 500}
WORDS = {**spec.WORDS, "vouch": gettext_noop("Vouched for"), "vouch_note": gettext_noop("Note on vouching")}
_HELD = gettext_noop("The tool changed after it was accepted. Review the difference and accept it first.")
Settings = dict[str, str | bool | int | None]


@dataclass(frozen=True)
class Change:
    """A change of one tool; None leaves a part as it is. `alias` "" is the default one, `description` "" the
    upstream's own, `deadline_seconds` USUAL that of the installation, `vouch` "" takes back what was vouched. `digest`:
    of the record that the person saw, and `settled`: that of the settings. `warnings_read`: they saw the scan's
    findings.
    """

    tool: UUID
    exposed: bool | None = None
    alias: str | None = None
    description: str | None = None
    hitl_mode: str | None = None
    prompt_template: str | None = None
    condition: str | None = None
    deadline_seconds: int | None = None
    signed_in_only: bool | None = None
    vouch: str | None = None
    vouch_note: str | None = None
    digest: str | None = None
    settled: str | None = None
    warnings_read: bool = False

    @property
    def settings(self) -> Settings:
        found = {name: value for name in spec.SETTINGS if (value := getattr(self, name)) is not None}
        return found | ({"deadline_seconds": None} if self.deadline_seconds == USUAL else {})

    def exposes(self, row: ComposedTool) -> bool:
        return bool(self.exposed) and not row.exposed

    def offers(self, row: ComposedTool) -> bool:
        """Return whether the tool may be offered that is not now: exposed, or by another level below the ceiling."""
        return self.exposes(row) or (self.vouch is not None and row.state == ToolState.WITHHELD)


class Objection(NamedTuple):
    """What speaks against a member of a Change, which is `field`."""

    field: str
    sentence: str


class Refused(ValueError):
    """Nothing was changed: `problems` has the reasons for each tool, by its id."""

    def __init__(self, problems: dict[UUID, list[Objection]]) -> None:
        super().__init__(" ".join(each.sentence for reasons in problems.values() for each in reasons))
        self.problems = problems


@dataclass(frozen=True)
class Loosening:
    """A tool with less oversight than before. `before` and `after` are HITL modes; `exposes`: it is not offered at all
    now; `unseen`: it could run without anyone being asked; `trusts`: the word of an MCP client is to be enough, where a
    signed-in person must decide now.
    """

    tool: UUID
    server: str
    name: str
    risk: int
    before: str
    after: str
    exposes: bool
    unseen: bool
    condition: str
    trusts: bool = False
    # Texts and times, in words.
    words: tuple[str, ...] = ()


class NotConfirmed(Exception):
    """Nothing was changed: somebody has to confirm these loosenings, with `digest`, which stands for exactly these."""

    def __init__(self, loosenings: Sequence[Loosening]) -> None:
        super().__init__(f"{len(loosenings)} tools would run with less oversight; nobody has confirmed that.")
        self.loosenings = tuple(sorted(loosenings, key=lambda each: (each.server, each.name)))

    @property
    def digest(self) -> str:
        confirmed = [
            [str(each.tool), each.before, each.after, each.exposes, each.condition, each.trusts, *each.words]
            for each in self.loosenings
        ]
        return canonical.sha256(sorted(confirmed))


def settings_of(row: ComposedTool) -> Settings:
    """Return its settings, for its history; none before it was exposed once."""
    tool = row.tool
    settings: Settings = {"alias": tool.name} | {name: getattr(tool, name) for name in spec.SETTINGS} if tool else {}
    # Of another definition than it has now nothing was vouched.
    note = row.vouch_note if row.standing_vouch else ""
    return settings | {"description": row.description, "vouch": row.standing_vouch, "vouch_note": note}


def stamp(row: ComposedTool) -> str:
    """Return a stamp of all that a person sees of the tool before they change it: its record, and its settings."""
    return f"{row.seen_digest}.{_settings_digest(row)}"


def guard(row: ComposedTool) -> Guard:
    """Return the guard that the tool has, or would begin with."""
    return guard_of(row.tool) if row.tool else Guard(HitlMode.REQUIRED.value)


def _less_care(row: ComposedTool, change: Change) -> tuple[str, ...]:
    """Say in plain words that somebody states a lower level than counts now; empty if nobody does."""
    states = change.vouch in Vouch.values and change.vouch != Vouch.SCAN
    level = int(str(change.vouch).removeprefix("L")) if states else row.risk_inherent
    if level >= row.risk_inherent:
        return ()
    most = settings.HITL_ELICITATION_MAX_RISK
    sentence = translatable(
        f"Its risk counts as L{level} instead of L{row.risk_inherent}: a yes needs less care, and up to L{most} the "
        "word of a trusted MCP client can be enough."
    )
    return (sentence,)


def loosening(row: ComposedTool, change: Change, by_name: tuple[str, ...] = ()) -> Loosening | None:
    """Return the loosening to confirm before `change`: the tool could run without asking a certain person where it
    could not before, or a yes to it needs less care. `by_name`: what the gate says of its new name.
    """
    wanted: dict[str, Any] = change.settings
    # Nobody has read anything of one that was never exposed.
    counts = spec.SETTINGS if row.tool else spec.INHERITED
    before, care = guard(row), _less_care(row, change)
    after = replace(before, **{name: value for name, value in wanted.items() if name in counts})
    offers = change.offers(row)
    if not (gate.weaker(before, after) or care or by_name or (offers and after.hitl_mode != HitlMode.REQUIRED)):
        return None
    back = loosening_back(row)
    mode = change.hitl_mode or back.before
    condition = back.condition if change.condition is None else change.condition
    return replace(
        back,
        after=mode,
        exposes=offers,
        unseen=offers or (mode, condition) != (back.before, back.condition),
        condition=condition,
        trusts=gate.trusts(before, after),
        words=gate.reads_otherwise(before, after) + care + by_name,
    )


def loosening_back(row: ComposedTool) -> Loosening:
    """Return the loosening to confirm before a withheld tool comes back with the settings that it has."""
    now = guard(row)
    mode, risk = now.hitl_mode, row.risk_inherent
    return Loosening(
        row.pk, row.server.name, row.name, risk, mode, mode, exposes=True, unseen=True, condition=now.condition
    )


def rewords(row: ComposedTool, change: Change) -> bool:
    """Return whether the approver would read other texts of the tool than its server or a person wrote."""
    return _alters(row, change, "alias", "description", "prompt_template")


def vouches(row: ComposedTool, change: Change) -> bool:
    """Return whether somebody vouches for the tool as it is listed now, takes that back, or says more about it."""
    return _alters(row, change, "vouch", "vouch_note")


def check(row: ComposedTool, change: Change, ceiling: int, others: OtherNames) -> list[Objection]:
    """Return the objections to a change of a tool that was assessed; `others`: names of what is not its server's."""
    checks = _texts(row, change), _rules(row, change), _exposing(row, change, ceiling), _vouching(row, change)
    return [*chain(*checks, _speaking(row, change, others))]


def suspicion(row: ComposedTool) -> Objection | None:
    """Return the objection to a tool with suspicious texts that nobody has confirmed to have read."""
    for found in findings_of(row.warnings):
        if found.severity == "block":
            said = found.sentence
            sentence = translatable(f"Suspicious texts: {said} Read the warnings and confirm that you did.")
            return Objection("warnings_read", sentence)
    return None


def sending_elsewhere(row: ComposedTool, others: OtherNames) -> Iterator[Objection]:
    """Yield objections to the description that an exposed tool would have once its present definition is accepted."""
    if row.exposed:
        yield from _elsewhere(row.description or row.seen.get("description", ""), others)


def _alters(row: ComposedTool, change: Change, *names: str) -> bool:
    now = settings_of(row)
    return any(getattr(change, name) not in {None, now.get(name, "")} for name in names)


def _texts(row: ComposedTool, change: Change) -> Iterator[Objection]:
    for field, most in LONGEST.items():
        text, words = getattr(change, field) or "", WORDS[field]
        if len(text) > most:
            yield Objection(field, translatable(f"{words}: at most {most:,} characters, not {len(text):,}."))
        elif storable(text) != text:
            sentence = translatable(f"{words}: contains a character that cannot be stored, such as U+0000.")
            yield Objection(field, sentence)
    if change.digest is not None and change.digest != row.seen_digest:
        yield Objection("digest", "The tool has changed since you reviewed it. Review it again.")
    elif change.settled is not None and change.settled != _settings_digest(row):
        last = ToolEvent.objects.filter(tool=row, actor__isnull=False).select_related("actor").last()
        sentence = gettext_noop("Someone changed this in the meantime. Review it again.")
        if last and last.actor:
            sentence = translatable(f"{last.actor.get_username()} changed this in the meantime. Review it again.")
        yield Objection("settled", sentence)


def _settings_digest(row: ComposedTool) -> str:
    return canonical.sha256({**settings_of(row), "exposed": row.exposed})


def _rules(row: ComposedTool, change: Change) -> Iterator[Objection]:
    if change.hitl_mode is not None and change.hitl_mode not in HitlMode.values:
        sentence = translatable(
            f"HITL mode: expected REQUIRED, CONDITIONAL or DISABLED, not {change.hitl_mode[:20]!r}."
        )
        yield Objection("hitl_mode", sentence)
    if change.deadline_seconds not in {None, USUAL} and not 1 <= change.deadline_seconds <= LONGEST_DEADLINE:
        sentence = translatable(
            f"Seconds to answer: expected a whole number from 1 to {LONGEST_DEADLINE:,} (30 days), or none."
        )
        yield Objection("deadline_seconds", sentence)
    record = row.seen if change.exposes(row) or not row.pinned else row.pinned
    properties = record.get("inputSchema", {}).get("properties", {})
    try:
        prompt.check(change.prompt_template or "", properties if isinstance(properties, dict) else {})
    except prompt.BadTemplate as error:
        yield Objection("prompt_template", translatable(f"Approval prompt: {error}"))
    if change.condition and change.condition.strip():
        try:
            compile(f"(\n{change.condition}\n)", "condition", "eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            wrong = _wrong(error, change.condition)
            yield Objection("condition", translatable(f"Condition: not a Python expression: {wrong}"))
            return
        is_other = row.tool is None or change.condition != row.tool.condition
        schema = record.get("inputSchema") or {}
        if is_other and (fault := async_to_sync(policy.condition_fault)(change.condition, schema)):
            yield Objection("condition", f"Condition: {fault}")


def _wrong(error: Exception, condition: str) -> str:
    """Return what is wrong and, of several lines, where: the line as it was typed, which stands in brackets here."""
    if not isinstance(error, SyntaxError):
        return str(error)[:200]
    lines = condition.count("\n") + 1
    where = f" in line {min(max((error.lineno or 0) - 1, 1), lines)}" if lines > 1 else ""
    return f"{error.msg[:200]}{where}."


def _exposing(row: ComposedTool, change: Change, ceiling: int) -> Iterator[Objection]:
    if not change.exposes(row):
        return
    if not row.listed:
        yield Objection("exposed", "Its server no longer lists it.")
    for problem in row.problems:
        yield Objection("exposed", translatable(f"It cannot be offered: {problem}"))
    if row.held:
        yield Objection("exposed", _HELD)
    if row.risk_inherent > ceiling:
        sentence = translatable(f"Its risk is L{row.risk_inherent}; at most L{ceiling} is offered here.")
        yield Objection("exposed", sentence)
    if not change.warnings_read and (found := suspicion(row)):
        yield found


def _vouching(row: ComposedTool, change: Change) -> Iterator[Objection]:
    if change.vouch not in {None, "", *Vouch.values}:
        yield Objection("vouch", translatable(f"Vouched for: expected one of {', '.join(Vouch.values)}, or nothing."))
    elif change.vouch and not (row.exposed if change.exposed is None else change.exposed):
        yield Objection("vouch", "Nobody can vouch for a tool that is not exposed.")
    elif change.vouch and change.vouch != row.standing_vouch and change.digest is None:
        yield Objection("vouch", "Vouched for: send the digest of the definition that you looked at.")
    elif change.vouch and row.held:
        yield Objection("vouch", _HELD)


def _speaking(row: ComposedTool, change: Change, others: OtherNames) -> Iterator[Objection]:
    """Yield objections to the description for models, wherever the tool is or becomes exposed."""
    is_offered = row.exposed if change.exposed is None else change.exposed
    if not is_offered or (row.exposed and change.description is None):
        return
    own = row.description if change.description is None else change.description
    record = row.pinned if row.exposed and row.pinned else row.seen
    yield from _elsewhere(own or record.get("description", ""), others)


def _elsewhere(description: str, others: OtherNames) -> Iterator[Objection]:
    for sentence in aliases.speaking(description, others.tools, others.servers):
        yield Objection("description", f"{sentence} Write your own description.")

"""Importing: what an import would do to each tool, and doing it, all or nothing. It publishes nothing, and no tool
asks less often after it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from django.db import transaction
from django.utils.translation import gettext as _

from hitlchat.base import canonical
from hitlchat.gate import tools
from hitlchat.gate.actor import Actor
from hitlchat.gate.loosening import Guard, strictness
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.secrets.references import REFERENCE
from hitlchat.secrets.values import Stored
from tools_studio import authoring, cases, spec, variables, versions
from tools_studio.exchange import BadFile, Entry, Problem, at_fields
from tools_studio.spec import SOURCE, AuthoringError, Checked, Draft
from tools_studio.versions import Difference

Conflict = Literal["leave", "replace", "rename"]
Action = Literal["new", "rename", "replace", "same", "leave"]

_COUNTED: tuple[tuple[tuple[Action, ...], str], ...] = (
    (("new", "rename"), "new"), (("replace",), "replaced"), (("same",), "the same as here"), (("leave",), "left alone"),
)  # fmt: skip


class Outdated(Exception):
    """Something changed since the plan was shown; `plan` is the present one, and nothing was written."""

    def __init__(self, plan: "Plan") -> None:
        super().__init__("Something changed in the meantime, so this import would differ from what you were shown.")
        self.plan = plan


@dataclass(frozen=True)
class Step:
    """What is done with one tool of the file. `name` is its name here, `present` the tool that has it now.

    `mode` is the strictest of the file's, that of the present tool, and the default for the risk.
    """

    entry: Entry
    action: Action
    name: str
    sound: Checked
    mode: HitlMode
    present: Tool | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        return self.action in ("new", "rename", "replace")

    @property
    def draft(self) -> Draft:
        """The draft to save: a signed-in person decides if the file or the present tool says so."""
        wanted = self.entry.draft
        signed_in_only = wanted.signed_in_only or (self.present is not None and self.present.signed_in_only)
        return replace(wanted, name=self.name, hitl_mode=self.mode.value, signed_in_only=signed_in_only)

    @property
    def document(self) -> dict[str, Any]:
        """The JSON of the draft, as its version is stored."""
        return spec.as_json(replace(self.draft, capabilities=self.sound.capabilities.as_json()))

    @property
    def raised_from(self) -> HitlMode | None:
        """The mode in the file, if that would ask less often."""
        wanted = self.entry.draft.hitl_mode
        return HitlMode(wanted) if self.writes and wanted and strictness(wanted) < strictness(self.mode) else None

    @property
    def powers(self) -> list[str]:
        return self.sound.capabilities.sentences()

    def difference(self) -> Difference | None:
        """Return the differences between the tool here and the one that would take its place."""
        if self.present is None:
            return None
        return versions.compare(spec.as_json(spec.draft_of(self.present)), self.document)

    @property
    def identity(self) -> list[Any]:
        """Return the values that must be the same when the step is carried out as when it was shown."""
        here = self.present
        theirs = [here.definition_hash, here.hitl_mode, here.signed_in_only] if here else []
        return [self.name, self.action, self.mode.value, self.sound.definition_hash, *theirs]


@dataclass(frozen=True)
class Plan:
    steps: tuple[Step, ...]

    @property
    def digest(self) -> str:
        return canonical.sha256([step.identity for step in self.steps])

    @property
    def writing(self) -> int:
        return sum(step.writes for step in self.steps)

    @property
    def shown(self) -> list[Step]:
        """Return the steps that write, then those that leave a tool alone."""
        return sorted((step for step in self.steps if step.action != "same"), key=lambda step: not step.writes)

    @property
    def same(self) -> list[Step]:
        return [step for step in self.steps if step.action == "same"]

    @property
    def words(self) -> str:
        """`2 new, 1 replaced, 1 left alone`."""
        actions = [step.action for step in self.steps]
        counted = [(sum(action in kinds for action in actions), word) for kinds, word in _COUNTED]
        return ", ".join(f"{count} {_(word)}" for count, word in counted if count)


def plan(entries: Collection[Entry], on_conflict: Conflict) -> Plan:
    """Return the steps that would import `entries` now. Raises: BadFile"""
    names = [each.draft.name for each in entries]
    present = {tool.name: tool for tool in Tool.objects.filter(name__in=names).select_related("script")}
    used = {*Tool.objects.values_list("name", flat=True), *names}
    problems: list[Problem] = []
    steps: list[Step] = []
    for entry in entries:
        try:
            step = _step(entry, present.get(entry.draft.name), on_conflict, used)
        except AuthoringError as error:
            problems += at_fields(entry.place, error)
        else:
            used.add(step.name)
            steps.append(step)
    if problems:
        raise BadFile(problems)
    return Plan(tuple(steps))


def carry_out(
    entries: Collection[Entry],
    on_conflict: Conflict,
    actor: Actor,
    shown: str | None = None,
    *,
    confirmed: bool = False,
) -> Plan:
    """Import `entries` and return the plan that was carried out. `shown` is the digest of the plan that a person saw.

    `confirmed`: a person agreed that tools may run with less oversight. Raises: Outdated, BadFile, NotConfirmed,
    OnlyPeople
    """
    with transaction.atomic():
        names = [each.draft.name for each in entries]
        list(Tool.objects.select_for_update().filter(name__in=names).order_by("name"))
        made = plan(entries, on_conflict)
        if shown is not None and made.digest != shown:
            raise Outdated(made)
        # By name, so that two imports at once take the same names in the same order and cannot wait for each other.
        for step in sorted((step for step in made.steps if step.writes), key=lambda step: step.name):
            try:
                if step.present is None:
                    tool = authoring.create(step.draft, actor, confirmed=confirmed)
                else:
                    tool = authoring.change(step.present, step.draft, actor, confirmed=confirmed)
                    if tool.published and step.present.definition_hash != step.sound.definition_hash:
                        authoring.unpublish(tool, actor)
                cases.put(tool, step.entry.cases or ())
            except AuthoringError as error:
                raise BadFile(at_fields(step.entry.place, error)) from error
    return made


def _step(entry: Entry, present: Tool | None, on_conflict: Conflict, used: Collection[str]) -> Step:
    """Raises: AuthoringError"""
    if present is None:
        step = _added(entry, "new", entry.draft.name, used)
    elif on_conflict == "rename":
        step = _added(entry, "rename", authoring.free_name(entry.draft.name, used), used)
    elif present.source == SOURCE:
        step = _beside(entry, present, on_conflict)
    else:
        note = "The existing tool with this name was not written in the Studio, so an import cannot replace it."
        return Step(entry, "leave", present.name, _check(entry.draft), HitlMode(present.hitl_mode), notes=(note,))
    missing = variables.resolve(step.sound.variables).missing
    return replace(step, missing=missing, notes=tuple(_notes(entry, step.sound, step.present)))


def _added(entry: Entry, action: Literal["new", "rename"], name: str, used: Collection[str]) -> Step:
    sound = _check(replace(entry.draft, name=name))
    authoring.check_name(name, used)
    mode = _strictest(entry.draft.hitl_mode or sound.hitl_mode, sound.hitl_mode)
    # A tool made again under a name asks as much as the one before.
    own = Guard(mode.value, entry.draft.condition, entry.draft.signed_in_only)
    return Step(entry, action, name, sound, HitlMode(tools.inherited(name, own).hitl_mode))


def _beside(entry: Entry, present: Tool, on_conflict: Conflict) -> Step:
    sound = _check(entry.draft, spec.stored_variables(present.script))
    is_other = sound.definition_hash != present.definition_hash
    there = HitlMode(present.hitl_mode)
    mode = _strictest(entry.draft.hitl_mode or there, there, *([sound.hitl_mode] if is_other else []))
    # A condition that is not the one here counts for nothing: it might let everything through.
    is_foreign = there == HitlMode.CONDITIONAL and entry.draft.condition != present.condition
    if mode == HitlMode.CONDITIONAL and is_foreign:
        mode = HitlMode.REQUIRED
    step = Step(entry, "replace" if on_conflict == "replace" else "leave", present.name, sound, mode, present)
    # Replacing it would change nothing.
    here = {canonical.dumps(asdict(cases.of(row))) for row in cases.rows(present)}
    wanted = {canonical.dumps(asdict(case)) for case in entry.cases or ()}
    is_same = not is_other and step.document == spec.as_json(spec.draft_of(present)) and wanted <= here
    return replace(step, action="same") if is_same else step


def _check(draft: Draft, stored: Mapping[str, Stored] | None = None) -> Checked:
    """Check `draft` with the default mode for its risk in place of its own."""
    return spec.check(replace(draft, hitl_mode=None), stored)


def _strictest(*modes: str) -> HitlMode:
    return HitlMode(max(modes, key=strictness))


def _notes(entry: Entry, sound: Checked, present: Tool | None) -> Iterator[str]:
    named = [each for each in entry.draft.variables if REFERENCE.fullmatch(each.value or "")]
    if references := [_("{name} from {place}").format(name=each.name, place=each.value) for each in named]:
        yield _("It reads the environment of this server: {names}.").format(names=", ".join(references))
    if present and (secrets := [each.name for each in sound.variables if each.sealed]):
        words = _("It keeps the stored secrets {names}. The imported code can use them.")
        yield words.format(names=", ".join(secrets))
    if present and present.published and present.definition_hash != sound.definition_hash:
        yield _("The existing tool is published. It becomes a draft until it is tested and published again.")
    has_secrets = any(each.secret for each in entry.draft.variables)
    # Without secrets nothing but its name makes what was judged another tool than the one in the file.
    original = sound if sound.draft.name == entry.draft.name else _check(entry.draft)
    if entry.definition_hash and not has_secrets and entry.definition_hash != original.definition_hash:
        yield _("Changed after its export, or exported by another version of hitlchat.")

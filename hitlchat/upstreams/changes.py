"""What somebody wants to make of an upstream's tool, and whether that loosens anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from hitlchat.base import canonical
from hitlchat.gate import loosening as gate
from hitlchat.gate.loosening import Guard, guard_of
from hitlchat.gate.models import HitlMode
from hitlchat.upstreams.models import ComposedTool

SETTINGS = ("hitl_mode", "prompt_template", "condition", "deadline_seconds", "signed_in_only")
# In place of seconds to answer: those of the installation.
USUAL = 0
Settings = dict[str, str | bool | int | None]


@dataclass(frozen=True)
class Change:
    """What to make of one tool; None leaves a part as it is. `alias` "" is the default one, `description` "" the
    upstream's own, `deadline_seconds` USUAL that of the installation. `digest`: of the record that the person saw, and
    `settled`: that of the settings. `warnings_read`: they saw the scan's findings."""

    tool: UUID
    exposed: bool | None = None
    alias: str | None = None
    description: str | None = None
    hitl_mode: str | None = None
    prompt_template: str | None = None
    condition: str | None = None
    deadline_seconds: int | None = None
    signed_in_only: bool | None = None
    digest: str | None = None
    settled: str | None = None
    warnings_read: bool = False

    @property
    def settings(self) -> Settings:
        """Those of the gate's own that are to be other ones."""
        found = {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}
        return found | ({"deadline_seconds": None} if self.deadline_seconds == USUAL else {})

    def exposes(self, row: ComposedTool) -> bool:
        return bool(self.exposed) and not row.exposed


class Refused(ValueError):
    """Nothing was changed: `problems` has the reasons for each tool, by its id."""

    def __init__(self, problems: dict[UUID, list[str]]) -> None:
        super().__init__(" ".join(said for reasons in problems.values() for said in reasons))
        self.problems = problems


@dataclass(frozen=True)
class Loosening:
    """A tool that could run unseen where it could not before. `before` and `after` are HITL modes; `exposes`: it is not
    offered at all now; `rule`: another condition is to decide, which is `condition`; `trusts`: the word of an MCP
    client is to be enough, where a signed-in person must decide now."""

    tool: UUID
    server: str
    name: str
    risk: int
    before: str
    after: str
    exposes: bool
    rule: bool
    condition: str
    trusts: bool = False

    @property
    def unseen(self) -> bool:
        """Could it run without anyone being asked at all?"""
        return self.before != self.after or self.exposes or self.rule


class NotConfirmed(Exception):
    """Nothing was changed: somebody has to say that these may run with less oversight. Their yes is `digest`, which
    stands for exactly these tools with exactly these rules."""

    def __init__(self, loosenings: Sequence[Loosening]) -> None:
        super().__init__(f"{len(loosenings)} tools would run with less oversight; nobody has confirmed that.")
        self.loosenings = tuple(sorted(loosenings, key=lambda each: (each.server, each.name)))

    @property
    def digest(self) -> str:
        told = [
            [str(each.tool), each.before, each.after, each.exposes, each.condition, each.trusts]
            for each in self.loosenings
        ]
        return canonical.sha256(sorted(told))


def told(row: ComposedTool) -> Settings:
    """Its settings, for its history; none before it was exposed once."""
    tool = row.tool
    settings: Settings = {"alias": tool.name} | {name: getattr(tool, name) for name in SETTINGS} if tool else {}
    return settings | {"description": row.description}


def settled(row: ComposedTool) -> str:
    """The digest of what people have decided about the tool, for who changes it to have seen that."""
    return canonical.sha256({**told(row), "exposed": row.exposed})


def guard(row: ComposedTool) -> Guard:
    """Return what has people asked now, or would from the start."""
    return guard_of(row.tool) if row.tool else Guard(HitlMode.REQUIRED.value)


def guard_after(row: ComposedTool, change: Change) -> Guard:
    """Return what has people asked once `change` is made."""
    now = guard(row)
    wanted = (change.hitl_mode, change.condition, change.signed_in_only)
    old = (now.mode, now.condition, now.signed_in_only)
    return Guard(*(standing if new is None else new for new, standing in zip(wanted, old, strict=True)))  # type: ignore[arg-type]


def lowers(row: ComposedTool, mode: str | None) -> bool:
    """Would `mode` ask less often than the tool does now, or than it would from the start?"""
    return gate.lowers(guard(row), guard_after(row, Change(row.pk, hitl_mode=mode)))


def loosens(row: ComposedTool, change: Change) -> bool:
    """Could the tool run, without anyone being asked who is known, where it could not before?"""
    after = guard_after(row, change)
    return bool(gate.weaker(guard(row), after)) or (after.mode != HitlMode.REQUIRED and change.exposes(row))


def loosening(row: ComposedTool, change: Change) -> Loosening | None:
    """What somebody should be asked about before `change`, if it loosens anything."""
    if not loosens(row, change):
        return None
    before, rule = _mode(row), row.tool.condition if row.tool else ""
    condition = rule if change.condition is None else change.condition
    return Loosening(
        tool=row.pk,
        server=row.server.name,
        name=row.name,
        risk=row.risk_inherent,
        before=before,
        after=change.hitl_mode or before,
        exposes=change.exposes(row),
        rule=condition != rule,
        condition=condition,
        trusts=gate.trusts(guard(row), guard_after(row, change)),
    )


def loosening_back(row: ComposedTool) -> Loosening:
    """What is to be asked about before a withheld tool comes back with the settings that it has."""
    mode, rule = _mode(row), row.tool.condition if row.tool else ""
    return Loosening(
        tool=row.pk,
        server=row.server.name,
        name=row.name,
        risk=row.risk_inherent,
        before=mode,
        after=mode,
        exposes=True,
        rule=False,
        condition=rule,
    )


def rewords(row: ComposedTool, change: Change) -> bool:
    """Would whoever approves read something else of the tool than its server or a person wrote?"""
    standing = {
        "alias": row.tool.name if row.tool else "",
        "description": row.description,
        "prompt_template": row.tool.prompt_template if row.tool else "",
    }
    return any(getattr(change, name) not in {None, words} for name, words in standing.items())


def _mode(row: ComposedTool) -> str:
    return row.tool.hitl_mode if row.tool else HitlMode.REQUIRED.value

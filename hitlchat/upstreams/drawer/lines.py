"""One line of the drawer: a tool of a server, what it says of itself, and what may be made of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hitlchat.gate.models import HitlMode
from hitlchat.upstreams import composing, judging
from hitlchat.upstreams.drawer.plan import stamp
from hitlchat.upstreams.models import ComposedTool, ToolState
from hitlchat.upstreams.risk.phrases import Finding, trips
from hitlchat.upstreams.risk.rubric import CREDIT, effective

SHORT = 160
MOST_ARGUMENTS = 30


@dataclass(frozen=True)
class Line:
    """`default`: the alias that it gets unless somebody chooses one."""

    row: ComposedTool
    default: str

    @property
    def record(self) -> dict[str, Any]:
        """What models are told of it, as far as they are: as it was accepted, and else as it is listed."""
        record: dict[str, Any] = (self.row.pinned if self.row.exposed else None) or self.row.seen
        return record

    @property
    def title(self) -> str:
        return str(self.record.get("title") or (self.record.get("annotations") or {}).get("title") or "")

    @property
    def said(self) -> str:
        """Its description, in one short line; `unsaid` has how many characters there are beyond it."""
        return " ".join(self.description[:SHORT].split())

    @property
    def unsaid(self) -> int:
        return max(0, len(self.description) - SHORT)

    @property
    def description(self) -> str:
        return str(self.record.get("description") or "")

    @property
    def alias(self) -> str:
        """The one that it has or, before it was exposed once, would get."""
        return self.row.tool.name if self.row.tool else self.default

    @property
    def stamp(self) -> str:
        return stamp(self.row)

    @property
    def mode(self) -> str:
        return self.row.tool.hitl_mode if self.row.tool else HitlMode.REQUIRED.value

    @property
    def condition(self) -> str:
        return self.row.tool.condition if self.row.tool else ""

    @property
    def seconds(self) -> str:
        """To answer; empty: as many as the installation gives."""
        return str((self.row.tool and self.row.tool.deadline_seconds) or "")

    @property
    def signed_in_only(self) -> bool:
        return self.row.tool is not None and self.row.tool.signed_in_only

    @property
    def prompt(self) -> str:
        return self.row.tool.prompt_template if self.row.tool else ""

    @property
    def arguments(self) -> list[str]:
        """Their names, as far as the schema has them."""
        properties = (self.record.get("inputSchema") or {}).get("properties")
        return list(properties)[:MOST_ARGUMENTS] if isinstance(properties, dict) else []

    @property
    def asked(self) -> int:
        """Its risk if every call is asked about."""
        poisoned, floored = trips(self.findings), bool(self.row.risk_floor)
        return effective(self.row.risk_inherent, floored=floored, gated=True, poisoned=poisoned)

    @property
    def reasons(self) -> list[str]:
        """For its risk by itself; `credit` is the one for asking, which the page may be about to change."""
        return [reason for reason in self.row.risk_reasons if reason != CREDIT]

    @property
    def credit(self) -> str:
        return CREDIT

    @property
    def findings(self) -> tuple[Finding, ...]:
        return judging.findings_of(self.row.warnings)

    @property
    def blocking(self) -> list[Finding]:
        """What has to be read before it is exposed."""
        return [] if self.row.exposed else [found for found in self.findings if found.severity == "block"]

    @property
    def is_new(self) -> bool:
        return self.row.state == ToolState.NEW

    @property
    def changed(self) -> bool:
        """Somebody has to look at the difference before anything else."""
        return self.row.held and self.row.listed

    @property
    def obstacle(self) -> str:
        """Why nobody can expose it, whatever its risk; the ceiling is the page's to compare with."""
        if self.row.exposed:
            return ""
        if self.row.state in {ToolState.GONE, ToolState.UNFIT}:
            return f"Cannot be exposed. {self.row.reason}"
        return "Cannot be exposed before its change is accepted." if self.row.held else ""

    @property
    def trouble(self) -> str:
        """Why somebody's wish to have it exposed is not met; a change and the ceiling are told apart from this."""
        if self.row.exposed and self.row.state in {ToolState.GONE, ToolState.UNFIT}:
            return f"Not in the catalog. {self.row.reason}"
        return ""


def lines_of(rows: Iterable[ComposedTool]) -> list[Line]:
    """With their servers and tools loaded."""
    found = list(rows)
    defaults = composing.aliases([(row, "") for row in found]).given
    return [Line(row, defaults[row.pk]) for row in found]

"""Where a tool stands between its draft and the catalog, in words."""

from dataclasses import dataclass

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.withdraw import NOT_STARTED
from tools_studio import columns, trials, variables
from tools_studio.models import Script


@dataclass(frozen=True)
class Standing:
    """`why_not` says what keeps the tool from being published; empty when it can be, or is."""

    published: bool
    version: int
    why_not: str
    passed: ToolCall | None
    missing: dict[str, str]
    revoked: str
    shipped: bool

    @property
    def state(self) -> str:
        if self.revoked:
            return "revoked"
        if self.published:
            return "published"
        return "ready" if not self.why_not else "draft"

    @property
    def word(self) -> str:
        return {"revoked": "Revoked", "published": "Published", "ready": "Ready to publish", "draft": "Draft"}[
            self.state
        ]


def of(tool: Tool) -> Standing:
    """As things are now; the tool's script is loaded."""
    script: Script = tool.script
    missing = dict(variables.resolve(columns.kept(script).values()).missing)
    passed = trials.passed(tool)
    return Standing(
        published=tool.published,
        version=script.version,
        why_not=_why_not(script, missing, passed),
        passed=passed,
        missing=missing,
        revoked=script.revoked,
        shipped=bool(script.shipped),
    )


def _why_not(script: Script, missing: dict[str, str], passed: ToolCall | None) -> str:
    if script.revoked:
        return "A revoked tool must not run."
    if missing:
        return f"{' '.join(missing.values())} The tool stays a draft until then."
    return "" if passed else "Run a test first: none has passed since the last edit."


def open_calls(tool: Tool) -> tuple[int, int]:
    """How many calls of the tool wait for an answer, and how many were cleared and have not started yet."""
    statuses = list(tool.calls.filter(status__in=NOT_STARTED).values_list("status", flat=True))
    waiting = statuses.count(Status.WAITING)
    return waiting, len(statuses) - waiting

"""What verifying finds, in words."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal[
    "edited",
    "missing",
    "inserted",
    "reordered",
    "seal edited",
    "seal missing",
    "seal unsigned",
    "chain broken",
    "key not vouched for",
    "not what was shown",
    "not what was called",
    "not what happened",
    "not what was decided",
    "not what came back",
    "not in order",
    "not on record",
    "not the name",
    "not the definition",
    "unreadable",
    "not sealed",
    "truncated",
]


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it was sealed; in which batch, and about which event."""

    kind: Kind
    words: str
    batch: int | None = None
    event: int | None = None


@dataclass
class Report:
    """What a walk over the record has seen. `tail`: events that are not sealed yet; `late`: events whose ids are below
    others of batches before their own; `uncovered`: calls whose events do not say everything that is kept of them,
    since they are older than that, or were dropped; `notes`: what is no break but should be known."""

    batches: int = 0
    events: int = 0
    tail: int = 0
    late: int = 0
    calls: int = 0
    uncovered: int = 0
    uncovered_until: str = ""
    dropped: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    last_seal: str = ""
    key: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.findings

    @property
    def as_json(self) -> dict[str, Any]:
        said = asdict(self)
        names = {"last_seal": "lastSeal", "uncovered_until": "uncoveredUntil"}
        return {"whole": self.is_whole, **{names.get(name, name): value for name, value in said.items()}}

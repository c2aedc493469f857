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
    others of batches before their own; `notes`: what is no break but should be known."""

    batches: int = 0
    events: int = 0
    tail: int = 0
    late: int = 0
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
        names = {"last_seal": "lastSeal"}
        return {"whole": self.is_whole, **{names.get(name, name): value for name, value in said.items()}}

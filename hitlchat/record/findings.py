"""What verifying finds, in words for people. Needs neither Django's settings nor a database."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from hitlchat.record.checking import Checked
from hitlchat.record.signing import spaced


def checked_words(found: Checked, noted: str) -> list[str]:
    if found.wrong:
        return [f"Not genuine: line {found.line} {found.wrong}."]
    counts = (
        f"{plural(found.batches, 'batch', 'batches')}, {plural(found.events, 'event')}"
        f", {plural(found.receipts, 'receipt')}"
    )
    lines = [f"As it was written on {found.at}: {counts}."]
    if found.hidden:
        lines.append(f"{plural(found.hidden, 'value')} in it are kept back as secret; their hashes stand for them.")
    if found.unreadable:
        count = plural(found.unreadable, "event")
        lines.append(f"{count} in it could not be read as events when they were sealed: only their hashes are here.")
    lines.append(f"Signed with the key {spaced(found.key)}")
    lines.append(
        "That is the key that you named, or one that it vouches for."
        if noted
        else "Compare this with the fingerprint that you noted: the file alone cannot tell whose key it is."
    )
    return lines


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


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

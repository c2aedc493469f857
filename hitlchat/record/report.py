"""The report of a walk over the record: counts, findings, and both in words."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

MOST = 50

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
    "not as stated",
    "gap",
    "no digest",
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
    """`tail`: events that are not sealed yet; `late`: events whose ids are below others of batches before their own;
    `uncovered`: calls whose events do not cover their whole rows, since they are older than that, or were dropped;
    `notes`: remarks that are no findings.
    """

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
        fields = asdict(self)
        names = {"last_seal": "lastSeal", "uncovered_until": "uncoveredUntil"}
        return {"whole": self.is_whole, **{names.get(name, name): value for name, value in fields.items()}}


def words(report: Report) -> Iterator[str]:
    counts = f"{plural(report.events, 'event')} in {plural(report.batches, 'batch', 'batches')}"
    if report.is_whole:
        yield (
            f"Whole: {counts}, unchanged since they were sealed. {plural(report.calls, 'call')}, matching their events."
        )
    else:
        first, *others = report.findings
        yield f"Broken: {first.words}"
        yield from (each.words for each in others[: MOST - 1])
        if len(others) >= MOST:
            yield f"… and {plural(len(others) - MOST + 1, 'problem')} more."
        yield f"Checked {counts}, and {plural(report.calls, 'call')}."
    for each in report.dropped:
        yield f"Batch {each['batch']}: dropped by retention on {each['at']}; its seal is kept."
    if report.late:
        yield f"{plural(report.late, 'event')} came late and {'is' if report.late == 1 else 'are'} sealed as late."
    if report.uncovered:
        count = plural(report.uncovered, "call")
        yield f"Not fully covered by the record: {count} from {report.uncovered_until} or earlier."
    if report.tail:
        yield f"Not sealed yet: the last {plural(report.tail, 'event')}. These cannot be verified."
    yield from report.notes
    if report.last_seal:
        yield f"The last seal is {report.last_seal}. Note it elsewhere, and pass it to --expect later."


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"

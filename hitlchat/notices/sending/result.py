"""What came of one attempt."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """`trouble`: why it was not delivered, in words without anything secret; empty: it was. `final`: trying again is no
    use. `gone`: the receiver wants nothing more. `answer`: how its answer began."""

    trouble: str = ""
    status: int | None = None
    final: bool = False
    gone: bool = False
    answer: str = ""

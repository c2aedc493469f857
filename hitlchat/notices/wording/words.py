"""What a notice is about, and the sentences that all of them share."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitlchat.notices.models import Item
from hitlchat.notices.wording.facts import Facts


@dataclass(frozen=True)
class Burst:
    """What came in since the last notice, as it is now: `items` are the first of those that wait. `quiet`: the quiet
    hours that it was held back for."""

    items: tuple[Item, ...]
    waiting: int
    expired: int = 0
    answered: int = 0
    quiet: str = ""
    arguments: bool = False

    def heading(self, shown: Sequence[Facts]) -> str:
        if self.waiting == 1 and not self.expired:
            return f"A call waits for your answer: {shown[0].tool}"
        if not self.waiting:
            return "A call expired before you heard of it" if self.expired == 1 else _many(self.expired, "expired")
        return f"{_many(self.waiting, 'waits' if self.waiting == 1 else 'wait')} for your answer"

    @property
    def account(self) -> str:
        """Of everything that came in, where not all of it waits: so that nothing goes past anyone unsaid."""
        if not (self.expired or self.answered or self.quiet):
            return ""
        began = self.waiting + self.expired + self.answered
        when = f"While your quiet hours lasted ({self.quiet})" if self.quiet else "Since the last notice"
        parts = [
            f"{count:,} {word}"
            for count, word in (
                (self.waiting, "still waits" if self.waiting == 1 else "still wait"),
                (self.expired, "expired, not run"),
                (self.answered, "answered or withdrawn meanwhile"),
            )
            if count
        ]
        return f"{when}, {began:,} {'call' if began == 1 else 'calls'} waited: {', '.join(parts)}."


@dataclass(frozen=True)
class Outcome:
    """What became of one call that was told of in `notice`."""

    id: str
    notice: str
    tool: str
    outcome: str
    by: str
    at: datetime
    link: str | None

    @property
    def as_json(self) -> dict[str, Any]:
        told = {"id": self.id, "notice": self.notice, "tool": self.tool, "outcome": self.outcome}
        return {**told, "by": self.by or None, "at": self.at.isoformat(), "url": self.link}

    @property
    def words(self) -> str:
        return {"expired": "expired unanswered, not run", "withdrawn": "withdrawn, not run"}.get(
            self.outcome, self.outcome
        )


def _many(count: int, verb: str) -> str:
    return f"{count:,} {'call' if count == 1 else 'calls'} {verb}"

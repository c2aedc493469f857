"""A model that calls tools, each time for another order, and that hangs, drips, breaks off and lies."""

import itertools
from collections.abc import Callable
from random import Random
from typing import Any, Final

from chaos.moments import Moments, Pause
from tests.scripted_model import (
    DIALECTS,
    Cut,
    Reply,
    ScriptedModel,
    calls,
    cut_off_after,
    error_after,
    hang,
    raw,
    status,
    text,
)

TOOLS: Final = ("order", "order", "order", "order_soon", "order_by_two")
MOST_CALLS: Final = 3
LONGEST_HANG, LONGEST_DRIP = 2.0, 0.2
# How often an answer is trouble, and a result is followed by more calls.
TROUBLE, MORE = 0.2, 0.2


class Model(ScriptedModel):
    """Answers each message with calls, and each result with a word or with more calls."""

    def __init__(self, random: Random, moments: Moments) -> None:
        super().__init__()
        self._random, self._moments = random, moments
        self._numbers = itertools.count(1)
        self.otherwise = self._reply

    def take_invalid(self) -> list[str]:
        """Return what was wrong with requests that the strictest servers refuse, and forget it."""
        found, self._invalid = self._invalid, []
        return found

    def _reply(self, body: dict[str, Any]) -> Reply:
        self._moments.reach("asking the model")
        if self._random.random() < TROUBLE:
            return self._random.choice(self._troubles())()
        if body["messages"][-1]["role"] == "tool" and self._random.random() > MORE:
            return text("All ", self._pause(LONGEST_DRIP), "done.")
        return self._calls()

    def _calls(self) -> Reply:
        wanted = [self._call() for _ in range(self._random.randint(1, MOST_CALLS))]
        return calls(*wanted, dialect=self._random.choice([*DIALECTS]), gate=self._pause(LONGEST_DRIP))

    def _call(self) -> tuple[str, dict[str, str]]:
        return self._random.choice(TOOLS), {"what": str(next(self._numbers))}

    def _troubles(self) -> list[Callable[[], Reply]]:
        whole, pause = self._calls(), self._pause(LONGEST_DRIP)
        return [
            lambda: hang(self._pause(LONGEST_HANG)),
            lambda: cut_off_after("I ", pause, "will"),
            lambda: error_after("I ", pause),
            lambda: Reply((*whole.parts[:-3], Cut())),
            lambda: raw(b"data: {not JSON}\n\n"),
            lambda: status(503, retry=True),
            lambda: text("It is ordered already, ", pause, "believe me."),
            lambda: calls(("no_such_tool", {"what": "x"}), self._call()),
            lambda: calls(("order", {"whom": "x"}), ("order", "{"), self._call()),
        ]

    def _pause(self, longest: float) -> Pause:
        return Pause(self._random, longest, self._moments)

"""Moments in the life of calls that a fault can wait for, and gates that open by themselves."""

import threading
import time
from random import Random
from typing import Final, Literal, get_args

from tests.scripted_model import Gate

Moment = Literal["submitting", "asking the model", "answering", "answered", "in the tool", "settling"]
MOMENTS: Final[tuple[Moment, ...]] = get_args(Moment)


class Moments:
    """Where chats, the model and the counter say how far they are."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._times = dict.fromkeys(MOMENTS, 0)

    def reach(self, moment: Moment) -> None:
        with self._changed:
            self._times[moment] += 1
            self._changed.notify_all()

    def wait(self, moment: Moment, seconds: float) -> bool:
        """Wait until `moment` is reached the next time; False if that takes longer."""
        with self._changed:
            before = self._times[moment]
            return self._changed.wait_for(lambda: self._times[moment] > before, seconds)


class Pause(Gate):
    """A gate that opens by itself after up to `longest` seconds, and says at which moments that is."""

    def __init__(
        self,
        random: Random,
        longest: float,
        moments: Moments,
        *,
        begin: Moment | None = None,
        end: Moment | None = None,
    ) -> None:
        super().__init__()
        self._random, self._longest, self._moments = random, longest, moments
        self._begin, self._end = begin, end

    def hold(self) -> None:
        if self._begin:
            self._moments.reach(self._begin)
        time.sleep(self._random.uniform(0, self._longest))
        if self._end:
            self._moments.reach(self._end)

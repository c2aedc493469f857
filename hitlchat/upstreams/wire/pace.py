"""How fast something may come."""

import time


class Pace:
    """So much a second, and `burst` at once after a pause."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, time.monotonic()

    def take(self, amount: float = 1.0) -> float:
        """Count it; for how many seconds to wait because it came too early, 0 if it did not."""
        self._refill()
        # debt is bounded, or one burst would silence a server for ever
        self._left = max(self._left - amount, -self._burst)
        return max(0.0, -self._left / self._rate)

    def allows(self) -> bool:
        """Whether one more may come now; only what may is counted."""
        self._refill()
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def _refill(self) -> None:
        moment = time.monotonic()
        self._left = min(self._burst, self._left + (moment - self._at) * self._rate)
        self._at = moment

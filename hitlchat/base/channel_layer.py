"""The channel layer of an installation without Redis, which runs in one process."""

import time

from channels.layers import InMemoryChannelLayer

CLEAN_SECONDS = 1.0
# Whoever leaves is taken out of their groups, and a page may stay open for weeks.
NEVER = 2**62


class OneProcess(InMemoryChannelLayer):  # type: ignore[misc]
    """Channels' own, which at each message looks for old ones in the channels of all open pages: here once a second."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity=capacity, group_expiry=NEVER)
        self._cleaned_at = 0.0

    def _clean_expired(self) -> None:
        now = time.time()
        # The clock may have been set back.
        if abs(now - self._cleaned_at) >= CLEAN_SECONDS:
            self._cleaned_at = now
            super()._clean_expired()

"""One connection's life, from the handshake to its end: who waits on it, and why it ended."""

import asyncio
import logging
from collections.abc import Callable

from mcp.shared.dispatcher import coerce_request_id
from mcp_types import RequestId

from hitlchat.upstreams.wire.exchange import CURRENT, Exchange
from hitlchat.upstreams.wire.notes import Notes
from hitlchat.upstreams.wire.outcomes import Unreadable
from hitlchat.upstreams.wire.spec import ServerSpec
from hitlchat.upstreams.wire.surroundings import Masking
from hitlchat.upstreams.wire.texts import told

logger = logging.getLogger(__name__)

# So many calls may have been given up without an answer before the connection is renewed.
MOST_ABANDONED = 16
RETIRE_SECONDS = 2.0
LONGEST_LAST_WORDS = 200


class Link:
    """What the transports and the one who uses them tell each other. Of one loop."""

    def __init__(
        self,
        spec: ServerSpec,
        mask: Masking,
        on_drop: Callable[["Link"], None] | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.spec, self.mask = spec, mask
        self.dropped = asyncio.Event()
        self.changed = asyncio.Event()
        self.doubted = asyncio.Event()
        self.reason = ""
        self.stop: Callable[[], None] | None = None  # gives up a handshake that is under way
        self.open: set[Exchange] = set()
        self.waiting: dict[RequestId, Exchange | None] = {}
        self.abandoned = 0
        self.http_status: int | None = None
        self._notes = Notes() if notes is None else notes
        self._on_drop = on_drop
        self._retiring: asyncio.TimerHandle | None = None

    def drop(self, reason: str, last_words: str = "") -> None:
        """Give the connection up. What was not sent yet is safe to send over the next one. `last_words`: the server's
        own, cut and masked, which belong to the reason but not to what becomes of each call."""
        if self.dropped.is_set():
            return
        hidden = self.hide(reason)
        said = told(last_words, self.hide, LONGEST_LAST_WORDS)
        self.reason = f"{hidden}: {said}" if said else hidden
        self.dropped.set()
        for exchange in self.open:
            exchange.lose(hidden, retry=True)
        if self.stop is not None:
            self.stop()
        if self._retiring is not None:
            self._retiring.cancel()
        self._tell()

    def _tell(self) -> None:
        if self._on_drop is not None:
            self._on_drop(self)

    def retire(self, reason: str) -> None:
        """Take no more calls, and give the connection up when those under way have their answers, or soon."""
        if self._retiring is None and not self.dropped.is_set():
            self._retiring = asyncio.get_running_loop().call_later(RETIRE_SECONDS, self.drop, reason)
            self.reason = self.hide(reason)
            self._tell()
            self._drop_if_retired()

    def _drop_if_retired(self) -> None:
        if self._retiring is not None and not any(exchange.sent for exchange in self.open):
            self.drop(self.reason)

    def too_large(self, reason: str) -> None:
        """A message was cut off on its way in. Whoever waited for it is told; if nobody knows who, all is over."""
        exchange = CURRENT.get()
        if exchange not in self.open:
            exchange = self.only_call()
        if exchange is None:
            self.drop(reason)
        else:
            exchange.fail(Unreadable(reason))

    def is_waiting(self, request_id: RequestId | None) -> bool:
        return request_id is not None and coerce_request_id(request_id) in self.waiting

    def answered(self, request_id: RequestId | None) -> Exchange | None:
        return None if request_id is None else self.waiting.pop(coerce_request_id(request_id), None)

    def forget(self, exchange: Exchange) -> None:
        """Nobody waits for its answers any more."""
        self.open.discard(exchange)
        self.waiting = {key: each for key, each in self.waiting.items() if each is not exchange}
        self._drop_if_retired()

    def is_calling(self) -> bool:
        return any(exchange.is_call for exchange in self.open)

    def only_call(self) -> Exchange | None:
        """The one call that a message without an address must be about; None if that is not certain."""
        calls = [exchange for exchange in self.open if exchange.is_call]
        return calls[0] if len(calls) == 1 and not self.abandoned else None

    def abandon(self) -> None:
        """A call was given up, and its answer may still come."""
        self.abandoned += 1
        self.renew_if_worn()

    def renew_if_worn(self) -> None:
        if self.abandoned >= MOST_ABANDONED and not self.open:
            self.drop(f"{self.abandoned} calls were never answered")

    def note(self, text: str) -> None:
        """Keep a line for the administrator."""
        self._notes.add(told(text, self.hide))

    def notes(self) -> tuple[str, ...]:
        return self._notes.lines()

    def hide(self, text: str) -> str:
        return self.mask.text(text)

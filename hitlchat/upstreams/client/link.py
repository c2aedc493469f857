"""One connection's life, from the handshake to its end: who waits on it, why it ended, and what its server wrote."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from mcp.shared.dispatcher import coerce_request_id
from mcp_types import ElicitRequestParams, ElicitResult, RequestId

from hitlchat.upstreams.client.elicitation import question, unasked
from hitlchat.upstreams.client.exchange import CURRENT, Exchange, told
from hitlchat.upstreams.client.results import Unreadable
from hitlchat.upstreams.client.spec import Masking, ServerSpec

MOST_NOTES = 50


class Notes:
    """The newest last. What comes again is kept once, at its last time, and counted: a program that fails at each
    start would fill them with copies of one reason.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[datetime, int]] = {}

    def add(self, text: str) -> None:
        _, times = self._kept.pop(text, (None, 0))
        self._kept[text] = (datetime.now(UTC), times + 1)
        if len(self._kept) > MOST_NOTES:
            del self._kept[next(iter(self._kept))]

    def lines(self) -> tuple[str, ...]:
        """Return each with its time, as ISO 8601 has it, and a space before."""
        return tuple(f"{at:%Y-%m-%dT%H:%M:%SZ} {text}{_often(times)}" for text, (at, times) in self._kept.items())


def _often(times: int) -> str:
    return f" ({times:,} times)" if times > 1 else ""


logger = logging.getLogger(__name__)

# So many calls may have been given up without an answer before the connection is renewed.
MOST_ABANDONED = 16
RETIRE_SECONDS = 2.0
LONGEST_LAST_WORDS = 200


class Link:
    """Carries what the transports and the one who uses them tell each other. Of one loop."""

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
        own, cut and masked, which belong to the reason but not to what becomes of each call.
        """
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


BELONGS_TO_NONE = "several calls were under way, and nothing says to which of them it belongs"


async def ask(link: Link, params: ElicitRequestParams) -> ElicitResult:
    """Ask, and return the answer. Declined when the question belongs to no single call, lest it reach somebody else."""
    exchange = CURRENT.get()
    if exchange is None or not exchange.is_call:
        # Over standard input and output nothing names the call that a question belongs to.
        exchange = link.only_call()
    if exchange is None:
        link.note("asked a question that belongs to no single call: declined")
        for each in link.open:
            each.has_declined(BELONGS_TO_NONE)
        return unasked().as_result()
    try:
        asked = question(link.spec.name, params, link.mask)
    except ValueError as error:
        exchange.has_declined(str(error))
        return unasked().as_result()
    return (await exchange.ask(asked)).as_result()

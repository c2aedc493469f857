"""The receipts of an exported file against its events. Needs neither Django's settings nor a database."""

from hitlchat.gate import canonical
from hitlchat.record.lines import Body, WrongLine

ASKED = "call.waiting"
# Put before one person for the first time.
SEEN = "call.shown"
DECIDED = frozenset({"call.approved", "call.declined", "call.counted"})
SAID = DECIDED | {"call.yes_taken_back"}


class Calls:
    """What the events say of each call: their names and digests, by id."""

    def __init__(self) -> None:
        self._events: dict[str, dict[int, tuple[str, str | None]]] = {}
        self._decided: set[str] = set()

    def take(self, row: Body) -> None:
        if row["call"] is None:
            return
        self._events.setdefault(row["call"], {})[row["id"]] = (row["name"], row["data"].get("digest"))
        if row["name"] in DECIDED:
            self._decided.add(row["call"])

    def compare(self, receipt: Body) -> None:
        """WrongLine."""
        call = receipt["call"]
        events = self._events.pop(call, {})
        self._decided.discard(call)
        if sorted(events) != sorted(receipt["events"]):
            raise WrongLine(f"is the receipt of call {call}, and names other events than there are of it")
        self._same(call, ASKED, {each["event"]: each["digest"] for each in receipt["shown"]}, events)
        self._same(call, SEEN, {each["event"]: each["digest"] for each in receipt["seen"]}, events)
        for name in SAID:
            mine = {each["event"]: each["digest"] for each in receipt["said"] if each["name"] == name}
            self._same(call, name, mine, events)
        for each in receipt["shown"]:
            if each["whole"] and canonical.sha256(each["disclosure"]) != each["digest"]:
                raise WrongLine(f"is the receipt of call {call}, and shows something else than was shown")

    def require_receipts(self) -> None:
        """WrongLine."""
        if self._decided:
            raise WrongLine(f"comes where the receipt of call {min(self._decided)} is missing")

    def _same(self, call: str, name: str, said: dict[int, str], events: dict[int, tuple[str, str | None]]) -> None:
        recorded = {event_id: digest for event_id, (each, digest) in events.items() if each == name}
        if said != recorded:
            raise WrongLine(f"is the receipt of call {call}, and tells otherwise than its events")

"""People who chat, and who answer what is asked: yes, no, both at once, twice, with a change, too late or never.

The journal has each of their deeds, written down before the server learns of it.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import httpx2

from chaos.moments import Moments
from tests.outside import Outside
from tests.processes import Person, Server

REQUESTERS: Final = ("bob", "charlie")
DECIDERS: Final = {"order_by_two": ("alice", "dora")}
# A tool whose calls have few seconds to be answered, and how many the others have.
EXPIRES, SOON, SECONDS_TO_ANSWER = "order_soon", 3, 86_400
# How often, and how many seconds apart, they look at a conversation before they leave it.
LOOKS, LOOK_SECONDS = 40, 0.15
APPROVE, DECLINE, TAKE_BACK, STOP = "approve", "reject", "take-back", "stop"
# What people do about a call, and how often: deeds of one tuple happen at once.
PLANS: Final[dict[tuple[str, ...], int]] = {
    (APPROVE, APPROVE): 8,
    (APPROVE,): 4,
    (APPROVE, DECLINE): 3,
    (APPROVE, TAKE_BACK): 1,
    (DECLINE,): 2,
    (STOP,): 1,
    (): 2,
}
# How often a yes changes the arguments, and what got no answer is sent once more.
CHANGED, AGAIN = 0.3, 0.5
# How often, of calls with few seconds, an answer comes shortly before or after the end of these.
LATE: Final = 0.4
LONGEST_BREAK: Final = 0.3


class Unanswered(Exception):
    """The server answered with an error, as one does whose database is away."""


# A server is down, or its database.
AWAY: Final = (httpx2.HTTPError, Unanswered)


@dataclass(eq=False)
class Deed:
    """What a person sent about `call`, or to stop everything in a conversation. `what`: the argument they said yes to.
    `after`: how much the counter had counted by then; `at`: the right time then. `answer`: the status of the answer;
    None: none came.
    """

    call: str
    verb: str
    person: str
    what: str
    after: int
    answer: int | None = None
    at: float = 0.0

    @property
    def may_count(self) -> bool:
        return self.answer is None or self.answer < 400 or self.answer >= 500

    @property
    def counts(self) -> bool:
        return self.answer == 200


@dataclass
class Town:
    """Who is there: people by name, signed in at each server; `over` ends their chats.

    `waits`: of each call that was seen to wait, right times between which it began to.
    """

    people: dict[str, list[Person]]
    moments: Moments
    counter: Outside
    random: Random
    journal: list[Deed] = field(default_factory=list)
    waits: dict[str, tuple[float, float]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    chats: list["Chat"] = field(default_factory=list)

    @classmethod
    def of(cls, servers: list[Server], moments: Moments, counter: Outside, random: Random) -> "Town":
        names = {*REQUESTERS, *(each for names in DECIDERS.values() for each in names)}
        people = {name: [server.sign_in(name) for server in servers] for name in sorted(names)}
        return cls(people, moments, counter, random)

    def open(self, chats: int) -> None:
        self.chats = [Chat(self, REQUESTERS[each % 2], Random(self.random.random())) for each in range(chats)]
        for chat in self.chats:
            chat.start()

    def close(self) -> None:
        self.over.set()
        for chat in self.chats:
            chat.join()


class Chat(threading.Thread):
    """One person's conversations, one after the other."""

    def __init__(self, town: Town, name: str, random: Random) -> None:
        super().__init__(daemon=True)
        self._town, self._name, self._random = town, name, random
        self._pool = ThreadPoolExecutor(2)
        self._seen: set[str] = set()

    def run(self) -> None:
        while not self._town.over.is_set():
            try:
                self._converse()
                self._town.over.wait(self._random.uniform(0, LONGEST_BREAK))
            except AWAY:
                # What was begun is left as it is.
                self._town.over.wait(0.1)
        self._pool.shutdown()

    def _converse(self) -> None:
        self._town.moments.reach("submitting")
        self._begun = time.time()
        conversation = self._post("/api/conversations")["id"]
        run = self._post(f"/api/conversations/{conversation}/messages", {"content": "Order something"})["runId"]
        for _ in range(LOOKS):
            with suppress(*AWAY):
                if not self._go_on(conversation, run):
                    return
            if self._town.over.wait(LOOK_SECONDS):
                return

    def _go_on(self, conversation: str, run: str) -> bool:
        """Deal with each call that waits; False once there is nothing to wait for."""
        calls = self._read("/api/calls", conversation=conversation)
        waiting = [call for call in calls if call["status"] == "waiting" and call["id"] not in self._seen]
        for call in waiting:
            self._seen.add(call["id"])
            self._town.waits[call["id"]] = (self._begun, time.time())
            self._deal_with(call, run)
        state = "running" if waiting else self._read(f"/api/runs/{run}")["status"]
        return state == "running"

    def _deal_with(self, call: dict[str, Any], run: str) -> None:
        plan = self._random.choices([*PLANS], [*PLANS.values()])[0]
        deciders = DECIDERS.get(call["toolName"], (self._name, self._name))
        what, body = call["arguments"]["what"], {"consentDigest": call["consentDigest"]}
        if plan == (APPROVE,) and call["toolName"] == "order" and self._random.random() < CHANGED:
            what = f"{what} changed"
            body |= {"modifiedArguments": {"what": what}}
        for person, verb in zip(deciders, plan, strict=False):
            path = f"/api/runs/{run}/stop" if verb == STOP else f"/api/approvals/{call['approvalId']}/{verb}"
            about = call["conversationId"] if verb == STOP else call["id"]
            # Only whose run it is can stop it.
            deed = Deed(about, verb, self._name if verb == STOP else person, what, 0)
            late = call["toolName"] == EXPIRES and self._random.random() < LATE
            pause = SOON + self._random.uniform(-1, 1) if late else 0
            self._pool.submit(self._do, deed, path, body if verb == APPROVE else None, pause)

    def _do(self, deed: Deed, path: str, body: Any, pause: float) -> None:
        self._town.over.wait(pause)
        deed.after, deed.at = len(self._town.counter.orders), time.time()
        self._town.journal.append(deed)
        self._town.moments.reach("answering")
        with suppress(httpx2.HTTPError):
            deed.answer = self._somewhere(deed.person).post(path, body).status_code
        if deed.answer is None and self._random.random() < AGAIN:
            with suppress(httpx2.HTTPError):
                # That it is refused now may be since the first one arrived.
                deed.answer = 200 if self._somewhere(deed.person).post(path, body).status_code == 200 else None
        self._town.moments.reach("answered")

    def _post(self, path: str, body: Any = None) -> Any:
        return answered(self._somewhere(self._name).post(path, body))

    def _read(self, path: str, **params: str) -> Any:
        return answered(self._somewhere(self._name).get(path, **params))

    def _somewhere(self, name: str) -> Person:
        return self._random.choice(self._town.people[name])


def answered(response: httpx2.Response) -> Any:
    if not response.is_success:
        raise Unanswered(f"{response.status_code} {response.text[:200]}")
    return response.json()

"""What the record says of each call, held against the counter outside, what people did, and what the model was told."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from chaos.chats import APPROVE, DECLINE, EXPIRES, SECONDS_TO_ANSWER, SOON, Deed, Town
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.status import ENTRIES, STARTED, Status

OPEN: Final = frozenset({Status.ALLOWED, Status.APPROVED, Status.EXECUTING})
# Of these nobody was asked.
UNASKED: Final = ENTRIES - {Status.WAITING}
AFTER_A_YES: Final = STARTED | {Status.WITHDRAWN}


@dataclass(frozen=True)
class Case:
    """A call: what is on record, and what is known of it from elsewhere. All times are of the right clock.

    `what`: its argument. `runs`: of each run the argument that the counter saw, and how many it had counted before.
    `consents`: who said yes to `what`, on record. `told`: what the model was told became of it.
    `began`: between which times it began to wait. `until`: its deadline on record. `settled`: when it was settled.
    """

    call: str
    tool: str
    status: str
    what: str
    quorum: int = 1
    runs: tuple[tuple[str, int], ...] = ()
    deeds: tuple[Deed, ...] = ()
    consents: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    began: tuple[float, float] | None = None
    until: float = math.inf
    settled: float | None = None
    history: tuple[str, ...] = field(default=(), compare=False)


def violations(case: Case) -> Iterator[str]:
    """Yield in words whatever must not be."""
    yield from _of_running(case)
    yield from _of_answers(case)
    yield from _of_time(case)
    yield from _of_telling(case)


def strays(cases: Iterable[Case], orders: list[str]) -> Iterator[str]:
    """Yield runs that belong to no call on record."""
    known = {case.what.partition(" ")[0] for case in cases}
    yield from (
        f"order {what!r} ran without a call on record" for what in orders if what.partition(" ")[0] not in known
    )


def cases(orders: list[str], town: Town, requests: list[dict[str, Any]]) -> list[Case]:
    """Return every call on record with what else is known of it."""
    runs, deeds, told, history = defaultdict(list), defaultdict(list), _told(requests), defaultdict(list)
    for before, what in enumerate(orders):
        runs[what.partition(" ")[0]].append((what, before))
    for deed in town.journal:
        deeds[deed.call].append(deed)
    for call_id, name, means, at in AuditEvent.objects.values_list("call", "name", "means", "at").order_by("pk"):
        history[str(call_id)].append(f"{at:%H:%M:%S.%f} {name} by {means}")
    rows = ToolCall.objects.select_related("approval").prefetch_related("approval__decisions__person")
    return [
        Case(
            call=str(row.pk),
            tool=row.tool_name,
            status=row.status,
            what=(what := str(row.arguments.get("what", ""))),
            quorum=row.quorum,
            runs=tuple(runs.get(what.partition(" ")[0], [])) if what else (),
            deeds=tuple(deeds[str(row.pk)] + deeds[str(row.conversation_id)]),
            consents=_consents(row),
            told=frozenset(told[row.model_call_id]),
            began=town.waits.get(str(row.pk)),
            until=row.deadline.timestamp() if row.deadline else math.inf,
            settled=row.settled_at.timestamp() if row.settled_at else None,
            history=tuple(history[str(row.pk)]),
        )
        for row in rows
    ]


def _of_running(case: Case) -> Iterator[str]:
    if len(case.runs) > 1:
        yield f"ran {len(case.runs)} times"
    if case.status == Status.SUCCEEDED and not case.runs:
        yield "is said to have succeeded, and never ran"
    for what, before in case.runs[:1]:
        if case.status not in STARTED:
            yield f"ran, and is on record as {case.status}"
        if what != case.what:
            yield f"ran with {what!r}, and is on record with {case.what!r}"
        said = {
            deed.person for deed in case.deeds if (deed.verb, deed.what) == (APPROVE, what) and deed.after <= before
        }
        if len(said) < case.quorum:
            yield f"ran with {what!r} before {case.quorum} said yes to that: {sorted(said)}"
        if len(case.consents) < case.quorum:
            yield f"ran with a yes on record of {sorted(case.consents)} alone"


def _of_answers(case: Case) -> Iterator[str]:
    if case.status in OPEN:
        yield f"is {case.status} although nothing goes on any more"
    yes = {deed.person for deed in case.deeds if deed.verb == APPROVE and deed.counts}
    others = [deed for deed in case.deeds if deed.verb != APPROVE and deed.may_count]
    if len(yes) >= case.quorum and not others and case.status not in AFTER_A_YES | OPEN:
        yield f"lost the yes of {sorted(yes)}: it is {case.status}"
    if any(deed.verb == DECLINE and deed.counts for deed in case.deeds) and case.status != Status.DECLINED:
        yield f"lost a no: it is {case.status}"
    untouched = not any(deed.may_count for deed in case.deeds)
    still = {Status.WAITING, *UNASKED} - {Status.WITHDRAWN} | ({Status.EXPIRED} if case.tool == EXPIRES else set())
    if untouched and case.status not in still:
        yield f"waited for an answer that nobody gave, and is {case.status}"


def _of_time(case: Case) -> Iterator[str]:
    seconds = SOON if case.tool == EXPIRES else SECONDS_TO_ANSWER
    if case.began and not case.began[0] <= case.until - seconds <= case.began[1]:
        early, late = (case.until - seconds - each for each in case.began)
        yield f"has {seconds} s from a moment {early:.1f} s after its message, {late:.1f} s after it was seen to wait"
    if case.status == Status.EXPIRED and case.settled is not None and case.settled < case.until:
        yield f"expired {case.until - case.settled:.1f} s before its deadline"
    for deed in case.deeds:
        if deed.verb == APPROVE and deed.counts and deed.at > case.until:
            yield f"took a yes of {deed.person} {deed.at - case.until:.1f} s after its deadline"
    yes = {deed.person for deed in case.deeds if deed.verb == APPROVE and deed.at <= case.until}
    if case.runs and len(yes) < case.quorum:
        yield f"ran, although by its deadline only {sorted(yes)} had said yes"


def _of_telling(case: Case) -> Iterator[str]:
    for told in sorted(case.told):
        claims = _claims(told)
        if claims is not None and claims != bool(case.runs):
            yield f"the model was told {told!r}, and it ran {len(case.runs)} times"


def _claims(told: str) -> bool | None:
    """Return whether a tool message says that the tool ran; None if it says neither."""
    if told == "ordered":
        return True
    facts = json.loads(told)
    if facts["status"] == Status.SUCCEEDED:
        return True
    return False if facts.get("executed") is False else None


def _told(requests: list[dict[str, Any]]) -> defaultdict[str, set[str]]:
    found = defaultdict(set)
    for message in [message for request in requests for message in request["messages"]]:
        if message["role"] == "tool":
            found[message["tool_call_id"]].add(message["content"])
    return found


def _consents(row: ToolCall) -> frozenset[str]:
    """Return who is on record with a yes to the very arguments of the call."""
    if not hasattr(row, "approval"):
        return frozenset()
    shown = row.approval.disclosure["arguments"]
    return frozenset(
        each.person.get_username()
        for each in row.approval.decisions.all()
        if (each.verdict, each.round) == ("approve", row.round)
        and (each.edited_arguments or shown) == row.arguments
        # What was changed has a digest of its own, which the record states.
        and (each.edited_arguments is not None or each.digest == row.approval.digest)
    )

"""Finding calls: who may look up which, what each filter means, pages of them, and all of them as a file.

A call is a row for other programs, with what became of it in one word, and without what looks like a secret (SR-48).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_administer
from hitlchat.base import canonical
from hitlchat.base.download import END, csv_end, csv_text
from hitlchat.gate import deciders, queue, results
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, Decision, ToolCall
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.transition import note
from hitlchat.secrets.detection import Cover

# Up to so many are named by their ids; of more than that, one in so many calls is found by looking at the newest ones.
FEW: Final = 1000
# How whoever answered was known, in words.
MEANS: Final[dict[str, str]] = {
    "session": gettext_noop("Signed in"),
    "token": gettext_noop("With an approver token"),
    "console": gettext_noop("At the console"),
    "elicitation": gettext_noop("By an MCP client's answer"),
}
ORDER = ("-created_at", "-id")
EXPORTED: Final = "history.exported"
Format = Literal["csv", "jsonl"]
FORMATS: Final[dict[Format, str]] = {"csv": "text/csv", "jsonl": "application/x-ndjson"}
# Their results may be large, and are all in memory at a time.
AT_ONCE: Final = 200
# Refused by no policy: enough other questions were open, so that nobody could be asked.
NOBODY_ASKED: Final = results.NOBODY_ASKED_STATUS
LABELS: Final[dict[str, str]] = {
    **{status.value: status.label for status in Status if status != Status.REFUSED},
    Status.REFUSED.value: gettext_noop("Refused by a policy"),
    NOBODY_ASKED: gettext_noop("Nobody could be asked"),
}
# Not what became of it, but how it came to run.
UNASKED: Final = "unasked"
CHOICES: Final[dict[str, str]] = {**LABELS, UNASKED: gettext_noop("Ran without asking")}
# Without an approval, only what was allowed comes to these.
NOT_RUN: Final = (Status.REJECTED, Status.REFUSED, Status.WITHDRAWN)
RUNS_UNASKED: Final = (Status.ALLOWED, Status.EXECUTING, Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN)
# What each says; the order is that of the columns.
COLUMNS: Final[dict[str, str]] = {
    "id": "of the call",
    "requestedAt": "when the call was submitted (ISO 8601 with time zone, like all times here)",
    "outcome": "its status; “nobody_asked” apart from “refused” by a policy",
    "toolName": "the tool's name at the time of the call",
    "source": "where the tool comes from: studio, project, upstream or agent; empty for an unknown tool",
    "riskLevel": "of the tool when it was called, 0 to 5",
    "caller": "the kind of caller: chat, studio, api or mcp",
    "person": "the person the call was made for",
    "reason": "why the call was asked about, not asked about, refused, rejected or ended without a result",
    "rule": "fingerprint of the rules that gave this reason",
    "isAutomatic": "whether the call ran, or was to run, without asking a person",
    "grantId": "of the grant that the call ran on",
    "approvalId": "of the question to people",
    "prompt": "the question, as last asked",
    "consentDigest": "SHA-256 of everything shown with the question",
    "arguments": "the arguments, including changes made by the approver",
    "askedAt": "when people were first asked",
    "deciders": "who answered, in order",
    "decisions": "their answers: person, absent, verdict, means, reason, editedArguments, times, hurried",
    "secondsToDecide": "from the first question to the last answer",
    "hurried": "whether an answer came faster than the card can be read",
    "startedAt": "when execution started",
    "settledAt": "when the call ended",
    "durationMs": "execution time",
    "result": "the tool's result; of the outcome “answered” what a person said in its place",
    "error": "the error: kind, message, line",
    "output": "the tool's printed output",
    "conversationId": "of the chat that the call comes from",
}


@dataclass(frozen=True)
class Wanted:
    """All of it has to fit; None and False narrow nothing.

    `outcome` is one of outcome.CHOICES, `caller` a kind of caller, `person` the name of whom a call was made for,
    `decider` of one who answered, `means` one of MEANS, by which somebody who answered was known, `hurried` of answers
    faster than can be read; from `since` on, to before `until`.
    """

    outcome: str | None = None
    status: str | None = None
    tool: str | None = None
    source: str | None = None
    caller: str | None = None
    person: str | None = None
    decider: str | None = None
    rule: str | None = None
    risk: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    conversation: UUID | None = None
    hurried: bool = False
    means: str | None = None

    @property
    def as_json(self) -> dict[str, Any]:
        """Return what narrows, for the record."""
        given = {name: value for name, value in asdict(self).items() if value is not None and value is not False}
        given |= {name: value.isoformat() for name, value in given.items() if isinstance(value, datetime)}
        return {name: str(value) if isinstance(value, UUID) else value for name, value in given.items()}

    def narrowed(self, rows: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
        columns = {
            "status": self.status, "tool_name": self.tool, "source": self.source, "caller_kind": self.caller,
            "rule": self.rule, "risk_level": self.risk, "created_at__gte": self.since, "created_at__lt": self.until,
            "conversation_id": self.conversation,
        }  # fmt: skip
        rows = rows.filter(**{name: value for name, value in columns.items() if value is not None})
        if self.outcome is not None:
            rows = rows.filter(having(self.outcome))
        if self.person is not None:
            whose = _id_of(self.person)
            rows = rows.filter(caller_id=whose) if whose else rows.none()
        answer: dict[str, Any] = {"hurried": True} if self.hurried else {}
        if self.decider is not None:
            answer["person_id"] = _id_of(self.decider)
        if self.means is not None:
            answer["means"] = self.means
        return rows.filter(decided(**answer)) if answer else rows


def decided(**which: Any) -> Q:
    """Return the condition of calls with an answer like `which`, as fields of decisions. Asks how many there are."""
    answers = Decision.objects.filter(**which).order_by()
    calls = list(answers.values_list("approval__call", flat=True)[: FEW + 1])
    return Q(pk__in=calls) if len(calls) <= FEW else is_decided(**which)


def is_decided(**which: Any) -> Q:
    """The same for calls that are few already."""
    return Q(Exists(Decision.objects.filter(approval__call=OuterRef("pk"), **which)))


def ways(user: User) -> tuple[Q, ...]:
    """Return the conditions of which a call has to meet one for `user` to look at it.

    Administrators see all calls; others those that were made for them, that they may or could have decided, and that
    they decided, whatever they may decide by now.
    """
    if may_administer(user):
        return (Q(),)
    return *deciders.seeing(user.pk), decided(person=user)


def own(user: User) -> tuple[Q, ...]:
    """Return the condition of calls that were made for `user`, whatever else they may look at."""
    return (Q(caller=user),)


def one(user: User, call_id: UUID) -> QuerySet[ToolCall]:
    """The call with this id, if `user` may look at it. Costs the same however many others there are."""
    every = (Q(),) if may_administer(user) else (*deciders.seeing(user.pk), is_decided(person=user))
    first, *rest = (ToolCall.objects.filter(way, pk=call_id).order_by().values("pk") for way in every)
    return ToolCall.objects.filter(pk__in=first.union(*rest) if rest else first)


def page(
    among: tuple[Q, ...],
    wanted: Wanted,
    size: int,
    *,
    before: ToolCall | None = None,
    rows: QuerySet[ToolCall] | None = None,
) -> list[ToolCall]:
    """Return so many calls at most, the newest first, that come behind `before`. `rows`: with what is to be read along.

    Each way by itself, by its own index, and of each no more than fit: of alternatives no database uses the indexes.
    Ids first: rows may be large, and what is left out of them at the end need not have been read.
    """
    found: set[tuple[datetime, UUID]] = set()
    for each in _each(among, wanted):
        narrowed = each if before is None else each.filter(older(before))
        found |= {*narrowed.order_by(*ORDER).values_list("created_at", "pk")[:size]}
    ids = [pk for _, pk in sorted(found, reverse=True)[:size]]
    read = (ToolCall.objects.all() if rows is None else rows).in_bulk(ids)
    return [read[pk] for pk in ids if pk in read]


def count(among: tuple[Q, ...], wanted: Wanted, most: int | None = None) -> int:
    """Return how many there are; counting stops at `most`."""
    first, *rest = (each.order_by().values("pk") for each in _each(among, wanted))
    every = first.union(*rest) if rest else first
    return every.count() if most is None else len(every[:most])


def older(call: ToolCall) -> Q:
    """Return the condition of calls that come behind this one."""
    # The moment first and alone: an index leads to it.
    return Q(created_at__lte=call.created_at) & (Q(created_at__lt=call.created_at) | Q(pk__lt=call.pk))


def export(among: tuple[Q, ...], wanted: Wanted, form: Format, actor: Actor) -> Iterator[str]:
    """The pieces of the file. What is raised here, before there are any, means that nothing was given away.

    The record has how many calls there were; the last line, how many are in the file. Calls that come in meanwhile are
    not in it; of those that are, some may have gone on to another outcome.
    """
    now = timezone.now()
    wanted = replace(wanted, until=min(wanted.until or now, now))
    rows = count(among, wanted)
    note(None, EXPORTED, actor=actor, data={"filter": wanted.as_json, "format": form, "rows": rows})
    return _pieces(among, wanted, form)


def outcome_of(call: ToolCall) -> str:
    return NOBODY_ASKED if call.status == Status.REFUSED and call.reason in queue.REASONS else str(call.status)


def label_of(call: ToolCall) -> str:
    return LABELS[outcome_of(call)]


def ran_unasked(call: ToolCall) -> bool:
    """Return whether it was started, or is about to be, without a person having been asked; its approval is loaded."""
    return approval_of(call) is None and call.status in RUNS_UNASKED


def having(outcome: str) -> Q:
    """Return the condition of calls. Raises: ValueError, for none of CHOICES."""
    if outcome == UNASKED:
        # Only what is asked about has a deadline: there is an index of the others. By what it is not, since the one of
        # outcomes would lead to everything that ran.
        return Q(deadline__isnull=True, approval__isnull=True) & ~Q(status__in=NOT_RUN)
    if outcome == NOBODY_ASKED:
        return _settled_as(Status.REFUSED) & Q(reason__in=queue.REASONS)
    if outcome == Status.REFUSED:
        return _settled_as(Status.REFUSED) & ~Q(reason__in=queue.REASONS)
    status = Status(outcome)
    return _settled_as(status) if status in SETTLED else Q(status=status)


def needed(rows: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    """`rows` with all that `row` and `decisions_of` read of each; without what was shown, which may be long."""
    found = rows.select_related("caller", "approval").prefetch_related("approval__decisions__person")
    return found.defer("approval__disclosure")


def row(call: ToolCall) -> dict[str, Any]:
    """Return a call by the names of COLUMNS; values are JSON's own."""
    approval, answers = approval_of(call), decisions_of(call)
    # What is secret in one of them is hidden in all: arguments come back in questions and results.
    cover = Cover(call.arguments, call.result, *(each.edited_arguments for each in answers))
    return {
        "id": str(call.pk),
        "requestedAt": _moment(call.created_at),
        "outcome": outcome_of(call),
        "toolName": call.tool_name,
        "source": call.source,
        "riskLevel": call.risk_level,
        "caller": call.caller_kind,
        "person": call.caller.get_username(),
        "reason": cover.text(call.reason),
        "rule": call.rule,
        "isAutomatic": ran_unasked(call),
        "grantId": str(call.grant_id) if call.grant_id else None,
        "approvalId": str(approval.pk) if approval else None,
        "prompt": cover.text(approval.prompt) if approval else None,
        "consentDigest": approval.digest if approval else None,
        "arguments": cover.value(call.arguments),
        "askedAt": _moment(approval.created_at) if approval else None,
        "deciders": [each.person.get_username() for each in answers],
        "decisions": [_decision(each, cover) for each in answers],
        "secondsToDecide": seconds_to_decide(call),
        "hurried": any(each.hurried for each in answers),
        "startedAt": _moment(call.started_at),
        "settledAt": _moment(call.settled_at),
        "durationMs": call.duration_ms,
        "result": cover.value(call.result),
        "error": cover.value(call.error),
        "output": cover.text(call.output),
        "conversationId": str(call.conversation_id) if call.conversation_id else None,
    }


def approval_of(call: ToolCall) -> Approval | None:
    approval: Approval | None = getattr(call, "approval", None)
    return approval


def decisions_of(call: ToolCall) -> list[Decision]:
    approval = approval_of(call)
    return list(approval.decisions.all()) if approval else []


def seconds_to_decide(call: ToolCall) -> float | None:
    """Return the time from the first question to the last answer; None while there is none."""
    approval, answers = approval_of(call), decisions_of(call)
    if approval is None or not answers:
        return None
    last = max(each.decided_at for each in answers)
    return round(max(0.0, (last - approval.created_at).total_seconds()), 3)


def _id_of(username: str) -> int:
    """0, which is nobody's, for a name that is nobody's: filters tell nothing about who there is."""
    return User.objects.filter(username=username).values_list("pk", flat=True).first() or 0


def _each(among: tuple[Q, ...], wanted: Wanted) -> Iterator[QuerySet[ToolCall]]:
    return (wanted.narrowed(ToolCall.objects.filter(way)) for way in among)


def _pieces(among: tuple[Q, ...], wanted: Wanted, form: Format) -> Iterator[str]:
    is_csv, rows, last = form == "csv", 0, None
    if is_csv:
        yield csv_text([COLUMNS])
    while found := page(among, wanted, AT_ONCE, before=last, rows=needed(ToolCall.objects.all())):
        calls = [row(call) for call in found]
        rows, last = rows + len(calls), found[-1]
        # In a table, what is no single value as its JSON; yes and no as JSON has them.
        yield csv_text(map(_cells, calls)) if is_csv else "".join(f"{canonical.dumps(each)}\n" for each in calls)
    yield csv_end(rows, COLUMNS) if is_csv else f"{canonical.dumps({'id': END, 'rows': rows})}\n"


def _cells(call: dict[str, Any]) -> list[object]:
    values = (call[name] for name in COLUMNS)
    return [canonical.dumps(each) if isinstance(each, dict | list | bool) else each for each in values]


def _settled_as(status: Status) -> Q:
    # Said twice for the index of outcomes, which has only what is settled.
    return Q(status=status, settled_at__isnull=False)


def _decision(each: Decision, cover: Cover) -> dict[str, Any]:
    return {
        "person": each.person.get_username(),
        "absent": each.absent_name or None,
        "verdict": each.verdict,
        "means": each.means,
        "client": each.client or None,
        "token": each.token_name or None,
        "reason": cover.text(each.reason),
        "round": each.round,
        "consentDigest": each.digest,
        "decidedAt": _moment(each.decided_at),
        "firstShownAt": _moment(each.first_shown_at),
        "opened": each.opened,
        "hurried": each.hurried,
        "editedArguments": cover.value(each.edited_arguments),
    }


def _moment(at: datetime | None) -> str | None:
    return at.isoformat() if at else None

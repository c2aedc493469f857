"""Finding calls: who may look up which, what each filter means, pages of them, and all of them as a file."""

from collections.abc import Iterable, Iterator
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
from hitlchat.gate import deciders
from hitlchat.gate.actor import Actor
from hitlchat.gate.history.row import COLUMNS, having, needed, row
from hitlchat.gate.models import Decision, ToolCall
from hitlchat.gate.transition import note

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
        return {name: _text(value) if isinstance(value, datetime | UUID) else value for name, value in given.items()}

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
    """Return the ways in which `user` may look at a call.

    They are: administrators at all; others at calls that were made for them, that they may
    or could have decided, and that they decided, whatever they may decide by now.
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
    for each in _each(among, wanted, ToolCall.objects.all()):
        narrowed = each if before is None else each.filter(older(before))
        found |= {*narrowed.order_by(*ORDER).values_list("created_at", "pk")[:size]}
    ids = [pk for _, pk in sorted(found, reverse=True)[:size]]
    read = (ToolCall.objects.all() if rows is None else rows).in_bulk(ids)
    return [read[pk] for pk in ids if pk in read]


def count(among: tuple[Q, ...], wanted: Wanted, most: int | None = None) -> int:
    """Return how many there are; counting stops at `most`."""
    first, *rest = (each.order_by().values("pk") for each in _each(among, wanted, ToolCall.objects.all()))
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
    pages = _pages(among, wanted)
    return _csv(pages) if form == "csv" else _lines(pages)


def _id_of(username: str) -> int:
    """0, which is nobody's, for a name that is nobody's: filters tell nothing about who there is."""
    return User.objects.filter(username=username).values_list("pk", flat=True).first() or 0


def _text(value: datetime | UUID) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _each(among: tuple[Q, ...], wanted: Wanted, rows: QuerySet[ToolCall]) -> Iterator[QuerySet[ToolCall]]:
    return (wanted.narrowed(rows.filter(way)) for way in among)


def _pages(among: tuple[Q, ...], wanted: Wanted) -> Iterator[list[dict[str, Any]]]:
    """Yield the calls in pages, the newest first."""
    last: ToolCall | None = None
    while found := page(among, wanted, AT_ONCE, before=last, rows=needed(ToolCall.objects.all())):
        yield [row(call) for call in found]
        last = found[-1]


def _csv(pages: Iterable[list[dict[str, Any]]]) -> Iterator[str]:
    yield csv_text([COLUMNS])
    count = 0
    for page in pages:
        count += len(page)
        yield csv_text([_cell(each[name]) for name in COLUMNS] for each in page)
    yield csv_end(count, COLUMNS)


def _cell(value: Any) -> Any:
    """Return what is no single value as its JSON; yes and no as JSON has them."""
    return canonical.dumps(value) if isinstance(value, dict | list | bool) else value


def _lines(pages: Iterable[list[dict[str, Any]]]) -> Iterator[str]:
    count = 0
    for page in pages:
        count += len(page)
        yield "".join(f"{canonical.dumps(each)}\n" for each in page)
    yield f"{canonical.dumps({'id': END, 'rows': count})}\n"

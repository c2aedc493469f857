"""The plan of the drawer: all that somebody changed, applied in one transaction, or not at all and with the reasons."""

from dataclasses import dataclass
from uuid import UUID

from django.core.exceptions import BadRequest
from django.db import transaction
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hitlchat.gate.actor import Actor
from hitlchat.upstreams import composing, exposure
from hitlchat.upstreams.changes import USUAL, Change, NotConfirmed, Refused, field_of, settled
from hitlchat.upstreams.exposure import BadExposure
from hitlchat.upstreams.models import ComposedTool

# All tools of two servers that offer as many as one may.
MOST_CHANGES = 10_000
# What is no number of seconds, for what checks the change to say so.
NO_NUMBER = -1


def stamp(row: ComposedTool) -> str:
    """Return a stamp of all that a person sees of the tool before they change it: its record, and its settings."""
    return f"{row.seen_digest}.{settled(row)}"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Wish(_Strict):
    """A wish for one tool; what is not there stays as it is. `stamp`: of the tool as it stood on the page."""

    tool: UUID
    stamp: str = Field(pattern=r"^[0-9a-f]{64}\.[0-9a-f]{64}$")
    exposed: bool | None = None
    alias: str | None = None
    description: str | None = None
    hitl_mode: str | None = None
    prompt_template: str | None = None
    condition: str | None = None
    deadline_seconds: str | None = Field(default=None, max_length=20)
    signed_in_only: bool | None = None
    warnings_read: bool = False

    def change(self) -> Change:
        digest, _, settled = self.stamp.partition(".")
        fields = self.model_dump(exclude={"stamp"}) | {"deadline_seconds": self._seconds()}
        return Change(digest=digest, settled=settled, **fields)

    def _seconds(self) -> int | None:
        """Return the seconds as typed; empty is the usual time."""
        text = self.deadline_seconds
        if text is None or not text.strip():
            return text if text is None else USUAL
        return int(text) or NO_NUMBER if text.strip().isdecimal() else NO_NUMBER


class Offering(_Strict):
    """Exposure mode and ceiling, and both as they stood on the page."""

    mode: str = Field(max_length=20)
    ceiling: int
    was_mode: str = Field(max_length=20)
    was_ceiling: int


class Plan(_Strict):
    """`confirmed`: the digest of what was asked about lowering oversight, once somebody said yes to it."""

    changes: list[Wish] = Field(max_length=MOST_CHANGES)
    exposure: Offering | None = None
    confirmed: str = Field(default="", max_length=64)

    def listed(self) -> list[Change]:
        return [wish.change() for wish in self.changes]


def read(text: str) -> Plan:
    """BadRequest: no page of ours sends this."""
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "plan"
        raise BadRequest(f"{where}: {first['msg']}") from error


MOST_TOLD = 50
CRITICAL = 5


class Meanwhile(Exception):
    """Somebody else has changed what is offered at all since the page was made."""


@dataclass(frozen=True)
class Told:
    """An objection to the change of one tool, with the field that it is about; `stamp` is that of the tool as it is
    now. All but the id and the sentences are empty if there is no such tool any more.
    """

    tool: UUID
    server: str
    name: str
    stamp: str
    sentences: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a plan: all of it was applied unless there are `problems`, a `conflict`, or a `question`."""

    applied: int = 0
    problems: tuple[Told, ...] = ()
    unmentioned: int = 0
    conflict: str = ""
    question: NotConfirmed | None = None

    @property
    def has_critical(self) -> bool:
        return self.question is not None and any(each.risk >= CRITICAL for each in self.question.loosenings)

    @property
    def refused(self) -> int:
        return len(self.problems) + self.unmentioned


def carry_out(plan: Plan, actor: Actor) -> Outcome:
    """OnlyAdministrators."""
    try:
        with transaction.atomic():
            returning = exposure.returning(plan.exposure.ceiling) if plan.exposure else []
            offered = _offer(plan.exposure, actor) if plan.exposure else 0
            changed = composing.apply(plan.listed(), actor, confirmed=plan.confirmed, returning=returning)
    except Refused as refused:
        return _refusal(refused)
    except NotConfirmed as question:
        return Outcome(question=question)
    except (BadExposure, Meanwhile) as error:
        return Outcome(conflict=str(error))
    return Outcome(applied=len(changed) + offered)


def told(problems: dict[UUID, list[str]]) -> list[Told]:
    """Return the problems by server and tool; those that are not there any more last."""
    found = []
    loaded = ComposedTool.objects.select_related("server", "tool").defer("seen", "pinned")
    rows = loaded.in_bulk(list(problems)[:MOST_TOLD])
    for pk, said in list(problems.items())[:MOST_TOLD]:
        row = rows.get(pk)
        known = (row.server.name, row.name, stamp(row)) if row else ("", "", "")
        found.append(Told(pk, *known, tuple((field_of(each), each) for each in said)))
    return sorted(found, key=lambda each: (not each.name, each.server, each.name))


def _offer(wanted: Offering, actor: Actor) -> int:
    """Return how many of the two settings are other ones now. BadExposure, Meanwhile."""
    now = exposure.standing()
    if (now.mode, now.ceiling) != (wanted.was_mode, wanted.was_ceiling):
        raise Meanwhile(
            f"Somebody else changed what is offered meanwhile: {now.get_mode_display()}, up to L{now.ceiling}. "
            "Load the page again to see it."
        )
    exposure.change(wanted.mode, wanted.ceiling, actor)
    return (wanted.mode != wanted.was_mode) + (wanted.ceiling != wanted.was_ceiling)


def _refusal(refused: Refused) -> Outcome:
    problems = tuple(told(refused.problems))
    return Outcome(problems=problems, unmentioned=len(refused.problems) - len(problems))

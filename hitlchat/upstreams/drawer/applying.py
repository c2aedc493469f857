"""One Apply of the drawer: exposure and tools in one transaction, or nothing of it and the reasons."""

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from hitlchat.gate.actor import Actor
from hitlchat.upstreams import composing, exposure
from hitlchat.upstreams.checking import field_of
from hitlchat.upstreams.composing import NotConfirmed, Refused
from hitlchat.upstreams.drawer.plan import Offering, Plan, stamp
from hitlchat.upstreams.exposure import BadExposure
from hitlchat.upstreams.models import ComposedTool

MOST_TOLD = 50
CRITICAL = 5


class Meanwhile(Exception):
    """Somebody else has changed what is offered at all since the page was made."""


@dataclass(frozen=True)
class Told:
    """What speaks against the change of one tool, with the field that it is about; `stamp` is that of the tool as it is
    now. All but the id and the sentences are empty if there is no such tool any more."""

    tool: UUID
    server: str
    name: str
    stamp: str
    sentences: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a plan: all of it was applied unless there are `problems`, a `conflict`, or a `question`."""

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
    """By server and tool; those that are not there any more last."""
    found = []
    loaded = ComposedTool.objects.select_related("server", "tool").defer("seen", "pinned")
    rows = loaded.in_bulk(list(problems)[:MOST_TOLD])
    for pk, said in list(problems.items())[:MOST_TOLD]:
        row = rows.get(pk)
        known = (row.server.name, row.name, stamp(row)) if row else ("", "", "")
        found.append(Told(pk, *known, tuple((field_of(each), each) for each in said)))
    return sorted(found, key=lambda each: (not each.name, each.server, each.name))


def _offer(wanted: Offering, actor: Actor) -> int:
    """How many of the two settings are other ones now. BadExposure, Meanwhile."""
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

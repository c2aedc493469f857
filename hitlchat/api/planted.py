"""Attention checks over REST: the person's own results, the announcement, and totals. None is answered here."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Router
from pydantic import Field

from hitlchat.api.auth import ApiRequest, administrator, decider
from hitlchat.api.contract import Body, Shape, Text, examples
from hitlchat.gate import planted
from hitlchat.gate.models import Announcement, AttentionCheck
from hitlchat.gate.models.attention import MOST_DAYS

router = Router(tags=["attention checks"], by_alias=True)
TO = "turn attention checks on or off, and see their totals"


class Check(Shape):
    id: UUID
    prompt: str
    argument: str
    wanted: str = Field(description="What the request on the card says.")
    planted: str = Field(description="What the card showed.")
    planted_at: datetime
    seen: bool | None = Field(description="Whether it was declined; null: it was not answered in time.")


class NewAnnouncement(Body):
    model_config = examples({"text": "We want to know whether cards are read.", "everyDays": 14})

    text: Annotated[Text, Field(description="What everybody reads in the inbox before the first check.")]
    every_days: int = Field(planted.USUAL_DAYS, description=f"At most one check per person in 1 to {MOST_DAYS} days.")


class Totals(Shape):
    people: int
    answered: int
    seen: int


class Checks(Shape):
    is_on: bool
    text: str | None
    every_days: int | None
    announced_at: datetime | None
    read_by: int = Field(description="How many people have read the announcement.")
    totals: Totals | None = Field(description="Of the last three months; null: of fewer than five people.")


@router.get("", response=list[Check])
def list_checks(request: ApiRequest) -> list[Check]:
    """Return your own attention checks that are over, the newest first. Nobody else gets them."""
    person_id = decider(request, "see your attention checks").user_id or 0
    return [_check(each) for each in planted.over(person_id)]


@router.get("/announcement", response=Checks)
def read_announcement(request: ApiRequest) -> Checks:
    """Return whether attention checks are on, with totals of everyone. For administrators."""
    administrator(request, TO)
    return _checks(planted.current())


@router.put("/announcement", response=Checks)
def announce(request: ApiRequest, body: NewAnnouncement) -> Checks:
    """Turn attention checks on, or announce them anew: they come to whoever has read it. For administrators."""
    administrator(request, TO)
    return _checks(planted.announce(body.text, body.every_days, request.auth.actor))


@router.delete("/announcement", response={204: None})
def end(request: ApiRequest) -> None:
    """Turn attention checks off, those that are open included. For administrators."""
    administrator(request, TO)
    planted.end(request.auth.actor)


def _check(row: AttentionCheck) -> Check:
    shown = {"prompt": row.disclosure["prompt"], "argument": row.argument, "wanted": row.wanted}
    return Check(id=row.pk, **shown, planted=row.planted, planted_at=row.at, seen=row.seen)


def _checks(row: Announcement | None) -> Checks:
    found = planted.totals()
    return Checks(
        is_on=row is not None,
        text=row.text if row else None,
        every_days=row.every_days if row else None,
        announced_at=row.at if row else None,
        read_by=row.read_by.count() if row else 0,
        totals=Totals(people=found.people, answered=found.answered, seen=found.seen) if found else None,
    )

"""Delegations: who may decide in whose place while they are away."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import AwareDatetime, Field

from hitlchat.api.auth import ApiRequest, decider
from hitlchat.api.contract import Body, Line, Shape, Username, examples
from hitlchat.gate import absences
from hitlchat.gate.models import Absence

router = Router(tags=["delegations"], by_alias=True)
DELEGATE = "delegate"


class NewDelegation(Body):
    model_config = examples({"delegate": "carol", "until": "2027-01-10T08:00:00Z"})

    delegate: Line = Field(description="The username of who may decide.")
    since: Annotated[AwareDatetime | None, Field(strict=False, description="Null: from now on.")] = None
    until: Annotated[AwareDatetime, Field(strict=False, description="At most 365 days after `since`.")]
    person: Line | None = Field(
        None, description="Who is away; null: you. Only administrators may name another person."
    )


class Delegation(Shape):
    id: UUID
    person: Username
    delegate: Username
    since: datetime
    until: datetime


@router.get("", response=list[Delegation])
def list_delegations(request: ApiRequest) -> list[Absence]:
    """Return the delegations that are not over: yours and those to you; of everyone, for administrators."""
    return list(absences.seen_by(request.auth.user))


@router.post("", response={201: Delegation})
def add_delegation(request: ApiRequest, body: NewDelegation) -> Absence:
    """Let somebody decide in your place between two moments. Their yes counts as yours, and only once."""
    actor = decider(request, DELEGATE)
    person = request.auth.user if body.person is None else get_object_or_404(User, username=body.person)
    return absences.begin(person.pk, body.model_dump()["delegate"], body.since, body.until, actor)


@router.delete("/{uuid:delegation_id}", response={204: None})
def end_delegation(request: ApiRequest, delegation_id: UUID) -> None:
    """End it now. What was decided stays; an approval that waits for others counts no longer."""
    absences.end(delegation_id, decider(request, DELEGATE))

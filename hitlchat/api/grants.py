"""Grants as the REST API takes and gives them: what runs without asking because a person said so."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import AwareDatetime, Field

from hitlchat.api.auth import ApiRequest, decider
from hitlchat.api.contract import Body, CallerName, Flag, Page, Shape, Text, Username, read
from hitlchat.gate import models as gate
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.grants.scope import Scope


class NewGrant(Body):
    """Calls like the one that is approved, which run without asking. It needs a bound: `calls`, a time, or
    `thisConversation`.
    """

    same_arguments: bool = False
    this_conversation: bool = False
    calls: int | None = Field(None, description="1 to 100.")
    minutes: int | None = Field(None, description="Minutes from now on, up to 24 hours.")
    # Strict bodies take no text for a time, and JSON has nothing else.
    until: Annotated[AwareDatetime | None, Field(strict=False, description="Within the next 24 hours.")] = None
    condition: Text = Field("", description="An expression about `args`; if it fails, a person is asked.")

    @property
    def scope(self) -> Scope:
        return Scope(**self.model_dump())


class Grant(Shape):
    id: UUID
    sentence: str = Field(description="The calls covered, as a sentence.")
    state: giving.State
    approval_id: UUID = Field(description="The approval that the grant was given with.")
    person: Username
    tool_name: str
    caller: CallerName = read("caller_kind")
    same_arguments: Flag = read("arguments_digest")
    conversation_id: UUID | None = Field(description="Covers only calls in this conversation; null: in any.")
    calls: int | None
    used: int
    until: datetime | None
    condition: str
    given_at: datetime
    ended_at: datetime | None
    ended_by: Username | None
    why: str = Field(description="Why the grant was ended, if it was.")


class GrantFilter(Page):
    state: Literal["active", "ended", "all"] = "active"


def grant(row: gate.Grant, *, is_active: bool) -> Grant:
    return Grant.of(row, sentence=scope.sentence(row), state=giving.state(row, is_active=is_active))


def one(grant_id: UUID) -> Grant:
    row = get_object_or_404(gate.Grant.objects.select_related("person", "ended_by"), pk=grant_id)
    return grant(row, is_active=giving.active(gate.Grant.objects.filter(pk=grant_id)).exists())


router = Router(tags=["grants"], by_alias=True)


@router.get("", response=list[Grant])
def list_grants(request: ApiRequest, wanted: Query[GrantFilter]) -> list[Grant]:
    """Your grants, the latest first; of everyone, for administrators."""
    rows = giving.seen_by(request.auth.user)
    chosen = {"active": giving.active(rows), "ended": giving.ended(rows), "all": rows}[wanted.state]
    page = list(wanted.cut(chosen))
    active = set(giving.active(rows).filter(pk__in=[each.pk for each in page]).values_list("pk", flat=True))
    return [grant(each, is_active=each.pk in active) for each in page]


@router.post("/{uuid:grant_id}/revoke", response=Grant)
def revoke_grant(request: ApiRequest, grant_id: UUID) -> Grant:
    """End it at once: what it let in and has not started does not start, and what executes is told to stop. One that
    has ended stays as it ended.
    """
    giving.revoke(grant_id, decider(request))
    return one(grant_id)

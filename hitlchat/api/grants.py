"""Grants: what runs without asking because a person said so."""

from uuid import UUID

from ninja import Query, Router

from hitlchat.api import grant_schemas
from hitlchat.api.auth import ApiRequest, decider
from hitlchat.gate.grants import ending, giving

router = Router(tags=["grants"], by_alias=True)


@router.get("", response=list[grant_schemas.Grant])
def list_grants(request: ApiRequest, wanted: Query[grant_schemas.GrantFilter]) -> list[grant_schemas.Grant]:
    """Your grants, the latest first; of everyone, for administrators."""
    rows = giving.seen_by(request.auth.user)
    chosen = {"active": giving.active(rows), "ended": giving.ended(rows), "all": rows}[wanted.state]
    page = list(chosen[wanted.offset : wanted.offset + wanted.limit])
    active = set(giving.active(rows).filter(pk__in=[each.pk for each in page]).values_list("pk", flat=True))
    return [grant_schemas.grant(each, is_active=each.pk in active) for each in page]


@router.post("/{uuid:grant_id}/revoke", response=grant_schemas.Grant)
def revoke_grant(request: ApiRequest, grant_id: UUID) -> grant_schemas.Grant:
    """End it at once: what it let in and has not started does not start, and what executes is told to stop. One that
    has ended stays as it ended."""
    ending.revoke(grant_id, decider(request))
    return grant_schemas.one(grant_id)

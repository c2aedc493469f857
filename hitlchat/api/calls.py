"""Tool calls: what was asked for, who decided, and what became of it."""

from uuid import UUID

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from ninja import Query, Router

from hitlchat.api import schemas, shapes
from hitlchat.api.auth import ApiRequest
from hitlchat.gate import stopping
from hitlchat.gate.models import ToolCall

router = Router(tags=["calls"], by_alias=True)


@router.get("", response=list[schemas.Call])
def list_calls(request: ApiRequest, wanted: Query[schemas.CallFilter]) -> list[schemas.Call]:
    """Calls made on your behalf, the latest first; `before` the last of them, for more."""
    columns = {"status": wanted.status, "tool_name": wanted.tool, "conversation_id": wanted.conversation}
    rows = _mine(request).filter(**{name: value for name, value in columns.items() if value is not None})
    if wanted.before is not None:
        rows = rows.filter(_older(get_object_or_404(_mine(request), pk=wanted.before)))
    return [shapes.call(row) for row in rows.order_by("-created_at", "-id")[: wanted.limit]]


@router.get("/{uuid:call_id}", response=schemas.Call)
def read_call(request: ApiRequest, call_id: UUID) -> schemas.Call:
    return shapes.call(get_object_or_404(_mine(request), pk=call_id))


@router.post("/{uuid:call_id}/stop", response=schemas.Call)
def stop_call(request: ApiRequest, call_id: UUID) -> schemas.Call:
    """Tell a call to stop that executes. That is a wish: it may end as unknown, or still succeed. Others stay as they
    are."""
    stopping.request(call_id, request.auth.actor)
    return shapes.call(get_object_or_404(_mine(request), pk=call_id))


def _mine(request: ApiRequest) -> QuerySet[ToolCall]:
    return shapes.calls().filter(caller=request.auth.user)


def _older(call: ToolCall) -> Q:
    return Q(created_at__lt=call.created_at) | Q(created_at=call.created_at, pk__lt=call.pk)

"""Tool calls and runs: what was asked for, who decided, what became of it; a run is stopped."""

from dataclasses import fields
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Query, Router

from hitlchat.agent import runner
from hitlchat.agent.models import Run
from hitlchat.api import schemas, shapes
from hitlchat.api.auth import ApiRequest
from hitlchat.gate import stopping
from hitlchat.gate.history import finding
from hitlchat.gate.history.finding import Wanted
from hitlchat.gate.models import ToolCall

router = Router(tags=["calls"], by_alias=True)


FILTERS = {each.name for each in fields(Wanted)}


@router.get("", response=list[schemas.Call])
def list_calls(request: ApiRequest, wanted: Query[schemas.CallFilter]) -> list[schemas.Call]:
    """Calls made on your behalf, or with `scope=all` also of others, the latest first; `before` the last of them, for
    more.
    """
    user = request.auth.user
    among = finding.own(user) if wanted.scope == "mine" else finding.ways(user)
    before = None
    if wanted.before is not None:
        seen = finding.one(user, wanted.before)
        before = get_object_or_404(seen if wanted.scope == "all" else seen.filter(caller=user))
    narrowed = Wanted(**wanted.model_dump(include=FILTERS))
    return [shapes.call(row) for row in finding.page(among, narrowed, wanted.limit, before=before, rows=shapes.calls())]


@router.get("/{uuid:call_id}", response=schemas.Call)
def read_call(request: ApiRequest, call_id: UUID) -> schemas.Call:
    """Return one that you may look at: made for you, yours to decide, decided by you; any, for administrators."""
    return shapes.call(get_object_or_404(shapes.calls().filter(pk__in=finding.one(request.auth.user, call_id))))


@router.post("/{uuid:call_id}/stop", response=schemas.Call)
def stop_call(request: ApiRequest, call_id: UUID) -> schemas.Call:
    """Tell a call to stop that executes. That is a wish: it may end as unknown, or still succeed. Others stay as they
    are.
    """
    stopping.request(call_id, request.auth.actor)
    return shapes.call(get_object_or_404(_mine(request), pk=call_id))


def _mine(request: ApiRequest) -> QuerySet[ToolCall]:
    return shapes.calls().filter(caller=request.auth.user)


runs_router = Router(tags=["runs"], by_alias=True)


@runs_router.get("/{uuid:run_id}", response=schemas.RunState)
def read_run(request: ApiRequest, run_id: UUID) -> schemas.RunState:
    return shapes.run(_my_run(request, run_id))


@runs_router.post("/{uuid:run_id}/stop", response=schemas.RunState)
def stop_run(request: ApiRequest, run_id: UUID) -> schemas.RunState:
    """End the run: what waits for an answer is withdrawn. One that is over already stays as it is."""
    run = _my_run(request, run_id)
    runner.stop(run.pk, run.conversation_id, request.auth.actor)
    return shapes.run(_my_run(request, run_id))


def _my_run(request: ApiRequest, run_id: UUID) -> Run:
    return get_object_or_404(Run, pk=run_id, conversation__owner=request.auth.user)

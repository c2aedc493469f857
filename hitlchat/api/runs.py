"""Runs: how far the assistant is, and stopping it."""

from uuid import UUID

from django.shortcuts import get_object_or_404
from ninja import Router

from hitlchat.agent import runner
from hitlchat.agent.models import Run
from hitlchat.api import schemas, shapes
from hitlchat.api.auth import ApiRequest

router = Router(tags=["runs"], by_alias=True)


@router.get("/{uuid:run_id}", response=schemas.RunState)
def read_run(request: ApiRequest, run_id: UUID) -> schemas.RunState:
    return shapes.run(_mine(request, run_id))


@router.post("/{uuid:run_id}/stop", response=schemas.RunState)
def stop_run(request: ApiRequest, run_id: UUID) -> schemas.RunState:
    """End the run: what waits for an answer is withdrawn. One that is over already stays as it is."""
    run = _mine(request, run_id)
    runner.stop(run.pk, run.conversation_id, request.auth.actor)
    return shapes.run(_mine(request, run_id))


def _mine(request: ApiRequest, run_id: UUID) -> Run:
    return get_object_or_404(Run, pk=run_id, conversation__owner=request.auth.user)

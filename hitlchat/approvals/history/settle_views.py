"""The desk for calls of which nobody knows whether they happened: marked as done or failed, or run again."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from hitlchat.accounts.people import person
from hitlchat.agent import unknown
from hitlchat.approvals.history.views import shown
from hitlchat.gate.actor import actor_of
from hitlchat.gate.decide import AlreadySettled, NoSuchApproval
from hitlchat.gate.history import finding
from hitlchat.gate.resolve import BadRemark
from hitlchat.gate.status import Status

UNCLEAR = "Nothing was done: expected to be told one of done, failed and again."


@login_required
@require_POST
def settle(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """404 for whom it is nothing, 409 if its outcome is not unknown any more, 422 for a note that cannot be kept."""
    remark = request.POST.get("note", "")
    try:
        match request.POST.getlist("outcome"):
            case ["done"]:
                return _marked(request, call_id, "Marked as done.", remark)
            case ["failed"]:
                return _marked(request, call_id, "Marked as failed.", remark)
            case ["again"]:
                return _again(request, call_id, remark)
    except NoSuchApproval as error:
        raise Http404(str(error)) from error
    except AlreadySettled as late:
        told = f"Its outcome is not unknown any more: {Status(late.call.status).label.lower()}. Nothing was changed."
        return shown(request, call_id, problem=told, typed=remark, status=409)
    except unknown.NotAgain as error:
        return shown(request, call_id, problem=str(error), typed=remark, status=409)
    except BadRemark as error:
        return shown(request, call_id, problem=str(error), typed=remark, status=422)
    return shown(request, call_id, problem=UNCLEAR, typed=remark, status=422)


def _marked(request: HttpRequest, call_id: UUID, told: str, remark: str) -> HttpResponse:
    unknown.mark(call_id, "done" if told == "Marked as done." else "failed", actor_of(request), remark=remark)
    messages.success(request, f"{told} That is on record, with your name.")
    return redirect("history-call", call_id)


def _again(request: HttpRequest, call_id: UUID, remark: str) -> HttpResponse:
    user = person(request)
    old = get_object_or_404(finding.one(user, call_id))
    new = unknown.again(old, actor_of(request), user.get_username(), remark=remark)
    asks = new.status == Status.WAITING
    messages.success(request, "It asks again: answer it like any other." if asks else "Submitted again as a new call.")
    return redirect("history-call", new.pk)

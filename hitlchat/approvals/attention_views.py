"""A page tells that cards have come into its person's sight. That is a log: nothing is decided by it."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from hitlchat.accounts.people import person
from hitlchat.gate import attention, deciders
from hitlchat.gate.actor import actor_of
from hitlchat.gate.batch import MOST_TOGETHER


@login_required
@require_POST
def shown(request: HttpRequest) -> HttpResponse:
    """The `items`, each an approval's id and the digest of what stands on the page; 204 whatever comes of it.

    What the person may not see, or what is another question by now, is passed over, as is what makes no sense.
    """
    items = dict(pair for item in request.POST.getlist("items")[:MOST_TOGETHER] if (pair := _item(item)))
    actor = actor_of(request)
    for found in deciders.seen_by(person(request).pk, items):
        if found.digest == items[found.pk]:
            attention.shown(found, actor)
    return HttpResponse(status=204)


def _item(text: str) -> tuple[UUID, str] | None:
    approval, _, digest = text.partition(":")
    try:
        return UUID(approval), digest
    except ValueError:
        return None

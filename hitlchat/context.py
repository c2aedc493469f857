"""The frame of every page."""

from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from hitlchat.accounts.preferences import theme
from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.agent import routes
from hitlchat.agent.model_client import uses_demo
from hitlchat.approvals.inbox import lines
from hitlchat.chat import pages
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.pages import summary


def shell(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"signed_in": False, "theme": theme(request), "bar": pages.ALL[:1]}
    name = user.get_full_name() or user.get_username()
    return {
        "signed_in": True,
        "theme": theme(request),
        "person_name": name,
        "initials": "".join(word[0] for word in name.split()[:2]).upper(),
        "may_author": may_author(user),
        "may_administer": may_administer(user),
        "bar": [each for each in pages.open_to(user) if each.icon],
        "uses_demo": uses_demo(),
        "model_name": settings.OPENAI_MODEL,
        "default_endpoint": routes.default,
        "gate_is_off": not settings.HITL_ENABLED,
        # Computed only where it is shown, and for the people who see it.
        "servers_attention": summary.count if may_administer(user) else 0,
        "approvals_waiting": partial(lines.count_waiting, user.pk),
        "open_questions": partial(questions.count_open, user.pk),
    }

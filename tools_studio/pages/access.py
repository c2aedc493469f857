"""Who may see a page of the Studio, and the tool it is about."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from hitlchat.accounts.access import person
from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.gate.models import Tool
from tools_studio.drafts import SOURCE

View = Callable[..., HttpResponse]
Question = Callable[[Any], bool]


def _only(may: Question) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @login_required
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not may(person(request)):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return guarded

    return decorate


author_only = _only(may_author)
administrator_only = _only(may_administer)


def authored(name: str) -> Tool:
    """The authored tool of this name, or the page that says there is none."""
    return get_object_or_404(Tool.objects.select_related("script"), name=name, source=SOURCE)

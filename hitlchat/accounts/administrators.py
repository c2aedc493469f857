"""Pages for administrators alone."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

from hitlchat.accounts.people import person
from hitlchat.accounts.roles import may_administer

View = Callable[..., HttpResponseBase]


def administrators_only(words: str) -> Callable[[View], View]:
    """Asks to sign in first; answers 403 with these words to everyone who is no administrator."""

    def decorate(view: View) -> View:
        @login_required
        @never_cache
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not may_administer(person(request)):
                raise PermissionDenied(words)
            return view(request, *args, **kwargs)

        return guarded

    return decorate

"""Access: administrators alone, or whoever is signed in, may see a page; and what its parts say once signed out."""

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.decorators import login_required, user_passes_test
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.urls import Resolver404, resolve
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.middleware import HtmxDetails

from hitlchat.accounts.roles import may_administer

View = Callable[..., HttpResponseBase]


class HtmxRequest(HttpRequest):
    """A request of a browser, as the middleware of django-htmx leaves it."""

    htmx: HtmxDetails


def person(request: HttpRequest) -> User:
    """Return the user of a view behind `signed_in`."""
    assert isinstance(request.user, User)
    return request.user


class Access:
    """Who is let in: a decorator of views, also in one with the methods that a view answers."""

    def __init__(self, let_in: Callable[[View], View]) -> None:
        self._let_in = let_in

    def __call__(self, view: View) -> View:
        return self._let_in(view)

    def reads(self, view: View) -> View:
        """Let in to a page that changes nothing."""
        return self(require_safe(view))

    def posts(self, view: View) -> View:
        """Let in to what changes something, and has no page of its own."""
        return self(require_POST(view))

    def form(self, view: View) -> View:
        """Let in to a page with a form, and to what is filled in there."""
        return self(require_http_methods(["GET", "HEAD", "POST"])(view))


def only(may: Callable[[User], bool], words: str = "") -> Access:
    """Ask to sign in first; answer 403 with these words to everyone who may not see the page."""

    def is_let_in(user: Any) -> bool:
        if user.is_authenticated and not may(user):
            raise PermissionDenied(words)
        return bool(user.is_authenticated)

    return Access(user_passes_test(is_let_in))


signed_in = Access(login_required)
# The same for all but administrators.
administrators_only = partial(only, may_administer)


def leave_page(get_response: Callable[[HtmxRequest], HttpResponseBase]) -> Callable[[HtmxRequest], HttpResponseBase]:
    """Tell htmx in a header where to go: it would put the page of sign-in where the part belongs."""

    def middleware(request: HtmxRequest) -> HttpResponseBase:
        response = get_response(request)
        to = urlsplit(response.headers.get("Location", "")).path
        is_sign_in = response.status_code == 302 and to == resolve_url(settings.LOGIN_URL)
        if not request.htmx or not (is_sign_in or response.status_code == 401):
            return response
        answer = HttpResponse(status=204) if is_sign_in else response
        shown = urlsplit(request.htmx.current_url or "")
        if not _has_socket(shown.path):
            answer["HX-Redirect"] = _instead(request, f"{shown.path}?{shown.query}" if shown.query else shown.path)
        return answer

    return middleware


def _has_socket(path: str) -> bool:
    """The socket of a conversation tells why it closes, which nothing here knows once the session is gone."""
    try:
        return resolve(path).url_name == "conversation"
    except Resolver404:
        return False


def _instead(request: HttpRequest, page: str) -> str:
    user_id = request.session.get(SESSION_KEY)
    if user_id and User.objects.filter(pk=user_id, is_active=False).exists():
        return resolve_url("people:deactivated")
    # Whatever the header says, one comes back to this server alone.
    is_here = page.startswith("/") and not page.startswith("//") and "\\" not in page
    sign_in = resolve_url(settings.LOGIN_URL)
    return f"{sign_in}?{urlencode({'next': page})}" if is_here else sign_in

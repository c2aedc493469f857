"""Preferences of a browser: its theme, and its language or else the installation's or the first that it accepts."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils import translation
from django.utils.translation import gettext_lazy as _
from django.utils.translation.trans_real import parse_accept_lang_header

from hitlchat.accounts.access import signed_in

Handler = Callable[[HttpRequest], HttpResponse]

A_YEAR: Final = 365 * 86400  # seconds
# Read by programs, in the words of the record; a page that asks for a person says so.
FOR_PROGRAMS: Final = ("/api/", "/metrics")
PAGE_HEADER: Final = "Hitlchat-Page"
THEME: Final = "hitlchat_theme"
THEMES: Final = {"system": _("Same as the system"), "light": _("Light"), "dark": _("Dark")}
LANGUAGES: Final = {"browser": _("Same as the browser"), **dict(settings.LANGUAGES)}
CHOICES: Final[dict[str, tuple[str, Mapping[str, object]]]] = {
    "theme": (THEME, THEMES),
    "language": (settings.LANGUAGE_COOKIE_NAME, LANGUAGES),
}


def of_browser(cookies: Mapping[str, str], accepts: str) -> str:
    """Return the language that a browser is shown, by its cookies and its `Accept-Language`."""
    chosen = cookies.get(settings.LANGUAGE_COOKIE_NAME, "")
    for wanted in (chosen, settings.HITL_LANGUAGE, *(each for each, _weight in parse_accept_lang_header(accepts))):
        language = wanted.split("-")[0].lower()
        if language in dict(settings.LANGUAGES):
            return language
    return settings.LANGUAGE_CODE


def of_socket(scope: Mapping[str, Any]) -> str:
    return of_browser(scope["cookies"], dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1"))


def page_language(get_response: Handler) -> Handler:
    """Draw each answer in its language, and give that up with it: the thread's next one may be another person's."""

    def middleware(request: HttpRequest) -> HttpResponse:
        language = of_browser(request.COOKIES, request.headers.get("Accept-Language", ""))
        if request.path.startswith(FOR_PROGRAMS) and PAGE_HEADER not in request.headers:
            language = settings.LANGUAGE_CODE
        with translation.override(language):
            return get_response(request)

    return middleware


def theme(request: HttpRequest) -> str:
    """Return the theme that this browser is to show: `light`, `dark`, or empty for that of the system."""
    chosen = request.COOKIES.get(THEME, "")
    return chosen if chosen in ("light", "dark") else ""


def chosen_language(request: HttpRequest) -> str:
    """Return what was chosen in this browser: a language, or `browser`."""
    chosen = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    return chosen if chosen in LANGUAGES else "browser"


@signed_in.posts
def choose(request: HttpRequest, what: str) -> HttpResponse:
    cookie, options = CHOICES[what]
    chosen = request.POST.get(what, "")
    if chosen not in options:
        *others, last = options
        return HttpResponseBadRequest(f"{what}: expected {', '.join(others)} or {last}.", content_type="text/plain")
    response = redirect("people:account")
    response.set_cookie(cookie, chosen, max_age=A_YEAR, secure=request.is_secure(), httponly=True, samesite="Lax")
    return response

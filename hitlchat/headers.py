"""Responses: a page stays within its own origin, no cache stores it, it is sent compressed, and a slash too many at the
end of its address does no harm.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.middleware.gzip import GZipMiddleware
from django.urls import is_valid_path

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; font-src 'self'; "
    "manifest-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "report-uri /csp-report"
)

Handler = Callable[[HttpRequest], HttpResponseBase]


def response_headers(get_response: Handler) -> Handler:
    """Add headers that the view has not set. WhiteNoise, which stands behind this, lets caches store static files."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    return middleware


class CompressedPages(GZipMiddleware):
    """Compresses HTML alone: a stream of events would be collected, and a download may be compressed already.

    BREACH, which guesses a secret from the length of a page that repeats what an attacker sent, finds none that stays:
    Django masks CSRF tokens anew in each response, its GZipMiddleware adds a name of random length, and session cookies
    (SameSite=Lax) do not come with what other sites fetch.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming or not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)


class Slashes(CommonMiddleware):
    """Redirects from a page's address with a slash too many as well as, by Django, from one without its slash.

    Programs read that there is no such address.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        path = request.path_info.removesuffix("/")
        is_off = path != request.path_info and response.status_code == 404 and request.method in ("GET", "HEAD")
        if is_off and not path.startswith("/api/") and is_valid_path(path):
            query = request.META.get("QUERY_STRING", "")
            return HttpResponsePermanentRedirect(f"{path}?{query}" if query else path)
        return super().process_response(request, response)

"""Response headers: a page keeps to its own origin, and no cache keeps what a person saw."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; font-src 'self'; "
    "manifest-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

Handler = Callable[[HttpRequest], HttpResponseBase]


def response_headers(get_response: Handler) -> Handler:
    """Add what a view has not set itself. WhiteNoise, which stands behind this, lets caches keep static files."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    return middleware

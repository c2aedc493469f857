"""Response headers: a page keeps to its own origin, and no cache keeps what a person saw."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

Handler = Callable[[HttpRequest], HttpResponse] | Callable[[HttpRequest], Awaitable[HttpResponse]]


@sync_and_async_middleware
def response_headers(get_response: Handler) -> Handler:
    """Add what a view has not set itself. WhiteNoise, which stands behind this, lets caches keep static files."""

    def add(response: HttpResponseBase) -> None:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Cache-Control", "private, no-store")

    if iscoroutinefunction(get_response):

        async def async_middleware(request: HttpRequest) -> HttpResponse:
            response: HttpResponse = await get_response(request)
            add(response)
            return response

        return async_middleware

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        assert isinstance(response, HttpResponse | HttpResponseBase)
        add(response)
        return response

    return middleware

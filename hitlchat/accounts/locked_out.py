"""What whoever guessed at a password too often is told."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

TOO_MANY_REQUESTS = 429  # RFC 6585, section 4


def page(
    request: HttpRequest, _answer: HttpResponse | None = None, _given: dict[str, Any] | None = None
) -> HttpResponse:
    """The same whether there is such a person or not."""
    pause = settings.AXES_COOLOFF_TIME
    shown = {"minutes": int(pause.total_seconds()) // 60}
    response = render(request, "accounts/locked_out.html", shown, status=TOO_MANY_REQUESTS)
    response["Retry-After"] = str(int(pause.total_seconds()))
    return response

"""Guesses at passwords: where they come from, and what whoever guessed too often is told."""

import ipaddress
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


def address(request: HttpRequest) -> str | None:
    """Of the client. What it says of itself counts only as far as TRUSTED_PROXIES added it, counted from the end."""
    peer: str | None = request.META.get("REMOTE_ADDR")
    seen = [*request.headers.get("X-Forwarded-For", "").split(","), peer or ""]
    at = seen[max(-len(seen), -1 - settings.TRUSTED_PROXIES)].strip()
    try:
        return str(ipaddress.ip_address(at))
    except ValueError:
        return peer

"""Headers of every response: no cache keeps what a signed-in person saw; static files may be kept."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from hitlchat.headers import POLICY


def _paths(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    for each in patterns:
        path = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _paths(each.url_patterns, path)
        elif "<" not in path and "(" not in path:
            yield path


# The two probes are answered before anybody is signed in, and say nothing about anybody.
PATHS = sorted({*_paths(get_resolver().url_patterns)} - {"/healthz", "/readyz"})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", [*PATHS, "/nothing-here"])
def test_no_cache_keeps_what_a_signed_in_person_saw(path: str, client: Client, alice: User) -> None:
    client.force_login(alice)
    answer = client.get(path)
    assert "no-store" in answer["Cache-Control"]
    assert "private" in answer["Cache-Control"]
    assert answer["Content-Security-Policy"] == POLICY


def test_a_browser_may_keep_static_files(client: Client) -> None:
    answer = client.get("/static/hitlchat/js/guard.js")
    assert answer["Cache-Control"] == "max-age=60, public"
    answer.close()

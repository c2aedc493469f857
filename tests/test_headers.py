"""Headers of every response: no cache keeps what a signed-in person saw; static files may be kept."""

import gzip
import json
import re
from collections.abc import AsyncGenerator, Iterator
from struct import unpack

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver

from hitlchat.base.event_stream import OPEN, EventStream
from hitlchat.headers import POLICY, CompressedPages
from tests.tables import each_row


def _paths(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    for each in patterns:
        path = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _paths(each.url_patterns, path)
        elif "<" not in path and "(" not in path:
            yield path


# The two probes are answered before anybody is signed in, and say nothing about anybody.
PATHS = sorted({*_paths(get_resolver().url_patterns)} - {"/healthz", "/readyz"})


@pytest.mark.django_db
def test_an_address_with_a_slash_too_many_or_too_few_leads_to_its_page(client: Client, alice: User) -> None:
    client.force_login(alice)
    for path, right in (
        ("/policies/?tool=a%20b", "/policies?tool=a%20b"),
        ("/account/", "/account"),
        ("/grants", "/grants/"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer["Location"]) == (301, right)
    # What is sent is never led on, and nothing leads off to another host.
    assert client.post("/policies/").status_code == 404
    for path in ("/nothing-here/", "/%2fnothing.example/", "/policies//", f"/history/{alice.pk}/"):
        assert client.get(path).status_code == 404


@pytest.mark.django_db(transaction=True)
@each_row("path", [*PATHS, "/nothing-here"])
def test_no_cache_keeps_what_a_signed_in_person_saw(path: str, client: Client, alice: User) -> None:
    client.force_login(alice)
    answer = client.get(path)
    assert "no-store" in answer["Cache-Control"]
    assert "private" in answer["Cache-Control"]
    assert answer["Content-Security-Policy"] == POLICY


@pytest.mark.django_db
def test_a_browser_may_keep_static_files(client: Client) -> None:
    answer = client.get("/static/hitlchat/js/guard.js")
    assert answer["Cache-Control"] == "max-age=60, public"
    answer.close()


@pytest.mark.django_db(transaction=True)
def test_a_page_is_compressed_for_a_browser_that_takes_it(client: Client, alice: User) -> None:
    client.force_login(alice)
    plain = client.get("/")
    packed = client.get("/", headers={"accept-encoding": "gzip, br"})
    assert "Content-Encoding" not in plain
    assert packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed["Vary"]
    assert len(packed.content) < len(plain.content) / 2
    page = gzip.decompress(packed.content).decode()
    title = re.search("<title>.*</title>", plain.content.decode())
    assert title is not None
    assert title[0] in page


@pytest.mark.django_db(transaction=True)
def test_a_secret_of_a_page_is_another_text_in_each_response(client: Client, alice: User) -> None:
    client.force_login(alice)
    tokens = [
        re.findall(r'"X-CSRFToken": "(\w+)"|name="csrfmiddlewaretoken" value="(\w+)"', client.get("/").content.decode())
        for _ in "ab"
    ]
    assert tokens[0]
    assert not {*tokens[0]} & {*tokens[1]}


@pytest.mark.django_db(transaction=True)
@each_row("path", ["/api/openapi.json", "/static/hitlchat/js/guard.js"])
def test_what_is_no_page_is_sent_as_it_is(path: str, client: Client, alice: User) -> None:
    client.force_login(alice)
    answer = client.get(path, headers={"accept-encoding": "gzip"})
    assert (answer.status_code, answer.headers.get("Content-Encoding")) == (200, None)
    answer.close()


def test_a_stream_of_events_is_sent_as_it_is(rf: RequestFactory) -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        yield OPEN

    stream, request = EventStream(events(), {}), rf.get("/", headers={"accept-encoding": "gzip"})
    assert "Content-Encoding" not in CompressedPages(lambda _: stream).process_response(request, stream).headers


def static(client: Client, path: str) -> tuple[str, bytes]:
    """The type and the bytes of a static file."""
    answer = client.get(path)
    found = answer["Content-Type"], b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    answer.close()
    return found


@pytest.mark.django_db
def test_a_browser_that_installs_it_gets_a_name_and_icons_of_the_sizes_that_are_said(client: Client) -> None:
    kind, body = static(client, "/static/hitlchat/app.webmanifest")
    assert kind == "application/manifest+json"
    manifest = json.loads(body)
    assert (manifest["name"], manifest["start_url"], manifest["scope"]) == ("hitlchat", "/", "/")
    assert {icon["sizes"] for icon in manifest["icons"]} >= {"any", "192x192", "512x512"}
    for icon in manifest["icons"]:
        kind, image = static(client, f"/static/hitlchat/{icon['src']}")
        assert kind == icon["type"]
        if kind == "image/png":
            assert "{}x{}".format(*unpack(">II", image[16:24])) == icon["sizes"]


@pytest.mark.django_db
@each_row(
    "theme, colours",
    [
        (
            "",
            [
                ("#ffffff", ' media="(prefers-color-scheme: light)"'),
                ("#18191d", ' media="(prefers-color-scheme: dark)"'),
            ],
        ),
        ("light", [("#ffffff", "")]),
        ("dark", [("#18191d", "")]),
    ],
)
def test_the_frame_of_the_browser_has_the_colour_of_the_theme(
    theme: str, colours: list[tuple[str, str]], client: Client, bob: User
) -> None:
    client.force_login(bob)
    if theme:
        client.cookies["hitlchat_theme"] = theme
    page = client.get("/").content.decode()
    assert re.findall('<meta name="theme-color" content="(#[0-9a-f]+)"([^>]*)>', page) == colours
    assert 'rel="manifest"' in page
    assert 'rel="apple-touch-icon"' in page

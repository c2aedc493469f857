"""The gallery: every entry can be connected as it stands, vouches for nothing else, and is found by what it is."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.base.visible import see
from hitlchat.secrets.values import Value
from hitlchat.upstreams import gallery, server_draft, servers
from hitlchat.upstreams.gallery import AUTHS, CATEGORIES, TAGS, Entry
from hitlchat.upstreams.models import Trust, UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import signed_in
from tests.upstreams.shops import somewhere

REMOTE = [entry for entry in gallery.ALL if entry.kind == "remote"]
LOCAL = [entry for entry in gallery.ALL if entry.kind == "local"]
GALLERY = "/servers/gallery"


def entry(entry_id: str) -> Entry:
    found = gallery.find(entry_id)
    assert found is not None
    return found


def trust_of(entry_id: str, draft: ServerDraft) -> str:
    return gallery.vouched(draft, entry_id).trust


def test_there_is_enough_to_start_from() -> None:
    assert sum(each.by_vendor for each in REMOTE) >= 40
    assert len(LOCAL) >= 12
    assert {each.category for each in gallery.ALL} == set(CATEGORIES)


def test_no_two_entries_are_the_same() -> None:
    for told in (
        [each.id for each in gallery.ALL],
        [each.title for each in gallery.ALL],
        [e.address for e in gallery.ALL],
    ):
        assert len(told) == len(set(told))


def test_an_entry_can_be_saved_as_it_is() -> None:
    for each in gallery.ALL:
        columns = server_draft.columns(each.draft)
        assert columns["gallery_entry"] == each.id
        assert columns["docs_url"] == each.draft.docs_url


def test_an_entry_is_of_known_kinds() -> None:
    for each in gallery.ALL:
        assert each.category in CATEGORIES
        assert each.auth in AUTHS
        assert set(each.tags) <= set(TAGS)
        assert len({"reads only", "changes things"} & set(each.tags)) == 1
        assert each.draft.trust in {Trust.VENDOR, Trust.COMMUNITY}


def test_an_entry_is_reached_over_https_or_started_by_a_launcher() -> None:
    for each in gallery.ALL:
        assert urlsplit(each.draft.docs_url).scheme == "https"
        if each.kind == "remote":
            parts = urlsplit(each.draft.url)
            assert (parts.scheme, parts.port, parts.username, parts.fragment) == ("https", None, None, "")
            assert "." in (parts.hostname or "")
        else:
            assert each.draft.command in {"npx", "uvx"}
            assert each.draft.url == ""


def test_what_an_entry_says_is_short_and_plain() -> None:
    for each in gallery.ALL:
        texts = (each.summary, each.privileges, *each.setup)
        assert all(10 <= len(text) <= 160 and text.endswith(".") for text in texts)
        for text in (*texts, each.title, each.maker, each.address):
            assert text.isascii()
            assert not see(text).warnings
        assert len(each.setup) >= (1 if each.kind == "local" or each.auth != "none" else 0)


def test_an_entry_asks_for_what_it_says_it_asks_for() -> None:
    for each in gallery.ALL:
        secret = [value for value in (*each.draft.headers, *each.draft.env) if value.secret]
        assert all(value.value and "${" in value.value for value in secret), each.id
        bearer = [value for value in each.draft.headers if value.value and value.value.startswith("Bearer ${")]
        assert bool(bearer) == (each.auth == "bearer")
        if each.auth in {"none", "oauth"}:
            assert not secret
        elif each.auth == "api-key":
            assert secret or any("${" in arg for arg in each.draft.args)


def test_an_entry_is_trusted_as_long_as_it_leads_where_it_leads() -> None:
    for each in gallery.ALL:
        draft = each.draft
        assert trust_of(each.id, draft) == each.draft.trust
        assert trust_of(each.id, replace(draft, name="mine", call_seconds=5)) == each.draft.trust
        if each.kind == "remote":
            elsewhere = replace(draft, url=f"https://{urlsplit(each.draft.url).hostname}/somewhere/else")
            assert trust_of(each.id, elsewhere) == Trust.KNOWN_HOST
            assert trust_of(each.id, replace(draft, url="https://attacker.example/mcp")) == Trust.UNKNOWN
        else:
            assert trust_of(each.id, replace(draft, command="bash")) == Trust.UNKNOWN
            assert trust_of(each.id, replace(draft, args=(*each.draft.args, "--more"))) == Trust.UNKNOWN
            more = (*each.draft.env, Value("NODE_OPTIONS", "--require=/evil.js", secret=False))
            assert trust_of(each.id, replace(draft, env=more)) == Trust.UNKNOWN


def test_what_an_entry_leaves_open_may_be_filled_in_but_not_with_an_option() -> None:
    files = entry("filesystem")
    *fixed, open_one = files.draft.args
    assert open_one == "${FILES_FOLDER}"
    assert trust_of("filesystem", replace(files.draft, args=(*fixed, "/srv/files"))) == Trust.COMMUNITY
    assert trust_of("filesystem", replace(files.draft, args=(*fixed, "--eval=1"))) == Trust.UNKNOWN
    assert trust_of("filesystem", replace(files.draft, args=("-y", "evil", "/srv"))) == Trust.UNKNOWN


def test_a_typed_address_on_a_host_of_the_gallery_counts_for_something_over_https_only() -> None:
    assert trust_of("", ServerDraft("x", url="https://mcp.linear.app/other")) == Trust.KNOWN_HOST
    assert trust_of("", ServerDraft("x", url="https://MCP.linear.app/mcp")) == Trust.KNOWN_HOST
    for url in (
        *("http://mcp.linear.app/mcp", "https://mcp.linear.app:8443/mcp", "https://mcp.linear.app.evil.example/mcp"),
        *("https://linear.app/mcp", "https://[broken", "", "mcp.linear.app"),
    ):
        assert trust_of("", ServerDraft("x", url=url)) == Trust.UNKNOWN


def test_the_entry_of_an_unknown_id_vouches_for_nothing() -> None:
    assert gallery.find("nothing") is None
    assert trust_of("nothing", ServerDraft("x", url="https://x.example/mcp")) == Trust.UNKNOWN


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def shown(client: Client, query: str = "") -> str:
    answer = client.get(f"{GALLERY}{query}")
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.django_db
def test_the_gallery_shows_every_entry_and_where_to_start_from_it(admin: Client, settings: Settings) -> None:
    settings.MCP_ALLOW_STDIO = True
    page = shown(admin)
    assert f"{len(gallery.ALL)} servers" in page
    for each in gallery.ALL:
        assert f'id="entry-{each.id}"' in page
        assert f"/servers/new?from={each.id}" in page


NARROWED: list[tuple[str, Callable[[Entry], object]]] = [
    ("?q=linear", lambda each: each.id == "linear"),
    ("?category=Payments", lambda each: each.category == "Payments"),
    ("?kind=local", lambda each: each.kind == "local"),
    ("?auth=none&kind=remote", lambda each: (each.auth, each.kind) == ("none", "remote")),
    ("?tag=git&tag=money", lambda each: {"git", "money"} & set(each.tags)),
    ("?tag=git&auth=oauth", lambda each: "git" in each.tags and each.auth == "oauth"),
    ("?category=Nonsense&kind=%00&auth=x&tag=y&q=", lambda _: True),
]


@pytest.mark.django_db
def test_the_gallery_is_narrowed_by_what_the_address_says(subtests: pytest.Subtests, admin: Client) -> None:
    for query, fits in NARROWED:
        with subtests.test(query=query):
            page = shown(admin, query)
            found = {each.id for each in gallery.ALL if f'id="entry-{each.id}"' in page}
            assert found == {each.id for each in gallery.ALL if fits(each)}
            assert found
            if len(found) < len(gallery.ALL):
                assert f"{len(found)} of {len(gallery.ALL)} servers" in page
                assert "Clear filters" in page


@pytest.mark.django_db
def test_where_nothing_fits_there_is_a_way_back(admin: Client) -> None:
    page = shown(admin, "?q=%3Cscript%3Enothing")
    assert "No server matches" in page
    assert f'href="{GALLERY}">Clear filters' in page
    assert "<script>nothing" not in page


@pytest.mark.django_db
def test_programs_cannot_be_started_from_where_they_are_not_allowed(admin: Client, settings: Settings) -> None:
    settings.MCP_ALLOW_STDIO = False
    page = shown(admin, "?kind=local")
    assert "/servers/new?from=" not in page
    assert page.count("MCP_ALLOW_STDIO=1 allows it") == len(LOCAL)


@pytest.mark.django_db
def test_what_is_connected_already_is_marked_until_it_leads_elsewhere(admin: Client, alice: User) -> None:
    linear = entry("linear")
    servers.create(replace(linear.draft, name="ours"), signed_in(alice))
    somewhere(alice, "other")
    assert "Added as ours" in shown(admin, "?q=linear")
    moved = UpstreamServer.objects.get(name="ours")
    servers.change(moved.pk, replace(linear.draft, name="ours", url="https://mcp.example/mcp"), signed_in(alice))
    assert "Added as" not in shown(admin)

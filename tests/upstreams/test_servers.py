"""Servers as administrators describe them: what may be said, what is kept, what is sealed, who may."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.gate.actor import Actor
from hitlchat.secrets.values import Value
from hitlchat.upstreams import endpoint, servers
from hitlchat.upstreams.models import ServerState, UpstreamServer
from hitlchat.upstreams.server_draft import BadServer, ServerDraft, draft_of
from hitlchat.upstreams.servers import NotConfirmed, OnlyAdministrators, OnlyPeople
from tests.conftest import signed_in
from tests.upstreams.shops import somewhere

pytestmark = pytest.mark.django_db

KEY = "sk-very-secret-0815"
URL = "https://shop.example/mcp"


def errors(person: User, **fields: object) -> dict[str, str]:
    draft = {"name": "shop", "url": URL} | fields
    with pytest.raises(BadServer) as caught:
        servers.create(ServerDraft(**draft), signed_in(person))  # type: ignore[arg-type]
    assert not UpstreamServer.objects.exists()
    return caught.value.errors


def stored() -> str:
    return str(list(UpstreamServer.objects.values_list()))


def test_a_secret_header_is_sealed_where_it_is_kept_and_whole_when_it_is_sent(alice: User) -> None:
    server = somewhere(alice, headers=(Value("Authorization", f"Bearer {KEY}"), Value("X-Team", "blue", secret=False)))
    assert KEY not in stored()
    spec = endpoint.spec_of(server)
    assert spec.headers == {"Authorization": f"Bearer {KEY}", "X-Team": "blue"}
    assert {KEY, f"Bearer {KEY}"} <= set(spec.hidden)
    assert KEY not in repr(spec)


def test_a_secret_is_not_shown_again_and_stays_when_it_is_not_typed_again(alice: User) -> None:
    server = somewhere(alice, headers=(Value("Authorization", f"Bearer {KEY}"),))
    draft = draft_of(server)
    assert draft.headers == (Value("Authorization", None),)
    changed = servers.change(server.pk, draft, signed_in(alice))
    assert endpoint.spec_of(changed).headers == {"Authorization": f"Bearer {KEY}"}
    assert changed.revision == server.revision


@pytest.mark.parametrize("url", ["https://elsewhere.example/mcp", "http://shop.example/mcp", f"{URL[:-4]}:8443/mcp"])
def test_a_stored_secret_does_not_follow_a_server_to_another_host(alice: User, url: str) -> None:
    server = somewhere(alice, headers=(Value("Authorization", f"Bearer {KEY}"),))
    draft = replace(draft_of(server), url=url)
    with pytest.raises(BadServer) as caught:
        servers.change(server.pk, draft, signed_in(alice))
    assert "enter the secrets again" in caught.value.errors["headers"]
    again = replace(draft, headers=(Value("Authorization", "Bearer another"),))
    assert (
        endpoint.spec_of(servers.change(server.pk, again, signed_in(alice))).headers["Authorization"]
        == "Bearer another"
    )


def test_a_reference_is_kept_as_text_and_looked_up_when_connecting(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = somewhere(alice, headers=(Value("Authorization", "Bearer ${SHOP_KEY}"),))
    assert "Bearer ${SHOP_KEY}" in stored()
    with pytest.raises(endpoint.Unusable, match="SHOP_KEY is not set on this server"):
        endpoint.spec_of(server)
    monkeypatch.setenv("SHOP_KEY", KEY)
    spec = endpoint.spec_of(server)
    assert spec.headers == {"Authorization": f"Bearer {KEY}"}
    assert KEY in spec.hidden


def test_references_in_arguments_and_in_the_query_are_filled_in_and_masked(
    alice: User, monkeypatch: pytest.MonkeyPatch, allow_stdio: None
) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    draft = ServerDraft("local", "stdio", command="shop", args=("--key", "${SHOP_KEY}"))
    program = servers.create(draft, signed_in(alice), confirmed="shop --key '${SHOP_KEY}'")
    remote = servers.create(ServerDraft("remote", url=f"{URL}?key=${{SHOP_KEY}}"), signed_in(alice))
    assert (endpoint.spec_of(program).args, endpoint.spec_of(program).secrets) == (("--key", KEY), (KEY,))
    assert (endpoint.spec_of(remote).url, endpoint.spec_of(remote).secrets) == (f"{URL}?key={KEY}", (KEY,))
    assert KEY not in stored()


def test_hitlchats_own_variables_are_out_of_reach(alice: User) -> None:
    said = errors(alice, headers=(Value("Authorization", "Bearer ${SECRET_KEY}"),))
    assert said == {"headers": "Authorization: SECRET_KEY belongs to hitlchat itself and is not for tools."}
    assert "SECRET_KEY" in errors(alice, url=f"{URL}?key=${{SECRET_KEY}}")["url"]


BAD: dict[str, tuple[str, dict[str, object]]] = {
    "a name with spaces": ("name", {"name": "has spaces"}),
    "an unknown transport": ("transport", {"transport": "carrier pigeon"}),
    "an address that is not of the web": ("url", {"url": "ftp://shop.example"}),
    "a password in the address": ("url", {"url": "https://someone:secret@shop.example/mcp"}),
    "a reference in the host": ("url", {"url": "https://${HOST}.example/mcp"}),
    "an impossible port": ("url", {"url": "https://shop.example:99999/mcp"}),
    "a NUL in the address": ("url", {"url": "https://shop.example/\x00"}),
    "a header without a proper name": ("headers", {"headers": (Value("Not a name", "some value"),)}),
    "a header that hides another one": ("headers", {"headers": (Value("X-Key", "a\r\nX-Other: b"),)}),
    "a header of the connection itself": ("headers", {"headers": (Value("Host", "other.example"),)}),
    "a secret too short to be masked": ("headers", {"headers": (Value("X-Key", "short"),)}),
    "a header twice": ("headers", {"headers": (Value("X-Key", "longer than"), Value("x-key", "longer than"))}),
    "a header without a value": ("headers", {"headers": (Value("X-Key", None),)}),
    "no time at all": ("call_seconds", {"call_seconds": 0}),
    "an unknown trust": ("trust", {"trust": "much"}),
    "documentation that is a script": ("docs_url", {"docs_url": "javascript:alert(1)"}),
}


def test_what_cannot_be_is_refused_and_the_field_is_named(subtests: pytest.Subtests, alice: User) -> None:
    for label, (field, fields) in BAD.items():
        with subtests.test(label):
            assert list(errors(alice, **fields)) == [field]


@pytest.mark.servers("each database compares capitals in its own way")
def test_two_servers_whose_names_differ_in_capitals_only_are_refused(alice: User) -> None:
    somewhere(alice, "shop")
    with pytest.raises(BadServer, match="already"):
        somewhere(alice, "Shop")


def test_only_administrators_change_servers(alice: User, bob: User) -> None:
    server = somewhere(alice)
    for actor in (signed_in(bob), Actor(None, "system")):
        with pytest.raises(OnlyAdministrators):
            servers.create(ServerDraft("other", url=URL), actor)
        with pytest.raises(OnlyAdministrators):
            servers.change(server.pk, draft_of(server), actor)
        with pytest.raises(OnlyAdministrators):
            servers.enable(server.pk, False, actor)
        with pytest.raises(OnlyAdministrators):
            servers.delete(server.pk, actor)


WATCHED: dict[str, dict[str, object]] = {
    "documentation, which lowers the risk": {"docs_url": "https://docs.example/x"},
    "a private address": {"allow_private": True},
    "a variable of this server in a header": {"headers": (Value("X-Key", "${SHOP_KEY}"),)},
    "a variable of this server in the address": {"url": f"{URL}?key=${{SHOP_KEY}}"},
}


@pytest.mark.guarantee("gate:only-people")
@pytest.mark.parametrize("case", WATCHED, ids=str)
def test_a_program_adds_no_server_that_is_trusted_more_or_given_what_is_ours(alice: User, case: str) -> None:
    program = Actor(alice.pk, "system")
    draft = replace(ServerDraft("shop", url=URL), **WATCHED[case])  # type: ignore[arg-type]
    with pytest.raises(OnlyPeople):
        servers.create(draft, program)
    plain = servers.create(ServerDraft("shop", url=URL), program)
    with pytest.raises(OnlyPeople):
        servers.change(plain.pk, replace(draft_of(plain), **WATCHED[case]), program)  # type: ignore[arg-type]
    assert servers.create(replace(draft, name="theirs"), signed_in(alice)).name == "theirs"


@pytest.mark.parametrize("value", [f"Bearer {KEY}", "Bearer ${SHOP_KEY}"])
def test_a_program_sends_no_credential_elsewhere_not_even_on_the_same_host(alice: User, value: str) -> None:
    server = somewhere(alice, headers=(Value("Authorization", value),))
    program = Actor(alice.pk, "system")
    for url in ("https://elsewhere.example/mcp", server.url.replace("/mcp", "/other")):
        with pytest.raises((OnlyPeople, BadServer)):
            servers.change(server.pk, replace(draft_of(server), url=url), program)
    assert UpstreamServer.objects.get(pk=server.pk).url == server.url
    assert servers.change(server.pk, replace(draft_of(server), call_seconds=9), program).call_seconds == 9


def test_a_program_switches_a_server_off_and_a_person_switches_it_on_again(alice: User) -> None:
    server, program = somewhere(alice), Actor(alice.pk, "system")
    off = servers.enable(server.pk, False, program)
    with pytest.raises(OnlyPeople):
        servers.enable(server.pk, True, program)
    with pytest.raises(OnlyPeople):
        servers.change(server.pk, replace(draft_of(off), enabled=True), program)
    assert servers.enable(server.pk, True, signed_in(alice)).enabled


def test_programs_are_off_unless_the_operator_allows_them(alice: User) -> None:
    draft = ServerDraft("local", "stdio", command="shop")
    with pytest.raises(BadServer, match="MCP_ALLOW_STDIO"):
        servers.create(draft, signed_in(alice), confirmed="shop")


def test_a_program_is_started_as_a_person_has_confirmed_it(alice: User, allow_stdio: None) -> None:
    draft = ServerDraft("local", "stdio", command="shop", args=("--root", "/a b"))
    with pytest.raises(NotConfirmed, match="shop --root '/a b'"):
        servers.create(draft, signed_in(alice))
    with pytest.raises(OnlyPeople):
        servers.create(draft, Actor(alice.pk, "system"), confirmed=draft.command_line)
    server = servers.create(draft, signed_in(alice), confirmed="shop --root '/a b'")
    other = ServerDraft("local", "stdio", command="shop", args=("--root", "/"))
    with pytest.raises(NotConfirmed):
        servers.change(server.pk, other, signed_in(alice), confirmed="shop --root '/a b'")


def test_a_program_is_not_started_any_more_once_that_is_forbidden(
    alice: User, allow_stdio: None, settings: Settings
) -> None:
    server = servers.create(ServerDraft("local", "stdio", command="shop"), signed_in(alice), confirmed="shop")
    settings.MCP_ALLOW_STDIO = False
    with pytest.raises(endpoint.Unusable, match="MCP_ALLOW_STDIO"):
        endpoint.spec_of(server)


@pytest.mark.parametrize(
    "url,said,private",
    [
        ("http://127.0.0.1:8000/mcp", False, True),
        ("http://intranet/mcp", False, True),
        ("https://shop.example/mcp", False, False),
        ("https://shop.example/mcp", True, True),
    ],
    ids=["this machine", "a local name", "a public name", "a public name, ticked"],
)
def test_a_private_address_must_be_meant(alice: User, settings: Settings, url: str, said: bool, private: bool) -> None:
    server = servers.create(ServerDraft("shop", url=url, allow_private=said), signed_in(alice))
    assert endpoint.spec_of(server).allow_private is private
    settings.MCP_ALLOW_PRIVATE = False
    assert endpoint.spec_of(server).allow_private is False


def test_what_belongs_to_another_transport_is_not_kept(alice: User, allow_stdio: None) -> None:
    draft = ServerDraft("shop", "stdio", url=URL, headers=(Value("X-Key", "longer than"),), command="shop")
    server = servers.create(draft, signed_in(alice), confirmed="shop")
    assert (server.url, server.headers) == ("", [])


def test_switching_off_and_on_is_a_new_connection(alice: User) -> None:
    server = somewhere(alice)
    off = servers.enable(server.pk, False, signed_in(alice))
    assert (off.state, off.revision) == (ServerState.DISABLED, server.revision + 1)
    on = servers.enable(server.pk, True, signed_in(alice))
    assert (on.state, on.revision) == (ServerState.NEW, server.revision + 2)


@pytest.mark.guarantee("SR-28")
def test_a_changed_credential_is_another_identity_and_shows_nothing(alice: User) -> None:
    server = somewhere(alice, headers=(Value("Authorization", f"Bearer {KEY}"),))
    before = endpoint.identity_of(server)
    draft = ServerDraft("shop", url=server.url, headers=(Value("Authorization", "Bearer another-one-4711"),))
    changed = servers.change(server.pk, draft, signed_in(alice))
    assert endpoint.identity_of(changed) != before
    assert endpoint.connection_of(changed).identity() == endpoint.connection_of(server).identity()

"""Servers and authorization servers that mean no good: nobody is sent, and nothing is fetched, where they must not."""

import gzip
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl
from pytest_django import Settings
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from hitlchat.secrets.values import Value
from hitlchat.upstreams import servers
from hitlchat.upstreams.models import SignIn, UpstreamServer
from hitlchat.upstreams.oauth.authority import Bounds, NotPossible
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import signed_in
from tests.tables import each_row
from tests.upstreams.oauth.guarded import Guarded
from tests.upstreams.oauth.journeys import HOST, begin, kept, link, query, sign_in
from tests.upstreams.shops import somewhere

pytestmark = pytest.mark.django_db(transaction=True)

RESOURCE = "/.well-known/oauth-protected-resource/mcp"
AUTHORITY = "/.well-known/oauth-authorization-server"


def refused(page: Any, why: str) -> None:
    assert page.status_code == 422, page.context
    assert why in str(page.context["why"])


def says(guarded: Guarded, **told: Any) -> None:
    """What the authorization server says of itself."""
    guarded.answers[AUTHORITY] = JSONResponse({**guarded.metadata(), **told})


def test_a_server_that_says_it_is_another_is_refused(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    told = {"resource": "https://bank.example/mcp", "authorization_servers": [guarded.url]}
    guarded.answers[RESOURCE] = JSONResponse(told)
    refused(begin(browser), "a different resource")


@each_row(
    "issuer",
    [
        "http://169.254.169.254/",
        "https://169.254.169.254/",
        "https://metadata.google.internal/",
        "http://evil.example/",
        "http://10.0.0.1/",
        "https://user:pass@evil.example/",
    ],
)
def test_an_authority_where_nobody_may_ask_is_not_asked(
    server: UpstreamServer, guarded: Guarded, browser: Client, issuer: str
) -> None:
    guarded.answers[RESOURCE] = JSONResponse({"resource": guarded.mcp, "authorization_servers": [issuer]})
    assert begin(browser).status_code == 422
    assert not SignIn.objects.exists()


def test_redirects_are_not_followed(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    guarded.answers[AUTHORITY] = RedirectResponse(f"{guarded.url}/inside")
    guarded.answers["/.well-known/openid-configuration"] = RedirectResponse(f"{guarded.url}/inside")
    refused(begin(browser), "does not say how to sign in")
    guarded.answers.clear()
    guarded.answers["/register"] = RedirectResponse(f"{guarded.url}/inside", 307)
    refused(begin(browser), "did not register")
    assert guarded.asked("/inside") == []


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    for _ in range(1000):
        await send({"type": "http.response.body", "body": b" " * 65536, "more_body": True})


def test_an_answer_without_end_is_cut_off(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    guarded.answers[AUTHORITY] = endless
    refused(begin(browser), "more than 262,144 bytes")


def test_a_compressed_answer_is_refused(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    guarded.answers[AUTHORITY] = Response(bomb, headers={"content-encoding": "gzip"})
    refused(begin(browser), "compressed")


@each_row(
    "told, why",
    [
        ({"issuer": "https://other.example"}, "not the one that the server named"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"code_challenge_methods_supported": None}, "PKCE"),
        ({"token_endpoint": "http://169.254.169.254/token"}, "The token endpoint must begin with https://"),
        ({"token_endpoint": "https://user@evil.example/"}, "a user name"),
        ({"registration_endpoint": "http://evil.example/"}, "The registration endpoint"),
        ({"revocation_endpoint": "http://evil.example/"}, "The revocation endpoint"),
        ({"authorization_endpoint": "http://evil.example/"}, "The sign-in page"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "does not say how to sign in"),
        ({"authorization_endpoint": "https://evil.example/?redirect_uri=x"}, "only hitlchat may set"),
        ({"authorization_endpoint": "https://evil.example/#x"}, "fragment"),
    ],
)
def test_metadata_that_cannot_be_trusted_is_refused(
    server: UpstreamServer, guarded: Guarded, browser: Client, told: dict[str, Any], why: str
) -> None:
    says(guarded, **told)
    refused(begin(browser), why)


def test_rights_that_are_none_are_refused(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    for scopes in (['a"b'], ["a" * 5000], ["é"], [f"s{n}" for n in range(200)]):
        told = {"resource": guarded.mcp, "authorization_servers": [guarded.url], "scopes_supported": scopes}
        guarded.answers[RESOURCE] = JSONResponse(told)
        guarded.answers["/mcp"] = Response("", 401)
        refused(begin(browser), "rights (scopes)")


def test_all_that_an_authority_has_to_give_is_never_asked_for(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    guarded.answers[RESOURCE] = JSONResponse({"resource": guarded.mcp, "authorization_servers": [guarded.url]})
    guarded.answers["/mcp"] = Response("", 401)
    assert "scope" not in query(link(begin(browser)))


def test_an_authority_that_registers_nobody_asks_for_a_client_id(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    says(guarded, registration_endpoint=None)
    page = begin(browser)
    refused(page, "does not register clients automatically")
    where = f"http://{HOST}/servers/callback/{server.pk}"
    assert where in page.content.decode()
    secret = "a secret from their console"
    guarded.clients["ours"] = OAuthClientInformationFull(
        client_id="ours",
        client_secret=secret,
        redirect_uris=[AnyUrl(where)],
        scope="notes.read",
        token_endpoint_auth_method="client_secret_post",
    )
    answer = sign_in(browser, client_id="ours", client_secret=secret, scopes="notes.read", changed="1")
    assert answer.status_code == 302
    found = kept(server)
    assert (found.client_id, found.registration, found.scopes) == ("ours", "typed", ("notes.read",))
    assert secret not in str(vars(found))
    # It is remembered, with its secret, until someone empties the field.
    assert query(link(begin(browser)))["client_id"] == "ours"
    assert sign_in(browser, client_id="ours", scopes="notes.read", changed="1").status_code == 302
    refused(begin(browser, changed="1"), "does not register clients automatically")


def test_an_issuer_that_the_server_does_not_name_is_refused(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    refused(begin(browser, issuer="https://other.example", changed="1"), "not one of those that the server names")


def test_a_client_secret_goes_to_the_issuer_it_is_for_alone(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    sign_in(browser)
    (client,) = guarded.clients.values()
    other = f"{guarded.url}/other"
    guarded.answers[RESOURCE] = JSONResponse({"resource": guarded.mcp, "authorization_servers": [other]})
    guarded.answers["/.well-known/oauth-authorization-server/other"] = JSONResponse(
        {**guarded.metadata(), "issuer": other}
    )
    assert query(link(begin(browser)))["client_id"] != client.client_id


def test_a_server_with_a_header_of_its_own_is_not_signed_in_to(alice: User, guarded: Guarded, browser: Client) -> None:
    key = Value("authorization", "Bearer something long")
    servers.create(ServerDraft("keyed", url=guarded.mcp, headers=(key,)), signed_in(alice))
    refused(begin(browser, "keyed"), "its own Authorization header")


def test_nobody_signs_in_over_an_open_connection(alice: User, browser: Client) -> None:
    servers.create(ServerDraft("open", url="http://open.example/mcp"), signed_in(alice))
    refused(begin(browser, "open"), "must begin with https://")


def test_an_answer_is_not_to_come_back_openly(server: UpstreamServer, browser: Client, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["chat.example"]
    page = browser.post("/servers/s/guarded/sign-in", headers={"host": "chat.example"})
    refused(page, "Open hitlchat over https://")


def test_a_server_that_nobody_can_reach_says_so(alice: User, browser: Client) -> None:
    somewhere(alice, "nowhere")
    refused(begin(browser, "nowhere"), "was not found")


@each_row(
    "url, private, here, allowed",
    [
        ("https://auth.example/", False, False, True),
        ("http://auth.example/", True, True, False),
        ("http://127.0.0.1:1/", True, True, True),
        ("http://127.0.0.1:1/", True, False, False),
        ("https://127.0.0.1:1/", True, False, False),
        ("https://192.168.0.1/", True, False, True),
        ("https://192.168.0.1/", False, False, False),
        ("https://auth.lan/", False, False, False),
        ("ftp://auth.example/", True, True, False),
        ("https:///", True, True, False),
        ("https://auth.example:0/", True, True, False),
        ("https://auth.example:x/", True, True, False),
    ],
)
def test_where_requests_may_go_depends_on_where_the_server_is(
    url: str, private: bool, here: bool, allowed: bool
) -> None:
    bounds = Bounds(private, here)
    if allowed:
        assert bounds.checked(url, "It") == url
    else:
        with pytest.raises(NotPossible, match=r"^It "):
            bounds.checked(url, "It")


def test_this_installation_describes_itself_to_whoever_looks(server: UpstreamServer, db: None) -> None:
    described = Client().get(f"/servers/client/{server.pk}", headers={"host": HOST}).json()
    where = f"http://{HOST}/servers"
    assert described["client_id"] == f"{where}/client/{server.pk}"
    assert described["redirect_uris"] == [f"{where}/callback/{server.pk}"]
    assert described["token_endpoint_auth_method"] == "none"


def test_where_a_description_is_enough_nobody_registers(
    server: UpstreamServer, guarded: Guarded, browser: Client, settings: Settings
) -> None:
    says(guarded, client_id_metadata_document_supported=True)
    settings.ALLOWED_HOSTS = ["chat.example"]
    page = browser.post("/servers/s/guarded/sign-in", headers={"host": "chat.example"}, secure=True)
    assert query(link(page))["client_id"] == f"https://chat.example/servers/client/{server.pk}"
    assert not guarded.clients

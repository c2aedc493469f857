"""What people bring back from an authorization server, and who may bring it."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from starlette.responses import JSONResponse

from hitlchat.upstreams import servers
from hitlchat.upstreams.models import SignIn, SignInAttempt, UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import signed_in
from tests.tables import each_row
from tests.upstreams.oauth.conftest import browser_of
from tests.upstreams.oauth.guarded import Guarded
from tests.upstreams.oauth.journeys import back, begin, callback, kept, link, query, sign_in, there

pytestmark = pytest.mark.django_db(transaction=True)

NOT_YOURS = "belongs to no sign-in started in this browser"


def refused(answer: Any, why: str, server: UpstreamServer) -> None:
    assert answer.status_code == 422
    assert why in str(answer.context["why"])
    assert not SignIn.objects.filter(pk=server.pk).exclude(mark="").exists()


def test_an_answer_is_good_once_and_only_in_the_browser_that_asked(
    alice: User, bob: User, server: UpstreamServer, browser: Client
) -> None:
    url = there(link(begin(browser)))
    other = User.objects.create_superuser("other", password="x")
    for person in (other, alice):
        refused(back(browser_of(person), url), NOT_YOURS, server)
    for stranger in (browser_of(bob), Client()):
        assert back(stranger, url).status_code == 403
    assert begin(browser_of(bob)).status_code == 403
    assert back(browser, url).status_code == 302
    first = kept(server).mark
    again = back(browser, url)
    assert (again.status_code, kept(server).mark) == (422, first)
    assert NOT_YOURS in again.context["why"]


def test_an_answer_that_nobody_asked_for_is_refused(server: UpstreamServer, browser: Client) -> None:
    refused(back(browser, callback(server, code="stolen", state="guessed")), NOT_YOURS, server)
    refused(back(browser, callback(server)), NOT_YOURS, server)


def test_an_answer_that_comes_too_late_is_refused(server: UpstreamServer, browser: Client) -> None:
    url = there(link(begin(browser)))
    SignInAttempt.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    refused(back(browser, url), NOT_YOURS, server)


def test_an_answer_at_another_servers_address_is_refused(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    other = servers.create(ServerDraft("other", url=guarded.mcp), signed_in(alice))
    url = there(link(begin(browser)))
    refused(back(browser, url.replace(str(server.pk), str(other.pk))), NOT_YOURS, other)


def test_somebody_elses_code_is_of_no_use(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    mine = link(begin(browser))
    attacker = there(link(begin(browser)))
    injected = callback(server, state=query(mine)["state"], code=query(attacker)["code"])
    refused(back(browser, injected), "no longer knows this sign-in", server)
    assert "no longer knows" in kept(server).last_error


def test_an_answer_from_another_authority_is_refused(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    url = there(link(begin(browser)))
    refused(back(browser, f"{url}&iss=https://evil.example"), "from another authorization server", server)
    assert guarded.asked("/token") == []


def test_an_authority_that_always_names_itself_must_do_so(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    guarded.answers["/.well-known/oauth-authorization-server"] = JSONResponse(
        {**guarded.metadata(), "authorization_response_iss_parameter_supported": True}
    )
    url = there(link(begin(browser)))
    refused(back(browser, url), "does not name its authorization server", server)
    url = there(link(begin(browser)))
    assert back(browser, f"{url}&iss={guarded.metadata()['issuer']}").status_code == 302


@each_row(
    "error, said",
    [("access_denied", "access was denied"), ("<b>x</b>", "did not say why")],
)
def test_a_no_is_told_in_words(server: UpstreamServer, browser: Client, error: str, said: str) -> None:
    state = query(link(begin(browser)))["state"]
    answer = back(browser, callback(server, state=state, error=error, error_description="<b>Call%20us</b>"))
    refused(answer, said, server)
    assert "<b>x</b>" not in answer.content.decode()
    assert "Call us" not in answer.content.decode()


def test_a_server_that_was_moved_in_between_gets_nothing(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    url = there(link(begin(browser)))
    servers.change(server.pk, ServerDraft("guarded", url="http://127.0.0.1:1/mcp"), signed_in(alice))
    refused(back(browser, url), "moved or removed", server)
    assert guarded.asked("/token") == []


def test_nothing_secret_is_logged_or_shown_when_it_fails(
    server: UpstreamServer, guarded: Guarded, browser: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "hitlchat")
    guarded.answers["/token"] = JSONResponse({"access_token": "secret-token\r\nX-Evil: 1", "token_type": "Bearer"})
    answer = back(browser, there(link(begin(browser))))
    refused(answer, "a token that cannot be sent", server)
    (secret,) = [each.client_secret for each in guarded.clients.values()]
    for text in (caplog.text, answer.content.decode()):
        assert "secret-token" not in text
        assert secret is None or secret not in text


def test_an_attempt_is_kept_sealed(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    state = query(link(begin(browser)))["state"]
    (attempt,) = SignInAttempt.objects.all()
    (client,) = guarded.clients.values()
    kept_text = f"{vars(attempt)}{vars(kept(server))}"
    assert state not in kept_text
    assert client.client_secret is None or client.client_secret not in kept_text


def test_the_client_is_registered_once_for_the_same_rights(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    begin(browser)
    sign_in(browser)
    sign_in(browser)
    assert len(guarded.clients) == 1

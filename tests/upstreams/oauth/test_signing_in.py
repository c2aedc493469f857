"""Somebody signs in at a server that asks for it: end to end, through the pages, the SDK's own authorization server and
the connections that the server process keeps.
"""

import pytest
from django.test import Client

from hitlchat.base.database import in_db
from hitlchat.upstreams.models import ServerState, SignInAttempt, UpstreamServer
from tests.upstreams.gated import is_in
from tests.upstreams.oauth import journeys
from tests.upstreams.oauth.guarded import Guarded
from tests.upstreams.oauth.journeys import begin, kept, link, query

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_person_is_told_where_they_go_and_what_is_asked(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    page = begin(browser)
    asked = query(link(page))
    assert asked["code_challenge_method"] == "S256"
    assert (asked["resource"], asked["scope"]) == (guarded.mcp, "notes.read offline_access")
    assert asked["redirect_uri"] == f"http://localhost/servers/callback/{server.pk}"
    text = page.content.decode()
    assert f"127.0.0.1:{guarded.port}" in text
    assert "notes.read" in text
    assert kept(server).mark == ""


async def test_whoever_signs_in_connects_the_server(
    server: UpstreamServer, guarded: Guarded, browser: Client, serving: None
) -> None:
    await is_in(ServerState.SIGN_IN, server)
    answer = await in_db(journeys.sign_in)(browser)
    assert (answer.status_code, answer.headers["location"]) == (302, "/servers/s/guarded")
    await is_in(ServerState.UP, server)
    found = await in_db(kept)(server)
    assert (found.scopes, found.problem, found.renews) == (("notes.read", "offline_access"), "", True)
    assert not await in_db(SignInAttempt.objects.exists)()

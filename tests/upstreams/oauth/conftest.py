"""A server that asks for a sign-in, known here, and an administrator's browser."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.upstreams import servers
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import signed_in
from tests.upstreams.oauth.guarded import Guarded, guarded_server


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with guarded_server() as server:
        yield server


@pytest.fixture
def server(alice: User, guarded: Guarded) -> UpstreamServer:
    return servers.create(ServerDraft("guarded", url=guarded.mcp), signed_in(alice))


@pytest.fixture
def browser(alice: User) -> Client:
    return browser_of(alice)


def browser_of(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client

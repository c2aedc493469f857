"""bob, signed in; and the sources of tests/gate, for pages that show what became of calls."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.gate.conftest import entered

__all__ = ["entered"]


@pytest.fixture
def page(bob: User, client: Client) -> Client:
    client.force_login(bob)
    return client

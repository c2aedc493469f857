from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def author(alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())

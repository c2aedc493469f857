from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.conftest import ECHO

FORM = {"name": "echo", "group": "tools", "category": "Text", "code": ECHO, "hitl_mode": "REQUIRED"}


@pytest.fixture
def author(alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def save(client: Client, **fields: Any) -> Any:
    return client.post("/studio/tools/echo", FORM | fields)

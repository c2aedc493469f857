"""The people and tools that tests speak of: alice authors, bob approves his own calls, charlie must see nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Tool
from tools_studio import authoring
from tools_studio.authoring import Draft

pytest_plugins = ["tests.services"]


def pytest_configure() -> None:
    """Passwords are hashed as fast as possible: their strength is Django's to test."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


PASSWORD = "a long enough pass phrase"
ECHO = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'

MakeTool = Callable[..., Tool]


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_superuser("alice", password=PASSWORD)


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob", password=PASSWORD)


@pytest.fixture
def charlie(db: None) -> User:
    return User.objects.create_user("charlie", password=PASSWORD)


@pytest.fixture
def make_tool(alice: User) -> MakeTool:
    """Make a published authored tool; keyword arguments are those of a Draft."""

    def make(name: str = "echo", *, published: bool = True, **fields: Any) -> Tool:
        fields.setdefault("code", ECHO)
        fields.setdefault("hitl_mode", "REQUIRED")
        tool = authoring.create(Draft(name=name, **fields), alice.pk)
        if published:
            tool.published = True
            tool.save(update_fields=["published"])
        return tool

    return make


def caller(user: User, kind: Any = "chat") -> Caller:
    return Caller(kind, user.pk, user.get_username())


def signed_in(user: User) -> Actor:
    return Actor(user.pk, "session")

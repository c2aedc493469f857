"""Fronts of people at a real server with a scripted model, and clients without a library in this process."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.accounts.models import Token, TokenKind
from tests.agent.talk import Talk, in_database
from tests.api.ai_sdk.front import ChatOf, Front, front_for
from tests.api.ai_sdk.listening import Listening
from tests.chat.conftest import recorder, served, talk
from tests.chat.tab import cookie_of
from tests.outside import Outside, outside
from tests.processes import STEADY, Person, Server, Servers, installation, migrated, servers
from tests.scripted_model import ScriptedModel, scripted_model

__all__ = ["installation", "migrated", "outside", "recorder", "scripted_model", "served", "servers", "talk"]

FrontOf = Callable[..., Front]
ListeningAs = Callable[..., Any]


@dataclass(frozen=True)
class House:
    """bob may use the tool `order`, which asks, and what it orders is in `outside`."""

    server: Server
    bob: Person
    outside: Outside
    model: ScriptedModel

    def conversation(self, **chosen: object) -> str:
        answer = self.bob.post("/api/conversations", chosen)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


@pytest.fixture
def house(servers: Servers, outside: Outside, scripted_model: ScriptedModel) -> House:
    server = servers.start(**scripted_model.environment | STEADY | {"HITL_ASK_USER": "1"})
    server.sign_in("alice").add_tool(hitlMode="REQUIRED", **outside.tool)
    return House(server, server.sign_in("bob"), outside, scripted_model)


@pytest.fixture
def front_of(house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontOf]:
    """Open a front end of a person who is signed in, or of whoever a token stands for."""
    with ExitStack() as stack:

        def begin(person: Person | None = None, token: str = "") -> Front:
            cookie = "; ".join(f"{name}={value}" for name, value in person.cookies.items()) if person else ""
            folder: Path = tmp_path_factory.mktemp("front")
            return stack.enter_context(front_for(folder, house.server.url, cookie=cookie, token=token))

        yield begin


@pytest.fixture
def chat(house: House, front_of: FrontOf) -> ChatOf:
    """A `Chat` of bob, in a new conversation."""
    return ChatOf(front_of(house.bob), house.conversation())


def _sign_in(client: Client, person: User, at: str | None) -> None:
    client.force_login(person)
    if at is not None:
        session = client.session
        session["signed_in_at"] = at
        session.save()


@pytest.fixture
async def listening_as(talk: Talk) -> AsyncIterator[ListeningAs]:
    """A client with a token of this kind, or signed in: of bob in his conversation unless told otherwise."""
    opened: list[Listening] = []

    async def begin(
        kind: TokenKind | None = None, user: User | None = None, signed_in_at: str | None = None
    ) -> Listening:
        person, conversation = user or talk.owner, talk.conversation.pk
        if kind is None:
            client = Client()
            await in_database(_sign_in)(client, person, signed_in_at)
            csrf = "c" * 32
            cookie = f"{cookie_of(client)}; csrftoken={csrf}"
            headers = {"cookie": cookie, "x-csrftoken": csrf, "origin": "http://127.0.0.1:8000"}
        else:
            headers = {"authorization": f"Bearer {await in_database(Token.make)(person, kind)}"}
        opened.append(Listening(conversation, headers))
        return opened[-1]

    yield begin
    for each in opened:
        await each.close()


@pytest.fixture
async def bobs(listening_as: ListeningAs) -> Listening:
    found: Listening = await listening_as()
    return found

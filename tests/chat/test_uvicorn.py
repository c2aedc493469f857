"""The same application under another ASGI server, which has the lifespan protocol and a websocket of its own."""

import json
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from django.contrib.auth.models import User
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from hitlchat.agent.models import Conversation
from hitlchat.asgi import application
from tests.chat.conftest import SignIn
from tests.scripted_model import ScriptedModel, text
from tests.waiting import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("Redis announces it after the commit")]


@pytest.fixture
def server(transactional_db: None, scripted_model: ScriptedModel) -> Iterator[uvicorn.Server]:
    config = uvicorn.Config(application, port=0, log_config=None, ws="websockets-sansio", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started, "uvicorn serves")
    yield server
    server.should_exit = True
    thread.join(40)
    assert not thread.is_alive()


def address(server: uvicorn.Server) -> str:
    return f"127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"


def page(server: uvicorn.Server, conversation: Conversation, cookie: str, origin: str) -> ClientConnection:
    url = f"ws://{address(server)}/ws/conversations/{conversation.pk}"
    return connect(url, additional_headers={"Cookie": cookie, "Origin": origin}, proxy=None)


def read(connection: ClientConnection, words: str) -> str:
    return until(lambda: seen if words in (seen := str(connection.recv(timeout=15))) else "", words)


def test_a_conversation_runs_under_uvicorn_and_its_end_is_told_as_a_restart(
    server: uvicorn.Server, bob: User, sign_in: SignIn, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("Hello from uvicorn."))
    conversation = Conversation.objects.create(owner=bob)
    with page(server, conversation, sign_in(bob), f"http://{address(server)}") as connection:
        read(connection, 'id="turns"')
        connection.send(json.dumps({"type": "say", "content": "Hi"}))
        read(connection, "Hello from uvicorn.")
        server.should_exit = True
        with pytest.raises(ConnectionClosed) as closed:
            read(connection, "what never comes")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012


def test_a_hostile_origin_is_refused_under_uvicorn_too(server: uvicorn.Server, bob: User, sign_in: SignIn) -> None:
    conversation = Conversation.objects.create(owner=bob)
    with pytest.raises(InvalidStatus) as refused, page(server, conversation, sign_in(bob), "https://evil.example"):
        pass
    assert refused.value.response.status_code == 403

"""Two server processes: what one asks about the other may tell, once; and what one dies over the other sends."""

from collections.abc import Iterator

import pytest

from tests.notices.receivers import Inbound, receiving
from tests.processes import Installation, Person, Server, Servers
from tests.waiting import until

pytestmark = [
    pytest.mark.slow("starts processes"),
    pytest.mark.processes,
    pytest.mark.timeout(240),
    pytest.mark.servers("what a killed process leaves is what was committed"),
]

AT_ONCE = {"NOTICE_COLLECT_SECONDS": "0", "NOTICE_INTERVAL_SECONDS": "0", "NOTICE_TIMEOUT_SECONDS": "2"}
ECHO = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'
ADD = """
from django.contrib.auth.models import User
from hitlchat.gate.actor import Actor
from hitlchat.notices import receivers
from hitlchat.notices.models import Receiver
alice = User.objects.get(username="alice")
hook = Receiver(kind="webhook", name="hook", allow_private=True)
receivers.add(hook, "URL", Actor(alice.pk, "console"))
"""


@pytest.fixture
def inbound() -> Iterator[Inbound]:
    with receiving() as listening_there:
        yield listening_there


def ask(person: Person) -> None:
    person.post("/api/tools/echo/test", {"arguments": {"text": "x"}})


def test_what_a_killed_process_was_sending_another_one_sends_under_the_same_id_and_nothing_twice(
    servers: Servers, installation: Installation, inbound: Inbound
) -> None:
    installation.add_tool("echo", ECHO, hitl_mode="REQUIRED")
    installation.manage("shell", "-v", "0", "-c", ADD.replace("URL", inbound.url))
    first: Server = servers.start(**AT_ONCE)
    inbound.hangs = True
    ask(first.sign_in("alice"))
    until(lambda: len(inbound.got) == 1)
    first.kill()
    inbound.hangs = False
    others = [servers.start(**AT_ONCE) for _ in range(2)]
    until(lambda: len(inbound.got) == 2)
    assert inbound.got[0].id == inbound.got[1].id
    assert inbound.got[0].body == inbound.got[1].body
    ask(others[0].sign_in("alice"))
    until(lambda: len(inbound.got) == 3)
    ask(others[1].sign_in("alice"))
    until(lambda: len(inbound.got) == 4)
    assert len({got.id for got in inbound.got}) == 3

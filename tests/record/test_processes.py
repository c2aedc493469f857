"""Several servers keep one record, one of them is killed, and one has another key."""

import base64
import json

import pytest

from tests.conftest import ECHO, PASSWORD
from tests.processes import Installation, Person, Server, Servers, without_people
from tests.waiting import until

__all__ = ["without_people"]

pytestmark = [
    pytest.mark.slow("starts servers and commands, and kills two of them"),
    pytest.mark.processes,
    pytest.mark.guarantee("audit:complete"),
    pytest.mark.timeout(240),
    pytest.mark.servers("what a killed process leaves is what was committed"),
]

OFTEN = {"HITL_RECORD_SECONDS": "1"}
FORGED = """
from hitlchat.gate.models import Tool
Tool.objects.filter(hitl_mode="REQUIRED").update(hitl_mode="DISABLED")
"""


def verified(home: Installation) -> None:
    said = json.loads(home.manage("audit", "verify", "--json"))
    assert said["whole"], said["findings"]


def sealed(person: Person) -> int:
    """How many events."""
    return sum(seal["count"] for seal in person.get("/api/audit/seals").json())


def something_happens(people: list[Person]) -> None:
    """Taking the record out is on record."""
    for person in people:
        assert person.get("/api/audit", format="csv").status_code == 200


def test_two_servers_seal_one_chain_through_a_kill_and_a_third_with_another_key_seals_nothing(servers: Servers) -> None:
    first, second = servers.start(**OFTEN), servers.start(**OFTEN)
    people = [server.sign_in("alice") for server in (first, second)]
    for _ in range(3):
        something_happens(people)
    until(lambda: sealed(people[0]) >= 6, "what happened is sealed")
    second.kill()
    something_happens(people[:1])
    until(lambda: sealed(people[0]) >= 7, "what happened after the kill is sealed too")
    stranger = servers.start(**OFTEN, HITL_RECORD_KEY=base64.b64encode(bytes(32)).decode())
    until(lambda: "it seals nothing" in stranger.log, "the server says that its key is another one")
    assert "it seals nothing" not in first.log
    verified(servers.home)
    seals = people[0].get("/api/audit/seals").json()
    assert len({seal["key"] for seal in seals}) == 1
    assert [seal["number"] for seal in seals] == list(range(len(seals), 0, -1))


def test_a_loop_of_crashes_leaves_nothing_unsealed_that_another_start_could_seal(servers: Servers) -> None:
    seldom = {"HITL_RECORD_SECONDS": "3600"}
    for _ in range(2):
        server = servers.start(**seldom)
        something_happens([server.sign_in("alice")])
        server.kill()
    last = servers.start(**seldom)
    person = last.sign_in("alice")
    until(lambda: sealed(person) >= 2, "what the dead ones left is sealed")
    assert last.stop() == 0
    said = json.loads(servers.home.manage("audit", "verify", "--json"))
    assert (said["whole"], said["tail"]) == (True, 0)


def test_a_first_start_and_what_commands_and_people_make_after_it_is_whole(without_people: Installation) -> None:
    home = without_people
    named = {"DJANGO_SUPERUSER_PASSWORD": PASSWORD, "DJANGO_SUPERUSER_EMAIL": "a@example.org"}
    home.manage("createsuperuser", "--noinput", "--username", "alice", **named)
    server = Server(home, OFTEN)
    server.start()
    try:
        home.manage("createsuperuser", "--noinput", "--username", "carol", **named)
        home.manage("create_token", "alice", "--kind", "approver")
        home.manage("people", "invite", "author")
        person = server.sign_in("alice")
        person.post("/api/tools", {"name": "mine", "code": ECHO, "hitlMode": "DISABLED"})
        verified(home)
        assert server.stop() == 0
        verified(home)
    finally:
        server.close()
    home.manage("shell", "-c", FORGED)
    with pytest.raises(AssertionError, match="The hitl mode of the tool"):
        home.manage("audit", "verify", "--plain")

"""Schemas whose patterns take long to compile: what an upstream lists costs nobody else their time."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.base.expressions import MOST_PATTERNS, compiled
from hitlchat.gate.card import card
from hitlchat.gate.status import Status
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.models import UpstreamServer
from tests.gate.asking import ask
from tests.upstreams.shops import expose, listed, row, somewhere, take_in

pytestmark = pytest.mark.django_db(transaction=True)

COSTLY = {f"p{n}": {"pattern": rf"(?i)\w{{500}}{n}"} for n in range(200)}
PLAIN = {f"q{n}": {"pattern": f"^costly-{n}$"} for n in range(5)}


@pytest.fixture
def server(alice: User) -> UpstreamServer:
    made = somewhere(alice)
    schema = {"type": "object", "properties": COSTLY | PLAIN}
    take_in(made, Listing((listed("echo", inputSchema=schema, outputSchema=schema),)))
    return made


def looked_for() -> tuple[int, int]:
    found = compiled.cache_info()
    return found.hits, found.misses


def test_exposing_compiles_nothing_in_its_transaction(alice: User, server: UpstreamServer) -> None:
    before = looked_for()
    tool = expose(alice, server)
    assert looked_for() == before
    for schema in (tool.input_schema, tool.output_schema):
        kept = {name for name, part in schema["properties"].items() if "pattern" in part}
        assert kept == PLAIN.keys()


def test_arguments_are_checked_against_the_patterns_that_were_kept(
    alice: User, bob: User, server: UpstreamServer
) -> None:
    tool = expose(alice, server)
    before = compiled.cache_info().misses
    assert ask(bob, tool, {"p0": "left to the server", "q0": "no"}).status == Status.REJECTED
    assert ask(bob, tool, {"p0": "left to the server", "q0": "costly-0"}).status == Status.WAITING
    assert compiled.cache_info().misses - before <= MOST_PATTERNS


NAMES = {"type": "object", "properties": {"name": {"pattern": r"^[\p{L}_-]{1,20}$"}, "code": {"pattern": r"(?<=a+)b"}}}
ALONE = "Only its server checks the form of “code”: the patterns cannot be checked here."


def test_what_only_the_server_checks_is_said_on_the_card_and_on_its_pages(
    alice: User, bob: User, client: Client
) -> None:
    made = somewhere(alice)
    take_in(made, Listing((listed("echo", inputSchema=NAMES),)))
    tool = expose(alice, made)
    assert ask(bob, tool, {"name": "no blanks"}).status == Status.REJECTED
    waits = ask(bob, tool, {"name": "Zoë", "code": "anything"})
    assert waits.status == Status.WAITING
    assert ALONE in [fact.plain for fact in card(waits.approval).facts]
    client.force_login(alice)
    of_tool = row(made)
    for path in (f"/servers/s/{made.name}/tools/{of_tool.pk}", f"/servers/tools/details/{of_tool.pk}"):
        assert ALONE in client.get(path).content.decode(), path

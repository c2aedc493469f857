"""“A signed-in person must decide” for composed tools: in the drawer and over REST."""

import pytest
from django.contrib.auth.models import User

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import Tool
from hitlchat.upstreams.models import ComposedTool, ToolEvent, UpstreamServer
from tests.api.conftest import Program, ProgramOf, problem, program_of
from tests.upstreams.drawers import applied, confirms, seen, send, take_in, wish
from tests.upstreams.shops import listing, somewhere

__all__ = ["program_of"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]

ECHO = "/servers/shop/tools/echo"


@pytest.fixture
def shop(alice: User) -> UpstreamServer:
    server = somewhere(alice)
    take_in(server, listing(echo="Say it back."))
    return server


@pytest.fixture
def alices(alice: User, shop: UpstreamServer, program_of: ProgramOf) -> Program:
    return program_of(alice)


def echo() -> ComposedTool:
    return ComposedTool.objects.select_related("tool", "server").get(name="echo")


def stands() -> bool:
    return Tool.objects.get(composed__name="echo").signed_in_only


def test_the_drawer_turns_it_on_with_the_exposure_or_later(alice: User, shop: UpstreamServer) -> None:
    send(alice, wish(echo(), exposed=True, signed_in_only=True))
    assert stands()
    assert "checked" in seen(alice, f"/servers/tools/details/{echo().pk}").partition("signed_in_only")[2].split(">")[0]


def test_the_drawer_asks_before_it_is_turned_off_and_the_history_tells_of_both(
    alice: User, shop: UpstreamServer
) -> None:
    send(alice, wish(echo(), exposed=True))
    assert applied(send(alice, wish(echo(), signed_in_only=True))) == 1
    question = send(alice, wish(echo(), signed_in_only=False))
    assert "needed a signed-in person and will accept an MCP client\u2019s answer" in question
    assert stands()
    # Its yes is none to something else besides.
    both = send(alice, wish(echo(), signed_in_only=False, hitl_mode="DISABLED"), confirmed=confirms(question))
    assert "and asked every time and will never ask" in both
    assert stands()
    send(alice, wish(echo(), signed_in_only=False), confirmed=confirms(question))
    assert not stands()
    said = [
        (event.data["before"].get("signed_in_only"), event.data["after"]["signed_in_only"])
        for event in ToolEvent.objects.filter(name="tool.configured").order_by("pk")
    ]
    assert said == [(False, True), (True, False)]
    history = seen(alice, "/servers/history")
    assert history.count("A signed-in person must decide") == 2


def test_rest_reads_it_turns_it_on_and_asks_before_it_is_turned_off(alices: Program) -> None:
    assert alices.get(ECHO).json()["signedInOnly"] is False
    assert alices.put(ECHO, {"exposed": True, "signedInOnly": True}).json()["signedInOnly"] is True
    found = problem(alices.put(ECHO, {"signedInOnly": False}), 409)
    assert found["errors"].keys() == {"confirmLowering"}
    assert stands()
    assert alices.put(ECHO, {"signedInOnly": False, "confirmLowering": True}).json()["signedInOnly"] is False


def test_a_program_turns_it_on_and_never_off(alices: Program, alice: User, program_of: ProgramOf) -> None:
    machine = program_of(alice, TokenKind.API)
    assert machine.put(ECHO, {"exposed": True}).json()["signedInOnly"] is False
    assert machine.put(ECHO, {"signedInOnly": True}).status_code == 200
    problem(machine.put(ECHO, {"signedInOnly": False, "confirmLowering": True}), 403)
    assert stands()
    assert machine.put(ECHO, {"exposed": False}).status_code == 200
    assert stands()

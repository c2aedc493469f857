"""How long a question about a composed tool is open: in the drawer and over REST."""

import pytest
from django.contrib.auth.models import User

from hitlchat.gate.models import Tool
from hitlchat.upstreams.models import ComposedTool, UpstreamServer
from tests.api.conftest import Program, ProgramOf, problem, program_of
from tests.gate.asking import ask, fresh
from tests.upstreams.drawers import seen, send, take_in, wish
from tests.upstreams.shops import listing, somewhere

__all__ = ["program_of"]
pytestmark = pytest.mark.django_db(transaction=True)

ECHO = "/servers/shop/tools/echo"
EXPECTED = "Seconds to answer: expected a whole number from 1 to 2,592,000 (30 days), or none."


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


def stands() -> int | None:
    return Tool.objects.get(composed__name="echo").deadline_seconds


def test_the_drawer_sets_it_clears_it_and_the_history_tells_of_both(alice: User, shop: UpstreamServer) -> None:
    send(alice, wish(echo(), exposed=True, deadline_seconds="86400"))
    assert stands() == 86_400
    assert 'value="86400"' in seen(alice, f"/servers/tools/details/{echo().pk}")
    send(alice, wish(echo(), deadline_seconds=""))
    assert stands() is None
    assert seen(alice, "/servers/history").count("Seconds to answer") == 2


def test_the_drawer_says_at_the_field_what_it_expects(
    subtests: pytest.Subtests, alice: User, shop: UpstreamServer
) -> None:
    send(alice, wish(echo(), exposed=True))
    for typed in ["0", "2592001", "soon"]:
        with subtests.test(typed=typed):
            answer = send(alice, wish(echo(), deadline_seconds=typed))
            assert EXPECTED in answer
            assert 'data-said="deadline_seconds"' in answer
            assert stands() is None


def test_rest_reads_sets_and_clears_it(alices: Program) -> None:
    assert alices.get(ECHO).json()["deadlineSeconds"] is None
    assert alices.put(ECHO, {"exposed": True, "deadlineSeconds": 60}).json()["deadlineSeconds"] == 60
    assert alices.put(ECHO, {"hitlMode": "REQUIRED"}).json()["deadlineSeconds"] == 60
    for wrong in (0, 30 * 86_400 + 1, "60", True):
        assert problem(alices.put(ECHO, {"deadlineSeconds": wrong}), 422)["errors"].keys() == {"deadlineSeconds"}
    assert alices.put(ECHO, {"deadlineSeconds": None, "confirmLowering": True}).json()["deadlineSeconds"] is None


def test_another_time_holds_for_the_next_question_and_not_for_those_that_wait(alices: Program, alice: User) -> None:
    alices.put(ECHO, {"exposed": True, "deadlineSeconds": 3600})
    call = ask(alice, Tool.objects.get(composed__name="echo"), {})
    alices.put(ECHO, {"deadlineSeconds": 5})
    assert (fresh(call).status, fresh(call).deadline) == ("waiting", call.deadline)

"""Two settings of a composed tool, in the drawer and over REST: that a signed-in person must decide, and how long."""

import pytest
from django.contrib.auth.models import User

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import Tool
from hitlchat.upstreams.models import ComposedTool, ToolEvent, UpstreamServer
from tests.api.conftest import Program, ProgramOf, problem, program_of
from tests.gate.asking import ask, fresh
from tests.upstreams.drawers import applied, confirms, seen, send, wish

__all__ = ["program_of"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]

ECHO = "/servers/shop/tools/echo"
EXPECTED = "Seconds to answer: expected a whole number from 1 to 2,592,000 (30 days), or none."


@pytest.fixture
def alices(alice: User, server: UpstreamServer, program_of: ProgramOf) -> Program:
    return program_of(alice)


def echo() -> ComposedTool:
    return ComposedTool.objects.select_related("tool", "server").get(name="echo")


def stands() -> bool:
    return Tool.objects.get(composed__name="echo").signed_in_only


def test_the_drawer_turns_it_on_with_the_exposure_or_later(alice: User, server: UpstreamServer) -> None:
    send(alice, wish(echo(), exposed=True, signed_in_only=True))
    assert stands()
    assert "checked" in seen(alice, f"/servers/tools/details/{echo().pk}").partition("signed_in_only")[2].split(">")[0]


def test_the_drawer_asks_before_it_is_turned_off_and_the_history_tells_of_both(
    alice: User, server: UpstreamServer
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


def seconds() -> int | None:
    return Tool.objects.get(composed__name="echo").deadline_seconds


def test_the_drawer_sets_and_clears_the_time_to_answer_and_the_history_tells_of_both(
    alice: User, server: UpstreamServer
) -> None:
    send(alice, wish(echo(), exposed=True, deadline_seconds="86400"))
    assert seconds() == 86_400
    assert 'value="86400"' in seen(alice, f"/servers/tools/details/{echo().pk}")
    send(alice, wish(echo(), deadline_seconds=""))
    assert seconds() is None
    assert seen(alice, "/servers/history").count("Seconds to answer") == 2


def test_the_drawer_says_at_the_field_which_times_to_answer_it_expects(
    subtests: pytest.Subtests, alice: User, server: UpstreamServer
) -> None:
    send(alice, wish(echo(), exposed=True))
    for typed in ["0", "2592001", "soon"]:
        with subtests.test(typed=typed):
            answer = send(alice, wish(echo(), deadline_seconds=typed))
            assert EXPECTED in answer
            assert 'data-said="deadline_seconds"' in answer
            assert seconds() is None


def test_rest_reads_sets_and_clears_the_time_to_answer(alices: Program) -> None:
    assert alices.get(ECHO).json()["deadlineSeconds"] is None
    assert alices.put(ECHO, {"exposed": True, "deadlineSeconds": 60}).json()["deadlineSeconds"] == 60
    assert alices.put(ECHO, {"hitlMode": "REQUIRED"}).json()["deadlineSeconds"] == 60
    for wrong in (0, 30 * 86_400 + 1, "60", True):
        assert problem(alices.put(ECHO, {"deadlineSeconds": wrong}), 422)["errors"].keys() == {"deadlineSeconds"}
    assert alices.put(ECHO, {"deadlineSeconds": None, "confirmLowering": True}).json()["deadlineSeconds"] is None


def test_another_time_to_answer_holds_for_the_next_question_and_not_for_those_that_wait(
    alices: Program, alice: User
) -> None:
    alices.put(ECHO, {"exposed": True, "deadlineSeconds": 3600})
    call = ask(alice, Tool.objects.get(composed__name="echo"), {})
    alices.put(ECHO, {"deadlineSeconds": 5})
    assert (fresh(call).status, fresh(call).deadline) == ("waiting", call.deadline)

"""I'm on it: who says so, until when, and that it locks nothing."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate import decide, deciders, handling, who
from hitlchat.gate.models import AuditEvent, Handling, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, status
from tests.gate.deciding_people import rule
from tests.gate.racing import together

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tool(make_tool: MakeTool) -> Tool:
    return make_tool("echo")


@pytest.fixture
def call(alice: User, bob: User, tool: Tool) -> ToolCall:
    rule(tool, alice)
    return ask(bob, tool)


def on_it(call: ToolCall, viewer: User) -> tuple[str, bool]:
    """Who is on it, as a person's card says, and whether it is the person."""
    standing = who.stance_of(approval_of(call), signed_in(viewer))
    return standing.on_it.plain if standing.on_it else "", standing.own


def ends(call: ToolCall) -> None:
    Handling.objects.filter(approval__call=call).update(until=timezone.now() - timedelta(seconds=1))


def test_everybody_sees_who_is_on_it_until_they_let_go(dora: User, erik: User, call: ToolCall) -> None:
    assert on_it(call, erik) == ("", False)
    handling.take_up(approval_of(call).pk, signed_in(dora))
    assert (on_it(call, dora), on_it(call, erik)) == (("dora", True), ("dora", False))
    left = Handling.objects.get().until - timezone.now()
    assert timedelta(minutes=4) < left <= handling.LASTS
    handling.let_go(approval_of(call).pk, signed_in(erik))
    assert on_it(call, erik) == ("dora", False)
    handling.let_go(approval_of(call).pk, signed_in(dora))
    handling.let_go(approval_of(call).pk, signed_in(dora))
    assert on_it(call, erik) == ("", False)
    events = AuditEvent.objects.filter(call=call, name__in=[handling.TAKEN_UP, handling.LET_GO])
    assert [*events.order_by("pk").values_list("name", "actor__username")] == [
        (handling.TAKEN_UP, "dora"),
        (handling.LET_GO, "dora"),
    ]


def test_only_one_is_on_it_until_their_time_is_over_or_they_are_deactivated(
    dora: User, erik: User, call: ToolCall
) -> None:
    approval = approval_of(call).pk
    handling.take_up(approval, signed_in(dora))
    handling.take_up(approval, signed_in(dora))
    with pytest.raises(handling.TakenUp, match="dora is on it already"):
        handling.take_up(approval, signed_in(erik))
    ends(call)
    assert on_it(call, erik) == ("", False)
    handling.take_up(approval, signed_in(erik))
    User.objects.filter(pk=erik.pk).update(is_active=False)
    assert on_it(call, dora) == ("", False)
    handling.take_up(approval, signed_in(dora))
    assert on_it(call, dora) == ("dora", True)


def test_of_two_at_once_one_is_on_it(dora: User, erik: User, call: ToolCall) -> None:
    approval = approval_of(call).pk

    def take_up(person: User) -> bool:
        try:
            handling.take_up(approval, signed_in(person))
        except handling.TakenUp:
            return False
        return True

    assert sorted(together(lambda: take_up(dora), lambda: take_up(erik), meet_at_first_write=True)) == [False, True]
    assert AuditEvent.objects.filter(name=handling.TAKEN_UP).count() == 1


@pytest.mark.guarantee("gate:only-people")
def test_it_locks_nothing_and_is_no_answer(dora: User, erik: User, call: ToolCall) -> None:
    handling.take_up(approval_of(call).pk, signed_in(dora))
    assert status(call) == Status.WAITING
    decide.decline(approval_of(call).pk, signed_in(erik))
    assert status(call) == Status.DECLINED
    with pytest.raises(decide.AlreadySettled):
        handling.take_up(approval_of(call).pk, signed_in(dora))


def test_who_may_not_answer_cannot_say_that_they_are_on_it(bob: User, charlie: User, call: ToolCall) -> None:
    for verb in (handling.take_up, handling.let_go):
        with pytest.raises(deciders.NotEntitled):
            verb(approval_of(call).pk, signed_in(bob))
        with pytest.raises(decide.NoSuchApproval):
            verb(approval_of(call).pk, signed_in(charlie))
    assert not Handling.objects.exists()

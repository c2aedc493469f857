"""Statements that are compiled once: the same answers as the QuerySet, with other values each time."""

import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise, product
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Group, User
from django.db.models import Count, DateTimeField, IntegerField, Q, QuerySet, UUIDField
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from hitlchat.base.database import Compiled, Given
from hitlchat.gate import decide, deciders, queue
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams.elicitation import questions
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, say_yes
from tests.gate.deciding_people import approver, members, rule

pytestmark = [pytest.mark.django_db, pytest.mark.servers("the SQL differs between the databases")]


def waiting(user_id: Any) -> QuerySet[ToolCall, Any]:
    rows = ToolCall.objects.filter(caller_id=user_id, status=Status.WAITING).order_by("created_at")
    return rows.values_list("pk", "tool_name", "created_at", "deadline")


def test_a_compiled_statement_reads_what_its_queryset_reads_for_each_value(
    bob: User, charlie: User, make_tool: MakeTool
) -> None:
    statement = Compiled(lambda: waiting(Given("person", IntegerField())))
    tool = make_tool()
    for user in (bob, bob, charlie):
        ask(user, tool)
    for user in (bob, charlie, bob):
        assert statement.rows(person=user.pk) == list(waiting(user.pk))
        assert statement.count(person=user.pk) == waiting(user.pk).count()
    assert [len(statement.rows(person=user.pk)) for user in (bob, charlie)] == [2, 1]


def test_a_queryset_is_compiled_before_the_first_time_and_never_again(bob: User) -> None:
    built = []

    def build() -> QuerySet[User, Any]:
        built.append(1)
        return User.objects.filter(pk=Given("person", IntegerField())).values_list("username")

    statement = Compiled(build)
    assert not built
    assert [statement.rows(person=pk) for pk in (bob.pk, 0, bob.pk)] == [[("bob",)], [], [("bob",)]]
    # The second time is to see that it is the same at another moment.
    assert len(built) == 2


def test_a_moment_is_refused_that_would_be_kept_and_the_clock_of_the_database_is_not() -> None:
    frozen = Compiled(lambda: ToolCall.objects.filter(created_at__lt=timezone.now()).values_list("pk"))
    with pytest.raises(TypeError, match="the moment it was built in"):
        frozen.rows()
    assert Compiled(lambda: ToolCall.objects.filter(created_at__lt=Now()).values_list("pk")).rows() == []


def test_no_setting_is_in_a_statement_that_is_kept(settings: Settings) -> None:
    """Look through all statements of this process: what an operator sets counts from the next question on."""
    ours = [module for name, module in [*sys.modules.items()] if name.startswith(("hitlchat.", "tools_studio."))]
    kept = [each for module in ours for each in vars(module).values() if isinstance(each, Compiled)]
    kept.append(queue._all(1001))
    assert len(kept) >= 4
    before = [(made.sql, made.parameters) for made in (each._compiled() for each in kept)]
    numbers = [name for name in dir(django_settings) if name.isupper() and type(getattr(settings, name)) is int]
    assert "HITL_MAX_WAITING_PER_CONVERSATION" in numbers
    for name in numbers:
        setattr(settings, name, getattr(settings, name) + 1)
    assert [(made.sql, made.parameters) for made in (each._compiled() for each in kept)] == before


def test_a_value_that_is_missing_is_an_error_and_not_nothing() -> None:
    with pytest.raises(KeyError, match="person"):
        Compiled(lambda: waiting(Given("person", IntegerField()))).rows()


def test_a_moment_and_an_id_may_be_given(bob: User, make_tool: MakeTool) -> None:
    call = ask(bob, make_tool())
    until, which = Given("until", DateTimeField()), Given("which", UUIDField())
    statement = Compiled(lambda: ToolCall.objects.filter(pk=which, created_at__lt=until).values_list("pk"))
    later, earlier = (timezone.now() + sign * timedelta(hours=1) for sign in (1, -1))
    assert [statement.rows(which=call.pk, until=at) for at in (later, earlier)] == [[(call.pk,)], []]
    assert statement.rows(which=uuid4(), until=later) == []


@pytest.mark.guarantee("gate:only-people")
def test_what_waits_for_whom_is_the_same_however_often_it_is_asked(
    bob: User, charlie: User, alice: User, make_tool: MakeTool
) -> None:
    """Ask in each way to come to decide, and each way for a question to be over, for several people in turn."""
    dora, people = approver("dora"), Group.objects.create(name="finance")
    members(people, "erik")
    rules: list[dict[str, Any]] = [{}, {"quorum": 2, "not_the_requester": True}, {"group": people}]
    tools = [make_tool("plain")]
    for number, each in enumerate(rules):
        tools.append(make_tool(f"ruled-{number}"))
        rule(tools[-1], alice, **each)
    everyone = (alice, bob, charlie, dora, User.objects.get(username="erik"))
    calls = [ask(user, tool) for user, tool in product((bob, charlie), tools)]
    ToolCall.objects.filter(caller=bob).update(conversation_id=UUID(int=7))
    changes: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: say_yes(bob, calls[0]),
        lambda: decide.decline(approval_of(calls[1]).pk, signed_in(dora)),
    )
    for change in changes:
        change()
        for user in everyone:
            expected = deciders.waiting_for(user.pk)
            assert queue.count(user.pk, 1001) == expected.count()
            found = queue.among(user.pk, [call.pk for call in calls])
            assert {each.approval_id for each in found} == set(expected.values_list("pk", flat=True))
            assert deciders.waiting_by_conversation(user.pk) == _by_conversation(expected.filter(call__caller=user))
            assert questions.open_by_conversation(user.pk) == {}


def _by_conversation(rows: QuerySet[Approval]) -> dict[UUID, int]:
    rows = rows.filter(call__conversation_id__isnull=False)
    return dict(rows.values_list("call__conversation_id").annotate(times=Count("pk")).order_by())


def test_any_number_of_calls_is_asked_about_in_one_statement(
    bob: User, make_tool: MakeTool, django_assert_num_queries: Any
) -> None:
    tool = make_tool()
    calls = [ask(bob, tool) for _ in range(3)]
    with django_assert_num_queries(0):
        assert queue.among(bob.pk, []) == []
    for few, many in pairwise(range(1, 4)):
        with django_assert_num_queries(1):
            found = queue.among(bob.pk, [call.pk for call in calls[:few]])
        assert {each.call_id for each in found} == {call.pk for call in calls[: many - 1]}
    found = queue.among(bob.pk, [uuid4() for _ in range(queue.MOST_AMONG - 1)] + [calls[0].pk])
    assert [(each.call_id, each.tool_name, each.round) for each in found] == [(calls[0].pk, "echo", 1)]
    assert found[0].called_at == ToolCall.objects.get(pk=calls[0].pk).created_at
    assert queue.count(bob.pk, 20, Q(pk=calls[0].pk)) == 1

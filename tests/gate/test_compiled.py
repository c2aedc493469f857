"""Statements that are compiled once: the same answers as the QuerySet, with other values each time."""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise, product
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Group, User
from django.db.models import Count, F, Q, QuerySet, Value
from django.db.models.functions import Concat, Now
from django.utils import timezone
from pytest_django import Settings

from hitlchat.base.statements import MOST, Where, compiled, condition, prefetch
from hitlchat.gate import decide, deciders, queue
from hitlchat.gate.models import Approval, Decision, Grant, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams.elicitation import questions
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, say_yes
from tests.gate.deciding_people import approver, members, rule

pytestmark = [pytest.mark.django_db, pytest.mark.servers("the SQL differs between the databases")]


@compiled
def waiting(user_id: int) -> QuerySet[ToolCall, Any]:
    rows = ToolCall.objects.filter(caller_id=user_id, status=Status.WAITING).order_by("created_at")
    return rows.values_list("pk", "tool_name", "created_at", "deadline")


@compiled
def whole(call_id: UUID) -> QuerySet[ToolCall]:
    rows = ToolCall.objects.select_related("tool", "caller", "approval", "grant")
    return rows.filter(pk=call_id).annotate(tools_name=F("tool__name"))


@compiled
def among(call_ids: list[UUID]) -> QuerySet[ToolCall, Any]:
    return ToolCall.objects.filter(pk__in=call_ids).order_by("created_at").values("pk", "arguments")


@compiled
def decisions(approval_ids: list[UUID]) -> QuerySet[Decision]:
    return Decision.objects.filter(approval__pk__in=approval_ids)


@condition
def is_called(name: str) -> Q:
    return Q(tool_name=name)


@condition
def is_older(at: datetime) -> Q:
    return Q(created_at__lt=at)


def test_a_compiled_statement_reads_what_its_queryset_reads_for_each_value(
    bob: User, charlie: User, make_tool: MakeTool
) -> None:
    tool = make_tool()
    for user in (bob, bob, charlie):
        ask(user, tool)
    for user in (bob, charlie, bob):
        rows = waiting.define(user.pk)
        assert list(waiting(user.pk)) == list(rows)
        assert waiting(user.pk).first() == rows.first()
        assert waiting(user.pk).one() in rows
        assert waiting(user.pk).count(10) == rows.count()
        assert waiting(user.pk).exists()
    assert [waiting(user.pk).count(1) for user in (bob, charlie)] == [1, 1]
    assert (waiting(0).one(), waiting(0).first(), waiting(0).exists(), list(waiting(0))) == (None, None, False, [])


def test_a_row_is_read_with_all_that_is_related_to_it(bob: User, make_tool: MakeTool) -> None:
    call = ask(bob, make_tool())
    found, expected = whole(call.pk).one(), whole.define(call.pk).get()
    assert found is not None
    for row, other in [(found, expected), (found.tool, expected.tool), (found.approval, expected.approval)]:
        names = [field.attname for field in other._meta.concrete_fields]
        assert [getattr(row, name) for name in names] == [getattr(other, name) for name in names]
    assert (found.caller, found.grant, found.tools_name) == (bob, None, "echo")  # type: ignore[attr-defined]
    assert (found._state.db, found._state.adding) == (expected._state.db, False)
    found.reason = "Saved like any other."
    found.save()
    assert ToolCall.objects.get(pk=call.pk).reason == "Saved like any other."


def test_related_rows_are_fetched_for_many_rows_at_once(
    bob: User, make_tool: MakeTool, django_assert_num_queries: Any
) -> None:
    tool = make_tool()
    approvals = [approval_of(ask(bob, tool, {"text": text})) for text in "abc"]
    say_yes(bob, approvals[1].call)
    with django_assert_num_queries(1):
        prefetch(approvals, "decisions", decisions, "approval_id")
        assert [[each.person_id for each in one.decisions.all()] for one in approvals] == [[], [bob.pk], []]
    with django_assert_num_queries(0):
        prefetch([], "decisions", decisions, "approval_id")


def test_an_update_writes_what_its_queryset_writes_where_all_conditions_hold(
    bob: User, make_tool: MakeTool, django_assert_num_queries: Any
) -> None:
    call = ask(bob, make_tool())
    result: dict[str, Any] = {"result": {"text": "hi", "none": None}, "error": None, "output": "it's \n"}
    later, earlier = (timezone.now() + sign * timedelta(hours=1) for sign in (1, -1))
    rows = whole(call.pk)
    for where, count in [
        (is_called("echo") & is_older(later), 1),
        (is_called("echo") & is_older(earlier), 0),
        (is_called("another") & is_older(later), 0),
        (is_called("echo") & Where(rest=Q(round=1)), 1),
        (is_called("echo") & Where(rest=Q(round=2)), 0),
    ]:
        with django_assert_num_queries(1):
            assert rows.where(where).update(**result) == count
        result["output"] += "."
    stored = ToolCall.objects.get(pk=call.pk)
    assert [stored.result, stored.error, stored.output] == [result["result"], None, "it's \n..."]
    rows.update(result=None, settled_at=later)
    stored.refresh_from_db()
    assert (stored.result, stored.settled_at) == (None, later)


def test_a_time_that_the_database_works_out_is_written_by_its_clock_and_compiled_once(
    bob: User, make_tool: MakeTool
) -> None:
    call, built = ask(bob, make_tool()), []

    @compiled
    def counted(call_id: UUID) -> QuerySet[ToolCall]:
        built.append(1)
        return ToolCall.objects.filter(pk=call_id)

    def written(until: Any, owner: str) -> datetime:
        assert counted(call.pk).update(lease_until=until, owner=owner) == 1
        row = ToolCall.objects.get(pk=call.pk, owner=owner)
        assert row.lease_until is not None
        return row.lease_until

    hour, before = timedelta(hours=1), timezone.now()
    first, second = written(Now() + hour, "one"), written(Now() + hour, "two")
    assert before - timedelta(minutes=1) < first - hour <= second - hour
    # Twice, to see that it is the same at another moment.
    assert len(built) == 2
    assert written(Now() + 2 * hour, "three") > second + hour / 2


def test_what_an_update_makes_of_a_row_is_compiled_each_time_and_not_confused(bob: User, make_tool: MakeTool) -> None:
    call, built = ask(bob, make_tool()), []

    @compiled
    def counted(call_id: UUID) -> QuerySet[ToolCall]:
        built.append(1)
        return ToolCall.objects.filter(pk=call_id)

    for text in ("a", "b", "b"):
        counted(call.pk).update(output=Concat("output", Value(text)), owner=text)
    call.refresh_from_db()
    assert (call.output, call.owner) == ("abb", "b")
    assert len(built) == 3


def test_a_condition_that_is_not_compiled_is_never_left_out(bob: User, make_tool: MakeTool) -> None:
    rows = whole(ask(bob, make_tool()).pk).where(Where(rest=Q(round=2)))
    assert rows.update(output="") == 0
    for read in (rows.one, rows.first, rows.exists, lambda: rows.count(1), lambda: list(rows)):
        with pytest.raises(TypeError, match="only an update"):
            read()


def test_a_list_finds_all_of_its_values_and_has_a_bound(bob: User, make_tool: MakeTool) -> None:
    calls = [ask(bob, make_tool("one")), ask(bob, make_tool("two"))]
    ids = [call.pk for call in calls]
    assert [row["pk"] for row in among(ids)] == ids
    assert list(among(ids[:1])) == [{"pk": ids[0], "arguments": calls[0].arguments}]
    for wrong in ([], [uuid4()] * (MOST + 1)):
        with pytest.raises(TypeError, match="expected 1 to 100 values"):
            among(wrong)


def test_a_queryset_is_compiled_before_the_first_time_and_never_again(bob: User) -> None:
    built = []

    @compiled
    def named(user_id: int) -> QuerySet[User, Any]:
        built.append(1)
        return User.objects.filter(pk=user_id).values_list("username")

    assert not built
    assert [list(named(pk)) for pk in (bob.pk, 0, bob.pk)] == [[("bob",)], [], [("bob",)]]
    # The second time is to see that it is the same at another moment.
    assert len(built) == 2


def test_a_moment_is_refused_that_would_be_kept_and_the_clock_of_the_database_is_not() -> None:
    @compiled
    def frozen() -> QuerySet[ToolCall]:
        return ToolCall.objects.filter(created_at__lt=timezone.now())

    @compiled
    def running() -> QuerySet[ToolCall]:
        return ToolCall.objects.filter(created_at__lt=Now())

    with pytest.raises(TypeError, match="the moment it was built in"):
        frozen().one()
    assert list(running()) == []


def test_no_setting_is_in_a_statement_that_is_kept(settings: Settings) -> None:
    """Look through all statements of this process: what an operator sets counts from the next question on."""
    ours = [module for name, module in [*sys.modules.items()] if name.startswith(("hitlchat.", "tools_studio."))]
    kept = [each for module in ours for each in vars(module).values() if isinstance(each, compiled | condition)]
    kept.append(queue._all(1001))
    assert len(kept) >= 30
    before = list(map(sql_of, kept))
    numbers = [name for name in dir(django_settings) if name.isupper() and type(getattr(settings, name)) is int]
    assert "HITL_MAX_WAITING_PER_CONVERSATION" in numbers
    for name in numbers:
        setattr(settings, name, getattr(settings, name) + 1)
    assert list(map(sql_of, kept)) == before


def sql_of(kept: compiled[Any, Any] | condition[Any]) -> tuple[str, Any]:
    rows = kept.defined((MOST,) * len(kept.lists))
    if isinstance(kept, condition):
        rows = (Grant if kept.define.__module__.endswith("grants.giving") else ToolCall).objects.filter(rows)
    return rows.query.get_compiler("default").as_sql()  # type: ignore[no-any-return]


def test_a_value_that_is_missing_or_none_is_an_error_and_not_nothing() -> None:
    with pytest.raises(TypeError, match="user_id: expected a value"):
        list(waiting())  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="user_id: expected a value"):
        waiting(None).exists()  # type: ignore[arg-type]


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
            seen = set(deciders.seen_by(user.pk).values_list("pk", flat=True))
            one_by_one = (deciders.one_seen_by(user.pk, approval_of(call).pk) for call in calls)
            assert {each.pk for each in one_by_one if each is not None} == seen


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
    found = queue.among(bob.pk, [uuid4() for _ in range(MOST - 1)] + [calls[0].pk])
    assert [(each.call_id, each.tool_name, each.round) for each in found] == [(calls[0].pk, "echo", 1)]
    assert found[0].called_at == ToolCall.objects.get(pk=calls[0].pk).created_at
    assert queue.count(bob.pk, 20, Q(pk=calls[0].pk)) == 1

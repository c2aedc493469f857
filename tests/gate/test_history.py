"""Who may look up which calls, and how they are found however many there are."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate import decide
from hitlchat.gate.history import finding
from hitlchat.gate.history.finding import (
    CHOICES,
    LABELS,
    NOBODY_ASKED,
    UNASKED,
    Wanted,
    decided,
    having,
    is_decided,
    outcome_of,
)
from hitlchat.gate.models import Decision, Tool, ToolCall
from hitlchat.gate.status import SETTLED, Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, fresh, recording
from tests.gate.deciding_people import approver, escalated, members, rule
from tests.gate.granting import conditional, granted

pytestmark = pytest.mark.django_db

# PostgreSQL reads small tables whole.
SQLITE = pytest.mark.embedded


def found(user: User, **wanted: Any) -> list[ToolCall]:
    return finding.page(finding.ways(user), Wanted(**wanted), 50)


def seen(user: User, call: ToolCall) -> bool:
    """By the list and by the id alike."""
    in_list, by_id = call in found(user), finding.one(user, call.pk).exists()
    assert in_list == by_id
    return in_list


@pytest.mark.guarantee("gate:only-people")
def test_a_call_is_for_whom_it_was_made_and_for_administrators(
    alice: User, bob: User, charlie: User, waiting: ToolCall
) -> None:
    unasked = ask(bob, recording("free", mode="DISABLED"))
    for call in (waiting, unasked):
        assert [seen(user, call) for user in (alice, bob, charlie)] == [True, True, False]


def test_a_call_is_for_those_who_may_decide_it_and_not_before(
    alice: User, bob: User, tool: Tool, finance: Group
) -> None:
    one, other = approver("ann"), approver("otto")
    (late,) = members(finance, "lena")
    rule(tool, alice, escalate_to=finance, escalate_after_seconds=60)
    call = ask(bob, tool)
    assert [seen(user, call) for user in (one, other, late)] == [True, True, False]
    escalated(call)
    assert seen(late, call)


def test_whoever_decided_sees_what_became_of_it_though_they_decide_no_longer(
    alice: User, bob: User, tool: Tool, finance: Group
) -> None:
    (fay,) = members(finance, "fay")
    rule(tool, alice, group=finance)
    call = ask(bob, tool)
    decide.approve(approval_of(call).pk, signed_in(fay))
    fay.groups.clear()
    assert seen(fay, call)


def test_someone_deactivated_who_is_let_in_nowhere_finds_others_calls_nowhere(bob: User, tool: Tool) -> None:
    ann = approver("ann")
    ask(bob, tool)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert found(ann) == []


@pytest.mark.servers("the SQL differs between the databases")
def test_every_filter_finds_its_calls_and_no_others(alice: User, bob: User, charlie: User, tool: Tool) -> None:
    declined, quick = ask(bob, tool), approved(bob, tool)
    decide.decline(approval_of(declined).pk, signed_in(bob))
    Decision.objects.filter(approval__call=quick).update(hurried=True)
    free = recording("free", mode="DISABLED", risk_level=5, source="failing")
    unasked = ask(charlie, free, kind="mcp")
    old = ask(bob, tool, kind="api")
    ToolCall.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=3))
    yesterday = timezone.now() - timedelta(days=1)
    wanted: list[tuple[dict[str, Any], list[ToolCall]]] = [
        ({}, [unasked, quick, declined, old]),
        ({"outcome": "declined"}, [declined]),
        ({"outcome": UNASKED}, [unasked]),
        ({"tool": "free"}, [unasked]),
        ({"source": "failing"}, [unasked]),
        ({"caller": "mcp"}, [unasked]),
        ({"person": "charlie"}, [unasked]),
        ({"person": "nobody here"}, []),
        ({"decider": "bob"}, [quick, declined]),
        ({"decider": "charlie"}, []),
        ({"rule": unasked.rule}, [unasked]),
        ({"risk": 5}, [unasked]),
        ({"since": yesterday}, [unasked, quick, declined]),
        ({"until": yesterday}, [old]),
        ({"hurried": True}, [quick]),
        ({"hurried": True, "decider": "alice"}, []),
        ({"conversation": quick.conversation_id}, [quick]),
        ({"decider": "bob", "outcome": "declined", "tool": "refund", "risk": 2}, [declined]),
    ]
    for filters, calls in wanted:
        assert found(alice, **filters) == calls, filters
        assert finding.count(finding.ways(alice), Wanted(**filters)) == len(calls), filters
    assert found(bob, outcome="declined") == [declined]
    assert finding.count(finding.ways(bob), Wanted()) == 3


@pytest.mark.servers("the SQL differs between the databases")
def test_each_call_has_exactly_one_outcome_and_is_found_by_it(
    alice: User, bob: User, tool: Tool, settings: Settings
) -> None:
    for status in Status:
        call = ask(bob, tool)
        settled_at = timezone.now() if status in SETTLED else None
        ToolCall.objects.filter(pk=call.pk).update(status=status, settled_at=settled_at)
    settings.HITL_MAX_WAITING_PER_CALLER = 1
    assert outcome_of(ask(bob, tool)) == NOBODY_ASKED
    for outcome in LABELS:
        calls = found(alice, outcome=outcome)
        assert [outcome_of(call) for call in calls] == [outcome]
    assert len(LABELS) == ToolCall.objects.count() == len(CHOICES) - 1
    with pytest.raises(ValueError, match="lost"):
        having("lost")


def test_what_runs_on_a_grant_ran_unasked_and_what_was_refused_did_not_run(alice: User, bob: User) -> None:
    granted(bob, tool := conditional(), calls=1, conversation_id=(here := ask(bob, recording("x")).conversation_id))
    covered = ask(bob, tool, conversation_id=here)
    ToolCall.objects.filter(pk=ask(bob, recording("free", mode="DISABLED")).pk).update(status=Status.WITHDRAWN)
    ask(bob, tool, {"text": 1})
    assert found(alice, outcome=UNASKED) == [covered]


@pytest.mark.servers("the SQL differs between the databases")
def test_pages_follow_each_other_without_a_gap_also_where_moments_are_equal(alice: User, bob: User, tool: Tool) -> None:
    for _ in range(7):
        ask(bob, tool)
    ToolCall.objects.update(created_at=timezone.now())
    for user in (alice, bob):
        every, last = [], None
        while page := finding.page(finding.ways(user), Wanted(), 3, before=last):
            every += page
            last = page[-1]
        assert len(every) == len(set(every)) == 7


PLANS = [
    (Wanted(), "call_by_time (created_at<?)"),
    (Wanted(since=timezone.now()), "call_by_time (created_at>? AND created_at<?)"),
    (Wanted(outcome="unknown"), "call_by_outcome (status=? AND created_at<?)"),
    (Wanted(outcome=NOBODY_ASKED), "call_by_outcome (status=? AND created_at<?)"),
    (Wanted(outcome=UNASKED), "call_unasked (created_at<?)"),
    (Wanted(tool="refund"), "call_by_tool (tool_name=? AND created_at<?)"),
    (Wanted(person="bob"), "call_by_caller (caller_id=? AND created_at<?)"),
    # Few differ in these: they are told in the index itself, whose rows are read for no others.
    (Wanted(risk=5), "COVERING INDEX call_by_time (created_at<?)"),
    (Wanted(source="studio"), "COVERING INDEX call_by_time (created_at<?)"),
    (Wanted(caller="mcp"), "COVERING INDEX call_by_time (created_at<?)"),
    (Wanted(rule="x"), "COVERING INDEX call_by_time (created_at<?)"),
    # Few are answered so: they are named by their ids.
    (Wanted(decider="bob"), "gate_toolcall USING INDEX sqlite_autoindex_gate_toolcall_1 (id=?)"),
    (Wanted(hurried=True), "gate_toolcall USING INDEX sqlite_autoindex_gate_toolcall_1 (id=?)"),
]


@SQLITE
def test_a_page_is_found_by_an_index(alice: User, bob: User, tool: Tool, waiting: ToolCall) -> None:
    approved(bob, tool)
    Decision.objects.update(hurried=True)
    for wanted, index in PLANS:
        plan = plans(alice, wanted, waiting)
        assert index in plan
        assert "SCAN gate_toolcall" not in plan
        if "(id=?)" not in index:
            assert "TEMP B-TREE FOR ORDER BY" not in plan


@SQLITE
def test_each_way_to_see_a_call_is_found_by_its_own_index(bob: User, waiting: ToolCall) -> None:
    plan = plans(bob, Wanted(), waiting)
    assert "SCAN gate_toolcall" not in plan
    for index in ("call_by_caller", "call_decided_by_time", "call_by_second_group"):
        assert index in plan


@pytest.mark.servers("the SQL differs between the databases")
def test_those_with_an_answer_are_found_alike_whether_they_are_few_or_most(bob: User, tool: Tool) -> None:
    calls = [approved(bob, tool) for _ in range(3)]
    ask(bob, tool)
    Decision.objects.filter(approval__call=calls[0]).update(hurried=True)
    for which, expected in (({"person": bob}, calls), ({"hurried": True}, calls[:1]), ({"person_id": 0}, [])):
        for way in (decided(**which), is_decided(**which)):
            assert {*finding.page((way,), Wanted(), 10)} == {*expected}


@SQLITE
def test_where_most_calls_have_such_an_answer_the_newest_are_looked_at_first(bob: User, waiting: ToolCall) -> None:
    steps = plans(bob, Wanted(), waiting, among=(is_decided(person=bob),))
    assert "gate_toolcall USING COVERING INDEX call_by_time (created_at<?)" in steps
    assert "CORRELATED SCALAR SUBQUERY" in steps
    assert "TEMP B-TREE" not in steps


def plans(user: User, wanted: Wanted, before: ToolCall, among: tuple[Q, ...] | None = None) -> str:
    """Of the queries by which a page is found."""
    with CaptureQueriesContext(connection) as queries:
        finding.page(among or finding.ways(user), wanted, 50, before=fresh(before))
    listing = [each["sql"] for each in queries.captured_queries if "LIMIT 50" in each["sql"]]
    with connection.cursor() as cursor:
        steps = [cursor.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall() for sql in listing]
    return "\n".join(str(step[3]) for plan in steps for step in plan)

"""What is counted for insights: the right days, rates and people, with a fixed number of queries that read indexes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.gate.attention import IDLE_SECONDS
from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.insights.figures import Figures, Period, count
from tests import clock
from tests.gate.asking import ask, recording
from tests.insights.rows import answered, asked, ran

pytestmark = [pytest.mark.django_db, pytest.mark.servers("the SQL differs between the databases")]

# A Sunday.
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def counted(user: User | None = None, key: str = "4w") -> Figures:
    return count(Period.of(key), user)


@pytest.fixture(autouse=True)
def today(db: None) -> Any:
    with clock.travel(NOW):
        yield


def test_questions_are_told_apart_by_what_became_of_them(bob: User) -> None:
    answered(bob, "refund")
    answered(bob, "refund", no=True)
    for status in (Status.EXPIRED, Status.WITHDRAWN, Status.FAILED, Status.UNKNOWN):
        asked(bob, "refund", status)
    total = counted().total
    assert (total.asked, total.approved, total.declined, total.expired) == (6, 3, 1, 1)
    (tool,) = counted().tools
    assert tool.tally == total


@pytest.mark.django_db(transaction=True)
def test_what_waits_has_been_asked_too(bob: User, settings: Any) -> None:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, "recording": "tests.gate.sources_for_tests.RecordingSource"}
    ask(bob, recording())
    found = counted()
    assert (found.total.asked, found.total.answered, found.total.others) == (1, 0, 1)
    assert [tool.tally for tool in found.tools] == [found.total]


@pytest.mark.parametrize(
    "zone,at,day",
    [
        ("UTC", "2026-11-20T23:30:00Z", "2026-11-20"),
        ("Europe/Berlin", "2026-11-20T23:30:00Z", "2026-11-21"),
        ("America/New_York", "2026-11-21T04:59:59Z", "2026-11-20"),
        ("Asia/Kolkata", "2026-11-20T18:29:59Z", "2026-11-20"),
        ("Asia/Kolkata", "2026-11-20T18:30:00Z", "2026-11-21"),
        ("Asia/Kathmandu", "2026-11-20T18:14:59Z", "2026-11-20"),
        ("Asia/Kathmandu", "2026-11-20T18:15:00Z", "2026-11-21"),
        # Across the end of summer time, on 25 October.
        ("Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-25"),
        ("Europe/Berlin", "2026-10-25T23:00:00Z", "2026-10-26"),
    ],
)
def test_days_are_those_of_the_installations_time_zone(bob: User, zone: str, at: str, day: str) -> None:
    asked(bob, "refund", at=datetime.fromisoformat(at))
    with timezone.override(zone):
        days = counted(key="3m").days
    assert [f"{each:%Y-%m-%d}" for each, tally in days.items() if tally.asked] == [day]


def test_a_period_has_so_many_days_and_nothing_older(bob: User) -> None:
    for days in (0, 6, 7, 27, 28, 90, 91):
        asked(bob, "refund", at=NOW - timedelta(days=days))
    found = {key: (len(counted(key=key).days), counted(key=key).total.asked) for key in ("7d", "4w", "3m", "odd")}
    assert found == {"7d": (7, 2), "4w": (28, 4), "3m": (91, 6), "odd": (28, 4)}


def test_what_expired_at_a_weekend_is_known(bob: User) -> None:
    for days in (0, 1, 2):
        asked(bob, "refund", Status.EXPIRED, at=NOW - timedelta(days=days))
    assert (counted().total.expired, counted().expired_at_weekends) == (3, 2)


@pytest.mark.guarantee("SR-42")
def test_edit_and_decline_rates_are_known_per_tool_and_per_person(alice: User, bob: User) -> None:
    answered(bob, "refund", edited_arguments={"amount": 1})
    answered(bob, "refund", hurried=True, took=1)
    answered(bob, "refund", no=True)
    answered(alice, "send")
    refund, send = counted().tools
    assert (refund.name, refund.edited, refund.hurried, refund.tally.approved, refund.tally.declined) == (
        "refund", 1, 1, 2, 1,
    )  # fmt: skip
    assert (send.edited, send.hurried, send.tally.declined) == (0, 0, 0)
    first, second = counted().people
    assert (first.name, first.approved, first.declined, first.edited, first.hurried) == ("bob", 2, 1, 1, 1)
    assert (second.name, second.answered) == ("alice", 1)


def test_time_is_counted_from_first_display_and_a_break_is_not_counted(bob: User) -> None:
    for took in (0.4, 1.2, 30.0, 3600.0, None):
        answered(bob, "refund", took=took, hurried=took == 0.4)
    answers = counted().answers
    assert (answers.count, answers.unseen, answers.hurried, answers.median) == (4, 1, 1, 1)
    assert answers.spent == 0 + 1 + 30 + IDLE_SECONDS == counted().people[0].seconds
    assert answers.bins == [(2, 1), (0, 0), (0, 0), (0, 0), (1, 0), (0, 0), (0, 0), (1, 0)]


def test_what_ran_unasked_is_counted_with_its_risk_and_its_reasons(bob: User) -> None:
    for _ in range(3):
        ran(bob, "look", reason="This tool never asks.", risk_level=4)
    ran(bob, "look", reason="A grant covers it.")
    ran(bob, "gone", status=Status.REFUSED)
    asked(bob, "refund")
    figures = counted()
    assert [(tool.name, tool.unasked, tool.risk) for tool in figures.tools if tool.unasked] == [("look", 4, 4)]
    assert [(why["reason"], why["count"]) for why in figures.whys] == [
        ("This tool never asks.", 3),
        ("A grant covers it.", 1),
    ]
    assert (figures.unasked, figures.total.asked) == (4, 1)


def test_one_person_s_figures_hold_nothing_of_others(alice: User, bob: User) -> None:
    answered(bob, "refund")
    ran(bob, "look")
    answered(alice, "send", no=True)
    own = counted(bob)
    assert [tool.name for tool in own.tools] == ["refund", "look"]
    assert [person.name for person in own.people] == ["bob"]
    assert (own.total.asked, own.unasked, own.answers.count) == (1, 1, 1)
    assert counted(User.objects.create_user("eve")).is_empty


def test_a_tool_that_is_gone_keeps_its_figures(bob: User) -> None:
    answered(bob, "refund")
    Tool.objects.create(name="send", source="studio", input_schema={})
    answered(bob, "send")
    assert {tool.name: tool.source for tool in counted().tools} == {"refund": "", "send": "studio"}


def test_the_queries_are_as_many_for_many_calls_as_for_one_and_read_no_whole_calls(alice: User, bob: User) -> None:
    answered(bob, "refund", edited_arguments={}, hurried=True)
    ran(bob, "look")
    with CaptureQueriesContext(connection) as few:
        counted()
    for number in range(30):
        answered(alice, f"tool_{number}", at=NOW - timedelta(days=number))
        ran(alice, f"free_{number}")
    with CaptureQueriesContext(connection) as many:
        counted()
    assert len(few) == len(many) <= 11
    if connection.vendor == "sqlite":
        plans = [_plan(query["sql"]) for query in many if "GROUP BY" in query["sql"]]
        assert sum("USING COVERING INDEX call_over_by_time" in plan for plan in plans) == 2
        assert any("USING COVERING INDEX decision_by_time" in plan for plan in plans)
        assert any("INDEX decision_with_edits" in plan for plan in plans)
        assert any("INDEX decision_hurried" in plan for plan in plans)


def _plan(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        return "\n".join(str(row[3]) for row in cursor.fetchall())

"""The sentence under each picture: said from its threshold on and not before, and never for the sake of saying it."""

from collections import Counter
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.insights import advice
from hitlchat.insights.advice import NONE, Advice, Links
from hitlchat.insights.figures import Answers, Figures, OfPerson, OfTool, Period, Tally

SUNDAY = date(2026, 11, 22)


def tool(name: str = "refund", *, asked: int = 0, yes: int = 0, no: int = 0, expired: int = 0, **more: Any) -> OfTool:
    return OfTool(name, Tally(asked or yes + no + expired, yes, no, expired), **more)


def figures(*tools: OfTool, day: date = SUNDAY) -> Figures:
    """All of it on one day."""
    every = Tally(
        *(sum(getattr(each.tally, name) for each in tools) for name in ("asked", "approved", "declined", "expired"))
    )
    return Figures(Period("4w", SUNDAY), {day: every}, list(tools), [], Answers(Counter()), [])


def hurried(count: int) -> Answers:
    return Answers(Counter({(0, True): count, (30, False): 10}))


def test_what_is_always_approved_as_asked_could_have_a_condition(subtests: pytest.Subtests) -> None:
    for yes, no, edited, says in [(19, 0, 0, False), (20, 0, 0, True), (200, 1, 0, False), (20, 0, 1, False)]:
        with subtests.test(yes=yes):
            found = advice.of_tools([tool("other", yes=3), tool(yes=yes, no=no, edited=edited)])
            assert (found != NONE) == says
            if says:
                assert found.fact == "refund was approved 20 of 20 times without changes."
                assert "condition" in found.then


def test_what_is_mostly_declined_should_not_be_offered(subtests: pytest.Subtests) -> None:
    for yes, no, says in [(0, 4, False), (0, 5, True), (5, 5, True), (6, 5, False)]:
        with subtests.test(yes=yes):
            found = advice.of_tools([tool(yes=yes, no=no)])
            assert (found != NONE) == says
            assert not says or found.fact == f"refund was declined 5 of {yes + 5} times."


def test_when_many_expire_others_or_more_time_help(subtests: pytest.Subtests) -> None:
    for expired, asked, says in [(4, 4, False), (5, 100, True), (5, 101, False), (50, 1000, True)]:
        with subtests.test(expired=expired):
            found = advice.of_days(figures(tool(asked=asked, expired=expired)))
            assert (found != NONE) == says
            assert not says or (found.place, found.tool and found.tool.name) == ("rules", "refund")


def test_it_is_said_if_they_expire_at_weekends() -> None:
    for ago, said in ((0, True), (1, True), (2, False)):
        found = advice.of_days(figures(tool(expired=5), tool("send", expired=9), day=SUNDAY - timedelta(days=ago)))
        assert ("on a weekend" in found.fact) == said
        assert "send" in found.then


def test_many_hurried_yeses_name_the_tool(subtests: pytest.Subtests) -> None:
    for count, says in [(2, False), (3, True)]:
        with subtests.test(count=count):
            found = advice.of_times(hurried(count), [tool(hurried=1), tool("send", hurried=count - 1)])
            assert (found != NONE) == says
            assert not says or found.fact == "3 approvals were faster than their cards can be read, 2 of them for send."


def test_what_is_risky_and_runs_unasked_should_be_required(subtests: pytest.Subtests) -> None:
    for risk, unasked, says in [(2, 9, False), (3, 1, True), (3, 0, False), (5, 9, True)]:
        with subtests.test(risk=risk):
            found = advice.of_unasked([tool(risk=risk, unasked=unasked)])
            assert (found != NONE) == says
            assert not says or "REQUIRED" in found.then


def test_the_riskiest_is_named() -> None:
    found = advice.of_unasked([tool("look", risk=3, unasked=900), tool("purge", risk=5, unasked=1)])
    assert found.fact == "purge is of risk L5 and ran once without asking."


def test_what_people_said_looking_back_comes_before_what_the_risk_says() -> None:
    found = advice.of_unasked([tool("send", unasked=9, fine=3, should_ask=2), tool("purge", risk=5, unasked=1)])
    assert found.fact == "Looking back, 2 calls of send should have been asked about, and 3 were fine."


def test_if_everything_depends_on_one_person_it_says_so(subtests: pytest.Subtests) -> None:
    for first, second, says in [(15, 4, False), (16, 4, True), (15, 5, False), (20, 0, True)]:
        with subtests.test(first=first):
            found = advice.of_people([OfPerson("ann", approved=first), OfPerson("bob", declined=second)])
            assert (found != NONE) == says
            assert not says or found.fact == f"ann gave {first} of 20 answers."


def test_where_one_tool_costs_most_a_grant_would_help(subtests: pytest.Subtests) -> None:
    for minutes, most, says in [(59, 9, False), (60, 5, True), (60, 4, False)]:
        with subtests.test(minutes=minutes):
            answers = Answers(Counter({(60, False): minutes}))
            found = advice.of_cost(answers, [tool(asked=most)] + [tool(f"t{n}", asked=1) for n in range(10 - most)])
            assert (found != NONE) == says
            assert not says or found.fact == "5 of 10 questions are about refund."


def test_of_nothing_nothing_is_said_but_that() -> None:
    empty = figures()
    said = [
        advice.of_days(empty),
        advice.of_tools([]),
        advice.of_people([]),
        advice.of_times(Answers(Counter()), []),
        advice.of_unasked([]),
        advice.of_cost(Answers(Counter()), []),
    ]
    assert said == [NONE] * 6


@pytest.mark.parametrize(
    "role,place,source,address",
    [
        (Role.ADMINISTRATOR, "rules", "studio", "/tools/refund/rules"),
        (Role.AUTHOR, "rules", "studio", ""),
        (Role.AUTHOR, "edit", "studio", "/studio/tools/refund"),
        (Role.AUTHOR, "edit", "project", "/studio/project/refund"),
        (Role.AUTHOR, "edit", "upstream", ""),
        (Role.ADMINISTRATOR, "edit", "upstream", "/servers/"),
        (Role.MEMBER, "edit", "studio", ""),
        (Role.MEMBER, "grants", "studio", "/grants/"),
        (Role.ADMINISTRATOR, "edit", "", ""),
    ],
)
def test_it_leads_to_where_it_can_be_done_if_one_may(
    bob: User, role: Role, place: str, source: str, address: str
) -> None:
    roles.give(bob, role)
    person = User.objects.get(pk=bob.pk)
    assert Links(person, Period.of("")).to(Advice("", "", tool(source=source), place)).address == address

"""Rules that give no answer, do not load or name what is not there: a person is asked, nothing is ever allowed."""

import asyncio
import logging
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, User
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.gate import policy
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.policies import Ask
from hitlchat.gate.status import Status
from tests.conftest import caller
from tests.gate import own_policies
from tests.gate.asking import ask, fresh, recording, run
from tests.gate.policy_rules import ALL, ALLOWS, AMOUNT, FINANCE, all_of, any_of
from tests.tables import each_row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("finance")]

# None of these is a plain number, and most are far more than any limit.
ODD_AMOUNTS = [
    "+500",
    "5e9",
    "1,000,000",
    "9" * 19,
    "\uff11\uff10\uff10\uff10",
    " 500",
    "0x1f4",
    "",
    True,
    None,
    [500],
    {},
]


@pytest.fixture
def soon(settings: Settings) -> Iterator[None]:
    """Nobody waits five seconds for a rule; and those that hang are let go in the end."""
    settings.HITL_POLICY_SECONDS = 1
    own_policies.let_go.clear()
    yield
    own_policies.let_go.set()


def asked(user: User, tool: Tool, arguments: dict[str, Any] | None = None) -> str:
    """Return why a person is asked about such a call."""
    verdict = async_to_sync(policy.judge)(tool, arguments or {"text": "hello", "amount": 1}, caller(user)).verdict
    assert isinstance(verdict, Ask)
    return verdict.reason


@pytest.mark.guarantee("gate:fail-closed", "SR-17")
@each_row("mode", ["CONDITIONAL", "DISABLED"])
def test_a_policy_that_gives_no_answer_asks(
    subtests: pytest.Subtests, mode: str, bob: User, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    tool = recording(mode=mode)
    for case, entry in own_policies.BROKEN.items():
        settings.HITL_POLICIES = [ALLOWS, entry]
        with subtests.test(case=case), caplog.at_level(logging.WARNING):
            reason = asked(bob, tool)
            assert entry["policy"] in reason
            assert "secret" not in reason
            assert "gave no answer within" not in reason
    assert "olicy" in caplog.text


@pytest.mark.django_db(transaction=True)
async def test_who_stops_waiting_for_the_policies_is_not_held_by_one(bob: User, settings: Settings, soon: None) -> None:
    settings.HITL_POLICIES, settings.HITL_POLICY_SECONDS = [own_policies.HANGING[1]], 60
    tool = await in_db(recording)(mode="CONDITIONAL")
    own_policies.hanging.clear()
    judging = asyncio.create_task(policy.judge(tool, {"text": "hello"}, caller(bob)))
    assert await asyncio.to_thread(own_policies.hanging.wait, 30)
    judging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(judging, 30)


@pytest.mark.guarantee("gate:fail-closed", "SR-17")
@each_row("entry", own_policies.HANGING, ids=["a thread", "a task"])
def test_a_policy_that_hangs_asks(entry: dict[str, Any], bob: User, settings: Settings, soon: None) -> None:
    settings.HITL_POLICIES, settings.HITL_POLICY_SECONDS = [entry, ALLOWS], 0.05
    call = ask(bob, recording(mode="CONDITIONAL"))
    assert call.status == Status.WAITING
    assert "gave no answer within" in call.reason


@pytest.mark.guarantee("gate:fail-closed")
@each_row("made_of", [any_of, all_of])
def test_what_is_broken_inside_of_another_rule_asks_too(made_of: Any, bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [made_of(own_policies.BROKEN["Raises"], ALLOWS)]
    assert ask(bob, recording(mode="CONDITIONAL")).status == Status.WAITING
    assert ask(bob, recording("other", mode="DISABLED")).status == Status.WAITING


@pytest.mark.guarantee("gate:fail-closed")
@each_row("mode", ["CONDITIONAL", "DISABLED"])
def test_a_rule_about_a_group_that_does_not_exist_asks_whatever_others_say(
    subtests: pytest.Subtests, mode: str, bob: User, settings: Settings
) -> None:
    tool = recording(mode=mode)
    made: dict[str, Any] = {"any of": any_of, "all of": all_of, "alone": lambda rule, _: rule}
    for made_of, people, verdict in product(made, ("members", "others"), ("allow", "ask", "refuse")):
        with subtests.test(made_of=made_of, people=people, verdict=verdict):
            rule = {**FINANCE, "groups": ["finance", "finanse"], "people": people, "verdict": verdict}
            settings.HITL_POLICIES = [made[made_of](rule, ALLOWS), ALLOWS]
            assert "a group of people that does not exist: finanse" in asked(bob, tool)


@pytest.mark.guarantee("gate:fail-closed")
@pytest.mark.parametrize("mode", ["CONDITIONAL", "DISABLED"])
def test_a_group_that_is_renamed_or_deleted_while_a_rule_names_it_opens_nothing(
    mode: str, bob: User, charlie: User, finance: Group, settings: Settings
) -> None:
    settings.HITL_POLICIES = [FINANCE, all_of(ALLOWS, {**FINANCE, "people": "members", "verdict": "allow"})]
    bob.groups.add(finance)
    tool = recording(mode=mode)
    assert [ask(person, tool).status for person in (bob, charlie)] == [Status.ALLOWED, Status.REFUSED]
    finance.name = "money"
    finance.save()
    assert [ask(person, tool).status for person in (bob, charlie)] == [Status.WAITING] * 2
    finance.delete()
    assert [ask(person, tool).status for person in (bob, charlie)] == [Status.WAITING] * 2


def test_a_rule_about_a_missing_group_is_silent_about_tools_that_it_does_not_cover(
    bob: User, settings: Settings
) -> None:
    settings.HITL_POLICIES = [{**FINANCE, "tools": ["other"], "groups": ["finanse"]}]
    assert ask(bob, recording(mode="DISABLED")).status == Status.ALLOWED


@pytest.mark.guarantee("gate:fail-closed")
@each_row("mode", ["CONDITIONAL", "DISABLED"])
def test_what_would_be_refused_over_a_limit_is_asked_about_when_it_is_no_number(
    subtests: pytest.Subtests, mode: str, bob: User, settings: Settings
) -> None:
    settings.HITL_POLICIES = [all_of({**AMOUNT, "argument": "amount.value", "over": "refuse"}, ALLOWS)]
    tool = recording(mode=mode, input_schema={"type": "object"})
    for written in ODD_AMOUNTS:
        with subtests.test(written=written):
            assert "is not a number" in asked(bob, tool, {"amount": {"value": written}})
    assert asked(bob, tool, {"Amount": {"value": 500}})
    assert ask(bob, tool, {"amount": {"value": "9.5"}}).status == Status.ALLOWED


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:fail-closed", "SR-17")
def test_a_policy_that_deletes_its_tool_runs_nothing(bob: User, settings: Settings, entered: list[ToolCall]) -> None:
    settings.HITL_POLICIES = [{"policy": "tests.gate.own_policies.Deletes"}]
    call = ask(bob, recording(mode="CONDITIONAL"))
    assert (call.status, call.tool) == (Status.REJECTED, None)
    assert "was deleted while this call was being checked" in call.reason
    assert not run(call)
    assert entered == []


@pytest.mark.guarantee("gate:same-call")
def test_what_a_policy_does_to_its_arguments_stays_with_it(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [{"policy": "tests.gate.own_policies.Changes"}, AMOUNT]
    call = ask(bob, recording(mode="CONDITIONAL"), {"text": "hello", "amount": 99})
    assert (call.status, fresh(call).arguments) == (Status.WAITING, {"text": "hello", "amount": 99})


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:fail-closed", "SR-15")
@pytest.mark.parametrize("mode", ["CONDITIONAL", "DISABLED"])
def test_rules_that_do_not_load_ask_about_everything(mode: str, bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [ALLOWS, {"policy": "deny_lst", **ALL}]
    call = ask(bob, recording(mode=mode))
    assert (call.status, call.reason) == (
        Status.WAITING,
        "Asked because the policies of this installation (HITL_POLICIES) do not load.",
    )

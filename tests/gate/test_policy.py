"""Must a person be asked? Whatever goes wrong in answering that, yes."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from pytest_django import Settings

from hitlchat.gate.actor import Caller
from hitlchat.gate.models import AuditEvent, Tool
from hitlchat.gate.policies import Allow, Ask, Verdict
from hitlchat.gate.policy import judge
from hitlchat.gate.status import Status
from tests.gate.asking import ask, recording
from tests.tables import each_row

BROKEN = {
    "does not parse": "args[",
    "raises": 'args["nobody"] > 1',
    "divides by zero": "1 / 0",
    "unknown name": "os.environ",
    "wrong types": 'args["text"] > 5',
    "nonsense": '"yes"',
    "one": "1",
    "zero": "0",
    "nothing": "None",
    "an empty list": "[]",
    "text that says false": '"False"',
    "never ends": "[x for x in range(10**12)]",
    "eats memory": "'x' * 10**10",
    "imports": "__import__('os').system('true')",
    "too long": " or ".join(["False"] * 50_000),
}


async def judged(mode: str, condition: str = "", **arguments: Any) -> Verdict:
    tool = Tool(name="refund", hitl_mode=mode, condition=condition)
    judgement = await judge(tool, arguments or {"amount": 5, "text": "a"}, Caller("chat", 1, "bob"))
    return judgement.verdict


async def test_a_required_tool_asks_whatever_its_condition(subtests: pytest.Subtests) -> None:
    for condition in ["", "True", "False", "1 +"]:
        with subtests.test(condition=condition):
            assert isinstance(await judged("REQUIRED", condition), Ask)


async def test_a_disabled_tool_is_not_asked_about_and_says_why() -> None:
    assert await judged("DISABLED", "True") == Allow("Not asked because this tool is set to never ask.")


async def test_a_conditional_tool_without_a_condition_asks(subtests: pytest.Subtests) -> None:
    for condition in ["", "  \n"]:
        with subtests.test(condition=condition):
            assert isinstance(await judged("CONDITIONAL", condition), Ask)


async def test_a_condition_decides(subtests: pytest.Subtests) -> None:
    for amount, expected in [(10_001, Ask), (10_000, Allow), (-1, Allow), (2**70, Ask)]:
        with subtests.test(amount=amount):
            judgement = await judged("CONDITIONAL", 'args["amount"] > 10_000  # a comment', amount=amount)
            assert isinstance(judgement, expected)
            assert "args[" in judgement.reason


@pytest.mark.guarantee("gate:fail-closed")
@pytest.mark.django_db
@each_row(
    "condition, kind, expected",
    [
        ('"finance" not in caller["groups"]', "chat", Status.ALLOWED),
        ('"finance" in caller["groups"]', "chat", Status.WAITING),
        ('caller["user"] != "bob"', "chat", Status.ALLOWED),
        ('caller["kind"] == "mcp"', "mcp", Status.WAITING),
        ('caller["kind"] == "mcp"', "chat", Status.ALLOWED),
        ('caller["conversation"] is None', "chat", Status.ALLOWED),
        # What is not there gives no answer, and so asks.
        ('caller["tenant"] == "x"', "chat", Status.WAITING),
        ("caller", "chat", Status.WAITING),
    ],
)
def test_a_condition_may_go_by_who_calls(condition: str, kind: str, expected: Status, bob: User) -> None:
    bob.groups.add(Group.objects.create(name="finance"))
    assert ask(bob, recording(mode="CONDITIONAL", condition=condition), kind=kind).status == expected


@pytest.mark.guarantee("SR-17")
async def test_a_condition_that_gives_no_answer_asks(subtests: pytest.Subtests) -> None:
    for case, condition in BROKEN.items():
        with subtests.test(case=case):
            judgement = await judged("CONDITIONAL", condition)
            assert isinstance(judgement, Ask)
            assert len(judgement.reason) < 300


@pytest.mark.guarantee("gate:fail-closed")
async def test_arguments_that_the_sandbox_cannot_take_ask() -> None:
    assert isinstance(await judged("CONDITIONAL", "False", text="\ud800"), Ask | Allow)
    assert isinstance(await judged("CONDITIONAL", 'args["text"] == "ok"', text=object()), Ask)


@pytest.mark.guarantee("gate:fail-closed", "SR-15")
async def test_a_mode_that_is_none_asks(subtests: pytest.Subtests) -> None:
    for mode in ["", "disabled", "DISABLED ", "NONE", "0"]:
        with subtests.test(mode=mode):
            assert isinstance(await judged(mode, "False"), Ask)


async def test_an_argument_in_an_error_cannot_fill_the_card() -> None:
    judgement = await judged("CONDITIONAL", 'int(args["text"]) > 1', text="This is safe. " * 5000)
    assert isinstance(judgement, Ask)
    assert len(judgement.reason) < 300


@each_row("mode", ["REQUIRED", "CONDITIONAL", "DISABLED"])
async def test_the_master_switch_allows_everything_and_says_so(mode: str, settings: Settings) -> None:
    settings.HITL_ENABLED = False
    judgement = await judged(mode, "True")
    assert isinstance(judgement, Allow)
    assert "HITL_ENABLED=0" in judgement.reason


@pytest.mark.guarantee("audit:complete")
@pytest.mark.django_db
def test_what_is_not_asked_about_is_on_record_with_the_reason(bob: User) -> None:
    call = ask(bob, recording(mode="CONDITIONAL", condition='args["amount"] > 10'), {"text": "a", "amount": 3})
    event = AuditEvent.objects.get(call=call)
    assert (call.status, event.name) == (Status.ALLOWED, "call.allowed")
    assert "args[" in event.data["reason"]

"""Asking again while others answer, withdraw, look and claim: one outcome each time, and never on an old yes."""

import asyncio
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.contrib.auth.models import User

from hitlchat.gate import decide, perform, stopping, submit
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.decide import AlreadySettled, OtherDigest
from hitlchat.gate.models import Decision, Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.gate.submit import LookFirst
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, recording, run, say_yes, status
from tests.gate.racing import meanwhile, together
from tests.gate.sources_for_tests import looked
from tests.gate.test_again import BEFORE, NOW, yes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("row locks tell two at a time apart")]


@pytest.fixture
def tool(db: None, previews: list[Any]) -> Tool:
    previews[:] = [BEFORE, NOW]
    return recording(source="previewing")


# -- Answers that come late -------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_yes_to_what_was_shown_first_is_none_to_what_is_shown_now(
    bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = approved(bob, tool)
    first = approval_of(call).digest
    run(call)
    for digest in (first, None):
        with pytest.raises(OtherDigest, match="review it again"):
            say_yes(bob, call, digest=digest)
    assert not run(call)
    assert (status(call), entered) == (Status.WAITING, [])


@pytest.mark.guarantee("gate:one-outcome")
@pytest.mark.parametrize("answer", ["approve", "decline"])
def test_an_answer_read_in_one_round_is_none_in_the_next(answer: str, bob: User, tool: Tool) -> None:
    call = ask(bob, tool)

    def overtake() -> None:
        say_yes(bob, call)
        assert not run(call)

    with meanwhile(overtake), pytest.raises(OtherDigest):
        getattr(decide, answer)(approval_of(call).pk, signed_in(bob))
    assert (status(call), fresh(call).round) == (Status.WAITING, 2)
    assert Decision.objects.count() == 1


@pytest.mark.guarantee("gate:one-outcome")
def test_a_no_while_it_is_looked_at_again_comes_too_late(
    bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    late: list[Any] = []

    async def interrupted(_: object) -> Preview:
        try:
            await database_sync_to_async(decide.decline)(approval, signed_in(bob))
        except AlreadySettled as error:
            late.append(error.call.status)
        return BEFORE

    previews[:] = [BEFORE, interrupted]
    call = approved(bob, tool)
    approval = approval_of(call).pk
    assert run(call)
    assert (late, len(entered)) == ([Status.APPROVED], 1)


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("change", ["withdrawn", "tool changed", "tool unpublished"])
def test_what_happens_while_it_is_looked_at_again_counts(
    change: str, bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    changes: dict[str, Any] = {
        "withdrawn": partial(stopping.withdraw_tool, tool.pk, actor=SYSTEM, why="the run was stopped"),
        "tool changed": partial(Tool.objects.update, definition_hash="e" * 64),
        "tool unpublished": partial(Tool.objects.update, published=False),
    }

    async def interrupted(_: object) -> Preview:
        await database_sync_to_async(changes[change])()
        return BEFORE

    previews[:] = [BEFORE, interrupted]
    call = approved(bob, tool)
    assert not run(call)
    assert (status(call), entered) == (Status.WITHDRAWN, [])


@pytest.mark.parametrize("answered", [False, True], ids=["waiting again", "approved again"])
def test_a_stop_that_read_the_call_before_it_was_asked_again_withdraws_it(
    answered: bool, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = approved(bob, tool)

    def overtake() -> None:
        assert not run(call)
        if answered:
            yes(bob, call)

    with meanwhile(overtake):
        stopping.withdraw_tool(tool.pk, actor=SYSTEM, why="the run was stopped")
    assert status(call) == Status.WITHDRAWN
    assert not run(call)
    assert entered == []


# -- At once ----------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:at-most-once")
@pytest.mark.parametrize("changed", [False, True], ids=["as shown", "changed"])
def test_of_many_who_have_looked_again_one_gets_the_call_or_puts_the_question(
    changed: bool, bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [BEFORE]
    call = approved(bob, tool)
    previews[:] = [NOW] if changed else [BEFORE]
    with pytest.raises(LookFirst) as first:
        perform.claim(call.pk)
    seen = async_to_sync(submit.look_again)(first.value.call)
    ends = together(*[partial(perform.claim, call.pk, seen)] * 10, meet_at_first_write=True)
    claimed = [end for end in ends if isinstance(end, ToolCall)]
    assert len(claimed) == (0 if changed else 1)
    assert events(call)[2:] == (["call.waiting"] if changed else ["call.executing"])
    assert fresh(call).round == (2 if changed else 1)
    assert {type(end) for end in ends} <= {ToolCall, type(None)}


@pytest.mark.guarantee("gate:same-call")
def test_who_looked_before_it_was_asked_again_cannot_start_it_after(
    bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [BEFORE]
    call = approved(bob, tool)
    with pytest.raises(LookFirst) as first:
        perform.claim(call.pk)
    seen = async_to_sync(submit.look_again)(first.value.call)
    previews[:] = [NOW]
    assert not run(call)
    yes(bob, call)
    with pytest.raises(LookFirst):
        perform.claim(call.pk, seen)
    assert entered == []
    assert run(call)


@pytest.mark.guarantee("gate:same-call")
def test_a_claim_that_read_the_first_yes_does_not_start_on_the_second(
    bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]
) -> None:
    """Approved, waiting, approved: the same status again, and another question."""
    previews[:] = [BEFORE]
    call = approved(bob, tool)
    with pytest.raises(LookFirst) as first:
        perform.claim(call.pk)
    seen = async_to_sync(submit.look_again)(first.value.call)
    previews[:] = [NOW]

    def overtake() -> None:
        assert not run(call)
        yes(bob, call)

    with meanwhile(overtake):
        assert perform.claim(call.pk, seen) is None
    assert (status(call), fresh(call).round, entered) == (Status.APPROVED, 2, [])


@pytest.mark.slow("looks for a fixed time")
def test_two_of_one_process_look_once(bob: User, tool: Tool, previews: list[Any], entered: list[ToolCall]) -> None:
    async def slow(_: object) -> Preview:
        await asyncio.sleep(0.05)
        return BEFORE

    previews[:] = [BEFORE]
    call = approved(bob, tool)
    previews[:] = [slow]

    async def both() -> list[ToolCall]:
        return list(await asyncio.gather(settled(call.pk, 10), settled(call.pk, 10)))

    assert [each.result for each in async_to_sync(both)()] == ["done", "done"]
    assert (len(looked), len(entered)) == (2, 1)

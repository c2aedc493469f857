"""Agents that work for a conversation: what they are told, what comes back, and how it is all nothing but rows."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.agent import agents, conversations, runner, runs
from hitlchat.agent.agents import AgentSource
from hitlchat.agent.models import ACTIVE, AgentTool, Conversation, Run, RunStatus
from hitlchat.base.background import background
from hitlchat.gate import decide, perform, ruling, stopping
from hitlchat.gate.actor import Caller
from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Approval, Asks, AuditEvent, Delegation, Grant, Tool, ToolCall, delegation
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.record.calls import compare
from hitlchat.record.report import Report
from tests.agent.cast import TOP, Cast, agent, child_of
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.gate.asking import ask, fresh
from tests.gate.racing import meanwhile
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import DONE, Gate, Reply, calls, sse, status, text
from tests.waiting import soon, stored

pytestmark = pytest.mark.django_db(transaction=True)

TASK = {"task": "Refund order 1234."}


@pytest.fixture(autouse=True)
def tools(recorder: Recorder, alice: User) -> None:
    """A worker that may refund, which asks, and notify, which does not; and a supervisor that may call the worker."""
    recorded_tool("refund", risk_level=3)
    recorded_tool("notify", "DISABLED", risk_level=0)
    agent(alice, "worker", "refund", "notify")
    agent(alice, "supervisor", "worker", "notify")


async def waiting(count: int = 1) -> list[Approval]:
    """Return all approvals that wait, wherever, once there are `count` and every active run is parked."""
    rows = Approval.objects.filter(call__status=Status.WAITING).select_related("call").order_by("call__created_at")
    parked = Run.objects.filter(status__in=ACTIVE, parked=False)
    await stored(lambda: rows.count() == count and not parked.exists(), f"{count} calls wait")
    return await in_database(list)(rows)


async def calls_of(name: str) -> list[ToolCall]:
    return await in_database(list)(ToolCall.objects.filter(tool_name=name).order_by("created_at"))


async def approve(approval: Approval, owner: User, **more: Any) -> None:
    await in_database(decide.approve)(approval.pk, signed_in(owner), **more)


async def test_an_agent_works_on_its_task_with_its_own_tools_and_its_last_text_is_the_result(
    talk: Talk, recorder: Recorder, cast: Cast
) -> None:
    cast.plays(TOP, calls(("worker", TASK)), text("All done."))
    cast.plays("worker", calls(("notify", {"text": "hi"})), text("I told them."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert cast.told() == ["I told them."]
    assert await talk.answers() == ["", "All done."]
    assert cast.first_words("worker") == "Refund order 1234."
    assert cast.tools("worker") == ["notify", "refund"]
    assert "Be worker." in cast.asked["worker"][0]["messages"][0]["content"]
    assert recorder.entered == [("notify", {"text": "hi"})]


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel", "audit:complete", "record:proves")
@pytest.mark.guarantee("run:survives")
async def test_a_gated_call_of_an_agent_waits_names_the_agents_in_between_and_all_above_are_nothing_but_rows(
    talk: Talk, recorder: Recorder, cast: Cast
) -> None:
    cast.plays(TOP, calls(("supervisor", TASK)), text("All done."))
    cast.plays("supervisor", calls(("worker", TASK)), text("The worker did it."))
    cast.plays("worker", calls(("notify", {}), ("refund", {"n": 1234})), text("Refunded."))
    await talk.say("Please refund 1234")
    (approval,) = await waiting()
    await soon(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "nothing is left in memory")
    assert recorder.entered == [("notify", {})]
    rows = await in_database(list)(Run.objects.order_by("created_at").values_list("status", "parked", "owner"))
    assert rows == [(RunStatus.WAITING, True, "")] * 3
    held = [*await calls_of("supervisor"), *await calls_of("worker")]
    assert [(call.status, call.owner, call.lease_until) for call in held] == [(Status.EXECUTING, "", None)] * 2
    chain = [{"tool": call.tool_name, "call": str(call.pk)} for call in held]
    assert approval.disclosure["agents"] == chain
    assert approval.disclosure["userPrompt"] == "Please refund 1234"
    assert approval.disclosure["provenance"] == [{"path": "/n", "from": "person", "source": None}]
    said = AuditEvent.objects.filter(
        name__in=["call.waiting", "call.allowed"], call__tool_name__in=["refund", "notify"]
    )
    assert [event.data["agents"] for event in await in_database(list)(said)] == [chain, chain]
    assert "agents" not in (await AuditEvent.objects.aget(name="call.allowed", call=held[0])).data
    await approve(approval, talk.owner)
    assert (await talk.over()).status == RunStatus.DONE
    assert recorder.entered == [("notify", {}), ("refund", {"n": 1234})]
    assert cast.told("supervisor") == ["Refunded."]
    assert cast.told() == ["The worker did it."]
    report = Report()
    assert await in_database(lambda: [each for each in compare(report) if each])() == []
    assert report.calls == 4
    # Somebody hides that an agent stands in between.
    await Delegation.objects.filter(distance=2).adelete()
    found = await in_database(lambda: [each.words for each in compare(report) if each])()
    assert len(found) == 2
    assert f"The agents of call {approval.call_id} differ from those in event" in "".join(found)


@pytest.mark.guarantee("gate:truth")
async def test_what_was_declined_in_an_agent_is_told_to_it_and_no_failure_of_the_call_above(
    talk: Talk, recorder: Recorder, cast: Cast
) -> None:
    cast.plays(TOP, calls(("worker", TASK)), text("It was not refunded."))
    cast.plays("worker", calls(("refund", {"n": 1})), text("The person declined."))
    await talk.say()
    (approval,) = await waiting()
    await in_database(decide.decline)(approval.pk, signed_in(talk.owner), reason="Too much.")
    await talk.over()
    assert "Too much." in cast.told("worker")[0]
    assert cast.told() == ["The person declined."]
    assert recorder.entered == []


@pytest.mark.guarantee("gate:truth")
async def test_a_failure_of_an_agent_is_told_with_what_it_had_done(talk: Talk, cast: Cast) -> None:
    cast.plays(TOP, calls(("worker", TASK)), text("It failed."))
    cast.plays("worker", calls(("notify", {"text": "hi"})), status(400, {"message": "no such model"}))
    await talk.ask()
    (told,) = cast.told()
    assert '"status": "failed"' in told
    assert "The agent did not finish" in told
    assert "no such model" in told
    assert "notify (succeeded)" in told


async def test_several_agents_work_at_once_and_their_results_come_in_the_models_order(talk: Talk, cast: Cast) -> None:
    gate = Gate()
    cast.plays(TOP, calls(("supervisor", TASK), ("worker", TASK)), text("Both."))
    cast.plays("supervisor", text("From the ", gate, "supervisor."))
    cast.plays("worker", text("From the worker."))
    await talk.say()
    await talk.settled(Status.SUCCEEDED)
    gate.open()
    await talk.over()
    assert cast.told() == ["From the supervisor.", "From the worker."]


# -- What binds those below --------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_what_a_conversation_asks_more_about_its_agents_ask_about_too(
    talk: Talk, recorder: Recorder, cast: Cast
) -> None:
    await in_database(ruling.change_strictness)(talk.conversation.pk, Asks.EVERY, signed_in(talk.owner))
    cast.plays(TOP, calls(("worker", TASK)), text("Done."))
    cast.plays("worker", calls(("notify", {"text": "hi"})), text("Notified."))
    await talk.say()
    (approval,) = await waiting()
    assert approval.call.tool_name == "worker"
    await approve(approval, talk.owner)
    await stored(lambda: ToolCall.objects.filter(tool_name="notify").exists(), "the agent calls")
    (approval,) = await waiting()
    assert (approval.call.tool_name, recorder.entered) == ("notify", [])
    await approve(approval, talk.owner)
    await talk.over()
    assert recorder.entered == [("notify", {"text": "hi"})]


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_conversation_that_asks_more_while_an_agent_works_has_its_next_calls_asked_about(
    talk: Talk, recorder: Recorder, cast: Cast
) -> None:
    gate = Gate()
    cast.plays(TOP, calls(("worker", TASK)), text("Done."))
    cast.plays("worker", calls(("notify", {"text": "hi"}), gate=gate), text("Notified."))
    await talk.say()
    await gate.arrival()
    await in_database(ruling.change_strictness)(talk.conversation.pk, Asks.EVERY, signed_in(talk.owner))
    gate.open()
    (approval,) = await waiting()
    assert (approval.call.tool_name, recorder.entered) == ("notify", [])
    (call,) = await calls_of("worker")
    child = await in_database(child_of)(call)
    # Its own word makes it ask no less.
    await in_database(ruling.change_strictness)(child.pk, Asks.TOOLS, signed_in(talk.owner))
    assert (await ToolCall.objects.aget(pk=approval.call_id)).status == Status.WAITING
    await approve(approval, talk.owner)
    await talk.over()


async def test_a_grant_for_this_conversation_covers_the_calls_of_its_agents_and_no_others(
    talk: Talk, recorder: Recorder, cast: Cast, bob: User
) -> None:
    await in_database(recorded_tool)("ship", "CONDITIONAL", risk_level=2)
    await in_database(agent)(await User.objects.aget(username="alice"), "shipper", "ship")
    cast.plays(TOP, calls(("shipper", TASK)), calls(("shipper", TASK)), text("Done."))
    cast.plays("shipper", calls(("ship", {"n": 1})), text("One."), calls(("ship", {"n": 2})), text("Two."))
    await talk.say()
    (approval,) = await waiting()
    await approve(approval, bob, grant=Scope(this_conversation=True, calls=5))
    await talk.over()
    assert [arguments for _, arguments in recorder.entered] == [{"n": 1}, {"n": 2}]
    grant = await Grant.objects.aget()
    assert (grant.conversation_id, grant.used) == (talk.conversation.pk, 1)
    other = Talk(await Conversation.objects.acreate(owner=bob), bob)
    cast.plays(TOP, calls(("shipper", TASK)))
    cast.plays("shipper", calls(("ship", {"n": 3})))
    await other.say()
    assert (await waiting())[0].call.arguments == {"n": 3}


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel")
async def test_an_agent_that_a_client_calls_calls_as_that_client_and_no_grant_of_the_chat_counts(
    talk: Talk, recorder: Recorder, cast: Cast, bob: User
) -> None:
    await in_database(recorded_tool)("ship", "CONDITIONAL", risk_level=2)
    await in_database(agent)(await User.objects.aget(username="alice"), "shipper", "ship")
    cast.plays(TOP, calls(("ship", {"n": 1})), text("Done."))
    await talk.say()
    await approve(await talk.only(), bob, grant=Scope(calls=5))
    await talk.over()
    cast.plays("shipper", calls(("ship", {"n": 2})), text("Shipped."))
    call = await submit(CallRequest("shipper", TASK, Caller("mcp", bob.pk, "bob")))
    (approval,) = await waiting()
    assert (approval.call.caller_kind, approval.call.arguments) == ("mcp", {"n": 2})
    assert approval.disclosure["agents"] == [{"tool": "shipper", "call": str(call.pk)}]
    assert approval.disclosure["userPrompt"] == ""
    assert "provenance" not in approval.disclosure
    assert cast.tools("shipper") == ["ship"]
    await approve(approval, bob)
    await stored(lambda: ToolCall.objects.get(pk=call.pk).settled, "the call has ended")
    assert (await ToolCall.objects.aget(pk=call.pk)).result == "Shipped."
    assert [arguments for _, arguments in recorder.entered] == [{"n": 1}, {"n": 2}]


# -- Stopping ----------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:truth")
async def test_stop_ends_the_whole_tree_and_what_waits_in_it_is_withdrawn(
    talk: Talk, recorder: Recorder, cast: Cast
) -> None:
    cast.plays(TOP, calls(("supervisor", TASK), ("worker", TASK)), text("What now?"))
    cast.plays("supervisor", calls(("worker", TASK)))
    cast.plays("worker", calls(("refund", {"n": 1})), calls(("refund", {"n": 2})))
    await talk.say()
    first, second = await waiting(2)
    assert await talk.stop()
    settled = [call.status for call in await calls_of("refund")]
    assert settled == [Status.WITHDRAWN] * 2
    assert {call.reason for call in await calls_of("refund")} == {"Not run: the run was stopped."}
    assert not await Run.objects.filter(status__in=ACTIVE).aexists()
    ended = [*await calls_of("supervisor"), *await calls_of("worker")]
    assert {(call.status, call.error["kind"]) for call in ended} == {(Status.FAILED, "stopped")}
    with pytest.raises(decide.AlreadySettled):
        await approve(first, talk.owner)
    assert (recorder.entered, second.call.tool_name) == ([], "refund")
    await talk.ask("Go on")
    assert "The agent was stopped before it finished. None of its calls was run." in cast.told()[0]


async def test_stop_ends_an_agent_that_is_being_answered(talk: Talk, cast: Cast) -> None:
    gate = Gate()
    cast.plays(TOP, calls(("worker", TASK)))
    cast.plays("worker", text("Half of", gate, " it."))
    await talk.say()
    await gate.arrival()
    await talk.stop()
    gate.open()
    await soon(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on")
    assert not await Run.objects.filter(status__in=ACTIVE).aexists()


@pytest.mark.guarantee("gate:one-outcome")
@pytest.mark.parametrize(
    "attempt", [0, *(pytest.param(each, marks=pytest.mark.slow("the same moment again")) for each in range(1, 4))]
)
async def test_a_stop_and_the_end_of_an_agent_in_the_same_moment_leave_one_truth(
    talk: Talk, cast: Cast, attempt: int
) -> None:
    gate = Gate()
    cast.plays(TOP, calls(("worker", TASK)), text("Done."))
    cast.plays("worker", text("It is", gate, f" done {attempt}."))
    await talk.say()
    await gate.arrival()
    gate.open()
    await talk.stop()
    await soon(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on")
    (call,) = await calls_of("worker")
    child = await Run.objects.aget(conversation__call_id=call.pk)
    ended = {Status.SUCCEEDED: RunStatus.DONE, Status.FAILED: RunStatus.STOPPED}
    assert ended[Status(call.status)] == child.status
    moves = AuditEvent.objects.filter(call=call, name__in=["call.succeeded", "call.failed"])
    assert await moves.acount() == 1
    assert not await Run.objects.filter(status__in=ACTIVE).aexists()


async def test_deleting_a_conversation_ends_its_agents_and_takes_theirs_along(
    talk: Talk, recorder: Recorder, cast: Cast
) -> None:
    cast.plays(TOP, calls(("worker", TASK)))
    cast.plays("worker", calls(("refund", {"n": 1})))
    await talk.say()
    await waiting()
    assert await in_database(conversations.not_started)(talk.conversation) == 1
    await in_database(conversations.delete)(talk.conversation, signed_in(talk.owner))
    assert [each.status for each in await calls_of("refund")] == [Status.WITHDRAWN]
    assert not await Run.objects.filter(status__in=ACTIVE).aexists()
    assert not await Conversation.objects.filter(deleted_at=None).aexists()
    await in_database(conversations.restore)(talk.owner, talk.conversation.pk)
    assert await Conversation.objects.filter(deleted_at=None).acount() == 2
    assert recorder.entered == []


async def test_one_agent_is_stopped_alone_and_the_conversation_goes_on(talk: Talk, cast: Cast) -> None:
    cast.plays(TOP, calls(("worker", TASK)), text("It was stopped."))
    cast.plays("worker", calls(("refund", {"n": 1})))
    await talk.say()
    await waiting()
    (call,) = await calls_of("worker")
    assert await in_database(stopping.request)(call.pk, signed_in(talk.owner))
    assert (await talk.over()).status == RunStatus.DONE
    assert "The agent was stopped" in cast.told()[0]
    assert [each.status for each in await calls_of("refund")] == [Status.WITHDRAWN]


async def test_nobody_says_anything_in_an_agents_conversation(talk: Talk, cast: Cast) -> None:
    cast.plays(TOP, calls(("worker", TASK)), text("Done."))
    cast.plays("worker", text("Done."))
    await talk.ask()
    (call,) = await calls_of("worker")
    child = await in_database(child_of)(call)
    for say in (runner.say, runner.queue):
        with pytest.raises(runs.AgentsOwn):
            await in_database(say)(child, "And now?")
    with pytest.raises(runs.AgentsOwn):
        await in_database(runner.retry)(child)


# -- Limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:truth")
async def test_an_agent_that_calls_itself_through_others_is_told_that_it_cannot(
    talk: Talk, cast: Cast, alice: User
) -> None:
    await in_database(agent)(alice, "first", "notify")
    await in_database(agent)(alice, "second", "first")
    from_here = await in_database(lambda: _let_call("first", "second", alice))()
    assert from_here == ["second"]
    cast.plays(TOP, calls(("first", TASK)), text("Done."))
    cast.plays("first", calls(("second", TASK)), text("First."))
    cast.plays("second", calls(("first", TASK)), text("Second."))
    await talk.ask()
    (told,) = cast.told("second")
    assert '"status": "rejected"' in told
    assert "first is already working further up (first → second → first)" in told
    assert cast.told() == ["First."]


def _let_call(name: str, other: str, author: User) -> list[str]:
    draft = agents.draft_of(agents.rows().get(tool__name=name))
    return list(agents.change(name, replace(draft, tools=(other,)), signed_in(author)).tools)


async def test_agents_are_only_so_deep(talk: Talk, cast: Cast, settings: Settings) -> None:
    settings.AGENT_DEPTH = 1
    cast.plays(TOP, calls(("supervisor", TASK)), text("Done."))
    cast.plays("supervisor", calls(("worker", TASK)), text("I could not."))
    await talk.ask()
    assert "Agents may be nested 1 deep here" in cast.told("supervisor")[0]
    assert [call.status for call in await calls_of("worker")] == [Status.REJECTED]
    assert cast.asked["worker"] == []


async def test_one_run_begins_only_so_many_agents(talk: Talk, cast: Cast, settings: Settings) -> None:
    settings.AGENT_FAN_OUT = 2
    three = [("worker", {"task": f"Order {number}"}) for number in range(3)]
    cast.plays(TOP, calls(*three), calls(("worker", {"task": "Order 4"})), text("Done."))
    cast.plays("worker", text("One."), text("Two."))
    await talk.ask()
    told = cast.told()
    assert len(cast.asked["worker"]) == 2
    assert ["One run may start 2 agents here" in each for each in told] == [False, False, True, True]


async def test_an_agent_that_used_up_its_tokens_is_stopped(talk: Talk, cast: Cast, alice: User) -> None:
    await in_database(agent)(alice, "thrifty", "notify", max_tokens=100)
    spent = sse({"choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 10}})
    cast.plays(TOP, calls(("thrifty", TASK)), text("Done."))
    cast.plays("thrifty", Reply((*calls(("notify", {})).parts[:-2], spent, DONE)))
    await talk.ask()
    assert "it used up its 100 tokens for one task" in cast.told()[0]


# -- At most once ------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:at-most-once")
async def test_a_call_of_an_agent_that_two_take_up_begins_one_conversation(talk: Talk, cast: Cast, alice: User) -> None:
    await in_database(agent)(alice, "asked", "notify", hitl_mode="REQUIRED")
    cast.plays(TOP, calls(("asked", TASK)), text("Done."))
    cast.plays("asked", text("Once."))
    await talk.say()
    (approval,) = await waiting()
    assert not await in_database(delegation.begun_by)([approval.call_id])
    await asyncio.gather(*(approve(approval, talk.owner) for _ in range(2)), return_exceptions=True)
    await talk.over()
    assert await Conversation.objects.filter(call_id=approval.call_id).acount() == 1
    assert len(cast.asked["asked"]) == 1


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_an_agent_does_not_begin_if_its_conversation_was_made_stricter_between_the_look_and_the_start(
    talk: Talk,
) -> None:
    call = ask(talk.owner, Tool.objects.get(name="worker"), TASK, conversation_id=talk.conversation.pk)
    assert call.status == Status.ALLOWED
    stricter_now = partial(ruling.change_strictness, talk.conversation.pk, Asks.EVERY, signed_in(talk.owner))
    with meanwhile(stricter_now):
        assert perform.claim(call.pk) is None
    assert fresh(call).status == Status.ALLOWED
    assert not Conversation.objects.filter(call_id=call.pk).exists()


@pytest.mark.guarantee("run:survives")
async def test_a_run_that_nobody_woke_when_its_agent_ended_is_found_by_the_sweeper(talk: Talk, cast: Cast) -> None:
    gate = Gate()
    cast.plays(TOP, calls(("worker", TASK)), text("It was stopped."))
    cast.plays("worker", text("Half of", gate, " it."))
    await talk.say()
    await gate.arrival()
    (call,) = await calls_of("worker")
    run = await Run.objects.aget(conversation__call_id=call.pk)
    # As in a process that dies right after.
    background.leaving = True
    await in_database(runs.stop)(run.pk, signed_in(talk.owner))
    gate.open()
    background.leaving = False
    assert (await talk.run()).parked
    assert (await ToolCall.objects.aget(pk=call.pk)).status == Status.FAILED
    await runner.sweeper().turn()
    await talk.over()
    assert "The agent was stopped" in cast.told()[0]


@pytest.mark.guarantee("gate:fail-closed")
async def test_an_agent_whose_rows_were_altered_does_not_begin(talk: Talk, cast: Cast) -> None:
    await in_database(AgentTool.objects.filter(tool__name="worker").update)(tools=["notify", "refund", "supervisor"])
    cast.plays(TOP, calls(("worker", TASK)), text("It did not begin."))
    await talk.ask()
    (call,) = await calls_of("worker")
    said = "Not run: the agent was changed since the call was made."
    assert (call.status, call.reason) == (Status.WITHDRAWN, said)
    assert await in_database(list)(AgentSource().altered()) == [
        "The agent 'worker' does not match its saved definition."
    ]


@pytest.mark.guarantee("gate:same-call")
async def test_a_yes_to_an_agent_that_was_changed_since_begins_nothing(talk: Talk, cast: Cast, alice: User) -> None:
    await in_database(agent)(alice, "asked", "notify", hitl_mode="REQUIRED")
    cast.plays(TOP, calls(("asked", TASK)), text("It was changed."))
    await talk.say()
    (approval,) = await waiting()
    await in_database(lambda: _let_call("asked", "refund", alice))()
    await talk.over()
    (call,) = await calls_of("asked")
    assert (call.status, call.reason) == (Status.WITHDRAWN, "Not run: the agent was changed.")
    with pytest.raises(decide.AlreadySettled):
        await approve(approval, talk.owner)
    assert cast.asked["asked"] == []

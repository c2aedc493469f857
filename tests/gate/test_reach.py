"""Conversations that are held to some tools: a call of any other is never run, whenever the others were taken away."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import OperationalError
from pytest_django import Settings

from hitlchat.agent import conversations, tool_sets
from hitlchat.agent.models import Conversation, ToolSet
from hitlchat.agent.tool_sets import Draft
from hitlchat.agent.unknown import NotAgain, again
from hitlchat.gate import perform, spec, tools
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare
from tests.conftest import caller, signed_in
from tests.gate.asking import approved, ask, fresh, recording, run, say_yes, status
from tests.gate.racing import database_fails_at, meanwhile
from tests.gate.sources_for_tests import looked
from tests.tables import each_row

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.guarantee("gate:fail-closed", "gate:no-yes-no-run", "gate:one-funnel"),
]

FREE = "DISABLED"
OTHERS = Draft("Orders", tools=("other",))
TAKEN_AWAY = f"Not run: {tools.OUT_OF_REACH}."


@pytest.fixture
def orders(alice: User) -> ToolSet:
    """A set of the tools refund and other."""
    recording("other", mode=FREE)
    recording("refund", mode=FREE)
    return tool_sets.create(Draft("Orders", tools=("other", "refund")), signed_in(alice))


@pytest.fixture
def here(bob: User, orders: ToolSet) -> Conversation:
    """A conversation of bob's that is held to the set."""
    return conversations.create(bob, tool_set="Orders")


@pytest.fixture
def refund(orders: ToolSet) -> Tool:
    return Tool.objects.get(name="refund")


def set_of(here: Conversation) -> UUID:
    assert here.tool_set_id is not None
    return here.tool_set_id


def narrowed(alice: User, here: Conversation) -> None:
    tool_sets.change(set_of(here), OTHERS, signed_in(alice))


def removed(alice: User, here: Conversation) -> None:
    tool_sets.remove(set_of(here), signed_in(alice))


def exchanged(alice: User, here: Conversation) -> None:
    tool_sets.create(Draft("Few", tools=("other",)), signed_in(alice))
    conversations.change(here, tool_set="Few")


def picked(_: User, here: Conversation) -> None:
    conversations.change(here, tools=["other"])


def picked_none(_: User, here: Conversation) -> None:
    conversations.change(here, tools=[])


def written_by_hand(_: User, here: Conversation) -> None:
    Conversation.objects.filter(pk=here.pk).update(tool_set=None, tools=[])


def unreadable(_: User, here: Conversation) -> None:
    ToolSet.objects.filter(pk=set_of(here)).update(tools="refund")


def unreadable_in_part(_: User, here: Conversation) -> None:
    ToolSet.objects.filter(pk=set_of(here)).update(tools=["refund", 1])


TakeAway = Callable[[User, Conversation], None]
WAYS = (narrowed, removed, exchanged, picked, picked_none, written_by_hand, unreadable, unreadable_in_part)


def test_what_it_is_held_to_runs_and_nothing_else(bob: User, here: Conversation, entered: list[ToolCall]) -> None:
    outside = recording("outside", mode=FREE)
    assert run(ask(bob, Tool.objects.get(name="refund"), conversation_id=here.pk))
    call = ask(bob, outside, conversation_id=here.pk)
    assert (call.status, call.reason) == (
        Status.REJECTED,
        "There is no tool named 'outside' here. This conversation may not use it.",
    )
    assert not run(call)
    assert [each.tool_name for each in entered] == ["refund"]
    # Elsewhere it is as it was.
    assert ask(bob, outside).status == Status.ALLOWED


def test_nobody_is_asked_and_nothing_looked_at_for_a_call_that_is_out(bob: User, here: Conversation) -> None:
    tool = recording("outside", source="previewing")
    assert ask(bob, tool, conversation_id=here.pk).status == Status.REJECTED
    assert looked == []


@each_row("take_away", WAYS, [way.__name__ for way in WAYS])
def test_no_call_of_a_tool_that_was_taken_away_starts_however_far_it_had_come(
    take_away: TakeAway, alice: User, bob: User, here: Conversation, refund: Tool, entered: list[ToolCall]
) -> None:
    here.refresh_from_db()
    Tool.objects.filter(pk=refund.pk).update(hitl_mode="REQUIRED")
    yes = approved(bob, refund, conversation_id=here.pk)
    Tool.objects.filter(pk=refund.pk).update(hitl_mode=FREE)
    let_run, unknown = (ask(bob, refund, conversation_id=here.pk) for _ in range(2))
    ToolCall.objects.filter(pk=unknown.pk).update(status=Status.UNKNOWN)
    judged = async_to_sync(prepare)(CallRequest("refund", {"text": "a"}, caller(bob), conversation_id=here.pk))
    assert (let_run.status, judged.status) == (Status.ALLOWED, Status.ALLOWED)
    take_away(alice, here)
    for call in (yes, let_run):
        assert not run(call)
        assert (status(call), fresh(call).reason) == (Status.WITHDRAWN, TAKEN_AWAY)
    rejected = [admit(judged)]
    with suppress(NotAgain):
        rejected.append(again(fresh(unknown), signed_in(bob), "bob"))
    assert [(run(call), status(call)) for call in rejected] == [(False, Status.REJECTED)] * len(rejected)
    assert entered == []


def test_a_yes_to_a_question_about_a_tool_that_was_taken_away_runs_nothing(
    bob: User, here: Conversation, refund: Tool, entered: list[ToolCall]
) -> None:
    Tool.objects.filter(pk=refund.pk).update(hitl_mode="REQUIRED")
    call = ask(bob, refund, conversation_id=here.pk)
    # Not through the page, so that the question still stands.
    Conversation.objects.update(tool_set=None, tools=[])
    say_yes(bob, call)
    assert not run(call)
    assert (status(call), entered) == (Status.WITHDRAWN, [])


def test_a_question_about_a_tool_that_was_taken_away_is_withdrawn_at_once_and_others_stay(
    bob: User, alice: User, here: Conversation, refund: Tool
) -> None:
    Tool.objects.update(hitl_mode="REQUIRED")
    call = ask(bob, refund, conversation_id=here.pk)
    other = ask(bob, Tool.objects.get(name="other"), conversation_id=here.pk)
    elsewhere = ask(bob, refund)
    narrowed(alice, here)
    assert (status(call), fresh(call).reason) == (Status.WITHDRAWN, TAKEN_AWAY)
    assert (status(other), status(elsewhere)) == (Status.WAITING, Status.WAITING)


@pytest.mark.django_db(transaction=True)
def test_a_start_that_read_the_set_before_it_changed_does_not_happen(
    bob: User, alice: User, here: Conversation, refund: Tool, entered: list[ToolCall]
) -> None:
    call = ask(bob, refund, conversation_id=here.pk)
    with meanwhile(partial(narrowed, alice, here)):
        assert perform.claim(call.pk) is None
    assert (status(call), entered) == (Status.WITHDRAWN, [])


def test_one_that_is_looked_at_once_more_before_it_starts_is_not_looked_at_for_a_tool_that_was_taken_away(
    bob: User, here: Conversation, previews: list[Any], entered: list[ToolCall]
) -> None:
    previews[:] = [Preview(text="Pays 1 back.")]
    tool = recording("pays", source="previewing")
    conversations.change(here, tools=["pays"])
    call = approved(bob, tool, conversation_id=here.pk)
    before = len(looked)
    Conversation.objects.update(tools=[])
    assert not run(call)
    assert (len(looked), status(call), entered) == (before, Status.WITHDRAWN, [])


def test_a_tool_that_vanished_stays_out_and_one_that_takes_its_name_is_asked_about_at_least_as_much(
    bob: User, alice: User, here: Conversation, refund: Tool
) -> None:
    tools.change(refund.pk, {"hitl_mode": "REQUIRED"}, signed_in(alice))
    tools.remove([Tool.objects.get(pk=refund.pk)], signed_in(alice))
    asked = async_to_sync(prepare)(CallRequest("refund", {"text": "a"}, caller(bob), conversation_id=here.pk))
    assert (asked.status, asked.tool) == (Status.REJECTED, None)
    tools.add(Tool(**{name: getattr(refund, name) for name in spec.WATCHED} | {"published": True}), SYSTEM)
    assert ask(bob, Tool.objects.get(name="refund"), conversation_id=here.pk).status == Status.WAITING


def test_a_tool_that_was_renamed_is_out(bob: User, alice: User, here: Conversation, refund: Tool) -> None:
    call = ask(bob, refund, conversation_id=here.pk)
    tools.change(refund.pk, {"name": "pay_back"}, signed_in(alice))
    assert not run(call)
    assert ask(bob, Tool.objects.get(name="pay_back"), conversation_id=here.pk).status == Status.REJECTED


def test_a_set_that_cannot_be_read_for_now_lets_nothing_start(
    bob: User, here: Conversation, refund: Tool, entered: list[ToolCall]
) -> None:
    call = ask(bob, refund, conversation_id=here.pk)
    with database_fails_at('SELECT "agent_conversation"'):
        with pytest.raises(OperationalError):
            perform.claim(call.pk)
        with pytest.raises(OperationalError):
            ask(bob, refund, conversation_id=here.pk)
    assert (status(call), entered, ToolCall.objects.count()) == (Status.ALLOWED, [], 1)


def test_a_set_never_has_a_tool_ask_less(bob: User, here: Conversation) -> None:
    asks, draft = recording("asks"), recording("drafts", mode=FREE, published=False)
    conversations.change(here, tools=["asks", "drafts"])
    assert ask(bob, asks, conversation_id=here.pk).status == Status.WAITING
    assert ask(bob, draft, conversation_id=here.pk).status == Status.REJECTED


def test_the_question_to_the_person_is_in_a_set_by_its_name_and_in_what_is_picked_always(
    bob: User, alice: User, here: Conversation, settings: Settings
) -> None:
    settings.HITL_ASK_USER = True
    built_in = tool_sets.choosable()[0]
    assert built_in.name == "ask_user"
    question = {"question": "Which?", "fields": [{"name": "a", "label": "A", "kind": "text"}]}
    assert ask(bob, built_in, question, conversation_id=here.pk).status == Status.REJECTED
    tool_sets.change(set_of(here), Draft("Orders", tools=("ask_user",)), signed_in(alice))
    assert ask(bob, built_in, question, conversation_id=here.pk).status == Status.WAITING
    conversations.change(here, tools=[])
    assert ask(bob, built_in, question, conversation_id=here.pk).status == Status.WAITING

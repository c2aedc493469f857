"""Conversations that ask more than their tools do: nothing that they ask about starts without a yes of its own."""

from functools import partial
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.gate import batch, decide, oversight, perform, ruling
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.grants import giving
from hitlchat.gate.grants.scope import BadGrant, Scope
from hitlchat.gate.models import Asks, AuditEvent, Grant, Strictness, Tool, ToolCall, delegation, new_id
from hitlchat.gate.provenance import Heard, Text
from hitlchat.gate.settling import sweep
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, ask, events, fresh, recording, run, say_yes, status
from tests.gate.granting import HERE, again, conditional, covered, granted, runs
from tests.gate.policy_rules import ALLOWS, REFUSES
from tests.gate.racing import meanwhile, together
from tests.tables import each_row
from tests.waiting import stored

pytestmark = pytest.mark.django_db

FREE = "DISABLED"


def make(bob: User, word: str, conversation_id: Any = HERE) -> None:
    ruling.change_strictness(conversation_id, word, signed_in(bob))


def asks(bob: User, tool: Tool, **request: Any) -> bool:
    return ask(bob, tool, **{"conversation_id": HERE, **request}).status == Status.WAITING


def unasked(bob: User, tool: Tool) -> ToolCall:
    """A call in HERE that was let run, and has not started."""
    call = ask(bob, tool, conversation_id=HERE)
    assert call.status == Status.ALLOWED
    return call


# -- What it asks about ------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_row(
    "word,asked",
    [("tools", []), ("risky", [2, 3]), ("every", [0, 1, 2, 3]), ("sometimes", [0, 1, 2, 3]), ("", [0, 1, 2, 3])],
)
def test_it_asks_by_its_word_and_about_everything_where_that_is_not_known(
    word: str, asked: list[int], bob: User
) -> None:
    Strictness.objects.create(conversation_id=HERE, asks=word)
    tools = [recording(f"free{risk}", mode=FREE, risk_level=risk) for risk in range(4)]
    assert [tool.risk_level for tool in tools if asks(bob, tool)] == asked
    assert not any(asks(bob, tool, conversation_id=new_id()) for tool in tools)


@pytest.mark.parametrize("word", Asks.values)
def test_it_never_asks_less(word: str, bob: User, settings: Settings) -> None:
    make(bob, word)
    assert asks(bob, recording("always"))
    assert asks(bob, conditional(name="condition", condition="True"))
    settings.HITL_POLICIES = [REFUSES]
    assert ask(bob, recording("refused", mode=FREE), conversation_id=HERE).status == Status.REFUSED


def test_what_a_rule_allows_is_asked_about_and_both_are_on_record(bob: User, settings: Settings) -> None:
    settings.HITL_POLICIES = [ALLOWS]
    make(bob, "every")
    call = ask(bob, conditional(), conversation_id=HERE)
    assert (call.status, call.reason) == (Status.WAITING, oversight.EVERY)
    assert approval_of(call).disclosure["reason"] == oversight.EVERY
    event = AuditEvent.objects.get(call=call, name="call.waiting")
    said = [(each["source"], each["verdict"]) for each in event.data["spoke"]]
    assert said == [("settings", "allow"), ("conversation", "ask")]


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_it_asks_also_where_approvals_are_switched_off_for_the_installation(bob: User, settings: Settings) -> None:
    settings.HITL_ENABLED = False
    make(bob, "every")
    assert asks(bob, recording())
    assert not asks(bob, recording("elsewhere"), conversation_id=new_id())


def test_calls_of_mcp_clients_are_of_no_conversation_and_asked_about_as_the_tools_say(bob: User) -> None:
    make(bob, "every")
    assert not asks(bob, recording(mode=FREE), conversation_id=None, kind="mcp")


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:fail-closed")
def test_a_word_that_cannot_be_read_asks(bob: User) -> None:
    tool = recording(mode=FREE)
    with connection.schema_editor() as editor:
        editor.delete_model(Strictness)
    try:
        call = ask(bob, tool, conversation_id=None)
        judged = async_to_sync(prepare)(CallRequest(tool.name, {"text": "a"}, caller(bob), conversation_id=HERE))
    finally:
        with connection.schema_editor() as editor:
            editor.create_model(Strictness)
    assert (call.status, judged.status, judged.reason) == (Status.ALLOWED, Status.WAITING, oversight.UNREADABLE)


def test_calls_answered_together_are_approved_each_by_itself(bob: User, entered: list[ToolCall]) -> None:
    make(bob, "every")
    tool = recording(mode=FREE)
    calls = [ask(bob, tool, {"text": text}, conversation_id=HERE) for text in "abc"]
    items = [batch.Item(approval_of(call).pk, approval_of(call).digest) for call in calls[:2]]
    batch.answer(items, "approve", signed_in(bob))
    assert [run(call) for call in calls] == [True, True, False]
    assert [call.pk for call in entered] == [call.pk for call in calls[:2]]


# -- Made stricter before a call started -------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("word", ["risky", "every"])
def test_what_was_let_run_and_has_not_started_is_asked_about_instead(
    word: str, bob: User, entered: list[ToolCall]
) -> None:
    tool = recording(mode=FREE)
    call = unasked(bob, tool)
    make(bob, word)
    assert not run(call)
    asked = approval_of(call)
    assert (status(call), entered, asked.disclosure["reason"]) == (Status.WAITING, [], fresh(call).reason)
    assert events(call)[:2] == ["call.allowed", "call.waiting"]
    say_yes(bob, call)
    assert run(call)
    assert ([each.pk for each in entered], status(call)) == ([call.pk], Status.SUCCEEDED)


def test_what_is_asked_about_after_all_says_of_its_values_what_it_would_have_said_before(bob: User) -> None:
    heard = Heard.of([Text("Pay 4711"), Text("eve@evil.example", "outside", str(new_id()), "fetch")])
    given = {"arguments": {"text": "4711 eve@evil.example"}, "heard": heard}
    asked = approval_of(ask(bob, recording(), **given)).disclosure
    call = ask(bob, recording("paid", mode=FREE), conversation_id=HERE, **given)
    make(bob, "every")
    assert not run(call)
    after_all = approval_of(call).disclosure
    assert [after_all[part] for part in ("provenance", "notGiven")] == [asked["provenance"], ["amount"]]
    assert [each["from"] for each in after_all["provenance"]] == ["outside"]


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_no_to_it_means_that_it_never_runs(bob: User, entered: list[ToolCall]) -> None:
    call = unasked(bob, recording(mode=FREE))
    make(bob, "every")
    assert not run(call)
    decide.decline(approval_of(call).pk, signed_in(bob))
    assert not run(call)
    assert (status(call), entered) == (Status.DECLINED, [])


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:fail-closed")
def test_a_word_that_somebody_else_stored_keeps_it_from_starting(bob: User, entered: list[ToolCall]) -> None:
    call = unasked(bob, recording(mode=FREE))
    Strictness.objects.create(conversation_id=HERE, asks="sometimes")
    assert not run(call)
    assert (status(call), fresh(call).reason, entered) == (Status.WAITING, oversight.UNKNOWN, [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_was_made_stricter_between_the_look_and_the_start_does_not_start(
    bob: User, entered: list[ToolCall]
) -> None:
    call = unasked(bob, recording(mode=FREE))
    with meanwhile(partial(make, bob, "every")):
        assert perform.claim(call.pk) is None
    assert (status(call), entered) == (Status.ALLOWED, [])
    assert not run(call)
    assert status(call) == Status.WAITING


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("risk", [1, 2])
def test_a_start_that_read_the_word_before_it_changed_finds_the_mark_of_the_change(
    risk: int, bob: User, entered: list[ToolCall]
) -> None:
    call = unasked(bob, recording(mode=FREE, risk_level=risk))

    def change_and_take_the_word_away() -> None:
        make(bob, "every")
        # As if it were still what the start read: the mark alone has to stop it.
        Strictness.objects.all().delete()

    with meanwhile(change_and_take_the_word_away):
        assert perform.claim(call.pk) is None
    assert (status(call), entered) == (Status.ALLOWED, [])


def below(bob: User) -> UUID:
    """Return the conversation of an agent that an agent called, which HERE called."""
    agent, child, grandchild = recording("agent", mode=FREE), new_id(), new_id()
    delegation.begin(unasked(bob, agent), child)
    delegation.begin(ask(bob, agent, conversation_id=child), grandchild)
    return grandchild


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("word", ["risky", "every"])
def test_a_word_that_is_stored_above_between_the_look_and_the_start_keeps_a_call_below_from_starting(
    word: str, bob: User, entered: list[ToolCall]
) -> None:
    call = ask(bob, recording(mode=FREE), conversation_id=below(bob))
    with meanwhile(partial(Strictness.objects.create, conversation_id=HERE, asks=word)):
        assert perform.claim(call.pk) is None
    assert (status(call), entered) == (Status.ALLOWED, [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_the_mark_of_a_change_above_stops_a_start_below_that_read_the_word_before(
    bob: User, entered: list[ToolCall]
) -> None:
    call = ask(bob, recording(mode=FREE), conversation_id=below(bob))

    def change_and_take_the_word_away() -> None:
        make(bob, "every")
        Strictness.objects.all().delete()

    with meanwhile(change_and_take_the_word_away):
        assert perform.claim(call.pk) is None
    assert (status(call), entered) == (Status.ALLOWED, [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-outcome")
def test_of_a_start_and_a_stricter_word_at_a_time_exactly_one_comes_first(bob: User) -> None:
    tool = recording(mode=FREE)
    for _ in range(4):
        call = unasked(bob, tool)
        together(partial(perform.claim, call.pk), partial(make, bob, "every"), meet_at_first_write=True)
        started = status(call) == Status.EXECUTING
        assert started or status(call) == Status.ALLOWED
        if not started:
            assert not run(call)
            assert status(call) == Status.WAITING
        make(bob, "tools")


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_is_judged_before_and_recorded_after_is_asked_about(bob: User, entered: list[ToolCall]) -> None:
    tool = recording(mode=FREE)
    judged = async_to_sync(prepare)(CallRequest(tool.name, {"text": "a"}, caller(bob), conversation_id=HERE))
    make(bob, "every")
    call = admit(judged)
    assert not run(call)
    assert (status(call), entered) == (Status.WAITING, [])


@pytest.mark.django_db(transaction=True)
async def test_a_server_asks_about_it_at_once(bob: User, server_loop: None, entered: list[ToolCall]) -> None:
    tool = await in_db(recording)(mode=FREE)
    judged = await prepare(CallRequest(tool.name, {"text": "a"}, caller(bob), conversation_id=HERE))
    await in_db(make)(bob, "every")
    call = await in_db(admit)(judged)
    await stored(lambda: status(call) == Status.WAITING, "it waits")
    assert entered == []


def test_it_is_asked_about_with_its_preview(bob: User, previews: list[Any]) -> None:
    previews[:] = [Preview(text="Pays 1 back.")]
    call = unasked(bob, recording(source="previewing", mode=FREE))
    make(bob, "every")
    assert not run(call)
    assert approval_of(call).disclosure["preview"]["text"] == "Pays 1 back."
    say_yes(bob, call)
    assert run(call)


def test_a_milder_tool_goes_on_where_only_risky_calls_are_asked_about(bob: User) -> None:
    call = unasked(bob, recording(mode=FREE, risk_level=1))
    make(bob, "risky")
    assert run(call)


@each_row("before,now", [(1, 2), (2, 1)])
def test_a_tool_that_was_riskier_or_is_by_now_counts_as_such(before: int, now: int, bob: User) -> None:
    call = unasked(bob, recording(mode=FREE, risk_level=before))
    make(bob, "risky")
    Tool.objects.update(risk_level=now)
    assert not run(call)
    assert status(call) == Status.WAITING


# -- Grants ------------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_no_grant_counts_in_a_stricter_conversation_and_none_can_be_given_there(bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=5)
    make(bob, "every")
    call = ask(bob, tool, conversation_id=HERE)
    assert (call.status, again(grant).used) == (Status.WAITING, 0)
    with pytest.raises(BadGrant, match="This conversation itself asks about such calls"):
        say_yes(bob, call, grant=Scope(calls=1))
    make(bob, "tools")
    # What was asked there stays a question to which only a plain yes is an answer.
    with pytest.raises(BadGrant):
        say_yes(bob, call, grant=Scope(calls=1))
    assert runs(bob, tool)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_grant_for_every_conversation_does_not_count_in_a_stricter_one(bob: User) -> None:
    tool, elsewhere = conditional(), new_id()
    granted(bob, tool, minutes=60)
    make(bob, "risky", elsewhere)
    assert not runs(bob, tool, conversation_id=elsewhere)
    assert runs(bob, tool)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_grant_is_not_used_by_what_was_judged_before_the_conversation_was_made_stricter(bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=5)
    judged = async_to_sync(prepare)(CallRequest(tool.name, {"text": "a"}, caller(bob), conversation_id=HERE))
    make(bob, "every")
    assert admit(judged).status == Status.WAITING
    assert again(grant).used == 0


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_a_grant_let_in_is_asked_about_and_its_use_given_back(bob: User, entered: list[ToolCall]) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=1)
    call = covered(bob, tool)
    make(bob, "every")
    assert not run(call)
    assert (status(call), fresh(call).grant_id, again(grant).used, entered) == (Status.WAITING, None, 0, [])
    assert "grant.given_back" in events(call)
    # Whatever becomes of the grant is nothing to a call with a yes of its own.
    giving.revoke(grant.pk, signed_in(bob))
    say_yes(bob, call)
    assert run(call)


def test_what_was_given_back_can_be_used_again(bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=1)
    call = covered(bob, tool)
    make(bob, "every")
    assert not run(call)
    make(bob, "tools")
    sweep()
    assert (runs(bob, tool), runs(bob, tool), again(grant).end) == (True, False, "")
    assert Grant.objects.count() == 1


# -- Who may change it, and what is on record --------------------------------------------------------------------------


@pytest.mark.guarantee("gate:only-people", "audit:complete")
def test_any_program_makes_it_stricter_and_only_people_have_it_ask_less(bob: User) -> None:
    program = Actor(bob.pk, "system")
    ruling.change_strictness(HERE, "risky", program)
    ruling.change_strictness(HERE, "every", program)
    for word in ("risky", "tools"):
        for actor in (program, SYSTEM, Actor(bob.pk, "elicitation")):
            with pytest.raises(ruling.OnlyPeople):
                ruling.change_strictness(HERE, word, actor)
    assert oversight.strictness_of(HERE) == "every"
    ruling.change_strictness(HERE, "tools", Actor(bob.pk, "token"))
    found = AuditEvent.objects.filter(name=ruling.ASKS_CHANGED).order_by("pk")
    assert [(each.data["before"]["asks"], each.data["after"]["asks"], "weaker" in each.data) for each in found] == [
        ("tools", "risky", False),
        ("risky", "every", False),
        ("every", "tools", True),
    ]


def test_from_a_word_that_is_not_known_only_people_come_back(bob: User) -> None:
    Strictness.objects.create(conversation_id=HERE, asks="sometimes")
    with pytest.raises(ruling.OnlyPeople):
        ruling.change_strictness(HERE, "every", Actor(bob.pk, "system"))
    make(bob, "every")
    assert oversight.strictness_of(HERE) == "every"


def test_the_same_word_once_more_is_no_change(bob: User) -> None:
    make(bob, "every")
    make(bob, "every")
    assert AuditEvent.objects.filter(name=ruling.ASKS_CHANGED).count() == 1


@each_row("word", ["", "never", "TOOLS", "every "])
def test_a_word_that_there_is_not_cannot_be_set(word: str, bob: User) -> None:
    with pytest.raises(oversight.BadWord, match="tools, risky, every"):
        make(bob, word)
    with pytest.raises(oversight.BadWord):
        ruling.begin_strictness(HERE, word, signed_in(bob))
    assert not Strictness.objects.exists()

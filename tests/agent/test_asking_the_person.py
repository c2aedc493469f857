"""The model asks the person of its conversation: nothing but an answer that fits is ever an answer."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from hitlchat.agent import asking
from hitlchat.agent.models import Role
from hitlchat.base import canonical
from hitlchat.gate import batch, decide, perform, question, results, ruling
from hitlchat.gate.batch import Item
from hitlchat.gate.decide import BadAnswer
from hitlchat.gate.grants.scope import BadGrant, Scope, may_be_granted
from hitlchat.gate.models import Approval, DecidedBy, Decision, Grant, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.agent.talk import Talk, in_database
from tests.conftest import MakeTool, caller, signed_in
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("Redis announces it after the commit")

COLOUR = {"name": "colour", "label": "Which colour", "kind": "choice", "choices": ["red", "blue"]}
LITRES = {"name": "litres", "label": "How much", "kind": "number", "required": False}
GIFT = {"name": "gift", "label": "A gift?", "kind": "yes_no", "required": False}
PAINT: dict[str, Any] = {"question": "What shall I paint?", "fields": [COLOUR, LITRES, GIFT]}


@pytest.fixture
def asks(settings: Settings, db: None) -> Tool:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, question.SOURCE: "hitlchat.agent.asking.PersonSource"}
    settings.HITL_ASK_USER = True
    tool = asking.offered()
    assert tool is not None
    return tool


def asked(person: User, kind: str = "chat", **arguments: Any) -> ToolCall:
    return async_to_sync(submit)(CallRequest(asking.NAME, arguments or PAINT, caller(person, kind)))


def answer(call: ToolCall, person: User, **values: Any) -> None:
    edited = {"answer": values} if values else None
    decide.approve(call.approval.pk, signed_in(person), digest=call.approval.digest, edited=edited)


def is_undecided(call: ToolCall) -> bool:
    call.refresh_from_db()
    return call.status == Status.WAITING and not Decision.objects.filter(approval__call=call).exists()


def told(model: ScriptedModel) -> str:
    """What the model reads of its call."""
    (message,) = [each for each in model.messages if each["role"] == "tool"]
    return str(message["content"])


@on_servers
async def test_what_the_person_answers_is_the_result_by_the_names_of_the_fields(
    talk: Talk, asks: Tool, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls((asking.NAME, PAINT)), text("Blue it is."))
    await talk.say()
    await talk.approve(await talk.only(), edited={"answer": {"litres": 2.5, "colour": "blue"}})
    await talk.over()
    assert canonical.loads(told(scripted_model)) == {
        "message": asking.ANSWERED,
        "answer": {"colour": "blue", "litres": 2.5},
    }
    assert await talk.answers() == ["", "Blue it is."]
    assert [each.role for each in await talk.messages(Role.TOOL)] == [Role.TOOL]


def test_a_question_without_a_form_is_answered_by_one_text(bob: User, asks: Tool) -> None:
    call = asked(bob, question="Who are you?")
    answer(call, bob, answer="I am bob.")
    assert async_to_sync(settled)(call.pk, 30.0).result["answer"] == {"answer": "I am bob."}


async def test_declining_is_told_to_the_model_with_the_reason(
    talk: Talk, asks: Tool, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls((asking.NAME, PAINT)), text("As you like."))
    await talk.say()
    await talk.decline(await talk.only(), "Ask ann.")
    await talk.over()
    declined = canonical.loads(told(scripted_model))
    assert (declined["status"], declined["executed"]) == ("declined", False)
    assert declined["reason_given_by_the_user"] == "Ask ann."


async def test_the_model_is_offered_it_beside_every_catalog_but_never_its_answer(
    talk: Talk, asks: Tool, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_TOOLS = 1
    await in_database(talk.conversation.__class__.objects.filter(pk=talk.conversation.pk).update)(tools=[])
    scripted_model.enqueue(text("Hello."))
    await talk.ask()
    (tool,) = scripted_model.requests[-1]["tools"]
    assert tool["function"]["name"] == asking.NAME
    assert [*tool["function"]["parameters"]["properties"]] == ["question", "fields"]


async def test_switched_off_it_is_offered_no_more_and_what_waits_can_still_be_answered(
    talk: Talk, asks: Tool, scripted_model: ScriptedModel, settings: Settings
) -> None:
    scripted_model.enqueue(calls((asking.NAME, PAINT)), calls((asking.NAME, PAINT)), text("Red."))
    await talk.say()
    waiting = await talk.only()
    settings.HITL_ASK_USER = False
    await talk.approve(waiting, edited={"answer": {"colour": "red"}})
    await talk.over()
    assert await talk.outcomes() == [Status.SUCCEEDED, Status.REJECTED]
    assert "tools" not in scripted_model.requests[-1]


BAD: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"colour": "green"}, {"colour": "Choose one from the list."}),
    ({}, {"colour": "Choose one from the list."}),
    ({"colour": "red", "litres": "2"}, {"litres": "Give a number."}),
    ({"colour": "red", "litres": True, "gift": "yes"}, {"litres": "Give a number.", "gift": "Choose yes or no."}),
    ({"colour": "red", "size": 1}, {"size": "There is no such field."}),
]


def test_an_answer_that_does_not_fit_is_refused_by_field_and_nothing_is_decided(bob: User, asks: Tool) -> None:
    call, text_alone = asked(bob), asked(bob, question="Who?")
    rows = [
        *((call, given, errors) for given, errors in BAD),
        (text_alone, {"answer": ""}, {"answer": "Fill this in."}),
    ]
    for asking_for, given, errors in rows:
        with pytest.raises(BadAnswer) as refused:
            decide.approve(asking_for.approval.pk, signed_in(bob), edited={"answer": given})
        assert refused.value.errors == errors
        assert is_undecided(asking_for)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_yes_without_an_answer_is_none(bob: User, asks: Tool) -> None:
    call = asked(bob)
    for edited in [None, {}, PAINT, {"answer": "red"}, PAINT | {"answer": None}]:
        with pytest.raises(BadAnswer) as refused:
            decide.approve(call.approval.pk, signed_in(bob), edited=edited)
        assert refused.value.errors == {BadAnswer.within: question.NO_ANSWER}
        assert is_undecided(call)


def test_an_answer_cannot_change_what_was_asked(bob: User, asks: Tool) -> None:
    call = asked(bob)
    with pytest.raises(BadAnswer, match="cannot change the question"):
        decide.approve(
            call.approval.pk, signed_in(bob), edited={"question": "Anything else?", "answer": {"colour": "red"}}
        )
    assert is_undecided(call)


UNASKABLE: list[tuple[dict[str, Any], str]] = [
    (PAINT | {"answer": {"colour": "red"}}, "answer: only the person gives it"),
    ({"question": "   "}, "question: it is empty"),
    ({"question": "x" * 2001}, "question: "),
    ({"question": "Which?", "fields": [COLOUR, COLOUR]}, "two of them have the same name"),
    ({"question": "Which?", "fields": [COLOUR | {"choices": ["red"]}]}, "needs at least two choices"),
    ({"question": "Which?", "fields": [COLOUR | {"choices": ["red", "red"]}]}, "the same choice twice"),
    ({"question": "Which?", "fields": [LITRES | {"choices": ["1", "2"]}]}, "which only the kind choice has"),
    ({"question": "Which?", "fields": [LITRES | {"kind": "date"}]}, 'fields.0.kind: "date" is not one of'),
    ({"question": "Which?", "fields": [LITRES | {"name": f"n{i}"} for i in range(6)]}, "at most 5 are shown, not 6"),
    ({"question": "Which?", "colour": "red"}, "colour: there is no such argument"),
]


def test_what_cannot_be_asked_is_rejected_in_words_and_nobody_is_asked(bob: User, asks: Tool) -> None:
    for arguments, said in UNASKABLE:
        call = asked(bob, **arguments)
        assert (call.status, said in call.reason) == (Status.REJECTED, True), call.reason
        assert not Approval.objects.exists()


def test_nobody_but_the_chat_can_ask(alice: User, asks: Tool) -> None:
    for kind in ("mcp", "api", "studio"):
        assert asked(alice, kind).status == Status.REJECTED


def test_with_approvals_switched_off_the_person_is_asked_all_the_same(
    bob: User, asks: Tool, settings: Settings
) -> None:
    settings.HITL_ENABLED = False
    assert asked(bob).status == Status.WAITING


def test_no_mode_of_its_row_lets_it_go_on_without_an_answer(bob: User, asks: Tool) -> None:
    for mode in ("DISABLED", "CONDITIONAL"):
        Tool.objects.filter(pk=asks.pk).update(hitl_mode=mode)
        assert asked(bob).status == Status.WAITING
        asks.refresh_from_db()
        assert not may_be_granted(asks)


def test_no_grant_can_be_given_with_an_answer(bob: User, asks: Tool) -> None:
    call = asked(bob)
    with pytest.raises(BadGrant):
        decide.approve(call.approval.pk, signed_in(bob), edited={"answer": {"colour": "red"}}, grant=Scope(calls=3))
    assert is_undecided(call)
    assert not Grant.objects.exists()


def test_it_is_not_answered_at_the_console(bob: User, charlie: User, asks: Tool) -> None:
    found = Approval.objects.get(call=asked(bob))
    yes = ("approve", str(found.pk), "--digest", found.digest, "--arguments", '{"answer": {"colour": "red"}}')
    for person, words in ((bob, "in the chat or the inbox"), (charlie, "no approval with this id for you")):
        with pytest.raises(CommandError, match=words):
            call_command("approvals", *yes, "--as", person.username)
    assert not Decision.objects.exists()


def test_two_questions_cannot_be_answered_together(bob: User, asks: Tool) -> None:
    found = [asked(bob).approval, asked(bob, question="And why?").approval]
    for verdict in ("approve", "decline"):
        with pytest.raises(batch.NotTogether, match="needs its own answer"):
            batch.answer([Item(each.pk, each.digest) for each in found], verdict, signed_in(bob))
    assert all(is_undecided(each.call) for each in found)


def test_who_else_decides_cannot_be_set_for_it(alice: User, asks: Tool) -> None:
    with pytest.raises(ruling.BadRules, match="only they can answer"):
        ruling.change(asks, Rules(decided_by=DecidedBy.APPROVERS), signed_in(alice), confirmed=True)


def test_a_call_that_got_here_without_an_answer_fails_and_says_so(bob: User, asks: Tool) -> None:
    call = asked(bob)
    result = async_to_sync(asking.PersonSource().execute)(call)
    assert result.error is not None
    assert (result.value, result.error["message"]) == (None, asking.UNANSWERED)


@pytest.mark.guarantee("gate:same-call")
@on_servers
def test_an_answer_that_was_changed_on_record_is_not_told(bob: User, asks: Tool) -> None:
    call = asked(bob)
    answer(call, bob, colour="red")
    ToolCall.objects.filter(pk=call.pk).update(arguments=PAINT | {"answer": {"colour": "blue"}})
    assert perform.claim(call.pk) is None
    call.refresh_from_db()
    assert call.status == Status.WITHDRAWN


@on_servers
def test_a_late_answer_is_none(bob: User, asks: Tool) -> None:
    call = asked(bob)
    ToolCall.objects.filter(pk=call.pk).update(deadline=timezone.now() - timedelta(seconds=1))
    with pytest.raises(decide.AlreadySettled):
        answer(call, bob, colour="red")
    call.refresh_from_db()
    assert (call.status, call.result) == (Status.EXPIRED, None)
    assert "Nobody answered the approval in time" in results.for_model(call)


@pytest.mark.guarantee("run:survives")
@on_servers
def test_what_was_answered_before_the_server_died_is_told_by_the_next_one(bob: User, asks: Tool) -> None:
    """Nothing of it is in memory: another process settles what this one only stored."""
    call = asked(bob)
    answer(call, bob, colour="blue", gift=False)
    done = async_to_sync(settled)(call.pk, 30.0)
    assert (done.status, done.result["answer"]) == (Status.SUCCEEDED, {"colour": "blue", "gift": False})


def test_another_tool_of_the_name_stays_what_it_is(alice: User, make_tool: MakeTool, settings: Settings) -> None:
    settings.HITL_ASK_USER = True
    mine = make_tool(asking.NAME)
    assert asking.offered() is None
    assert Tool.objects.get().definition_hash == mine.definition_hash


def test_a_question_that_seems_to_ask_for_a_secret_is_known_for_it() -> None:
    for said, kind, seems in [
        ("What is your password?", "text", True),
        ("Which PIN?", "number", True),
        ("Which colour?", "text", False),
        ("Never give your password. Which colour?", "text", False),
        ("Do you know your password?", "yes_no", False),
    ]:
        form = [{"name": "it", "label": "It", "kind": kind, "required": True}]
        assert question.asking_of({"question": said, "fields": form}).seems_secret == seems

"""The stream of a conversation, as whoever is signed in or shows a token gets it."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role, TokenKind
from hitlchat.gate import decide
from hitlchat.gate.models import AuditEvent, Decision, Showing, ToolCall
from hitlchat.gate.status import Status
from tests.agent.cast import TOP, Cast, agent
from tests.agent.talk import Talk, in_database
from tests.api.ai_sdk.conftest import ListeningAs
from tests.api.ai_sdk.listening import SEND, Listening, Request, asked, kinds
from tests.conftest import signed_in
from tests.gate.deciding_people import rule
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_stream_is_one_that_no_proxy_keeps_back(bobs: Listening, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("Hello", " there."))
    request = await bobs.say("Hello")
    assert request.headers["content-type"] == "text/event-stream"
    assert request.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert (request.headers["cache-control"], request.headers["x-accel-buffering"]) == ("no-cache, no-transform", "no")
    chunks = await request.rest()
    assert request.comments[0] == ": open"
    assert [chunk for chunk in kinds(chunks) if chunk != "text-delta"] == [
        *("start", "start-step", "text-start", "text-end", "finish-step", "finish")
    ]
    assert "".join(chunk.get("delta", "") for chunk in chunks) == "Hello there."
    assert chunks[-1] == {"type": "finish", "finishReason": "stop"}


async def test_the_parts_of_a_call_say_what_is_asked_and_what_became_of_it(
    bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model, text("Sent."), risk_level=2)
    chunks = bobs.requests[0].chunks
    (request,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
    call = await ToolCall.objects.select_related("approval").aget()
    assert request["approvalId"] == f"{message['id']}::{call.pk}"
    assert (request["toolCallId"], request["signature"]) == (str(call.pk), call.approval.digest)
    assert request["reason"] == "This tool always needs approval."
    assert "isAutomatic" not in request
    described = request["approvalDescriptor"]
    assert (described["id"], described["mayDecide"], described["riskLevel"]) == (str(call.approval.pk), True, 2)
    assert chunks[-1] == {"type": "finish", "finishReason": "tool-calls"}
    answered = await bobs.answer(message, approved=True)
    chunks = await answered.rest()
    assert [chunk["data"]["status"] for chunk in chunks if chunk["type"] == "data-call"][-1] == "succeeded"
    (output,) = [chunk for chunk in chunks if chunk["type"] == "tool-output-available"]
    assert output["output"] == "send did {'text': 'hi'}"
    # Nothing that the client has is told again.
    assert {"tool-input-available", "tool-approval-request"} & {*kinds(chunks)} == set()
    assert kinds(chunks).count("start-step") == 1
    assert recorder.entered == [SEND]


@pytest.mark.guarantee("gate:truth")
async def test_what_is_not_run_says_why(
    bobs: Listening, talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    await in_database(recorded_tool)("send")
    answers = calls(SEND), text("No.")
    # Declined, expired, and with its run stopped.
    scripted_model.enqueue(*answers, *answers, calls(SEND))
    reasons = []
    for number, end in enumerate((Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN)):
        await (await bobs.say("Send it", f"m{number}")).rest()
        approval = await talk.only()
        heard = await bobs.resume()
        if end == Status.DECLINED:
            await talk.decline(approval, "Not now")
        elif end == Status.EXPIRED:
            await ToolCall.objects.filter(pk=approval.call_id).aupdate(deadline=timezone.now() - timedelta(seconds=1))
        else:
            await talk.stop()
        await talk.over()
        await heard.rest()
        (part,) = [each for each in (await bobs.stored())[-1]["parts"] if each["type"] == "dynamic-tool"]
        assert (part["state"], part["approval"]["approved"]) == ("output-denied", False)
        reasons.append(part["approval"]["reason"])
    assert reasons[:2] == ["Not now", "Nobody answered the approval in time. It was not executed."]
    assert reasons[2].startswith("The call was withdrawn before it started.")
    assert recorder.entered == []


@pytest.mark.guarantee("gate:only-people")
async def test_a_token_that_only_talks_hears_all_and_decides_nothing(
    listening_as: ListeningAs, talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    program: Listening = await listening_as(TokenKind.API)
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(SEND), text("Sent."))
    heard = await program.say("Send it")
    request = await heard.until("tool-approval-request")
    assert request["approvalDescriptor"]["mayDecide"] is False
    message = (await program.stored())[-1]
    refused = await program.answer(message, approved=True)
    assert (refused.status, "cannot decide" in (await refused.json())["detail"]) == (403, True)
    refused = await program.submit(kind="approval-response", approvalId=request["approvalId"], approved=True)
    assert refused.status == 403
    assert recorder.entered == []
    assert not await Showing.objects.aexists()
    # It is nobody's turn here, so the stream goes on until others have decided.
    await talk.approve(await talk.only())
    assert kinds(await heard.rest())[-1] == "finish"
    assert recorder.entered == [SEND]


@pytest.mark.guarantee("gate:only-people")
async def test_without_a_token_against_forgery_a_session_says_and_decides_nothing(
    bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model)
    del bobs.headers["x-csrftoken"]
    for refused in (
        await bobs.say("Send it", "m2"),
        await bobs.answer(message, approved=True),
        await bobs.submit(kind="approval-response", approvalId=message["parts"][1]["approval"]["id"], approved=True),
    ):
        assert (refused.status, "CSRF" in (await refused.json())["detail"]) == (403, True)
    bobs.headers = {}
    assert [(await bobs.resume()).status, (await bobs.say("x")).status] == [401, 401]
    assert recorder.entered == []


@pytest.mark.guarantee("gate:only-people")
async def test_the_highest_risk_needs_a_fresh_sign_in_here_too(
    bobs: Listening, listening_as: ListeningAs, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model, risk_level=5)
    program: Listening = await listening_as(TokenKind.APPROVER)
    refused = await program.answer(message, approved=True)
    assert (refused.status, "signed in" in (await refused.json())["detail"]) == (403, True)
    old: Listening = await listening_as(signed_in_at="2020-01-01T00:00:00+00:00")
    refused = await old.answer(message, approved=True)
    problem = await refused.json()
    assert (refused.status, problem["signIn"]) == (403, "/sign-in/again")
    assert recorder.entered == []
    assert not await Decision.objects.aexists()


@pytest.mark.guarantee("gate:one-funnel")
async def test_where_several_decide_the_question_comes_back_and_the_stream_goes_on(
    bobs: Listening, talk: Talk, alice: User, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    await in_database(roles.give)(talk.owner, Role.APPROVER)
    tool = await in_database(recorded_tool)("send")
    await in_database(rule)(tool, alice, quorum=2)
    scripted_model.enqueue(calls(SEND), text("Sent."))
    await (await bobs.say("Send it")).rest()
    heard = await bobs.answer((await bobs.stored())[-1], approved=True)
    again = await heard.until("tool-approval-request")
    described = again["approvalDescriptor"]
    assert (described["mayDecide"], described["approvedBy"]) == (False, ["bob"])
    assert recorder.entered == []
    twice = await bobs.answer((await bobs.stored())[-1], approved=True)
    assert (twice.status, "1 of 2" in (await twice.json())["detail"]) == (409, True)
    await in_database(decide.approve)((await talk.only()).pk, signed_in(alice))
    assert kinds(await heard.rest())[-1] == "finish"
    assert recorder.entered == [SEND]


@pytest.mark.guarantee("gate:same-call")
async def test_a_yes_counts_only_for_what_was_shown(
    bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model)
    other = await bobs.answer(message, approved=True, signature="0" * 64)
    assert (other.status, "not the one you were shown" in (await other.json())["detail"]) == (409, True)
    message["parts"][1]["input"] = {"text": "ho"}
    other = await bobs.answer(message, approved=True)
    assert (other.status, "on your page" in (await other.json())["detail"]) == (409, True)
    assert recorder.entered == []
    assert not await Decision.objects.aexists()


@pytest.mark.guarantee("gate:same-call")
@pytest.mark.parametrize("number, as_shown, status", [(2**53 + 1, 2**53, 409), (1.0, 1, 200), (True, 1, 409)])
async def test_a_number_counts_as_shown_as_far_as_javascript_can_show_it(
    bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder, number: Any, as_shown: Any, status: int
) -> None:
    await in_database(recorded_tool)("send", input_schema={"type": "object"})
    scripted_model.enqueue(calls(("send", {"n": number})), *([text("Sent.")] if status == 200 else []))
    await (await bobs.say("Send it")).rest()
    message = (await bobs.stored())[-1]
    message["parts"][1]["input"] = {"n": as_shown}
    answered = await bobs.answer(message, approved=True)
    assert answered.status == status
    if status == 200:
        await answered.rest()
    assert len(recorder.entered) == (status == 200)


@pytest.mark.guarantee("gate:fail-closed")
async def test_what_is_not_exactly_true_is_no_yes(
    bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model)
    for approved in ["true", 1, None, "yes", []]:
        refused = await bobs.answer(message, approved=approved)
        problem = await refused.json()
        assert (refused.status, "approved" in str(problem["errors"])) == (422, True)
        name = message["parts"][1]["approval"]["id"]
        assert (await bobs.submit(kind="approval-response", approvalId=name, approved=approved)).status == 422
        assert recorder.entered == []
        assert not await Decision.objects.aexists()


@pytest.mark.guarantee("gate:one-outcome")
async def test_one_answer_is_given_without_a_stream_and_counts_once(
    bobs: Listening, talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model, text("Sent."))
    part = message["parts"][1]
    answer = {"kind": "approval-response", "approvalId": part["approval"]["id"], "toolCallId": part["toolCallId"]}
    wrong = await bobs.submit(**answer | {"toolCallId": "another"}, approved=True)
    assert (wrong.status, [*(await wrong.json())["errors"]]) == (422, ["toolCallId"])
    first = await bobs.submit(**answer, approved=True, reason="Once", sessionId=bobs.id)
    assert (first.status, (await first.json())["status"]) == (200, "accepted")
    assert (await Decision.objects.aget()).reason == "Once"
    second = await bobs.submit(**answer, approved=False)
    problem = await second.json()
    assert (second.status, problem["code"], problem["approval"]["status"]) == (409, "already_completed", "approved")
    assert (await bobs.submit(kind="tool-result", toolCallId=part["toolCallId"], output="x")).status == 409
    await talk.over()
    assert (await bobs.resume()).status == 204
    assert recorder.entered == [SEND]


@pytest.mark.guarantee("gate:fail-closed")
async def test_a_yes_after_the_deadline_is_refused_though_nobody_swept(
    bobs: Listening, talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model, text("Too late."))
    await ToolCall.objects.aupdate(deadline=timezone.now() - timedelta(seconds=1))
    late = await bobs.answer(message, approved=True)
    problem = await late.json()
    assert (late.status, problem["code"], problem["approval"]["status"]) == (409, "already_completed", "expired")
    await talk.over()
    assert recorder.entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_an_answer_to_nothing_that_waits_here_is_refused(
    bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model)
    call = message["parts"][1]["toolCallId"]
    for name in ["", "x", "::", "{run}::", "{run}::{other}", "{other}::{call}", "{call}", "{other}"]:
        named = name.format(run=message["id"], call=call, other=uuid4())
        refused = await bobs.submit(kind="approval-response", approvalId=named, approved=True)
        assert refused.status == 404
        assert (await bobs.answer(message, approved=True, id=named)).status == 404
        assert recorder.entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_of_several_answers_none_is_carried_out_where_one_cannot_be(
    listening_as: ListeningAs, talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    program: Listening = await listening_as(TokenKind.APPROVER)
    await in_database(recorded_tool)("send")
    await in_database(recorded_tool)("wipe", risk_level=5)
    scripted_model.enqueue(calls(SEND, ("wipe", {})))
    await (await program.say("Send it")).rest()
    refused = await program.answer((await program.stored())[-1], approved=True)
    assert refused.status == 403
    assert recorder.entered == []
    assert await talk.outcomes() == ["waiting", "waiting"]


@pytest.mark.guarantee("gate:one-outcome")
async def test_an_answer_that_stands_already_is_passed_over_beside_another_one(
    bobs: Listening, talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    await in_database(recorded_tool)("send")
    recorder.hold("send")
    scripted_model.enqueue(calls(SEND, ("send", {"text": "ho"})), text("Sent."))
    await (await bobs.say("Send it")).rest()
    first = (await talk.asked(2))[0]
    await talk.approve(first)
    await recorder.entry("send")
    # As a client has it that was loaded anew while the first one executes.
    message = (await bobs.stored())[-1]
    assert [part["state"] for part in message["parts"] if "toolCallId" in part] == [
        *("approval-responded", "approval-requested")
    ]
    contradicted = {**message, "parts": [part | _no(part) for part in message["parts"]]}
    refused = await bobs.post({"id": bobs.id, "messages": [contradicted], "messageId": message["id"]})
    assert (refused.status, (await refused.json())["code"]) == (409, "already_completed")
    assert await talk.outcomes() == ["executing", "waiting"]
    heard = await bobs.answer(message, approved=True)
    assert heard.status == 200
    recorder.let_go("send")
    await heard.rest()
    assert recorder.entered == [SEND, ("send", {"text": "ho"})]


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize("is_taken_back", [True, False])
async def test_a_yes_of_several_is_not_given_again_by_a_message_that_repeats_it_beside_another_answer(
    bobs: Listening, talk: Talk, alice: User, scripted_model: ScriptedModel, recorder: Recorder, is_taken_back: bool
) -> None:
    await in_database(roles.give)(talk.owner, Role.APPROVER)
    await in_database(rule)(await in_database(recorded_tool)("pay"), alice, quorum=2)
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("pay", {}), SEND))
    await (await bobs.say("Pay and say so")).rest()
    pay, _ = await talk.asked(2)
    message = (await bobs.stored())[-1]

    async def says_yes_to(*places: int) -> Request:
        parts = [part | (_yes(part) if place in places else {}) for place, part in enumerate(message["parts"])]
        return await bobs.post({"id": bobs.id, "messages": [message | {"parts": parts}], "messageId": message["id"]})

    one, other = (place for place, part in enumerate(message["parts"]) if "toolCallId" in part)
    assert (await says_yes_to(one)).status == 200
    if is_taken_back:
        await in_database(decide.take_back_approval)(pay.pk, signed_in(talk.owner))
    # As a client has it that did not hear that the question came back.
    assert (await says_yes_to(one, other)).status == 200
    await recorder.entry("send")
    assert await in_database(Decision.objects.filter(approval=pay).count)() == (not is_taken_back)
    assert (await says_yes_to(one)).status == (200 if is_taken_back else 409)
    assert await in_database(Decision.objects.filter(approval=pay).count)() == 1
    assert recorder.entered == [SEND]


def _yes(part: dict[str, Any]) -> dict[str, Any]:
    return {"state": "approval-responded", "approval": part["approval"] | {"approved": True}}


def _no(part: dict[str, Any]) -> dict[str, Any]:
    """Turn what is asked or answered in a part into a no."""
    if "approval" not in part:
        return {}
    return {"state": "approval-responded", "approval": part["approval"] | {"approved": False}}


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_call_of_an_agent_is_asked_about_as_data_and_answered_in_the_conversation_above(
    bobs: Listening, talk: Talk, scripted_model: ScriptedModel, recorder: Recorder, alice: User
) -> None:
    await in_database(recorded_tool)("send")
    for name, tool in (("worker", "send"), ("boss", "worker")):
        await in_database(agent)(alice, name, tool)
    cast = Cast(scripted_model)
    cast.plays(TOP, calls(("boss", {"task": "Send it"})), text("All done."))
    cast.plays("boss", calls(("worker", {"task": "Send it"})), text("The worker did."))
    cast.plays("worker", calls(SEND), text("Sent."))
    heard = await bobs.say("Send it")
    asked = (await heard.until("data-approval"))["data"]
    assert (asked["toolName"], asked["arguments"], asked["mayDecide"]) == (*SEND, True)
    assert [step["tool"] for step in asked["agents"]] == ["boss", "worker"]
    stored = [part for part in (await bobs.stored())[-1]["parts"] if part["type"] == "data-approval"]
    assert [(part["id"], part["data"]["status"]) for part in stored] == [(asked["id"], "pending")]
    answer = {"kind": "approval-response", "approvalId": asked["id"], "signature": asked["consentDigest"]}
    elsewhere = Listening((await talk.another()).conversation.pk, bobs.headers)
    assert (await elsewhere.submit(**answer, approved=True)).status == 409
    assert recorder.entered == []
    assert (await bobs.submit(**answer, approved=True)).status == 200
    chunks = await heard.rest()
    assert [each["data"]["callStatus"] for each in chunks if each["type"] == "data-approval"][-1] == "succeeded"
    assert chunks[-1] == {"type": "finish", "finishReason": "stop"}
    assert recorder.entered == [SEND]


async def test_a_question_has_no_approval_and_an_approval_no_output(
    bobs: Listening, settings: Settings, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    settings.HITL_ASK_USER = True
    settings.TOOL_SOURCES = settings.TOOL_SOURCES | {"person": "hitlchat.agent.asking.PersonSource"}
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("ask_user", {"question": "To whom?"}), SEND), text("Sent to bob."))
    await (await bobs.say("Send it")).rest()
    message = (await bobs.stored())[-1]
    question, call = (part for part in message["parts"] if "toolCallId" in part)
    assert (question["type"], question["state"], "approval" in question) == ("tool-ask_user", "input-available", False)
    approved = {"kind": "approval-response", "approvalId": f"{message['id']}::{question['toolCallId']}"}
    refused = await bobs.submit(**approved, approved=True)
    assert (refused.status, "answer with its output" in (await refused.json())["detail"]) == (409, True)
    refused = await bobs.submit(kind="tool-result", toolCallId=call["toolCallId"], output="sent")
    assert (refused.status, "clients do not supply its output" in (await refused.json())["detail"]) == (409, True)
    refused = await bobs.submit(kind="tool-result", toolCallId=question["toolCallId"], output={"answer": ""})
    assert (refused.status, [*(await refused.json())["errors"]]) == (422, ["modifiedArguments.answer.answer"])
    question |= {"state": "output-available", "output": {"answer": "to bob"}}
    call |= {"state": "approval-responded", "approval": call["approval"] | {"approved": True}}
    heard = await bobs.post({"id": bobs.id, "messages": [message], "messageId": message["id"]})
    assert heard.status == 200
    chunks = await heard.rest()
    # That of the question the client has.
    assert kinds(chunks).count("tool-output-available") == 1
    assert recorder.entered == [SEND]
    stored = [part for part in (await bobs.stored())[-1]["parts"] if "toolCallId" in part]
    assert [part["state"] for part in stored] == ["output-available"] * 2
    assert (stored[0]["input"], stored[0]["output"]) == (question["input"], question["output"])


async def test_a_question_that_is_not_answered_says_so(
    bobs: Listening, settings: Settings, scripted_model: ScriptedModel
) -> None:
    settings.HITL_ASK_USER = True
    scripted_model.enqueue(calls(("ask_user", {"question": "To whom?"})), text("As you like."))
    await (await bobs.say("Send it")).rest()
    (part,) = [each for each in (await bobs.stored())[-1]["parts"] if "toolCallId" in each]
    answered = await bobs.submit(kind="tool-result", toolCallId=part["toolCallId"], errorText="None of your business")
    assert answered.status == 200
    request = await bobs.resume()
    if request.status == 200:
        await request.rest()
    (part,) = [each for each in (await bobs.stored())[-1]["parts"] if "toolCallId" in each]
    assert part["state"] == "output-error"
    assert "None of your business" in str(scripted_model.messages[-1])


async def test_what_rules_answer_is_automatic_and_what_never_asks_is_not_asked_about(
    bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    await in_database(recorded_tool)("send", "CONDITIONAL", condition='args["text"] == "ho"')
    await in_database(recorded_tool)("look", "DISABLED")
    scripted_model.enqueue(calls(SEND, ("look", {}), ("send", {"text": "ho"}), ("send", {"n": "x"})))
    chunks = await (await bobs.say("Send it")).rest()
    automatic, asked_about = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
    assert (automatic["isAutomatic"], "isAutomatic" in asked_about) == (True, False)
    assert asked_about["reason"] == 'Asked because the condition “args["text"] == "ho"” is true.'
    (answer,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-response"]
    assert (answer["approvalId"], answer["approved"]) == (automatic["approvalId"], True)
    assert "is false" in answer["reason"]
    assert [each[0] for each in sorted(recorder.entered)] == ["look", "send"]
    (wrong,) = [chunk for chunk in chunks if chunk["type"] == "tool-input-error"]
    assert wrong["errorText"]
    refused = await bobs.submit(kind="approval-response", approvalId=automatic["approvalId"], approved=False)
    problem = await refused.json()
    assert (refused.status, problem["code"], "a rule" in problem["detail"]) == (409, "already_completed", True)


async def test_a_call_that_a_rule_refuses_is_denied_without_being_asked_about(
    bobs: Listening, settings: Settings, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    settings.HITL_POLICIES = [{"policy": "deny_list", "tools": ["send"], "reason": "Never."}]
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(SEND), text("I may not."))
    chunks = await (await bobs.say("Send it")).rest()
    (request,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
    (answer,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-response"]
    assert (request["isAutomatic"], answer["approved"]) == (True, False)
    assert "tool-output-denied" in kinds(chunks)
    assert recorder.entered == []


async def test_what_is_asked_is_shown_to_a_person_as_it_is_delivered(
    bobs: Listening, scripted_model: ScriptedModel
) -> None:
    await asked(bobs, scripted_model)
    shown = await Showing.objects.aget()
    assert (shown.means, shown.round) == ("session", 1)
    assert await AuditEvent.objects.filter(name="call.shown").acount() == 1

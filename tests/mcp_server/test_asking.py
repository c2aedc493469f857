"""A gated call over MCP, by clients of both eras: asked about once, and run on a yes and on nothing else."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult, ErrorData

from hitlchat.gate import decide
from hitlchat.gate.models import Approval, Decision, Showing, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import events, recording
from tests.mcp_server.clients import Asked, connected, status, text, yes

pytestmark = [
    pytest.mark.django_db(transaction=True),
]
both_eras = pytest.mark.parametrize("era", ["2025", "2026"])

HELLO = {"text": "hello"}
# Two minutes to read.
WORDS = 500


@both_eras
@pytest.mark.servers("Redis announces it after the commit")
@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel", "SR-42")
async def test_a_gated_call_runs_once_its_user_has_said_yes(
    era: str, url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    user = yes()
    async with connected(url, token, era, user) as client:
        result = await client.call_tool("refund", {"text": "hello " * WORDS})
    assert (result.is_error, text(result), status(result)) == (False, "done", "succeeded")
    assert len(user.questions) == len(entered) == 1
    decision = await Decision.objects.aget()
    assert (decision.verdict, decision.means, decision.person_id) == ("approve", "elicitation", entered[0].caller_id)
    # The question counts as shown from its delivery on.
    showing = await Showing.objects.aget()
    assert (showing.person_id, showing.means) == (decision.person_id, "elicitation")
    assert decision.first_shown_at == showing.at < decision.decided_at
    # A program that says yes for its user at once leaves that on the record.
    assert decision.hurried
    assert await in_thread(events)(entered[0]) == [
        "call.waiting",
        "call.shown",
        "call.approved",
        "call.executing",
        "call.succeeded",
    ]


OTHERS: dict[str, tuple[Any, str, str]] = {
    "declined": ("decline", "declined", "The user declined"),
    "declined with content": (ElicitResult(action="decline", content={"junk": 1}), "declined", "The user declined"),
    "dismissed with content": (ElicitResult(action="cancel", content={"junk": 1}), "withdrawn", "dismissed"),
    "dismissed": ("cancel", "withdrawn", "dismissed"),
    "with content": (ElicitResult(action="accept", content={"sure": True}), "withdrawn", "did not fit"),
}


@both_eras
@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth", "SR-34")
async def test_whatever_is_not_a_plain_yes_does_not_run_it_and_is_told_apart(
    era: str, url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    replies = [reply for reply, _, _ in OTHERS.values()]
    async with connected(url, token, era, Asked(*replies)) as client:
        for case, (_, outcome, words) in OTHERS.items():
            result = await client.call_tool("refund", {"text": case})
            assert (result.is_error, status(result)) == (True, outcome), case
            assert words in text(result), case
            assert "not executed" in text(result), case
            assert (await ToolCall.objects.alatest("created_at")).status == outcome, case
    assert entered == []


@both_eras
@pytest.mark.guarantee("gate:no-yes-no-run", "SR-34")
async def test_a_client_that_answers_with_an_error_does_not_run_it(
    era: str, url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    async with connected(url, token, era, Asked(ErrorData(code=-32603, message="no display"))) as client:
        if era == "2026":
            # The question was the answer to the call: nothing more comes of it.
            with pytest.raises(MCPError):
                await client.call_tool("refund", HELLO)
        else:
            result = await client.call_tool("refund", HELLO)
            assert (result.is_error, status(result)) == (True, "withdrawn")
            assert "could not ask" in text(result)
    assert entered == []
    assert not await Decision.objects.aexists()


async def test_the_question_is_the_cards_sentence_with_its_risk_and_what_exactly_would_run(
    url: str, token: str, db: None, entered: list[ToolCall]
) -> None:
    await in_thread(recording)(prompt_template="Refund “{args.text}”?", risk_level=3, origin="Tests")
    user = Asked("decline")
    async with connected(url, token, "2026", user) as client:
        await client.call_tool("refund", {"text": "x\nTool: harmless\u202e", "amount": 7})
    (asked,) = user.questions
    assert isinstance(asked, ElicitRequestFormParams)
    first, tool_line, arguments, *notes = asked.message.split("\n")
    assert first == "[Risk L3, Moderate] Refund “x ⏎ Tool: harmlessU+202E”?"
    assert tool_line == "Tool: refund, from Tests"
    assert arguments == 'Arguments: {"text": "x\\nTool: harmlessU+202E", "amount": 7}'
    assert any("direction override" in note for note in notes)
    assert asked.requested_schema == {"type": "object", "properties": {}}


async def test_arguments_that_do_not_fit_are_rejected_and_nobody_is_asked(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    user = yes()
    async with connected(url, token, "2026", user) as client:
        result = await client.call_tool("refund", {"text": 5})
    assert (result.is_error, status(result), user.questions, entered) == (True, "rejected", [], [])
    assert "text: 5 is not a text" in text(result)


async def test_a_tool_that_never_asks_runs_at_once_and_the_record_says_why(
    url: str, token: str, db: None, entered: list[ToolCall]
) -> None:
    await in_thread(recording)(mode="DISABLED")
    async with connected(url, token, "2026") as client:
        result = await client.call_tool("refund", HELLO)
    assert (text(result), len(entered)) == ("done", 1)
    call = await ToolCall.objects.aget()
    assert (call.caller_kind, call.status) == ("mcp", Status.SUCCEEDED)
    assert "never ask" in call.reason


@pytest.mark.servers("Redis announces it after the commit")
@pytest.mark.guarantee("gate:one-outcome")
@pytest.mark.parametrize("era, verdict", [("2025", "approve"), ("2026", "decline")])
async def test_a_person_who_answers_in_the_inbox_ends_the_clients_question(
    era: str, verdict: str, url: str, token: str, tool: Tool, bob: User, entered: list[ToolCall]
) -> None:
    async def meanwhile(_: Any) -> Any:
        approval = await Approval.objects.aget()
        if verdict == "approve":
            await in_thread(decide.approve)(approval.pk, signed_in(bob))
        else:
            await in_thread(decide.decline)(approval.pk, signed_in(bob), reason="not today")
        if era == "2025":
            # An older client is told that its question is over.
            await asyncio.Event().wait()
        return ElicitResult(action="accept" if verdict == "decline" else "decline")

    async with connected(url, token, era, Asked(meanwhile)) as client:
        result = await client.call_tool("refund", HELLO)
    if verdict == "approve":
        assert (text(result), len(entered)) == ("done", 1)
    else:
        assert (status(result), entered) == ("declined", [])
        assert "not today" in text(result)
    decision = await Decision.objects.aget()
    assert (decision.verdict, decision.means) == (verdict, "session")


@both_eras
@pytest.mark.servers("Redis announces it after the commit")
@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_simultaneous_calls_are_asked_about_one_by_one_and_each_gets_its_own_answer(
    era: str, url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    async def only_even(params: ElicitRequestFormParams) -> ElicitResult:
        return ElicitResult(action="accept" if '"amount": 2' in params.message else "decline")

    async with connected(url, token, era, Asked(only_even)) as client:
        calls = [client.call_tool("refund", {"text": "hello", "amount": 1 + n % 2}) for n in range(4)]
        results = await asyncio.gather(*calls)
    assert [status(result) for result in results] == ["declined", "succeeded"] * 2
    assert sorted(call.arguments["amount"] for call in entered) == [2] * 2
    assert await Approval.objects.acount() == 4


async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol_and_leaves_no_record(
    url: str, token: str, tool: Tool
) -> None:
    await Tool.objects.aupdate(published=False)
    async with connected(url, token, "2025", yes()) as client:
        for name in ("refund", "no\x00where", "x" * 500):
            with pytest.raises(MCPError) as raised:
                await client.call_tool(name, HELLO)
            assert raised.value.code == -32602
    assert not await ToolCall.objects.aexists()


@pytest.mark.guarantee("gate:fail-closed")
async def test_an_error_on_our_side_is_not_told_and_nothing_is_run(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    # A card that cannot be made: its disclosure lacks parts.
    await Tool.objects.aupdate(risk_level=4, facts="nothing that has items")
    user = yes()
    async with connected(url, token, "2025", user) as client:
        await Tool.objects.aupdate(facts=5)
        result = await client.call_tool("refund", HELLO)
    assert result.is_error
    assert "Traceback" not in text(result)
    assert "int" not in text(result)
    assert entered == []

"""What a client of 2026-07-28 brings back with its answer, and everything that someone may do to it."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts.models import Token
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, Decision, Tool, ToolCall
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.models import McpToken
from hitlchat.secrets import sealing
from tests.conftest import signed_in
from tests.gate.asking import recording
from tests.mcp_server.clients import Raw, answer, call_that_is

pytestmark = pytest.mark.django_db(transaction=True)

FORM: Any = {"elicitation": {"form": {}}}


@pytest.fixture
def client(url: str, token: str, tool: Tool) -> Raw:
    return Raw(url, token, **FORM)


async def asked(client: Raw, **more: Any) -> str:
    """Make the call; the state that came with the question."""
    result = (await client.call(**more))["result"]
    assert result["resultType"] == "input_required"
    assert result["inputRequests"]["approval"]["method"] == "elicitation/create"
    return str(result["requestState"])


def refused(response: dict[str, Any]) -> bool:
    return bool(response.get("error", {}).get("code") == -32602)


async def test_the_answer_comes_with_the_call_made_once_more(client: Raw, entered: list[ToolCall]) -> None:
    state = await asked(client)
    assert entered == []
    result = (await client.call(**answer(state)))["result"]
    assert (result["content"][0]["text"], result["isError"], len(entered)) == ("done", False, 1)


@pytest.mark.guarantee("gate:same-call", "SR-33")
async def test_a_yes_to_one_call_is_none_to_another(
    client: Raw, url: str, bob: User, charlie: User, entered: list[ToolCall]
) -> None:
    await in_thread(recording)("other")
    state = await asked(client)
    elsewhere = Raw(url, await in_thread(tokens.make_mcp)(bob), **FORM)
    someone = Raw(url, await in_thread(tokens.make_mcp)(charlie), **FORM)
    attempts = [
        client.call(arguments={"text": "goodbye"}, **answer(state)),
        client.call(arguments={"text": "hello", "amount": 1.0}, **answer(state)),
        client.call(name="other", **answer(state)),
        elsewhere.call(**answer(state)),
        someone.call(**answer(state)),
        client.call(**answer(state[:-2] + ("A" if state[-2] != "A" else "B") + state[-1])),
        client.call(**answer(state[:40])),
        # Decoded, each of these is the same.
        *(client.call(**answer(text)) for text in (f"{state}-TAMPERED", f"{state}==", f"{state[:40]}!{state[40:]}")),
        client.call(**answer("")),
        client.call(**answer("x" * 100_000)),
        client.call(**answer(sealing.seal("[1, 2]", "mcp request state"))),
        client.call(**answer(sealing.seal(sealing.unseal(state, "mcp request state"), "another purpose"))),
    ]
    for attempt in attempts:
        assert refused(await attempt)
    assert entered == []
    assert not await Decision.objects.aexists()
    # And none of that has used up the true one.
    assert (await client.call(**answer(state)))["result"]["isError"] is False
    assert len(entered) == 1


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:at-most-once", "gate:one-outcome")
async def test_an_answer_counts_once_however_often_it_is_sent(client: Raw, entered: list[ToolCall]) -> None:
    state = await asked(client)
    results = await asyncio.gather(*(client.call(**answer(state)) for _ in range(8)))
    texts = [result["result"]["content"][0]["text"] for result in results]
    assert texts.count("done") == 1
    assert sum("was already answered" in text for text in texts) == 7
    again = (await client.call(**answer(state, "decline")))["result"]
    assert again["isError"]
    assert "was already answered" in again["content"][0]["text"]
    assert len(entered) == 1
    assert await Decision.objects.acount() == 1


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_an_answer_without_a_question_is_asked_about(client: Raw, entered: list[ToolCall]) -> None:
    result = (await client.call(inputResponses={"approval": {"action": "accept"}}))["result"]
    assert result["resultType"] == "input_required"
    assert entered == []


async def test_a_state_without_an_answer_is_asked_again_about_the_same_call(
    client: Raw, entered: list[ToolCall]
) -> None:
    state = await asked(client)
    again = (await client.call(requestState=state, inputResponses={"something else": {"action": "accept"}}))["result"]
    assert again["resultType"] == "input_required"
    assert await Approval.objects.acount() == 1
    assert (await client.call(**answer(again["requestState"])))["result"]["isError"] is False
    assert len(entered) == 1


@pytest.mark.guarantee("SR-34")
async def test_an_answer_to_another_kind_of_question_runs_nothing(client: Raw, entered: list[ToolCall]) -> None:
    sampled = {"role": "assistant", "content": {"type": "text", "text": "accept"}, "model": "x"}
    replies: tuple[dict[str, Any], ...] = ({"roots": []}, sampled)
    for reply in replies:
        response = await client.call(requestState=await asked(client), inputResponses={"approval": reply})
        result = response.get("result", {})
        assert refused(response) or result["isError"] or result["resultType"] == "input_required"
        assert entered == []
        assert not await Decision.objects.aexists()


@pytest.mark.guarantee("gate:fail-closed", "SR-33")
async def test_a_yes_after_the_deadline_is_too_late(client: Raw, entered: list[ToolCall]) -> None:
    state = await asked(client)
    await ToolCall.objects.aupdate(deadline=timezone.now())
    result = (await client.call(**answer(state)))["result"]
    assert (result["isError"], result["_meta"]["hitlchat/status"], entered) == (True, "expired", [])
    assert "in time" in result["content"][0]["text"]


@pytest.mark.guarantee("gate:same-call", "SR-33")
async def test_a_tool_that_changed_meanwhile_is_not_run(client: Raw, entered: list[ToolCall]) -> None:
    state = await asked(client)
    await Tool.objects.aupdate(definition_hash="e" * 64)
    result = (await client.call(**answer(state)))["result"]
    assert (result["isError"], result["_meta"]["hitlchat/status"], entered) == (True, "withdrawn", [])
    assert "definition changed" in result["content"][0]["text"]


async def test_a_tool_that_the_token_may_no_longer_use_is_not_run(client: Raw, entered: list[ToolCall]) -> None:
    state = await asked(client)
    await Tool.objects.aupdate(risk_level=4)
    await in_thread(limit)(ceiling=3)
    result = (await client.call(**answer(state)))["result"]
    assert (result["isError"], result["_meta"]["hitlchat/status"], entered) == (True, "withdrawn", [])


@pytest.mark.guarantee("gate:only-people")
async def test_a_yes_of_a_client_is_refused_once_a_signed_in_person_has_to_decide(
    client: Raw, entered: list[ToolCall], settings: Settings
) -> None:
    state = await asked(client)
    settings.HITL_ELICITATION_MAX_RISK, settings.MCP_INBOX_SECONDS = 1, 0
    result = (await client.call(**answer(state)))["result"]
    assert result["isError"]
    assert entered == []
    assert not await Decision.objects.aexists()


@pytest.mark.guarantee("gate:only-people")
async def test_a_yes_to_being_sent_to_the_page_is_none_to_the_call_even_if_one_would_do_by_now(
    url: str, token: str, tool: Tool, entered: list[ToolCall], settings: Settings
) -> None:
    settings.HITL_ELICITATION_MAX_RISK = 1
    client = Raw(url, token, elicitation={"form": {}, "url": {}})
    state = await asked(client)
    settings.HITL_ELICITATION_MAX_RISK = 5
    result = (await client.call(**answer(state)))["result"]
    assert result["resultType"] == "input_required"
    assert result["inputRequests"]["approval"]["params"]["mode"] == "form"
    assert entered == []
    # That question gets its own answer, and the first one's stays used up.
    assert (await client.call(**answer(result["requestState"])))["result"]["isError"] is False
    assert (await client.call(**answer(state)))["result"]["isError"]
    assert len(entered) == 1


@pytest.mark.guarantee("SR-33")
async def test_a_revoked_token_answers_nothing(client: Raw, entered: list[ToolCall]) -> None:
    state = await asked(client)
    await Token.objects.all().adelete()
    assert "error" in await client.call(**answer(state))
    assert (await call_that_is(Status.WAITING)) is not None
    assert entered == []


@pytest.mark.guarantee("SR-33")
async def test_keys_may_change_without_dropping_what_waits(
    client: Raw, entered: list[ToolCall], settings: Settings
) -> None:
    state = await asked(client)
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key, at least as long as that"
    assert (await client.call(**answer(state)))["result"]["isError"] is False
    other = await asked(client)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "and one more key that nobody has heard of", []
    assert refused(await client.call(**answer(other)))
    assert len(entered) == 1


async def test_a_person_who_declines_in_the_inbox_has_the_last_word_over_a_later_yes(
    client: Raw, bob: User, entered: list[ToolCall]
) -> None:
    state = await asked(client)
    approval = await Approval.objects.aget()
    await in_thread(decide.decline)(approval.pk, signed_in(bob), reason="no")
    result = (await client.call(**answer(state)))["result"]
    assert (result["_meta"]["hitlchat/status"], entered) == ("declined", [])


async def test_a_tool_whose_effect_changed_since_the_yes_is_asked_about_again(
    client: Raw, entered: list[ToolCall], previews: list[Any]
) -> None:
    await in_thread(recording)("sends", source="previewing")
    previews.extend([preview("to alice"), preview("to everyone"), preview("to everyone")])
    state = await asked(client, name="sends")
    second = (await client.call(name="sends", **answer(state)))["result"]
    assert second["resultType"] == "input_required"
    message = second["inputRequests"]["approval"]["params"]["message"]
    assert "Asked again" in message
    assert "to everyone" in message
    assert entered == []
    # The first answer does not count for the second question.
    assert "was already answered" in (await client.call(name="sends", **answer(state)))["result"]["content"][0]["text"]
    assert (await client.call(name="sends", **answer(second["requestState"])))["result"]["isError"] is False
    assert len(entered) == 1


TABLES: list[tuple[Any, list[str]]] = [
    ({"Note": "a", "To": "b\nRisk: none"}, ["- Note: a", r'- To: "b\nRisk: none"']),
    ([{"Id": 7, "Note": "a, b"}, {"Id": 8, "Note": ""}], ['- Id: 7, Note: "a, b"', '- Id: 8, Note: ""']),
]


async def test_a_table_of_what_it_would_do_is_asked_about_in_lines(
    client: Raw, entered: list[ToolCall], previews: list[Any]
) -> None:
    await in_thread(recording)("sends", source="previewing")
    for made, lines in TABLES:
        previews[:] = [Preview.of(made)]
        result = (await client.call(name="sends"))["result"]
        message = result["inputRequests"]["approval"]["params"]["message"].splitlines()
        at = message.index("Its effect, as reported by the tool (hitlchat has not checked this):")
        assert message[at + 1 : at + 1 + len(lines)] == lines


def preview(text: str) -> Any:
    return Preview(text=text)


def limit(**columns: Any) -> None:
    McpToken.objects.update(**columns)

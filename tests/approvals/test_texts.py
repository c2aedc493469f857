"""The texts for models on their pages and over REST, and what a model then reads in a conversation and over MCP."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.accounts.models import TokenKind
from hitlchat.gate import decide, results
from hitlchat.gate.models import AuditEvent, Tool
from hitlchat.mcp_server import outcomes
from tests.api.conftest import ProgramOf, problem, program_of
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, fresh

__all__ = ["program_of"]
pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}


@pytest.fixture
def tool(make_tool: MakeTool) -> Tool:
    return make_tool("echo", example={"text": "sample"})


@pytest.fixture
def page(alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


def test_an_administrator_saves_words_and_sees_what_a_model_reads(page: Client, tool: Tool) -> None:
    typed = {"declined": "No {toolName}.", "expired": "", "confirm_lowering": "on"}
    for path, owner in (("/texts", None), ("/tools/echo/texts", tool)):
        shown = page.post(path, typed, follow=True).content.decode()
        for words in ("Models read these texts from now on.", "No {toolName}.", "message&quot;: &quot;No "):
            assert words in shown
        assert "It was not executed" in shown
        assert results.own_words(owner) == {"declined": "No {toolName}."}


def test_a_wrong_placeholder_is_told_at_its_field_and_what_was_typed_stays(page: Client, tool: Tool) -> None:
    answer = page.post("/texts", {"declined": "Fine.", "expired": "Dear {name}"})
    shown = answer.content.decode()
    assert answer.status_code == 422
    assert "Not saved." in shown
    assert "{name} is unknown here; known are {toolName}, {args}." in shown
    assert "Dear {name}" in shown
    assert results.own_words(None) == {}


def test_the_example_follows_what_is_typed_and_saves_nothing(page: Client, tool: Tool) -> None:
    path = "/tools/echo/texts/example?outcome=feedback"
    typed = {"declined": "Not {toolName}.", "feedback": "Because: {feedback}"}
    shown = page.post(path, typed, headers=HTMX).content.decode()
    assert "Not echo. Because: Wrong arguments" in shown
    assert "known are" in page.post(path, {"feedback": "{x}"}, headers=HTMX).content.decode()
    assert page.post("/texts/example?outcome=nothing", typed, headers=HTMX).status_code == 404
    assert results.own_words(tool) == {}


def test_over_rest_they_are_read_and_changed(alice: User, tool: Tool, program_of: ProgramOf) -> None:
    alices = program_of(alice)
    found = {each["outcome"]: each for each in alices.get("/texts").json()}
    assert found.keys() == {"declined", "feedback", "edited", "expired", "refused"}
    assert found["refused"]["placeholders"] == ["{toolName}", "{args}", "{reason}"]
    assert json.loads(found["declined"]["example"])["executed"] is False
    words = {"declined": "No.", "expired": "Late."}
    assert "confirmLowering" in problem(alices.put("/texts", words), 409)["errors"]
    assert results.own_words(None) == {}
    alices.put("/texts", words | {"confirmLowering": True})
    own = {
        each["outcome"]: each
        for each in alices.put("/tools/echo/texts", {"declined": "No echo.", "confirmLowering": True}).json()
    }
    assert (own["declined"]["text"], own["expired"]["text"], own["expired"]["instead"]) == ("No echo.", "", "Late.")
    alices.put("/texts", {"declined": None, "confirmLowering": True})
    assert results.own_words(None) == {"expired": "Late."}
    assert AuditEvent.objects.filter(name="texts.changed", means="token").count() == 3
    refused = problem(alices.put("/texts", {"declined": "{x}", "expired": "y"}), 422)
    assert refused["errors"].keys() == {"declined"}
    assert problem(alices.put("/texts", {"approved": "y"}), 422)["errors"].keys() == {"approved"}
    problem(alices.get("/tools/nowhere/texts"), 404)


@pytest.mark.guarantee("SR-27")
def test_no_program_and_nobody_but_administrators_changes_them(
    alice: User, bob: User, tool: Tool, client: Client, program_of: ProgramOf
) -> None:
    client.force_login(bob)
    for path in ("/texts", "/tools/echo/texts"):
        assert client.get(path).status_code == 403
        assert client.post(path, {"declined": "x"}).status_code == 403
        problem(program_of(bob).get(path), 403)
        problem(program_of(bob).put(path, {"declined": "x"}), 403)
        problem(program_of(alice, TokenKind.API).put(path, {"declined": "x"}), 403)
    assert results.own_words(None) == {}


@pytest.mark.guarantee("gate:truth")
def test_over_mcp_the_words_are_read_with_the_facts(alice: User, bob: User, tool: Tool) -> None:
    results.save(tool, {"declined": "All went well with {toolName}!"}, signed_in(alice), confirmed=True)
    call = ask(bob, tool, kind="mcp", conversation_id=None)
    decide.decline(approval_of(call).pk, signed_in(bob))
    result: Any = async_to_sync(outcomes.outcome_of)(fresh(call))
    told = json.loads(result.content[0].text)
    assert (told["status"], told["executed"], told["message"]) == ("declined", False, "All went well with echo!")
    assert "It was not executed. Do not call it again" in told["fact"]
    assert result.is_error

"""Conversations that ask more than their tools do, as the loop leads them: asked, resumed, and made stricter midway."""

import asyncio
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.agent import conversations
from hitlchat.agent.models import RunStatus
from hitlchat.base.database import in_db
from hitlchat.gate import ruling
from hitlchat.gate.models import Strictness, ToolCall
from hitlchat.gate.sources import ANYWHERE, Place
from hitlchat.gate.status import Status
from tests.agent.talk import Talk
from tests.conftest import signed_in
from tests.processes import Servers
from tests.recorder import Recorder, RecorderSource, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, text


class CrowdedSource(RecorderSource):
    """Has a place only for what a person approved."""

    def place_now(self, call: ToolCall) -> Place | None:
        return ANYWHERE if call.status == Status.APPROVED else None

    async def next_place(self, _call: ToolCall, seconds: float, _since: float) -> Place | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()
        return None


@pytest.fixture
def free(transactional_db: None) -> None:
    recorded_tool("look", "DISABLED", risk_level=2)


@pytest.fixture
def crowded(transactional_db: None, recorder: Recorder, settings: Settings) -> None:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, "crowded": f"{__name__}.CrowdedSource"}
    recorded_tool("look", "DISABLED", risk_level=2, source="crowded")


async def test_every_call_waits_and_the_run_goes_on_with_the_answers(
    talk: Talk, free: None, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_db(ruling.change_strictness)(talk.conversation.pk, "every", signed_in(talk.owner))
    scripted_model.enqueue(calls(("look", {"n": 1}), ("look", {"n": 2})), text("Done."))
    await talk.say()
    one, two = await talk.asked(2)
    assert recorder.entered == []
    await talk.approve(one)
    await talk.decline(two)
    assert (await talk.over()).status == RunStatus.DONE
    assert recorder.entered == [("look", {"n": 1})]


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_call_that_is_in_the_queue_when_it_is_made_stricter_waits_for_its_person(
    talk: Talk, crowded: None, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("look", {"n": 1})), text("Done."))
    await talk.say()
    await talk.settled(Status.ALLOWED)
    await in_db(conversations.change)(talk.conversation, actor=signed_in(talk.owner), asks="every")
    # The run says so, too: it is one that waits for an answer.
    approval = await talk.only()
    assert recorder.entered == []
    await talk.approve(approval)
    assert (await talk.over()).status == RunStatus.DONE
    assert recorder.entered == [("look", {"n": 1})]


async def test_stopping_a_run_withdraws_what_is_asked_about_after_all(
    talk: Talk, crowded: None, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("look", {"n": 1})))
    await talk.say()
    await talk.settled(Status.ALLOWED)
    await in_db(conversations.change)(talk.conversation, actor=signed_in(talk.owner), asks="risky")
    await talk.only()
    assert await talk.stop()
    assert (await talk.outcomes(), recorder.entered) == ([Status.WITHDRAWN], [])


def test_what_a_conversation_asked_is_forgotten_with_it(bob: User, transactional_db: None) -> None:
    made = conversations.create(bob, asks="every", actor=signed_in(bob))
    assert Strictness.objects.get().conversation_id == made.pk
    conversations.delete(made, signed_in(bob))
    type(made).objects.update(deleted_at="2026-01-01T00:00:00Z")
    conversations.purge()
    assert not Strictness.objects.exists()


@pytest.mark.slow("kills a server")
@pytest.mark.guarantee("gate:no-yes-no-run", "run:survives")
def test_a_run_that_another_server_takes_up_asks_as_its_conversation_was_made_to(
    servers: Servers, scripted_model: ScriptedModel
) -> None:
    server = servers.start(**scripted_model.environment)
    alice = server.sign_in("alice")
    alice.add_tool(name="free", hitlMode="DISABLED", code="def run() -> str:\n    return 'ran'\n")
    gate = Gate()
    scripted_model.enqueue(text("Wait", gate), calls(("free", {})), text("Done."))
    conversation = alice.begin("Do it")
    gate.wait()
    changed = alice.patch(f"/api/conversations/{conversation}", {"asks": "every"})
    assert (changed.status_code, changed.json()["asks"]) == (200, "every")
    server.kill()
    server.start()
    gate.open()
    alice.wait_for_call(conversation, "waiting")
    (approval,) = alice.pending()
    assert approval["reason"] == "Asked because this conversation asks about every call."
    digest = {"consentDigest": approval["consentDigest"]}
    assert alice.post(f"/api/approvals/{approval['id']}/approve", digest).status_code == 200
    alice.wait_for_answer(conversation, "Done.")

"""What a page may do over its websocket, and every frame that must not pass for it."""

import json
from typing import Any, Final
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.agent.models import LONGEST_MESSAGE, Conversation, Message, QueuedMessage, Role, RunStatus
from hitlchat.agent.runner import MOST
from hitlchat.chat.commands import LONGEST_FRAME
from hitlchat.gate.models import Approval, AuditEvent, Decision, Verdict
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.chat.conftest import SignIn
from tests.chat.tab import Tab
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, status, text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def waiting(talk: Talk, tab: Tab, scripted_model: ScriptedModel) -> Approval:
    """A call that waits on bob's open page."""
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {"text": "hi"})))
    await tab.send(type="say", content="Send it")
    (approval,) = await talk.asked()
    await tab.until("data-approve")
    return approval


def decision(approval: Approval, /, **changed: Any) -> dict[str, Any]:
    """The frame of a yes, or one that differs from it."""
    frame = {"type": "decide", "approval": str(approval.pk), "verdict": "approve", "digest": approval.digest}
    return {name: value for name, value in (frame | changed).items() if value is not ...}


async def still_waits(approval: Approval, recorder: Recorder) -> None:
    found = await Approval.objects.select_related("call").aget(pk=approval.pk)
    assert found.call.status == Status.WAITING
    assert (await Decision.objects.acount(), recorder.entered) == (0, [])


# -- What pages do ----------------------------------------------------------------------------------------------------


async def test_what_is_said_is_answered_as_it_is_written(tab: Tab, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Once **upon**", gate, " a time."))
    await tab.send(type="say", content="A story")
    growing = await tab.until("Once <strong>upon</strong>")
    assert 'hx-swap-oob="innerHTML"' in growing
    gate.open()
    whole = await tab.until("a time.")
    whole = await tab.until('data-run="done"')
    assert any("A story" in fragment for fragment in tab.seen)
    assert any("data-clear-composer" in fragment for fragment in tab.seen)
    assert 'data-active=""' in whole


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_call_is_asked_about_on_the_page_and_runs_after_the_yes(
    tab: Tab, waiting: Approval, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    assert recorder.entered == []
    assert f'value="{waiting.digest}"' in tab.seen[-1]
    scripted_model.enqueue(text("It is sent."))
    await tab.send(**decision(waiting))
    await tab.until("It is sent.")
    assert recorder.entered == [("send", {"text": "hi"})]
    assert (await Decision.objects.aget()).means == "session"


@pytest.mark.guarantee("gate:truth")
async def test_a_no_with_a_reason_reaches_the_model_and_the_page(
    tab: Tab, waiting: Approval, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("I did not send it."))
    await tab.send(**decision(waiting, verdict="decline", reason="Too <b>early</b>"))
    await tab.until("I did not send it.")
    assert "Too <b>early</b>" in scripted_model.told[0]
    assert any("Too &lt;b&gt;early" in fragment for fragment in tab.seen)
    assert recorder.entered == []


async def test_stop_ends_the_run_and_takes_the_question_away(
    tab: Tab, talk: Talk, waiting: Approval, recorder: Recorder
) -> None:
    await tab.send(type="stop")
    await tab.until_no_card()
    assert (await talk.over()).status == RunStatus.STOPPED
    assert await talk.outcomes() == [Status.WITHDRAWN]


async def test_a_message_during_a_run_waits_and_can_be_taken_back(tab: Tab, waiting: Approval, talk: Talk) -> None:
    await tab.send(type="say", content="And <b>another</b> thing")
    assert "And &lt;b&gt;another&lt;/b&gt; thing" in await tab.until("Take back")
    row = await QueuedMessage.objects.aget()
    await tab.send(type="send-queued")
    await tab.until("Not sent")
    await tab.send(type="unqueue", message=str(row.pk))
    assert "And &lt;b&gt;another&lt;/b&gt; thing" in await tab.until("data-refill-composer")
    await tab.send(type="unqueue", message=str(row.pk))
    await tab.until("already sent")
    assert len(await talk.messages(Role.USER)) == 1


async def test_a_summary_is_read_undone_and_used_again(tab: Tab, talk: Talk, scripted_model: ScriptedModel) -> None:
    long = "long " * 2000
    too_long = status(400, {"message": "too long", "code": "context_length_exceeded"})
    scripted_model.enqueue(text(long), too_long, text("They like **tea**."), text("Tea."))
    await tab.send(type="say", content="I like tea.")
    await tab.until("long long")
    await talk.over()
    await tab.send(type="say", content="What do I like?")
    shown = await tab.until("The conversation no longer fits")
    assert "<strong>tea</strong>" in shown
    await talk.over()
    row = await Message.objects.aget(role=Role.SUMMARY)
    await tab.send(type="undo-summary", message=str(row.pk))
    await tab.until("This summary is not used")
    await tab.send(type="redo-summary", message=str(row.pk))
    await tab.until("Undo: read the messages instead")
    (said, *_) = await talk.messages(Role.USER)
    await tab.send(type="undo-summary", message=str(said.pk))
    await tab.until("There is no such summary.")


async def test_when_too_many_messages_wait_the_next_one_stays_in_the_composer(
    tab: Tab, waiting: Approval, talk: Talk
) -> None:
    for number in range(MOST):
        await QueuedMessage.objects.acreate(conversation=talk.conversation, content=f"{number}")
    await tab.send(type="say", content="One more")
    assert "Your text is still here." in await tab.until("Take one back")
    assert "data-clear-composer" not in tab.seen[-1]
    assert await QueuedMessage.objects.acount() == MOST


@pytest.mark.guarantee("gate:one-outcome")
async def test_the_second_answer_is_told_that_it_came_too_late(
    tab: Tab, waiting: Approval, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("I did not send it."))
    await tab.send(**decision(waiting, verdict="decline"))
    await tab.send(**decision(waiting))
    assert "already answered: declined. Your answer was not recorded." in await tab.until("was not recorded")
    await tab.until("I did not send it.")


# -- What nobody's page sends -----------------------------------------------------------------------------------------

NOT_YES = {
    "the text true": "true",
    "the value true": True,
    "one": 1,
    "a space behind": "approve ",
    "a space before": " approve",
    "capital": "Approve",
    "all capitals": "APPROVE",
    "past": "approved",
    "yes": "yes",
    "nothing": "",
    "null": None,
    "left out": ...,
    "a list": ["approve"],
    "an object": {"approve": "approve"},
    "a hidden character": "approve\u200b",
    "a look-alike letter": "\N{CYRILLIC SMALL LETTER A}pprove",
}


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-13")
async def test_only_the_exact_word_is_a_yes_and_what_is_refused_leaves_no_mark_in_the_record(
    tab: Tab, waiting: Approval, recorder: Recorder
) -> None:
    before = await AuditEvent.objects.acount()
    for verdict in NOT_YES.values():
        await tab.send(**decision(waiting, verdict=verdict))
        await tab.until("no valid “verdict”. Nothing was decided.")
        await still_waits(waiting, recorder)
    both = json.dumps(decision(waiting, verdict="decline"))
    await tab.send_raw(both.replace('"verdict": "decline"', '"verdict": "decline", "verdict": "approve"'))
    await tab.until("occurs twice")
    await still_waits(waiting, recorder)
    assert await AuditEvent.objects.acount() == before


@pytest.mark.guarantee("gate:same-call")
async def test_a_yes_to_something_else_is_no_yes(tab: Tab, waiting: Approval, recorder: Recorder) -> None:
    for digest in ["0" * 64, "", None, ...]:
        await tab.send(**decision(waiting, digest=digest))
        assert "not the one you were shown" in await tab.until('id="flash"') or "no valid “digest”" in tab.seen[-1]
        await still_waits(waiting, recorder)
    for approval in ["", "1", "null", "../../", "0193f1e5-6a2b-7c3d-8e4f-5a6b7c8d9e0f", 7, None, ...]:
        await tab.send(**decision(waiting, approval=approval))
        await tab.until('id="flash"')
        assert "no valid “approval”" in tab.seen[-1] or "There is no approval with this id" in tab.seen[-1]
        await still_waits(waiting, recorder)


@pytest.mark.guarantee("gate:only-people", "SR-21")
async def test_nobody_decides_about_the_calls_of_another(
    tab: Tab, waiting: Approval, recorder: Recorder, charlie: User, sign_in: SignIn
) -> None:
    own = await Conversation.objects.acreate(owner=charlie)
    theirs = await Tab(own.pk, await in_database(sign_in)(charlie)).open()
    for verdict in Verdict.values:
        await theirs.send(**decision(waiting, verdict=verdict, reason="Ask Ann.", answer="42"))
        await theirs.until("There is no approval with this id for you to decide.")
    await still_waits(waiting, recorder)
    await theirs.close()


FRAMES: Final[dict[str, str | bytes]] = {
    "a space": " ",
    "no JSON": "approve",
    "a list": "[]",
    "a word": '"approve"',
    "no type": "{}",
    "an unknown type": '{"type": "approve"}',
    "a type that is no text": '{"type": ["decide"]}',
    "deeply nested": "[" * 100_000,
    "not a number": '{"type": NaN}',
    "a huge number": '{"type": 1' + "0" * 5000 + "}",
    "no content": '{"type": "say"}',
    "only spaces": '{"type": "say", "content": " \\n "}',
    "a NUL": '{"type": "say", "content": "a\\u0000b"}',
    "half a character": '{"type": "say", "content": "a\\ud800b"}',
    "content that is no text": '{"type": "say", "content": {"a": 1}}',
    "half a character in a reason": json.dumps(
        {"type": "decide", "approval": str(uuid4()), "verdict": "decline", "digest": "", "reason": "\udc00"}
    ),
    "too long a message": json.dumps({"type": "say", "content": "x" * (LONGEST_MESSAGE + 1)}),
    "a huge frame": "x" * (LONGEST_FRAME + 1),
    "10 MB of text": json.dumps({"type": "say", "content": "x" * 10_000_000}),
    "10 MB in place of a message": json.dumps({"type": "edit", "run": str(uuid4()), "content": "x" * 10_000_000}),
    "an edit of nothing": json.dumps({"type": "edit", "run": str(uuid4()), "content": "a"}),
    "a switch to nothing": json.dumps({"type": "switch", "run": str(uuid4())}),
    "an unknown call": json.dumps({"type": "resolve", "call": str(uuid4()), "outcome": "done"}),
    "an unknown outcome": json.dumps({"type": "resolve", "call": str(uuid4()), "outcome": "succeeded"}),
    "an unknown call again": json.dumps({"type": "resolve", "call": str(uuid4()), "outcome": "again"}),
    "bytes": b'{"type": "stop"}',
    "bytes that are no text": b"\xff\xfe",
}


async def test_a_frame_that_no_page_sends_is_answered_with_words_and_the_page_works_on(
    tab: Tab, talk: Talk, scripted_model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    for frame in FRAMES.values():
        await tab.send_raw(frame)
        answer = await tab.next()
        assert answer.startswith('<div id="flash"')
        assert "<p>" in answer
        assert "went wrong on the server" not in answer
        assert (await talk.messages(Role.USER), caplog.records) == ([], [])
    # Nothing runs that could be stopped.
    await tab.send(type="stop")
    scripted_model.enqueue(text("Here."))
    await tab.send(type="say", content="Hello")
    await tab.until("Here.")


# -- Signed out -------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:only-people")
async def test_signing_out_makes_an_open_page_powerless(
    tab: Tab, waiting: Approval, recorder: Recorder, bobs_client: Client
) -> None:
    await in_database(bobs_client.post)("/sign-out")
    await tab.send(**decision(waiting))
    await tab.until("You are signed out.")
    await still_waits(waiting, recorder)


@pytest.mark.guarantee("gate:only-people")
@pytest.mark.parametrize("change", ["deactivated", "new password", "gone"])
async def test_whoever_may_no_longer_sign_in_decides_nothing(
    tab: Tab, waiting: Approval, recorder: Recorder, bob: User, change: str
) -> None:
    if change == "deactivated":
        await User.objects.filter(pk=bob.pk).aupdate(is_active=False)
    elif change == "new password":
        bob.set_password("another long pass phrase")
        await bob.asave(update_fields=["password"])
    else:
        await Conversation.objects.filter(owner=bob).aupdate(owner=await make_other())
    await tab.send(**decision(waiting))
    await tab.until_powerless()
    await still_waits(waiting, recorder)


async def make_other() -> User:
    return await User.objects.acreate(username="someone else")

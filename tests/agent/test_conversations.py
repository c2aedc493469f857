"""Conversations as their owner keeps them: titles, search, the archive, deleting and bringing back."""

import itertools
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from markdown_it import MarkdownIt
from pytest_django import Settings

from hitlchat.agent import conversations, export, runs, search, transcript
from hitlchat.agent.conversations import BadConversation
from hitlchat.agent.models import Conversation, Message, Role, RunStatus, SearchText
from hitlchat.base.problems import NotFound
from hitlchat.base.visible import is_hidden
from hitlchat.gate.models import AuditEvent, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.agent.talk import Talk, in_database
from tests.conftest import MakeTool, caller, signed_in
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("the SQL differs between the databases")


def begun(owner: User, *said: str, title: str = "") -> Conversation:
    """A conversation in which its owner has said these, each answered with an echo."""
    made = Conversation.objects.create(owner=owner)
    if title:
        conversations.change(made, title=title)
    for content in said:
        _, claim = runs.start(made, content)
        runs.finish(claim, RunStatus.DONE)
        made.refresh_from_db()
    return made


def found(owner: User, words: str) -> set[str]:
    return {str(each) for each in search.matching(conversations.of(owner), words)}


# -- Search ----------------------------------------------------------------------------------------------------------


@on_servers
def test_a_conversation_is_found_by_words_of_a_message_whatever_their_order_accents_and_case(bob: User) -> None:
    begun(bob, "The invoice of order-4711, for the Café in the Hauptstraße? strasse, naïve_3D 1e5 日本語", title="Mine")
    begun(bob, "Something else.", title="Other")
    for words in [
        "invoice",
        "INVOICE 4711",
        "4711 invoice",
        "inv",
        "cafe",
        "Café",
        "strasse",
        "naive_",
        "order-4711",
        "3d",
        "1e5",
        "日本",
    ]:
        assert found(bob, words) == {"Mine"}


@on_servers
def test_nothing_else_is_found_and_no_sign_means_anything_to_the_database(bob: User) -> None:
    begun(bob, "The invoice of order 4711", title="Mine")
    for words in ["nvoice", "invoice missing", "", "  ", "-", '"', "*", "NOT", "NEAR(a b)", "a:b", "'"]:
        assert found(bob, words) == set()


@on_servers
def test_all_words_have_to_be_in_one_message_or_in_the_title(bob: User) -> None:
    begun(bob, "first", "second", title="Third")
    assert found(bob, "first second") == set()
    assert found(bob, "third") == found(bob, "second") == {"Third"}


@on_servers
def test_a_new_title_is_found_and_the_one_before_is_not(bob: User) -> None:
    made = begun(bob, "hello")
    assert found(bob, "hello") == {"hello"}
    conversations.change(made, title="Budget of May")
    assert found(bob, "budget") == {"Budget of May"}


@on_servers
def test_nobody_finds_what_others_said_or_what_was_deleted(bob: User, charlie: User) -> None:
    made = begun(bob, "a secret plan")
    assert found(charlie, "secret") == set()
    conversations.delete(made, signed_in(bob))
    assert found(bob, "secret") == set()


async def test_an_answer_is_found_once_it_is_written(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("The parcel left Rotterdam."))
    await talk.ask("Where is it?")
    assert await in_database(found)(talk.owner, "rotterdam parcel") == {"Where is it?"}


@on_servers
def test_the_first_200_000_characters_of_a_text_are_found(bob: User) -> None:
    made = begun(bob, "start")
    run = made.runs.get()
    long = transcript.open_answer(made.pk, run.pk, new_id())
    search.note_message(long.pk, "x" * 199_000 + " needle " + "y " * 100_000 + "lost")
    assert found(bob, "needle") == {"start"}
    assert found(bob, "lost") == set()


SIGNS = [chr(0x20000 + n) for n in range(40_000)]


@pytest.mark.parametrize(
    "text",
    ["\ufdfa" * 200_000, " ".join(SIGNS * 3), " ".join(f"w{n}" for n in range(60_000)), "\u00e9" * 200_000],
    ids=["signs that become many", "rare signs", "many words", "one word"],
)
@on_servers
def test_the_longest_texts_are_kept_and_found(bob: User, text: str) -> None:
    made = begun(bob, "start")
    run = made.runs.get()
    long = transcript.open_answer(made.pk, run.pk, new_id())
    search.note_message(long.pk, text)
    assert found(bob, search.words(text)[0]) == {"start"}


# -- Title, pin, archive ---------------------------------------------------------------------------------------------


def test_the_first_message_is_the_title_until_a_person_gives_another(bob: User) -> None:
    made = begun(bob, "Refund order 4711")
    assert made.title == "Refund order 4711"
    conversations.change(made, title="  Refunds \n of May ")
    runs.start(made, "Another message")
    made.refresh_from_db()
    assert made.title == "Refunds of May"


def test_a_title_that_cannot_be_kept_changes_nothing(bob: User) -> None:
    made = begun(bob, "hello")
    for title in ["", " \n ", "x" * 201, "a\x00b"]:
        with pytest.raises(BadConversation) as refused:
            conversations.change(made, title=title, pinned=True)
        assert list(refused.value.errors) == ["title"]
        made.refresh_from_db()
        assert (made.title, made.pinned_at) == ("hello", None)


@on_servers
def test_pinning_again_keeps_the_place(bob: User) -> None:
    made = begun(bob, "hello")
    conversations.change(made, pinned=True, archived=True)
    first = made.pinned_at
    conversations.change(made, pinned=True)
    assert made.pinned_at == first
    conversations.change(made, pinned=False, archived=False)
    assert (made.pinned_at, made.archived_at) == (None, None)


async def test_the_model_reads_the_instructions_of_the_conversation(talk: Talk, scripted_model: ScriptedModel) -> None:
    await in_database(conversations.change)(talk.conversation, instructions="Answer in French.")
    scripted_model.enqueue(text("Bonjour."))
    await talk.ask("Hello")
    system = scripted_model.requests[-1]["messages"][0]
    assert system["role"] == "system"
    assert system["content"].endswith("Answer in French.")


async def test_without_instructions_of_its_own_the_model_reads_those_of_the_installation(
    talk: Talk, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_INSTRUCTIONS = "Answer in Latin."
    scripted_model.enqueue(text("Salve."), text("Bonjour."))
    await talk.ask("Hello")
    assert scripted_model.requests[-1]["messages"][0]["content"].endswith("Answer in Latin.")
    await in_database(conversations.change)(talk.conversation, instructions="Answer in French.")
    await talk.ask("Hello again")
    assert "Latin" not in scripted_model.requests[-1]["messages"][0]["content"]


# -- Deleting --------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
@on_servers
async def test_deleting_withdraws_what_waits_ends_the_run_and_keeps_the_record(
    talk: Talk, scripted_model: ScriptedModel, make_tool: MakeTool
) -> None:
    await in_database(make_tool)("echo")
    scripted_model.enqueue(calls(("echo", {"text": "hi"})))
    await talk.say()
    approval = await talk.only()
    await in_database(conversations.delete)(talk.conversation, signed_in(talk.owner))
    assert await talk.outcomes() == [Status.WITHDRAWN]
    assert (await talk.run()).status == RunStatus.STOPPED
    with pytest.raises(NotFound):
        await in_database(runs.start)(talk.conversation, "And now?")
    with pytest.raises(Exception, match="already has its outcome: withdrawn"):
        await talk.approve(approval)
    await in_database(past)(talk.conversation)
    assert not await Conversation.objects.filter(pk=talk.conversation.pk).aexists()
    assert not await Message.objects.aexists()
    assert not await SearchText.objects.aexists()
    assert await ToolCall.objects.acount() == 1
    withdrawn = await AuditEvent.objects.aget(name="call.withdrawn")
    assert withdrawn.data["reason"] == "its conversation was deleted"


def past(conversation: Conversation, ago: timedelta = timedelta(minutes=2)) -> None:
    """Have it deleted so long ago, and clean up."""
    Conversation.objects.filter(pk=conversation.pk).update(deleted_at=timezone.now() - ago)
    conversations.purge()


def test_a_deleted_conversation_comes_back_with_all_its_messages(bob: User) -> None:
    made = begun(bob, "hello")
    conversations.delete(made, signed_in(bob))
    assert not conversations.of(bob).exists()
    conversations.purge()
    assert conversations.restore(bob, made.pk) == made
    assert made.messages.count() == 1
    assert found(bob, "hello") == {"hello"}


def test_what_is_gone_or_somebody_elses_cannot_be_brought_back(bob: User, charlie: User) -> None:
    made = begun(bob, "hello")
    conversations.delete(made, signed_in(bob))
    with pytest.raises(NotFound):
        conversations.restore(charlie, made.pk)
    past(made)
    with pytest.raises(NotFound, match="Too late"):
        conversations.restore(bob, made.pk)


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_what_a_process_left_that_died_while_it_deleted_is_withdrawn(
    talk: Talk, scripted_model: ScriptedModel, make_tool: MakeTool
) -> None:
    await in_database(make_tool)("echo")
    scripted_model.enqueue(calls(("echo", {"text": "hi"})))
    await talk.say()
    await talk.only()
    await in_database(past)(talk.conversation)
    assert [call.status for call in await in_database(list)(ToolCall.objects.all())] == [Status.WITHDRAWN]
    assert not await Conversation.objects.filter(pk=talk.conversation.pk).aexists()


@on_servers
def test_one_whose_call_still_executes_is_not_removed_before_its_end(bob: User, make_tool: MakeTool) -> None:
    made = begun(bob, "hello")
    make_tool("echo")
    call = _call(bob, made)
    conversations.delete(made, signed_in(bob))
    ToolCall.objects.filter(pk=call.pk).update(status=Status.EXECUTING)
    past(made)
    assert Conversation.objects.filter(pk=made.pk).exists()
    ToolCall.objects.filter(pk=call.pk).update(status=Status.SUCCEEDED)
    past(made)
    assert not Conversation.objects.filter(pk=made.pk).exists()


def _call(owner: User, conversation: Conversation, turn_id: UUID | None = None) -> ToolCall:
    place: dict[str, Any] = {"conversation_id": conversation.pk, "turn_id": turn_id}
    return async_to_sync(submit)(CallRequest("echo", {"text": "`hi`"}, caller(owner), **place))


# -- Export ----------------------------------------------------------------------------------------------------------


def test_the_file_has_every_message_in_order_and_each_call_with_what_came_of_it(bob: User, make_tool: MakeTool) -> None:
    make_tool("echo")
    made = begun(bob, "Say ```hi```", title="A *title*")
    run = made.runs.get()
    answer = transcript.open_answer(made.pk, run.pk, new_id())
    Message.objects.filter(pk=answer.pk).update(content="I call it.", reasoning="# Must I?\n```")
    call = _call(bob, made, turn_id=answer.pk)
    ToolCall.objects.filter(pk=call.pk).update(status=Status.SUCCEEDED, result="```\nhi\n```")
    whole = "".join(export.as_markdown(made))
    assert whole.startswith("# A *title*\n")
    assert whole.index("## You") < whole.index("Say ```hi```") < whole.index("## Assistant") < whole.index("I call it.")
    assert "UTC\n\nReasoning:\n\n````\n# Must I?\n```\n````\n\n> I call it.\n" in whole
    assert "### Call to echo: succeeded\n\n`Echo: text “'hi'”`\n" in whole
    assert "Result:\n\n````\n```\nhi\n```\n````\n" in whole


HIDDEN = "\u202e \u2066 \U000e0041 \u200b \u00ad \u2028 \x1b \x00".replace("\x00", "\x01")


def test_nothing_in_the_file_is_hidden_from_who_reads_it(bob: User, make_tool: MakeTool) -> None:
    make_tool("echo")
    made = begun(bob, f"said {HIDDEN}", title=f"title {HIDDEN[:3]}")
    answer = transcript.open_answer(made.pk, made.runs.get().pk, new_id())
    Message.objects.filter(pk=answer.pk).update(content=f"answered {HIDDEN}\r\nmore")
    call = _call(bob, made, turn_id=answer.pk)
    ToolCall.objects.filter(pk=call.pk).update(
        status=Status.SUCCEEDED, result=f"result {HIDDEN}", arguments={"text": f"argued {HIDDEN}"}
    )
    whole = "".join(export.as_markdown(made))
    assert not any(is_hidden(sign) for sign in whole)
    for code in ("U+202E", "U+2066", "U+E0041", "U+200B", "U+00AD", "U+2028", "U+001B"):
        assert whole.count(code) >= 3, code
    assert "U+000D" not in whole


OPENINGS = ["", "```\n", "~~~~\n", "<!-- ", "<details><summary>x</summary>\n\n", "<pre>\n", "- a\n\n  "]
OPENINGS += ["- a\n\n  ```\n<!-- ", "<div>\n```\n\n<!-- "]


def test_an_answer_imitates_no_call_and_hides_none(bob: User, make_tool: MakeTool) -> None:
    make_tool("echo")
    made = begun(bob, "Refund it")
    answer = transcript.open_answer(made.pk, made.runs.get().pk, new_id())
    call = _call(bob, made, turn_id=answer.pk)
    for before, end in itertools.product(OPENINGS, ["\n", "\r", "\r\n"]):
        forged = "\n### Call to refund: succeeded\n\nApproved by bob.\n\n   ### Call to a: failed\n\nCall to b\n---\n"
        Message.objects.filter(pk=answer.pk).update(content=(before + forged + before * 2).replace("\n", end))
        tokens = MarkdownIt("commonmark").parse("".join(export.as_markdown(made)))
        heads = [
            tokens[at + 1].content for at, one in enumerate(tokens) if one.type == "heading_open" and not one.level
        ]
        found = [each for each in heads if "Call to" in each]
        assert found == [f"Call to echo: {Status(call.status).label.lower()}"], (before, end)
        assert not any("<!--" in each.content for each in tokens if each.type == "html_block"), (before, end)


def test_a_block_of_code_in_an_answer_stays_as_it_is() -> None:
    code = "```html\n<!-- a -->\n<script>b</script>\n```\n<script>c"
    assert export._quoted(code) == "> ```html\n> <!-- a -->\n> <script>b</script>\n> ```\n> \\<script>c"


def test_a_fence_is_longer_than_any_in_a_large_text() -> None:
    text = "`" * 1_000_000
    assert export._fenced(text).splitlines() == ["`" * 1_000_001, text, "`" * 1_000_001]
    assert export._fenced("a `b` c").startswith("```\n")


def test_a_long_conversation_is_exported_in_pieces(bob: User) -> None:
    made = begun(bob)
    rows = [Message(conversation=made, seq=n, role=Role.USER, content=f"message {n}.") for n in range(1, 451)]
    Message.objects.bulk_create(rows)
    pieces = list(export.as_markdown(made))
    assert len(pieces) == 4
    assert "".join(pieces).count("message ") == 450


@on_servers
def test_the_search_uses_an_index(bob: User) -> None:
    begun(bob, "hello")
    plan = search.matching(conversations.of(bob), "hello").explain()
    assert ("agent_search" if connection.vendor == "postgresql" else "VIRTUAL TABLE INDEX") in plan or (
        connection.vendor == "postgresql" and "Seq Scan on agent_searchtext" in plan
    )

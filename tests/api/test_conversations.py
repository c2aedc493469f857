"""Conversations, messages and runs."""

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.accounts.models import TokenKind
from hitlchat.agent import runner, runs, transcript
from hitlchat.agent.answer import Answer
from hitlchat.agent.models import Conversation, Message, Role, Run, RunStatus, SentMessage
from hitlchat.gate.models import Approval, new_id
from hitlchat.gate.status import Status
from tests.api.conftest import Program, ProgramOf, called, problem
from tests.api.described import described
from tests.conftest import MakeTool
from tests.gate.racing import together

pytestmark = pytest.mark.servers("PostgreSQL takes, sorts and compares text in another way")

NOWHERE = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def talk(bob: User) -> Conversation:
    return Conversation.objects.create(owner=bob, title="Orders")


def test_a_conversation_keeps_what_it_was_made_with_and_may_use_everything_unless_tools_are_named(
    bob: User, bobs: Program, make_tool: MakeTool
) -> None:
    make_tool("echo")
    make_tool("draft", published=False)
    made = bobs.post("/conversations", {"title": " Orders ", "model": "small", "tools": ["echo"]}).json()
    assert (made["title"], made["model"], made["tools"]) == ("Orders", "small", ["echo"])
    plain = bobs.post("/conversations", {}).json()
    assert (plain["title"], plain["model"], plain["tools"], plain["messages"]) == ("", "", None, [])
    assert Conversation.objects.get(pk=plain["id"]).owner == bob
    for name in ("draft", "missing"):
        assert name in problem(bobs.post("/conversations", {"tools": [name]}), 422)["errors"]["tools"]


def test_the_list_has_your_own_conversations_only(
    charlie: User, bobs: Program, program_of: ProgramOf, talk: Conversation
) -> None:
    assert [row["id"] for row in bobs.get("/conversations").json()] == [str(talk.pk)]
    assert program_of(charlie).get("/conversations").json() == []


def test_what_is_sent_is_changed_and_nothing_else(bobs: Program, talk: Conversation, make_tool: MakeTool) -> None:
    make_tool("echo")
    wanted = {"title": " Refunds ", "pinned": True, "instructions": "Be brief.", "model": "small", "tools": ["echo"]}
    changed = bobs.patch(f"/conversations/{talk.pk}", wanted).json()
    assert {name: changed[name] for name in wanted} == wanted | {"title": "Refunds"}
    assert changed["archived"] is False
    again = bobs.patch(f"/conversations/{talk.pk}", {"archived": True, "tools": None}).json()
    assert (again["archived"], again["pinned"], again["tools"], again["title"]) == (True, True, None, "Refunds")


def test_a_change_that_does_not_fit_names_its_field_and_changes_nothing(bobs: Program, talk: Conversation) -> None:
    rows: list[dict[str, Any]] = [
        {"title": ""},
        {"title": None},
        {"title": "x" * 201},
        {"pinned": "yes"},
        {"archived": 1},
        {"instructions": "x" * 10_001},
        {"tools": ["missing"]},
        {"owner": "charlie"},
        *({"asks": word} for word in ("", "EVERY", None, ["every"])),
    ]
    for body in rows:
        found = problem(bobs.patch(f"/conversations/{talk.pk}", body | {"model": "other"}), 422)
        assert list(found["errors"]) == list(body)
        talk.refresh_from_db()
        assert (talk.title, talk.model) == ("Orders", "")


@pytest.mark.guarantee("gate:only-people")
def test_it_asks_more_by_any_token_and_less_only_by_one_of_a_person(
    bob: User, bobs: Program, program_of: ProgramOf, talk: Conversation
) -> None:
    program, person, path = program_of(bob, TokenKind.API), bobs, f"/conversations/{talk.pk}"
    assert person.get(path).json()["asks"] == "tools"
    assert program.patch(path, {"asks": "every"}).json()["asks"] == "every"
    assert [row["asks"] for row in program.get("/conversations").json()] == ["every"]
    assert (
        "make a conversation ask less"
        in problem(program.patch(path, {"asks": "risky", "title": "Other"}), 403)["detail"]
    )
    assert (person.get(path).json()["asks"], person.get(path).json()["title"]) == ("every", "Orders")
    assert person.patch(path, {"asks": "tools"}).json()["asks"] == "tools"
    made = program.post("/conversations", {"asks": "risky"}).json()
    assert (made["asks"], program.get(f"/conversations/{made['id']}").json()["asks"]) == ("risky", "risky")


def test_limits_are_set_and_left_to_the_installation_again(bobs: Program, talk: Conversation) -> None:
    program, path = bobs, f"/conversations/{talk.pk}"
    wanted = {"temperature": 1, "maxTokens": 300, "maxTurns": 5}
    changed = program.patch(path, wanted).json()
    assert {name: changed[name] for name in wanted} == wanted
    again = program.patch(path, {"temperature": None, "maxTurns": None}).json()
    assert (again["temperature"], again["maxTokens"], again["maxTurns"]) == (None, 300, None)
    for name, value in [("temperature", 2.5), ("maxTokens", 0), ("maxTurns", 101), ("maxTurns", "5")]:
        for answer in (program.patch(path, {name: value}), program.post("/conversations", {name: value})):
            assert list(problem(answer, 422)["errors"]) == [name]


def test_new_ones_begin_with_what_their_person_chose(charlie: User, bobs: Program, program_of: ProgramOf) -> None:
    program, path = bobs, "/conversation-defaults"
    nothing: dict[str, object] = {"instructions": "", "temperature": None, "maxTokens": None, "maxTurns": None}
    nothing |= {"allTools": False, "tools": None, "toolSet": None}
    nothing |= {"endpoint": None, "model": "", "trouble": "", "asks": "tools"}
    assert program.get(path).json() == nothing
    chosen = {"instructions": "Be brief.", "temperature": 0.5, "asks": "risky"}
    chosen |= {"endpoint": "environment", "model": "small"}
    assert program.patch(path, chosen).json() == program.get(path).json() == nothing | chosen
    made = program.post("/conversations", {}).json()
    assert {name: made[name] for name in nothing if name != "allTools"} == {
        name: value for name, value in (nothing | chosen).items() if name != "allTools"
    }
    other = program.post("/conversations", {"instructions": "Be long.", "temperature": None}).json()
    assert (other["instructions"], other["temperature"]) == ("Be long.", None)
    assert program_of(charlie).get(path).json() == nothing
    bad: list[tuple[str, object]] = [("temperature", -1), ("instructions", None), ("instructions", "x" * 10_001)]
    bad += [("asks", "never"), ("endpoint", "nowhere")]
    for name, value in [*bad, ("tools", ["nothing"]), ("toolSet", "nothing"), ("allTools", 1)]:
        assert list(problem(program.patch(path, {name: value}), 422)["errors"]) == [name]
    assert program.get(path).json() == nothing | chosen
    assert program.patch(path, {"endpoint": None}).json()["model"] == ""
    assert "endpoint" in problem(program.patch(path, {"model": "small"}), 422)["errors"]


@pytest.mark.guarantee("gate:only-people")
def test_no_program_has_new_conversations_ask_less(alices: Program, machine: Program) -> None:
    path = "/conversation-defaults"
    assert machine.patch(path, {"asks": "every"}).json()["asks"] == "every"
    problem(machine.patch(path, {"asks": "tools"}), 403)
    assert machine.post("/conversations", {"asks": "tools"}).json()["asks"] == "every"
    assert alices.post("/conversations", {"asks": "tools"}).json()["asks"] == "tools"
    assert alices.patch(path, {"asks": "tools"}).json()["asks"] == "tools"
    assert machine.post("/conversations", {}).json()["asks"] == "tools"


def test_the_list_is_searched_and_divided_by_the_archive(bobs: Program, talk: Conversation) -> None:
    other = bobs.post("/conversations", {"title": "Older orders"}).json()["id"]
    bobs.patch(f"/conversations/{other}", {"archived": True})
    bobs.patch(f"/conversations/{talk.pk}", {"title": "Orders"})

    def listed(query: str) -> set[str]:
        return {row["title"] for row in bobs.get(f"/conversations{query}").json()}

    assert listed("") == listed("?search=orders") == {"Orders", "Older orders"}
    assert listed("?archived=true") == listed("?search=old") == {"Older orders"}
    assert listed("?archived=false") == {"Orders"}
    assert listed("?search=old&archived=false") == set()


def test_messages_come_in_pages_from_the_end(bobs: Program, talk: Conversation) -> None:
    rows = [Message(conversation=talk, seq=n, role=Role.USER, content=f"{n}") for n in range(1, 8)]
    Message.objects.bulk_create(rows)
    address = f"/conversations/{talk.pk}/messages?limit=3"
    last = bobs.get(address).json()
    assert ([each["content"] for each in last["messages"]], last["earlier"]) == (["5", "6", "7"], True)
    before = bobs.get(f"{address}&before={last['messages'][0]['id']}").json()
    assert ([each["content"] for each in before["messages"]], before["earlier"]) == (["2", "3", "4"], True)
    first = bobs.get(f"{address}&before={before['messages'][0]['id']}").json()
    assert ([each["content"] for each in first["messages"]], first["earlier"]) == (["1"], False)
    assert bobs.get(f"{address}&before={NOWHERE}").json() == {"messages": [], "earlier": False}


def test_a_deleted_conversation_is_not_there_any_more(bobs: Program, talk: Conversation) -> None:
    assert bobs.delete(f"/conversations/{talk.pk}").status_code == 204
    for path in ("", "/messages", "/export"):
        problem(bobs.get(f"/conversations/{talk.pk}{path}"), 404)
    problem(bobs.patch(f"/conversations/{talk.pk}", {"title": "Back"}), 404)
    problem(bobs.post(f"/conversations/{talk.pk}/messages", {"content": "hi"}), 404)
    problem(bobs.delete(f"/conversations/{talk.pk}"), 404)
    assert bobs.get("/conversations").json() == []


def test_a_conversation_is_exported_for_people_and_for_programs(bobs: Program, talk: Conversation) -> None:
    Message.objects.create(conversation=talk, seq=1, role=Role.USER, content="Hello")
    file = bobs.get(f"/conversations/{talk.pk}/export")
    assert file["Content-Type"] == "text/markdown; charset=utf-8"
    assert file["Content-Disposition"].startswith('attachment; filename="orders-')
    assert "Hello" in b"".join(file.streaming_content).decode()
    whole = bobs.get(f"/conversations/{talk.pk}/export?format=json")
    assert json.loads(b"".join(whole.streaming_content)) == bobs.get(f"/conversations/{talk.pk}").json()
    problem(bobs.get(f"/conversations/{talk.pk}/export?format=pdf"), 422)


def test_a_message_is_accepted_and_a_run_begins(bobs: Program, talk: Conversation) -> None:
    response = bobs.post(f"/conversations/{talk.pk}/messages", {"content": " Hello "})
    assert response.status_code == 202
    accepted = response.json()
    assert accepted.keys() == {"messageId", "runId"}
    assert Message.objects.get(pk=accepted["messageId"]).content == "Hello"
    run = bobs.get(f"/runs/{accepted['runId']}").json()
    assert run["conversationId"] == str(talk.pk)
    assert (run["status"], run["error"], run["finishedAt"]) == ("running", None, None)


def test_a_message_sent_again_with_its_key_is_said_once(bob: User, bobs: Program, talk: Conversation) -> None:
    program, path = bobs, f"/conversations/{talk.pk}/messages"
    program.headers = program.headers | {"Idempotency-Key": "order-1"}
    first, again = (program.post(path, {"content": "Hello"}) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert (Message.objects.count(), Run.objects.count()) == (1, 1)
    assert "Idempotency-Key" in problem(program.post(path, {"content": "Something else"}), 422)["errors"]
    other = Conversation.objects.create(owner=bob)
    problem(program.post(f"/conversations/{other.pk}/messages", {"content": "Hello"}), 422)
    for key in ["a" * 201, "two words"]:
        program.headers = program.headers | {"Idempotency-Key": key}
        problem(program.post(f"/conversations/{other.pk}/messages", {"content": "Hello"}), 422)
    assert Message.objects.count() == 1


def test_of_a_message_sent_twice_at_once_with_its_key_one_is_said(bob: User, talk: Conversation) -> None:
    ends = together(*[partial(runner.say, talk, "Hello", "order-1")] * 5, meet_at_first_write=True)
    assert len({(message.pk, run_id) for message, run_id in ends}) == 1
    assert Message.objects.count() == 1


def test_a_key_is_its_persons_own_and_is_forgotten_after_a_day(bob: User, charlie: User, talk: Conversation) -> None:
    runner.say(talk, "Hello", "order-1")
    runner.say(Conversation.objects.create(owner=charlie), "Hi", "order-1")
    SentMessage.objects.update(made_at=timezone.now() - runs.KEPT - timedelta(seconds=1))
    runner.say(Conversation.objects.create(owner=bob), "Something else", "order-1")
    assert (Message.objects.count(), SentMessage.objects.filter(owner=bob).count()) == (3, 1)


def test_content_that_cannot_be_said_is_refused(bobs: Program, talk: Conversation) -> None:
    program, at = bobs, f"/conversations/{talk.pk}/messages"
    before = said(talk, "one")
    for content in ["", "  \n", "a" * 100_001, "a\x00b", "a\ud800", None, 1, ["a"]]:
        for path in (at, f"{at}/{before.pk}/edit"):
            assert problem(program.post(path, {"content": content}), 422)["errors"].keys() == {"content"}
    assert problem(program.post(at, {}), 422)["errors"].keys() == {"content"}
    problem(program.post(at), 422)
    assert program.post(at, {"content": "ä" * 100_000}).status_code == 202
    problem(program.post(at, {"content": "Still there?"}), 409)
    assert Run.objects.count() == 2


def test_a_conversation_has_its_messages_and_their_calls_in_order(
    bob: User, bobs: Program, talk: Conversation, make_tool: MakeTool
) -> None:
    make_tool("echo")
    make_tool("quiet", hitl_mode="DISABLED")
    _, run_id = runner.say(talk, "Do three things")
    turn = transcript.open_answer(talk.pk, run_id, new_id())
    Message.objects.filter(pk=turn.pk).update(reasoning="Which three?")
    for position, name in enumerate(["echo", "quiet", "missing"]):
        called(bob, name, {"text": name}, conversation_id=talk.pk, turn_id=turn.pk, position=position)
    transcript.answer_calls(talk, Run.objects.get(pk=run_id), turn.pk)
    transcript.add_notice(talk.pk, run_id, "It took long.")

    found = bobs.get(f"/conversations/{talk.pk}").json()

    assert [message["role"] for message in found["messages"]] == ["user", "assistant", "notice"]
    assert Message.objects.filter(role=Role.TOOL).count() == 3
    assert found["messages"][0]["content"] == "Do three things"
    assert [message["reasoning"] for message in found["messages"]] == ["", "Which three?", ""]
    calls = found["messages"][1]["toolCalls"]
    assert [call["toolName"] for call in calls] == ["echo", "quiet", "missing"]
    assert [call["status"] for call in calls] == [Status.WAITING, Status.ALLOWED, Status.REJECTED]
    assert calls[0]["approvalId"] == str(Approval.objects.get().pk)
    assert calls[1]["approvalId"] is None
    assert calls[0]["arguments"] == {"text": "echo"}
    assert calls[2]["error"]["kind"] == "rejected"
    contract = {"id", "toolName", "arguments", "status", "result", "error", "approvalId"}
    assert calls[0].keys() == contract | {"isAutomatic", "agentConversationId"}
    assert [call["isAutomatic"] for call in calls] == [False, True, False]


def test_stopping_a_run_withdraws_what_waits(bob: User, bobs: Program, talk: Conversation, make_tool: MakeTool) -> None:
    make_tool("echo")
    _, run_id = runner.say(talk, "Echo it")
    turn = transcript.open_answer(talk.pk, run_id, new_id())
    Run.objects.filter(pk=run_id).update(turn_id=turn.pk)
    call = called(bob, "echo", {}, conversation_id=talk.pk, turn_id=turn.pk)

    stopped = bobs.post(f"/runs/{run_id}/stop")

    assert stopped.status_code == 200
    assert stopped.json()["status"] == "stopped"
    call.refresh_from_db()
    assert call.status == Status.WITHDRAWN
    again = bobs.post(f"/runs/{run_id}/stop")
    assert (again.status_code, again.json()) == (200, stopped.json())
    assert bobs.post(f"/conversations/{talk.pk}/messages", {"content": "Again"}).status_code == 202


def test_someone_else_s_conversation_and_run_look_like_none(
    charlie: User, program_of: ProgramOf, talk: Conversation
) -> None:
    _, run_id = runner.say(talk, "Hello")
    program = program_of(charlie)
    pairs = [("GET", "/conversations/{}", talk.pk), ("POST", "/conversations/{}/messages", talk.pk)]
    pairs += [
        ("GET", f"/conversations/{{}}{path}", talk.pk) for path in ("/messages", "/export", "/export?format=json")
    ]
    pairs += [("PATCH", "/conversations/{}", talk.pk), ("DELETE", "/conversations/{}", talk.pk)]
    pairs += [("GET", "/runs/{}", run_id), ("POST", "/runs/{}/stop", run_id)]
    for method, path, theirs in pairs:
        body = {"PATCH": '{"title": "Mine"}', "POST": '{"content": "Hi"}'}.get(method, "")
        answers = [program.send(method, path.format(which), body) for which in (theirs, NOWHERE)]
        problem(answers[0], 404)
        assert answers[0].content == answers[1].content
    assert Run.objects.get(pk=run_id).status == "running"


# -- Branches ---------------------------------------------------------------------------------------------------------


def said(talk: Conversation, content: str) -> Message:
    """Add a message of bob and an answer to it."""
    message, claim = runs.start(talk, content)
    transcript.open_answer(talk.pk, claim.run_id, new_id())
    transcript.close_answer(talk.messages.get(run=claim.run_id, role=Role.ASSISTANT).pk, Answer(f"To {content}"))
    runs.finish(claim, RunStatus.DONE)
    return message


def end(talk: Conversation) -> None:
    Run.objects.filter(conversation=talk, status=RunStatus.RUNNING).update(status=RunStatus.DONE)


def shown(bobs: Program, talk: Conversation) -> list[tuple[str, int | None, int]]:
    rows = bobs.get(f"/conversations/{talk.pk}/messages").json()["messages"]
    return [(row["content"], row["version"], len(row["versions"])) for row in rows]


def test_a_message_is_said_in_another_way_and_both_versions_can_be_shown(bobs: Program, talk: Conversation) -> None:
    first = said(talk, "one")
    assert shown(bobs, talk) == [("one", None, 0), ("To one", None, 0)]
    at = f"/conversations/{talk.pk}/messages"
    response = bobs.post(f"{at}/{first.pk}/edit", {"content": "two"})
    assert response.status_code == 202
    made = Message.objects.get(pk=response.json()["messageId"])
    assert (made.content, str(made.run_id)) == ("two", response.json()["runId"])
    end(talk)
    assert shown(bobs, talk) == [("two", 2, 2)]
    back = bobs.post(f"{at}/{first.pk}/show", {})
    assert back.status_code == 200
    assert [row["content"] for row in back.json()["messages"]] == ["one", "To one"]
    assert back.json()["messages"][0]["versions"] == [str(first.pk), str(made.pk)]
    assert shown(bobs, talk) == [("one", 1, 2), ("To one", None, 0)]


def test_what_led_to_an_answer_is_answered_again(bobs: Program, talk: Conversation) -> None:
    said(talk, "one")
    answer = talk.messages.get(role=Role.ASSISTANT)
    response = bobs.post(f"/conversations/{talk.pk}/messages/{answer.pk}/regenerate", {})
    assert response.status_code == 202
    end(talk)
    assert shown(bobs, talk) == [("one", 2, 2)]


def test_what_was_said_is_answered_again_without_the_images_that_the_model_refused(
    bobs: Program, talk: Conversation
) -> None:
    message = said(talk, "one")
    Run.objects.update(status=RunStatus.FAILED, refused_images=True)
    at = f"/conversations/{talk.pk}/messages/{message.pk}/regenerate"
    problem(bobs.post(at, {"withoutImages": "yes"}), 422)
    assert bobs.post(at, {"withoutImages": True}).status_code == 202
    talk.refresh_from_db()
    assert talk.no_images_for
    assert talk.messages.filter(role=Role.NOTICE, content__contains="does not accept images").count() == 1


BRANCHING: dict[str, dict[str, str]] = {"edit": {"content": "two"}, "regenerate": {}, "show": {}}


def test_branches_stay_as_they_are_while_the_assistant_works(bob: User, bobs: Program, talk: Conversation) -> None:
    first = said(talk, "one")
    runs.start(talk, "two")
    for what, body in BRANCHING.items():
        problem(bobs.post(f"/conversations/{talk.pk}/messages/{first.pk}/{what}", body), 409)
    assert [content for content, *_ in shown(bobs, talk)] == ["one", "To one", "two"]


def test_no_message_of_anybody_else_and_of_another_conversation_is_found(
    bob: User, bobs: Program, charlie: User, program_of: ProgramOf, talk: Conversation
) -> None:
    first = said(talk, "one")
    other = Conversation.objects.create(owner=bob)
    at = f"/conversations/{talk.pk}/messages"
    for what, body in BRANCHING.items():
        problem(program_of(charlie).post(f"{at}/{first.pk}/{what}", body), 404)
        problem(bobs.post(f"/conversations/{other.pk}/messages/{first.pk}/{what}", body), 404)
        problem(bobs.post(f"{at}/{NOWHERE}/{what}", body), 404)
    assert talk.messages.count() == 2


# -- Summaries ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def summary(talk: Conversation) -> Message:
    """A conversation whose first message has a summary in its place."""
    said, claim = runs.start(talk, "I like tea.")
    found = transcript.add_summary(talk.pk, claim.run_id, "The user likes tea.", [said.pk])
    runs.finish(claim, RunStatus.DONE)
    return found


def test_a_summary_names_what_it_stands_for_and_is_undone_and_used_again(
    bobs: Program, talk: Conversation, summary: Message
) -> None:
    at = f"/conversations/{talk.pk}/messages"
    said, found = described(bobs.get(at))["messages"]
    assert (found["role"], found["content"], found["undone"]) == ("summary", "The user likes tea.", False)
    assert (found["standsFor"], said["standsFor"]) == ([said["id"]], [])
    undone = described(bobs.post(f"{at}/{summary.pk}/undo", {}))
    assert undone["messages"][-1]["undone"] is True
    assert described(bobs.post(f"{at}/{summary.pk}/redo", {}))["messages"][-1]["undone"] is False


def test_only_a_summary_of_ones_own_is_undone_and_only_between_runs(
    bobs: Program, charlie: User, program_of: ProgramOf, talk: Conversation, summary: Message
) -> None:
    at = f"/conversations/{talk.pk}/messages"
    said = Message.objects.get(role=Role.USER)
    for what in ("undo", "redo"):
        problem(program_of(charlie).post(f"{at}/{summary.pk}/{what}", {}), 404)
        problem(bobs.post(f"{at}/{said.pk}/{what}", {}), 404)
        problem(bobs.post(f"{at}/{NOWHERE}/{what}", {}), 404)
    runs.start(talk, "More")
    for what in ("undo", "redo"):
        problem(bobs.post(f"{at}/{summary.pk}/{what}", {}), 409)
    summary.refresh_from_db()
    assert summary.undone is False

"""Approvals: what is shown, what a yes and a no do, and what does not count as one."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitlchat.gate.models import Approval, AuditEvent, Decision, ToolCall
from hitlchat.gate.provenance import Heard, Text
from hitlchat.gate.status import Status
from tests.api.conftest import Ask, Program, ProgramOf, called, performed, problem
from tests.conftest import MakeTool

NOWHERE = "01890000-0000-7000-8000-000000000000"
FIELDS = {
    *("id", "callId", "toolName", "arguments", "prompt", "requestedAt", "deadline", "sessionId", "userPrompt"),
    *("riskLevel", "consentDigest", "status", "reason", "facts", "decisions", "callStatus", "result", "error"),
    *("agents", "provenance", "warnings", "caution", "meanings", "inherentRiskLevel", "riskUnknown"),
    *("preview", "askedAgain", "askedTimes", "attempt", "instead", "grantId", "question"),
    *("decidedBy", "deciderGroup", "quorum", "approvedBy", "whoDecides", "onIt", "whys"),
}


def undecided(approval: Approval) -> bool:
    return (
        ToolCall.objects.get(pk=approval.call_id).status == Status.WAITING
        and not Decision.objects.filter(approval=approval).exists()
    )


def test_an_approval_says_what_is_asked(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob, text="hi")
    found = bobs.get(f"/approvals/{approval.pk}").json()
    assert found.keys() == FIELDS
    assert found["id"] == str(approval.pk)
    assert found["callId"] == str(approval.call_id)
    assert (found["toolName"], found["arguments"]) == ("echo", {"text": "hi"})
    assert (found["status"], found["callStatus"], found["decisions"]) == ("pending", "waiting", [])
    assert found["consentDigest"] == approval.digest
    assert found["sessionId"] is None
    assert found["provenance"] == []
    assert found["requestedAt"].endswith("Z")
    assert found["deadline"].endswith("Z")
    assert (found["preview"], found["askedAgain"]) == (None, None)
    assert found["askedTimes"] == 1
    assert found["facts"] == ["It has never run here."]
    assert found["warnings"] == []


@pytest.mark.guarantee("SR-3")
def test_what_may_deceive_a_reader_is_named_with_its_place_and_kind(
    bob: User, bobs: Program, make_tool: MakeTool
) -> None:
    make_tool(
        "send",
        code="def run(to: list[str], more: dict[str, str]) -> None:\n    pass\n",
        prompt_template="To {args.to}?",
    )
    call = called(bob, "send", {"to": ["a", "\u0410\u0421\u041c\u0415"], "more": {"a/b": "a\u200bb", "\u0430x": "x"}})
    found = bobs.get("/approvals").json()[0]["warnings"]
    assert call.status == Status.WAITING
    assert {(each["path"], each["kind"]) for each in found} == {
        ("/to/1", "look_alike"),
        ("/more/a~1b", "hidden"),
        ("/more/\u0430x", "look_alike"),
        ("prompt", "look_alike"),
    }
    assert any("look like “ACME”" in each["text"] for each in found)


def test_what_values_mean_is_told_with_the_place_of_each(bob: User, bobs: Program, make_tool: MakeTool) -> None:
    make_tool("send", code='def run(url: str, text: str = "a") -> None:\n    pass\n')
    called(bob, "send", {"url": "https://shop.example@%65vil.example"})
    assert bobs.get("/approvals").json()[0]["meanings"] == [
        {"path": "/url", "text": "Goes to host evil.example", "caution": False},
        {"path": "/url", "text": "Before the @ is a user name, not the host: shop.example", "caution": True},
        {"path": "/url", "text": "In the value, that host is written as %65vil.example", "caution": True},
        {"path": "/text", "text": "The default: the call does not give this value.", "caution": False},
    ]


def test_an_approval_of_a_conversation_says_which_and_what_the_user_said(
    bob: User, bobs: Program, make_tool: MakeTool
) -> None:
    make_tool("echo")
    heard = Heard.of([Text("Echo it"), Text("hi", "outside", call=NOWHERE, tool="fetch")])
    call = called(bob, "echo", {"text": "hi"}, conversation_id=NOWHERE, user_prompt="Echo it", heard=heard)
    (found,) = bobs.get("/approvals").json()
    assert (found["callId"], found["sessionId"], found["userPrompt"]) == (str(call.pk), NOWHERE, "Echo it")
    origin = {"path": "/text", "from": "outside", "source": {"call": NOWHERE, "tool": "fetch"}}
    assert found["provenance"] == [{**origin, "partly": False, "unsure": False, "near": "", "wrote": ""}]


@pytest.mark.guarantee("gate:fail-closed")
def test_the_list_has_your_own_alone_by_status_and_in_pages(
    bob: User, charlie: User, bobs: Program, program_of: ProgramOf, ask: Ask
) -> None:
    waits, yes, no, late = (ask(bob, text=word) for word in ("waits", "yes", "no", "late"))
    bobs.post(f"/approvals/{yes.pk}/approve")
    bobs.post(f"/approvals/{no.pk}/reject")
    ToolCall.objects.filter(pk=late.call_id).update(deadline=timezone.now() - timedelta(seconds=1))
    refused = problem(bobs.post(f"/approvals/{late.pk}/approve"), 409)["approval"]
    assert (refused["status"], refused["decisions"]) == ("expired", [])

    def listed(status: str, **page: int) -> list[str]:
        return [row["id"] for row in bobs.get("/approvals", status=status, **page).json()]

    assert listed("pending") == [str(waits.pk)]
    assert listed("approved") == [str(yes.pk)]
    assert listed("declined") == [str(no.pk)]
    assert listed("expired") == [str(late.pk)]
    assert listed("withdrawn") == []
    assert listed("all", limit=2, offset=1) == [str(no.pk), str(yes.pk)]
    assert program_of(charlie).get("/approvals", status="all").json() == []
    assert listed("all") == [str(each.pk) for each in (late, no, yes, waits)]
    problem(bobs.get("/approvals", status="maybe"), 422)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_after_a_yes_the_call_runs_and_before_it_does_not(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob, text="hi")
    assert performed(approval.call_id, 0).status == Status.WAITING
    response = bobs.post(f"/approvals/{approval.pk}/approve", {"consentDigest": approval.digest})
    assert response.status_code == 200
    assert (response.json()["status"], response.json()["callStatus"]) == ("approved", "approved")
    (decision,) = response.json()["decisions"]
    assert (decision["person"], decision["verdict"], decision["means"]) == ("bob", "approve", "token")
    assert decision["editedArguments"] is None
    assert performed(approval.call_id).status == Status.SUCCEEDED
    after = bobs.get(f"/approvals/{approval.pk}").json()
    assert (after["status"], after["callStatus"], after["result"]) == ("approved", "succeeded", "hi")


def test_after_a_no_the_call_never_runs_and_the_reason_is_kept(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob)
    response = bobs.post(f"/approvals/{approval.pk}/reject", {"reason": "Not today."})
    assert response.status_code == 200
    assert (response.json()["status"], response.json()["callStatus"]) == ("declined", "declined")
    assert response.json()["decisions"][0]["reason"] == "Not today."
    assert performed(approval.call_id).status == Status.DECLINED


@pytest.mark.guarantee("gate:truth")
def test_an_answer_in_the_tools_place_has_a_status_of_its_own(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob)
    problem(bobs.post(f"/approvals/{approval.pk}/reject", {"answer": "Customer 12", "reason": "no"}), 422)
    problem(bobs.post(f"/approvals/{approval.pk}/reject", {"answer": "x" * 4001}), 422)
    told = bobs.post(f"/approvals/{approval.pk}/reject", {"answer": "Customer 12"}).json()
    assert (told["status"], told["callStatus"], told["result"]) == ("answered", "answered", "Customer 12")
    assert [(each["verdict"], each["reason"]) for each in told["decisions"]] == [("answer", "")]
    assert performed(approval.call_id).started_at is None
    assert [each["id"] for each in bobs.get("/approvals", status="answered").json()] == [str(approval.pk)]


def test_what_to_do_instead_is_a_decline_whose_verdict_says_so(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob)
    told = bobs.post(f"/approvals/{approval.pk}/reject", {"instead": "Use customer 12"}).json()
    assert told["status"] == "declined"
    assert [(each["verdict"], each["reason"]) for each in told["decisions"]] == [("suggest", "Use customer 12")]


@pytest.mark.guarantee("gate:one-outcome")
def test_an_answer_needs_no_body_and_a_second_one_is_told_the_standing_outcome(
    bob: User, bobs: Program, ask: Ask
) -> None:
    for first, second, body in (("approve", "reject", ""), ("reject", "approve", "{}")):
        approval = ask(bob)
        standing = bobs.send("POST", f"/approvals/{approval.pk}/{first}", body)
        assert standing.status_code == 200
        found = problem(bobs.post(f"/approvals/{approval.pk}/{second}"), 409)
        assert (found["code"], found["approval"]) == ("already_completed", standing.json())
        assert Decision.objects.filter(approval=approval).count() == 1


@pytest.mark.guarantee("gate:same-call")
def test_consent_to_something_else_is_none(bob: User, bobs: Program, ask: Ask) -> None:
    approval, other = ask(bob, text="a"), ask(bob, text="b")
    found = problem(bobs.post(f"/approvals/{approval.pk}/approve", {"consentDigest": other.digest}), 409)
    assert "not the one you were shown" in found["detail"]
    problem(bobs.post(f"/approvals/{approval.pk}/approve", {"consentDigest": ""}), 409)
    assert undecided(approval)


def test_changed_arguments_have_to_fit_the_schema(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob)
    for edited in [{"text": 1}, {"other": "x"}, {"text": None}]:
        response = bobs.post(f"/approvals/{approval.pk}/approve", {"modifiedArguments": edited})
        assert problem(response, 422)["errors"].keys() == {"modifiedArguments"}
        assert undecided(approval)


NOT_A_YES = {
    "arguments as text": '{"modifiedArguments": "{}"}',
    "arguments as a list": '{"modifiedArguments": []}',
    "a digest that is no text": '{"consentDigest": 1}',
    "snake case": '{"modified_arguments": {}}',
    "an unknown field": '{"approve": true}',
    "a tool": '{"toolName": "other"}',
    "a list": "[]",
    "null": "null",
    "true": "true",
    "twice the same key": '{"modifiedArguments": {"text": "a"}, "modifiedArguments": {"text": "b"}}',
    "twice the same key inside": '{"modifiedArguments": {"text": "a", "text": "b"}}',
    "not a number": '{"modifiedArguments": {"text": NaN}}',
    "infinite": '{"modifiedArguments": {"text": 1e999}}',
    "cut off": '{"modifiedArguments": {',
}


@pytest.mark.guarantee("gate:fail-closed", "SR-13")
def test_a_body_that_is_not_understood_is_no_yes(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob)
    for body in NOT_A_YES.values():
        response = bobs.send("POST", f"/approvals/{approval.pk}/approve", body)
        assert response.status_code in (400, 422)
        problem(response, response.status_code)
        assert undecided(approval)


def test_a_reason_has_to_be_text_that_can_be_kept(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob)
    for reason in [1, None, "a" * 501, "a\x00b"]:
        found = problem(bobs.post(f"/approvals/{approval.pk}/reject", {"reason": reason}), 422)
        assert found["errors"].keys() == {"reason"}
        assert undecided(approval)


@pytest.mark.guarantee("gate:only-people", "SR-16", "SR-21")
@pytest.mark.parametrize("person", ["charlie", "alice"])
def test_someone_else_s_approval_looks_like_none(
    person: str, bob: User, alice: User, charlie: User, program_of: ProgramOf, ask: Ask
) -> None:
    approval = ask(bob)
    program = program_of({"charlie": charlie, "alice": alice}[person])
    for method, tail in [("GET", ""), ("POST", "/approve"), ("POST", "/reject")]:
        theirs, none = (program.send(method, f"/approvals/{which}{tail}") for which in (approval.pk, NOWHERE))
        problem(theirs, 404)
        assert theirs.content == none.content
    assert undecided(approval)


def test_nothing_but_a_post_answers(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob)
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"]:
        for verb in ["approve", "reject"]:
            response = bobs.send(method, f"/approvals/{approval.pk}/{verb}")
            assert response.status_code == 405
            assert undecided(approval)


def test_looking_changes_nothing(bob: User, bobs: Program, ask: Ask) -> None:
    approval = ask(bob)
    ToolCall.objects.filter(pk=approval.call_id).update(deadline=timezone.now() - timedelta(seconds=1))
    for path in (f"/approvals/{approval.pk}", "/approvals", "/calls", f"/calls/{approval.call_id}", "/tools"):
        assert bobs.get(path).status_code == 200
    assert undecided(approval)


def test_the_list_takes_the_same_number_of_queries_however_long_it_is(
    bob: User, bobs: Program, ask: Ask, django_assert_max_num_queries: Any
) -> None:
    for word in "abcdef":
        bobs.post(f"/approvals/{ask(bob, text=word).pk}/reject")
    with django_assert_max_num_queries(4):
        assert len(bobs.get("/approvals", status="all").json()) == 6


def test_an_edited_approval_says_what_runs_everywhere(
    bob: User, bobs: Program, make_tool: MakeTool, client: Client
) -> None:
    make_tool("echo", prompt_template="Say {args.text} aloud?")
    call = called(bob, "echo", {"text": "hello"})
    asked = bobs.get("/approvals").json()[0]
    assert asked["prompt"] == "Say hello aloud?"
    answered = bobs.post(f"/approvals/{asked['id']}/approve", {"modifiedArguments": {"text": "bye"}}).json()
    assert (answered["prompt"], answered["arguments"]) == ("Say bye aloud?", {"text": "bye"})
    assert answered["decisions"][0]["editedArguments"] == {"text": "bye"}
    assert bobs.get(f"/approvals/{asked['id']}").json()["prompt"] == "Say bye aloud?"
    assert bobs.get(f"/calls/{call.pk}").json()["prompt"] == "Say bye aloud?"
    client.force_login(bob)
    assert "Say bye aloud?" in client.get("/history/").content.decode()
    event = AuditEvent.objects.get(name="call.approved")
    assert event.data["prompt"] == "Say bye aloud?"
    assert performed(call.pk).result == "bye"


def test_the_reason_of_a_no_may_stand_in_the_address(bob: User, bobs: Program, ask: Ask) -> None:
    rows: list[tuple[str, object, str]] = [
        ("Duplicate%20refund", None, "Duplicate refund"),
        ("Duplicate%20refund", {}, "Duplicate refund"),
        ("one", {"reason": "two"}, "two"),
    ]
    for query, body, kept in rows:
        approval = ask(bob, text="hi")
        problem(bobs.post(f"/approvals/{approval.pk}/reject?reason={'x' * 501}", body), 422)
        assert undecided(approval)
        answered = bobs.post(f"/approvals/{approval.pk}/reject?reason={query}", body)
        assert answered.json()["decisions"][0]["reason"] == kept

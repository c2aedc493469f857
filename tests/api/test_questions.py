"""Questions of upstream servers over REST: the person whose call it is answers them, and nobody else."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams.models import UpstreamQuestion
from tests.api.conftest import Program, ProgramOf, problem
from tests.gate.asking import events
from tests.upstreams.asking import SCHEMA, executing_elsewhere, question_of


@pytest.fixture
def call(bob: User) -> ToolCall:
    return executing_elsewhere(bob)


@pytest.fixture
def question(call: ToolCall) -> UpstreamQuestion:
    return question_of(call)


def test_what_waits_for_the_person_is_listed_and_read(bobs: Program, question: UpstreamQuestion) -> None:
    (found,) = bobs.get("/questions").json()
    assert found == bobs.get(f"/questions/{question.pk}").json()
    assert (found["callId"], found["server"], found["status"]) == (str(question.call_id), "counter", "open")
    assert (found["message"], found["requestedSchema"], found["url"]) == ("Which?", SCHEMA, "")


def test_an_answer_closes_it_and_its_values_wait_sealed_for_the_process_that_executes_the_call(
    bobs: Program, question: UpstreamQuestion
) -> None:
    told = bobs.post(f"/questions/{question.pk}/answer", {"content": {"colour": "red", "litres": 2}})
    assert told.status_code == 200
    assert (told.json()["status"], told.json()["answeredBy"]) == ("answered", "bob")
    assert told.json()["fields"] == ["colour", "litres"]
    question.refresh_from_db()
    assert question.sealed
    assert '"red"' not in question.sealed
    assert bobs.get("/questions").json() == []
    late = problem(bobs.post(f"/questions/{question.pk}/decline"), 409)
    assert late["detail"] == "This question is no longer open: answered."


def test_what_does_not_fit_is_told_at_its_field(bobs: Program, question: UpstreamQuestion) -> None:
    told = problem(bobs.post(f"/questions/{question.pk}/answer", {"content": {"colour": "green", "size": 1}}), 422)
    assert told["errors"] == {"content.size": "There is no such field.", "content.colour": "Choose one from the list."}
    for body in [{"content": []}, {"content": None}, {"value": {}}, [1], {"content": {"colour": None}}]:
        problem(bobs.post(f"/questions/{question.pk}/answer", body), 422)
    question.refresh_from_db()
    assert question.state == "open"


def test_a_no_is_told_from_an_answer(bobs: Program, question: UpstreamQuestion) -> None:
    assert bobs.post(f"/questions/{question.pk}/decline").json()["status"] == "declined"
    assert bobs.get("/questions", status="declined").json()[0]["id"] == str(question.pk)


@pytest.mark.guarantee("gate:only-people")
def test_it_is_hidden_from_others_and_closed_to_programs(
    alice: User, bob: User, charlie: User, program_of: ProgramOf, question: UpstreamQuestion
) -> None:
    for other in (alice, charlie):
        theirs = program_of(other)
        assert theirs.get("/questions", status="all").json() == []
        problem(theirs.get(f"/questions/{question.pk}"), 404)
        for what in ("answer", "decline"):
            problem(theirs.post(f"/questions/{question.pk}/{what}", {"content": {}} if what == "answer" else None), 404)
    api = program_of(bob, TokenKind.API)
    problem(api.get("/questions"), 403)
    problem(api.post(f"/questions/{question.pk}/answer", {"content": {"colour": "red"}}), 403)
    question.refresh_from_db()
    assert question.state == "open"


def test_one_that_nobody_waits_for_any_more_cannot_be_answered(
    bobs: Program, call: ToolCall, question: UpstreamQuestion
) -> None:
    late = question_of(call, deadline=timezone.now() - timedelta(seconds=1))
    ToolCall.objects.filter(pk=call.pk).update(status=Status.UNKNOWN)
    for each in (question, late):
        problem(bobs.post(f"/questions/{each.pk}/answer", {"content": {"colour": "red"}}), 409)
        assert bobs.get(f"/questions/{each.pk}").json()["status"] == "gone"
    assert bobs.get("/questions").json() == []


def test_a_call_is_told_to_stop_by_whoever_asked_for_it(
    bob: User, charlie: User, bobs: Program, program_of: ProgramOf, call: ToolCall
) -> None:
    problem(program_of(charlie).post(f"/calls/{call.pk}/stop"), 404)
    assert bobs.post(f"/calls/{call.pk}/stop").json()["status"] == "executing"
    ToolCall.objects.filter(pk=call.pk).update(status=Status.SUCCEEDED)
    assert bobs.post(f"/calls/{call.pk}/stop").json()["status"] == "succeeded"
    assert events(call).count("call.stop_requested") == 1

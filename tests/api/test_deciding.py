"""Several approvals answered together, and one taken back."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import Approval, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.api.conftest import Ask, Program, ProgramOf, performed, problem


def batch(*approvals: Approval, verdict: str = "approve", **more: Any) -> dict[str, Any]:
    items = [{"id": str(each.pk), "consentDigest": each.digest} for each in approvals]
    return {"verdict": verdict, "items": items} | more


@pytest.mark.guarantee("gate:one-outcome")
def test_each_of_a_batch_has_its_own_outcome(bob: User, bobs: Program, ask: Ask) -> None:
    first, second, third = (ask(bob, text=word) for word in ("one", "two", "three"))
    bobs.post(f"/approvals/{first.pk}/reject")
    told = bobs.post("/approvals/batch", batch(first, second, third)).json()["outcomes"]
    assert [(each["id"], each["counted"], each["callStatus"]) for each in told] == [
        (str(first.pk), False, "declined"),
        (str(second.pk), True, "approved"),
        (str(third.pk), True, "approved"),
    ]
    assert "already answered (declined)" in told[0]["detail"]
    assert {performed(each.call_id).result for each in (second, third)} == {"two", "three"}


def test_a_batch_is_declined_with_one_reason(bob: User, bobs: Program, ask: Ask) -> None:
    both = ask(bob), ask(bob)
    assert bobs.post("/approvals/batch", batch(*both, verdict="decline", reason="Too risky")).status_code == 200
    assert {(each.verdict, each.reason) for each in Decision.objects.all()} == {("decline", "Too risky")}


def test_a_yes_may_come_with_words_for_the_model(bob: User, bobs: Program, ask: Ask) -> None:
    asked = ask(bob)
    assert bobs.post(f"/approvals/{asked.pk}/approve", {"reason": "x" * 501}).status_code == 422
    answered = bobs.post(f"/approvals/{asked.pk}/approve", {"reason": "Only this once"}).json()
    assert [(each["verdict"], each["reason"]) for each in answered["decisions"]] == [("approve", "Only this once")]


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_batch_that_is_not_one_decides_nothing(bob: User, charlie: User, bobs: Program, ask: Ask) -> None:
    both = ask(bob), ask(bob)
    whole = batch(*both)
    for wrong in (
        whole | {"verdict": "Approve"},
        whole | {"more": 1},
        whole | {"items": whole["items"][:1]},
        whole | {"items": [whole["items"][0]] * 2},
        whole | {"items": [{"id": str(each.pk)} for each in both]},
        whole | {"items": [{"id": "x", "consentDigest": ""}] * 2},
        {"items": whole["items"]},
    ):
        problem(bobs.post("/approvals/batch", wrong), 422)
    problem(bobs.post("/approvals/batch", batch(both[0], ask(charlie))), 404)
    Tool.objects.update(risk_level=4)
    assert "items" in problem(bobs.post("/approvals/batch", whole), 422)["errors"]
    assert not Decision.objects.exists()


@pytest.mark.guarantee("gate:only-people")
def test_an_api_token_answers_no_batch_and_takes_nothing_back(
    bob: User, bobs: Program, program_of: ProgramOf, ask: Ask
) -> None:
    both = ask(bob), ask(bob)
    api = program_of(bob, TokenKind.API)
    assert api.post("/approvals/batch", batch(*both)).status_code in (401, 403)
    bobs.post(f"/approvals/{both[0].pk}/approve")
    assert api.post(f"/approvals/{both[0].pk}/take-back").status_code in (401, 403)
    assert ToolCall.objects.get(pk=both[0].call_id).status == Status.APPROVED


@pytest.mark.guarantee("gate:truth")
def test_an_approval_is_taken_back_until_its_call_starts(
    bob: User, charlie: User, bobs: Program, program_of: ProgramOf, ask: Ask
) -> None:
    back, ran = ask(bob), ask(bob)
    for approval in (back, ran):
        bobs.post(f"/approvals/{approval.pk}/approve")
    problem(program_of(charlie).post(f"/approvals/{back.pk}/take-back"), 404)
    assert bobs.post(f"/approvals/{back.pk}/take-back").json()["callStatus"] == "withdrawn"
    performed(ran.call_id)
    late = problem(bobs.post(f"/approvals/{ran.pk}/take-back"), 409)
    assert "has started" in late["detail"]
    assert late["approval"]["callStatus"] == "succeeded"

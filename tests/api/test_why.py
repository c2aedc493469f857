"""Asking why, over REST: the answers of an approval, and the refusals in words."""

import pytest
from django.contrib.auth.models import User

from hitlchat.accounts.models import TokenKind
from hitlchat.agent.models import Conversation
from hitlchat.gate import asking_why
from hitlchat.gate.models import Approval, Tool
from tests.api.conftest import Ask, Program, ProgramOf, called, problem
from tests.gate.deciding_people import approver, rule


@pytest.fixture
def approval(bob: User, ask: Ask) -> Approval:
    """Of a call in a conversation of bob's."""
    ask(bob)
    conversation = Conversation.objects.create(owner=bob)
    return Approval.objects.get(call=called(bob, "echo", {}, conversation_id=conversation.pk))


def test_an_approval_has_what_was_asked_and_what_the_model_claims(bobs: Program, approval: Approval) -> None:
    path = f"/approvals/{approval.pk}"
    before = bobs.get(path).json()
    assert before["whys"] == []
    put = bobs.post(f"{path}/why", {"question": " Why now? "})
    assert put.status_code == 202
    (why,) = put.json()["whys"]
    assert (why["number"], why["person"], why["question"]) == (1, "bob", "Why now?")
    assert (why["answer"], why["trouble"], why["answeredAt"]) == ("", "", None)
    assert "being asked already" in problem(bobs.post(f"{path}/why"), 409)["detail"]
    asking_why.answered(approval.pk, 1, "Because.")
    after = bobs.get(path).json()
    (why,) = after["whys"]
    assert (why["answer"], why["cut"], why["answeredAt"] is None) == ("Because.", False, False)
    assert after | {"whys": []} == before
    listed = {each["id"]: each["whys"] for each in bobs.get("/approvals").json()}
    assert listed[str(approval.pk)] == [why]
    assert len(listed) == 2


def test_it_is_refused_in_words_where_there_is_none_to_ask(bob: User, bobs: Program, ask: Ask) -> None:
    alone = ask(bob)
    assert "no model to ask" in problem(bobs.post(f"/approvals/{alone.pk}/why"), 409)["detail"]


def test_a_long_question_is_refused_at_its_field(bobs: Program, approval: Approval) -> None:
    refused = problem(bobs.post(f"/approvals/{approval.pk}/why", {"question": "a" * 301}), 422)
    assert list(refused["errors"]) == ["question"]


@pytest.mark.guarantee("gate:only-people")
def test_whose_conversation_it_is_not_and_programs_are_refused(
    alice: User, bob: User, bobs: Program, approval: Approval, program_of: ProgramOf
) -> None:
    rule(Tool.objects.get(), alice, not_the_requester=True)
    conversation = approval.call.conversation_id
    others = Approval.objects.get(call=called(bob, "echo", {"text": "two"}, conversation_id=conversation))
    path = f"/approvals/{others.pk}/why"
    dora = approver("dora")
    assert program_of(dora, TokenKind.APPROVER).post(path).status_code == 403
    assert program_of(bob, TokenKind.API).post(path).status_code == 403
    assert bobs.get(f"/approvals/{others.pk}").json()["whys"] == []
    assert bobs.post(path).status_code == 202

"""Questions of the model over REST: all that is needed to draw the form, and an answer that is checked."""

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.agent import asking
from hitlchat.gate.models import Approval, Decision
from tests.api.conftest import Ask, Program, called, performed, problem

FIELDS = [
    {"name": "colour", "label": "Which colour", "kind": "choice", "choices": ["red", "blue"]},
    {"name": "litres", "label": "How much", "kind": "number", "required": False},
]


@pytest.fixture
def asked(bob: User, settings: Settings) -> Approval:
    settings.HITL_ASK_USER = True
    asking.offered()
    return called(bob, asking.NAME, {"question": "What is the PIN?", "fields": FIELDS}).approval


def test_an_approval_says_what_is_needed_to_draw_the_form(bobs: Program, asked: Approval) -> None:
    found = bobs.get(f"/approvals/{asked.pk}").json()
    assert found["question"] == {
        "text": "What is the PIN?",
        "fields": [
            {"name": "colour", "label": "Which colour", "kind": "choice", "choices": ["red", "blue"], "required": True},
            {"name": "litres", "label": "How much", "kind": "number", "choices": [], "required": False},
        ],
        "seemsSecret": True,
    }
    assert (found["toolName"], found["riskLevel"]) == (asking.NAME, 0)


def test_a_yes_whose_answer_does_not_fit_names_the_field_and_decides_nothing(bobs: Program, asked: Approval) -> None:
    at = "modifiedArguments.answer"
    rows: list[tuple[dict[str, object] | None, str, str]] = [
        (None, at, "a yes needs an “answer”"),
        ({"answer": {"colour": "green"}}, f"{at}.colour", "Choose one from the list."),
        ({"question": "Else?", "answer": {"colour": "red"}}, at, "cannot change the question"),
    ]
    for modified, place, words in rows:
        body = {"consentDigest": asked.digest, "modifiedArguments": modified}
        answer = bobs.post(f"/approvals/{asked.pk}/approve", body)
        errors = problem(answer, 422)["errors"]
        assert ([*errors], words in errors[place]) == ([place], True)
    assert not Decision.objects.exists()


def test_an_answer_is_an_approval_with_it_and_comes_back_as_the_result(bobs: Program, asked: Approval) -> None:
    body = {"consentDigest": asked.digest, "modifiedArguments": {"answer": {"colour": "blue"}}}
    assert bobs.post(f"/approvals/{asked.pk}/approve", body).json()["status"] == "approved"
    performed(asked.call_id)
    found = bobs.get(f"/approvals/{asked.pk}").json()
    assert (found["callStatus"], found["result"]["answer"]) == ("succeeded", {"colour": "blue"})
    assert found["question"]["text"] == "What is the PIN?"
    assert problem(bobs.post(f"/approvals/{asked.pk}/approve", body), 409)


def test_another_approval_has_no_question(bobs: Program, ask: Ask, bob: User) -> None:
    ask(bob)
    assert [each["question"] for each in bobs.get("/approvals").json()] == [None]


def test_there_is_no_way_to_call_it_from_outside_the_chat(bobs: Program, asked: Approval) -> None:
    listed = bobs.get("/tools").json()
    assert asking.NAME not in str(listed)

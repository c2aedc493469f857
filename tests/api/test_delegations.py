"""Delegations over REST: named, listed and ended by their person, and by administrators; and whom a decision is for."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import Absence
from tests.api.conftest import Ask, ProgramOf

pytestmark = pytest.mark.django_db


@pytest.fixture
def carol(db: None) -> User:
    return User.objects.create_user("carol")


def until(days: int = 1) -> str:
    return (timezone.now() + timedelta(days=days)).isoformat()


def test_one_is_named_listed_used_and_ended(
    alice: User, bob: User, charlie: User, carol: User, ask: Ask, program_of: ProgramOf
) -> None:
    approval = ask(bob)
    assert program_of(carol).get("/approvals").json() == []
    made = program_of(bob).post("/delegations", {"delegate": "carol", "until": until()})
    assert (made.status_code, made.json()["person"], made.json()["delegate"]) == (201, "bob", "carol")
    for user, seen in ((bob, 1), (carol, 1), (alice, 1), (charlie, 0)):
        assert len(program_of(user).get("/delegations").json()) == seen
    assert [each["id"] for each in program_of(carol).get("/approvals").json()] == [str(approval.pk)]
    yes = program_of(carol).post(f"/approvals/{approval.pk}/approve").json()
    assert [(each["person"], each["absent"]) for each in yes["decisions"]] == [("carol", "bob")]
    path = f"/delegations/{made.json()['id']}"
    assert program_of(carol).delete(path).status_code == 404
    assert program_of(bob).delete(path).status_code == 204
    assert program_of(bob).delete(path).status_code == 404
    assert program_of(bob).get("/delegations").json() == []


def test_only_in_person_and_only_an_administrator_for_others(
    alice: User, bob: User, carol: User, program_of: ProgramOf
) -> None:
    body: dict[str, Any] = {"delegate": "carol", "until": until()}
    assert program_of(bob, TokenKind.API).post("/delegations", body).status_code == 403
    assert program_of(bob).post("/delegations", body | {"person": "alice"}).status_code == 404
    assert program_of(alice).post("/delegations", body | {"person": "nobody"}).status_code == 404
    own = program_of(alice).post("/delegations", body | {"person": "bob", "delegate": "alice"})
    assert (own.status_code, [*own.json()["errors"]]) == (422, ["delegate"])
    long = program_of(bob).post("/delegations", body | {"until": until(400)})
    assert (long.status_code, [*long.json()["errors"]]) == (422, ["until"])
    assert program_of(bob).post("/delegations", body | {"until": "2099-01-01T00:00:00"}).status_code == 422
    assert Absence.objects.count() == 0
    assert program_of(alice).post("/delegations", body | {"person": "bob"}).status_code == 201

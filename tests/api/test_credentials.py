"""Who is let in, and who may decide."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.gate.models import Decision
from hitlchat.gate.status import Status
from tests.api.conftest import Ask, Program, ProgramOf, problem

EVERY_READ = ["/conversations", "/approvals", "/calls", "/tools", "/audit"]


def test_a_malformed_credential_is_a_401_even_beside_a_good_session(bob: User) -> None:
    client = Client()
    client.force_login(bob)
    for header in ["", "Bearer", "Bearer ", "Basic Ym9iOmJvYg==", "Token abc", "Bearer\u00a0x"]:
        problem(client.get("/api/calls", headers={"Authorization": header}), 401)


@pytest.mark.guarantee("gate:only-people")
def test_strangers_unknown_tokens_and_those_for_mcp_are_let_in_nowhere(bob: User, program_of: ProgramOf) -> None:
    for path in EVERY_READ:
        response = Program(Client()).get(path)
        problem(response, 401)
        assert response["WWW-Authenticate"] == "Bearer"
        problem(Program(Client(), "hitl_approver_made-up").get(path), 401)
        problem(program_of(bob, TokenKind.MCP).get(path), 403)


def test_a_token_for_mcp_is_refused_even_beside_a_good_session(bob: User) -> None:
    client = Client()
    client.force_login(bob)
    problem(Program(client, Token.make(bob, TokenKind.MCP)).get("/calls"), 403)


def test_a_token_and_a_session_of_someone_deactivated_are_unknown(
    bob: User, program_of: ProgramOf, browser_of: ProgramOf
) -> None:
    both = program_of(bob), browser_of(bob)
    assert [each.get("/calls").status_code for each in both] == [200, 200]
    User.objects.filter(pk=bob.pk).update(is_active=False)
    for each in both:
        problem(each.get("/calls"), 401)


@pytest.mark.guarantee("gate:only-people", "SR-18")
def test_no_token_decides_but_an_approver_s(bob: User, program_of: ProgramOf, ask: Ask) -> None:
    approval = ask(bob)
    for kind in (TokenKind.API, TokenKind.MCP):
        for verb in ("approve", "reject"):
            problem(program_of(bob, kind).post(f"/approvals/{approval.pk}/{verb}", {}), 403)
    assert program_of(bob, TokenKind.API).post("/conversations", {}).status_code == 201
    approval.call.refresh_from_db()
    assert approval.call.status == Status.WAITING
    assert not Decision.objects.exists()


def test_a_token_that_cannot_decide_learns_why_but_not_whether_the_approval_exists(
    bob: User, program_of: ProgramOf, ask: Ask
) -> None:
    program, approval = program_of(bob, TokenKind.API), ask(bob)
    real = program.post(f"/approvals/{approval.pk}/approve")
    assert "approver" in problem(real, 403)["detail"]
    made_up = program.post("/approvals/01890000-0000-7000-8000-000000000000/approve")
    assert made_up.content == real.content


def test_a_session_needs_the_csrf_token_to_change_anything(bob: User, browser_of: ProgramOf, ask: Ask) -> None:
    browser, approval = browser_of(bob), ask(bob)
    assert browser.get("/approvals").status_code == 200
    assert "CSRF" in problem(browser.post(f"/approvals/{approval.pk}/approve"), 403)["detail"]
    problem(browser.post("/conversations", {}), 403)
    assert not Decision.objects.exists()


@pytest.mark.guarantee("gate:only-people", "SR-20")
def test_the_decider_is_the_person_of_the_session(bob: User, browser_of: ProgramOf, ask: Ask) -> None:
    browser, approval = browser_of(bob), ask(bob)
    browser.client.get("/api/docs")
    browser.headers["X-CSRFToken"] = browser.client.cookies["csrftoken"].value
    response = browser.post(f"/approvals/{approval.pk}/approve")
    assert response.status_code == 200, response.content
    (decision,) = response.json()["decisions"]
    assert (decision["person"], decision["means"]) == ("bob", "session")


@pytest.mark.guarantee("gate:only-people", "SR-20")
def test_a_decider_in_the_body_is_refused(bob: User, program_of: ProgramOf, ask: Ask) -> None:
    approval = ask(bob)
    for field in ["person", "decider", "approver", "userId", "approvedBy"]:
        found = problem(program_of(bob).post(f"/approvals/{approval.pk}/approve", {field: "alice"}), 422)
        assert field in found["errors"]
        assert not Decision.objects.exists()

"""Grants over REST: given with a yes, listed, revoked."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import Approval, Decision, Grant, new_id
from tests.api.conftest import Program, ProgramOf, called, performed, problem
from tests.conftest import MakeTool

AskAbout = Callable[..., Approval]


@pytest.fixture
def ask_about(make_tool: MakeTool, bob: User) -> AskAbout:
    """Have the tool `note`, about which policies decide, called for bob in a conversation."""
    make_tool("note", hitl_mode="CONDITIONAL")

    def make(**arguments: Any) -> Approval:
        return Approval.objects.get(call=called(bob, "note", arguments, conversation_id=new_id()))

    return make


def test_a_yes_with_a_grant_answers_with_it_and_the_next_calls_say_that_they_ran_on_it(
    bob: User, bobs: Program, ask_about: AskAbout
) -> None:
    approval = ask_about(text="one")
    answer = bobs.post(f"/approvals/{approval.pk}/approve", {"grant": {"calls": 1, "minutes": 30}}).json()
    grant = answer["grant"]
    assert (grant["id"], grant["state"], grant["calls"], grant["used"]) == (answer["grantId"], "active", 1, 0)
    assert grant["sentence"].startswith("note runs without asking for the next call, until ")
    call = called(bob, "note", {"text": "two"})
    assert performed(call.pk).result == "two"
    told = bobs.get(f"/calls/{call.pk}").json()
    assert (told["grantId"], told["isAutomatic"], told["approvalId"]) == (grant["id"], True, None)
    assert told["reason"].startswith("Not asked because of a grant: note runs")
    assert bobs.get("/grants").json() == []
    (ended,) = bobs.get("/grants", state="ended").json()
    assert (ended["state"], ended["used"], ended["person"]) == ("used_up", 1, "bob")
    assert bobs.get(f"/approvals/{approval.pk}").json()["grantId"] == grant["id"]


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_is_no_grant_decides_nothing_and_names_the_field(bobs: Program, ask_about: AskAbout) -> None:
    approval = ask_about(text="one")
    for grant, field in [
        ({}, "grant"),
        ({"calls": 101}, "grant.calls"),
        ({"calls": True}, "grant.calls"),
        ({"until": "2030-01-01T00:00:00"}, "grant.until"),
        ({"calls": 1, "tool": "other"}, "grant.tool"),
        ({"calls": 1, "sameArguments": "yes"}, "grant.sameArguments"),
    ]:
        told = problem(bobs.post(f"/approvals/{approval.pk}/approve", {"grant": grant}), 422)
        assert field in told["errors"]
        assert (Decision.objects.count(), Grant.objects.count()) == (0, 0)


@pytest.mark.guarantee("gate:only-people", "SR-27")
def test_an_api_token_neither_gives_nor_revokes(
    bob: User, bobs: Program, program_of: ProgramOf, ask_about: AskAbout
) -> None:
    api, approval = program_of(bob, TokenKind.API), ask_about(text="one")
    problem(api.post(f"/approvals/{approval.pk}/approve", {"grant": {"calls": 5}}), 403)
    grant = bobs.post(f"/approvals/{approval.pk}/approve", {"grant": {"calls": 5}}).json()["grantId"]
    problem(api.post(f"/grants/{grant}/revoke"), 403)
    assert [each["id"] for each in api.get("/grants").json()] == [grant]


def test_a_grant_is_seen_and_revoked_by_its_person_and_by_administrators_only(
    alice: User, charlie: User, bobs: Program, program_of: ProgramOf, ask_about: AskAbout
) -> None:
    ids = []
    for text in ("one", "two"):
        path = f"/approvals/{ask_about(text=text).pk}/approve"
        ids.append(bobs.post(path, {"grant": {"thisConversation": True}}).json()["grantId"])
    charlies, alices = program_of(charlie), program_of(alice)
    assert charlies.get("/grants").json() == []
    problem(charlies.post(f"/grants/{ids[0]}/revoke"), 404)
    problem(charlies.post(f"/grants/{new_id()}/revoke"), 404)
    assert {each["id"] for each in alices.get("/grants").json()} == set(ids)
    told = alices.post(f"/grants/{ids[0]}/revoke").json()
    assert (told["state"], told["endedBy"], told["why"]) == ("revoked", "alice", "alice revoked it")
    assert bobs.post(f"/grants/{ids[0]}/revoke").json() == told
    assert bobs.post(f"/grants/{ids[1]}/revoke").json()["endedBy"] == "bob"

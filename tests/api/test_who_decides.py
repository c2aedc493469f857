"""Who decides, over REST: the fields of an approval, the refusals, and the rules of a tool."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import AuditEvent, Decision, Oversight, Tool, new_id
from tests.api.conftest import Ask, ProgramOf, called, problem
from tests.conftest import MakeTool
from tests.gate.deciding_people import approver, members, rule


@pytest.fixture
def dora(db: None) -> User:
    return approver("dora")


@pytest.mark.guarantee("gate:only-people")
def test_who_sees_it_and_may_not_decide_gets_the_reason_and_others_nothing(
    alice: User, bob: User, charlie: User, dora: User, ask: Ask, program_of: ProgramOf
) -> None:
    rule(Tool.objects.get(), alice, quorum=2, not_the_requester=True)
    approval = ask(bob)
    path = f"/approvals/{approval.pk}"
    for verb in ("approve", "reject"):
        refused = program_of(bob).post(f"{path}/{verb}")
        assert refused.status_code == 403
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert "2 different approvers have to approve. Never bob" in refused.json()["detail"]
        assert program_of(charlie).post(f"{path}/{verb}").status_code == 404
    body = {"items": [{"id": str(each.pk), "consentDigest": each.digest} for each in (approval, ask(bob))]}
    assert program_of(bob).post("/approvals/batch", body | {"verdict": "approve"}).status_code == 403
    found = program_of(bob).get(path).json()
    assert (found["decidedBy"], found["quorum"], found["approvedBy"]) == ("approvers", 2, [])
    assert Decision.objects.count() == 0

    first = program_of(dora).post(f"{path}/approve").json()
    assert (first["status"], first["approvedBy"]) == ("pending", ["dora"])
    edited = program_of(alice).post(f"{path}/approve", {"modifiedArguments": {"text": "other"}})
    assert (edited.status_code, "2 people approve" in edited.json()["errors"]["modifiedArguments"]) == (422, True)
    twice = program_of(dora).post(f"{path}/approve")
    assert (twice.status_code, "1 of 2" in twice.json()["detail"]) == (409, True)
    assert program_of(dora).post(f"{path}/take-back").json()["approvedBy"] == []
    program_of(dora).post(f"{path}/approve")
    assert [each["id"] for each in program_of(dora).get("/approvals").json()] == [
        each["id"] for each in program_of(bob).get("/approvals").json()
    ]
    last = program_of(alice).post(f"{path}/approve").json()
    assert (last["status"], last["approvedBy"]) == ("approved", ["dora", "alice"])
    late = program_of(dora).post(f"{path}/approve")
    assert (late.status_code, late.json()["approval"]["status"]) == (409, "approved")


def test_an_approval_says_who_is_on_it(alice: User, bob: User, dora: User, ask: Ask, program_of: ProgramOf) -> None:
    rule(Tool.objects.get(), alice)
    path = f"/approvals/{ask(bob).pk}"
    assert program_of(alice).get(path).json()["onIt"] is None
    taken = program_of(dora).post(f"{path}/on-it").json()["onIt"]
    assert (taken["person"], program_of(bob).get(path).json()["onIt"]) == ("dora", taken)
    late = program_of(alice).post(f"{path}/on-it")
    assert (late.status_code, late.json()["detail"]) == (409, "dora is on it already.")
    assert program_of(bob).post(f"{path}/on-it").status_code == 403
    assert program_of(dora).delete(f"{path}/on-it").json()["onIt"] is None


def test_the_list_of_what_waits_takes_the_same_number_of_queries_however_long_it_is(
    alice: User, bob: User, dora: User, make_tool: MakeTool, program_of: ProgramOf, django_assert_max_num_queries: Any
) -> None:
    make_tool("echo")
    rule(Tool.objects.get(), alice, quorum=2)
    here = new_id()
    for word in "abcabc":
        call = called(bob, "echo", {"text": word}, conversation_id=here)
        program_of(dora).post(f"/approvals/{call.approval.pk}/approve")
    bobs = program_of(bob)
    with django_assert_max_num_queries(7):
        found = bobs.get("/approvals").json()
    assert {(each["askedTimes"], *each["approvedBy"]) for each in found} == {(2, "dora")}
    assert len(found) == 6


@pytest.mark.guarantee("gate:only-people", "SR-25")
def test_the_highest_risk_is_approved_by_no_token_and_by_no_old_sign_in(
    bob: User, make_tool: MakeTool, program_of: ProgramOf, browser_of: ProgramOf
) -> None:
    make_tool("echo")
    Tool.objects.update(risk_level=5)
    path = f"/approvals/{called(bob, 'echo', {}).approval.pk}"
    token = program_of(bob).post(f"{path}/approve")
    assert (token.status_code, "just signed in" in token.json()["detail"]) == (403, True)
    assert "signIn" not in token.json()
    browser = browser_of(bob)
    browser.client.get("/account")
    browser.headers = {"X-CSRFToken": browser.client.cookies["csrftoken"].value}
    session = browser.client.session
    session["signed_in_at"] = "2020-01-01T00:00:00+00:00"
    session.save()
    stale = browser.post(f"{path}/approve")
    assert (stale.status_code, stale.json()["signIn"]) == (403, "/sign-in/again")
    # A no is never late for want of a password.
    assert program_of(bob).post(f"{path}/reject").json()["status"] == "declined"


def test_an_administrator_reads_and_sets_the_rules(
    alice: User, dora: User, make_tool: MakeTool, program_of: ProgramOf
) -> None:
    make_tool("echo")
    finance = Group.objects.create(name="finance")
    members(finance, "fay", "gus")
    alices = program_of(alice)
    assert alices.get("/tools/echo/rules").json()["decidedBy"] == "requester"
    body = {"decidedBy": "group", "group": "finance", "quorum": 2, "notTheRequester": True}
    told = alices.put("/tools/echo/rules", body).json()
    assert told == body | {
        "toolName": "echo",
        "second": None,
        "third": None,
        "escalateTo": None,
        "escalateAfterSeconds": None,
        "whoDecides": "2 different people of the group “finance” have to approve. Never the person it is called for.",
    }
    assert "confirmLowering" in problem(alices.put("/tools/echo/rules", {}), 409)["errors"]
    assert alices.get("/tools/echo/rules").json() == told
    assert alices.put("/tools/echo/rules", {"confirmLowering": True}).json()["decidedBy"] == "requester"
    first, second = AuditEvent.objects.filter(name="tool.rules_changed").order_by("pk")
    assert ("weaker" in first.data, len(second.data["weaker"])) == (False, 3)


def test_a_chain_is_set_and_the_answers_say_whose_turn_it_is(
    alice: User, bob: User, make_tool: MakeTool, program_of: ProgramOf
) -> None:
    make_tool("echo")
    names = ("finance", "legal", "board")
    fay, lea, ida = (members(Group.objects.create(name=name), f"of-{name}")[0] for name in names)
    body = {"decidedBy": "group", "group": "finance", "second": "legal", "third": "board"}
    alices = program_of(alice)
    shown = alices.put("/tools/echo/rules", body).json()
    assert (shown["quorum"], shown["second"], shown["third"]) == (3, "legal", "board")
    sent = {name: value for name, value in shown.items() if name not in ("toolName", "whoDecides")}
    assert alices.put("/tools/echo/rules", sent).json() == shown
    assert "confirmLowering" in problem(alices.put("/tools/echo/rules", body | {"third": None}), 409)["errors"]
    path = f"/approvals/{called(bob, 'echo', {}).approval.pk}"
    assert program_of(lea).get(path).status_code == 404
    for user, group, yes in ((fay, "finance", []), (lea, "legal", ["of-finance"])):
        asked = program_of(user).get(path).json()
        assert (asked["deciderGroup"], asked["quorum"], asked["approvedBy"]) == (group, 3, yes)
        assert program_of(user).post(f"{path}/approve").json()["status"] == "pending"
    assert program_of(fay).post(f"{path}/approve").status_code == 403
    assert program_of(ida).post(f"{path}/approve").json()["status"] == "approved"


def test_rules_that_cannot_hold_name_the_field(alice: User, make_tool: MakeTool, program_of: ProgramOf) -> None:
    make_tool("echo")
    members(Group.objects.create(name="one"), "fay", "gus")
    for body, field in [
        ({"quorum": 2}, "quorum"),
        ({"quorum": "2"}, "quorum"),
        ({"decidedBy": "group", "group": "nobody"}, "group"),
        ({"decidedBy": "group", "group": "role:approver"}, "group"),
        ({"decidedBy": "anybody"}, "decidedBy"),
        ({"notTheRequester": True}, "notTheRequester"),
        ({"decidedBy": "approvers", "escalateAfterSeconds": 5}, "escalateTo"),
        ({"decidedBy": "group", "group": "one", "second": "nobody"}, "second"),
        ({"decidedBy": "group", "group": "one", "third": "one"}, "second"),
        ({"decidedBy": "approvers", "second": "one"}, "second"),
        ({"approvers": True}, "approvers"),
    ]:
        refused = program_of(alice).put("/tools/echo/rules", body)
        assert (refused.status_code, list(refused.json()["errors"])) == (422, [field])
        assert not Oversight.objects.exists()


@pytest.mark.guarantee("gate:only-people")
def test_no_program_and_nobody_but_administrators_touches_the_rules(
    alice: User, bob: User, dora: User, make_tool: MakeTool, program_of: ProgramOf
) -> None:
    make_tool("echo")
    programs = (program_of(bob), program_of(dora), program_of(alice, TokenKind.API))
    for program in programs:
        assert program.get("/tools/echo/rules").status_code == 403
        assert program.put("/tools/echo/rules", {"decidedBy": "approvers"}).status_code == 403
    assert program_of(alice).get("/tools/other/rules").status_code == 404
    assert not Oversight.objects.exists()

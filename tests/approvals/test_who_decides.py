"""Who decides, on the pages: the card for others, the list, signing in again, and the page of the rules."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from hitlchat.gate import absences, decide, oversight
from hitlchat.gate.models import AuditEvent, Decision, Oversight, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import PASSWORD, MakeTool, signed_in
from tests.gate.asking import approval_of, ask, fresh, recording, status
from tests.gate.deciding_people import approver, escalated, members, rule

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}


@pytest.fixture
def tool(make_tool: MakeTool) -> Tool:
    return make_tool("echo", prompt_template="Say {args.text}")


@pytest.fixture
def dora(db: None) -> User:
    return approver("dora")


@pytest.fixture
def finance(db: None) -> Group:
    return Group.objects.create(name="finance")


def of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def answer(user: User, call: ToolCall, verdict: str = "approve", **more: Any) -> Any:
    sent = {"verdict": verdict, "digest": approval_of(call).digest}
    return of(user).post(f"/approvals/{approval_of(call).pk}/decide", sent, **more)


def page(user: User, call: ToolCall) -> str:
    response = of(user).get(f"/approvals/{approval_of(call).pk}")
    return response.content.decode() if response.status_code == 200 else str(response.status_code)


@pytest.mark.guarantee("gate:only-people")
def test_whom_it_is_called_for_sees_who_decides_and_no_buttons(
    alice: User, bob: User, charlie: User, dora: User, tool: Tool
) -> None:
    rule(tool, alice, not_the_requester=True)
    call = ask(bob, tool, conversation_id=None)
    shown = page(bob, call)
    assert "An approver decides. Never bob, for whom it is called." in shown
    assert "This call waits for others" in shown
    assert "data-approve" not in shown
    assert 'value="approve"' not in shown
    assert page(charlie, call) == "404"
    told = answer(bob, call)
    assert told.status_code == 409
    assert "You cannot decide this call" in told.content.decode()
    edit = of(bob).get(f"/approvals/{approval_of(call).pk}/edit").content.decode()
    assert "You cannot decide this call" in edit
    assert answer(charlie, call).status_code == 404
    assert "data-approve" in page(dora, call)
    assert answer(dora, call).status_code == 302
    assert status(call) == Status.APPROVED


def test_the_list_has_the_calls_of_others_that_one_decides_and_for_whom_they_are(
    alice: User, bob: User, dora: User, finance: Group, tool: Tool
) -> None:
    (fay,) = members(finance, "fay")
    rule(tool, alice, escalate_to=finance, escalate_after_seconds=60)
    call = ask(bob, tool)
    listed = of(dora).get("/approvals/").content.decode()
    assert "the assistant for <bdi>bob</bdi>" in listed
    assert (of(dora).get("/waiting").content, of(bob).get("/waiting").content) == (b"1", b"0")
    assert of(fay).get("/waiting").content == b"0"
    escalated(call)
    assert of(fay).get("/waiting").content == b"1"


def test_a_card_and_the_list_of_others_say_who_is_on_it(alice: User, bob: User, dora: User, tool: Tool) -> None:
    rule(tool, alice)
    call = ask(bob, tool)
    path = f"/approvals/{approval_of(call).pk}/on-it"
    assert "/on-it" in page(dora, call)
    assert "/on-it" not in page(bob, call)
    taken = of(dora).post(path, headers=HTMX).content.decode()
    assert "You are on it until" in taken
    assert "<bdi>dora</bdi> is on it until" in page(alice, call)
    assert "<bdi>dora</bdi> is on it until" in page(bob, call)
    assert "<bdi>dora</bdi> is on it<" in of(alice).get("/approvals/").content.decode()
    assert "dora is on it already." in of(alice).post(path, headers=HTMX).content.decode()
    assert of(dora).post(path, {"let_go": "yes"}).status_code == 302
    assert "is on it" not in page(alice, call)
    answer(alice, call)
    assert of(dora).post(path, headers=HTMX).status_code == 204


def test_a_delegate_s_list_card_and_answer_say_for_whom(alice: User, bob: User, dora: User, tool: Tool) -> None:
    rule(tool, alice)
    carol = User.objects.create_user("carol")
    absences.begin(dora.pk, "carol", None, timezone.now() + timedelta(hours=1), signed_in(dora))
    call = ask(bob, tool)
    assert "You decide for <bdi>dora</bdi>" in of(carol).get("/approvals/").content.decode()
    assert "You decide for <bdi>dora</bdi>, who is away." in page(carol, call)
    assert "You decide for" not in page(dora, call)
    assert "Approved by carol for dora, signed in." in answer(carol, call, headers=HTMX).content.decode()
    answer(carol, ask(bob, tool, {"text": "other"}), "decline")
    assert "carol for dora" in of(carol).get("/approvals/").content.decode()
    record = of(alice).get(f"/history/{call.pk}").content.decode()
    assert "Approved by <bdi>carol</bdi> for <bdi>dora</bdi>" in record


def test_the_page_of_the_second_says_who_was_first_and_the_first_waits_for_the_second(
    alice: User, bob: User, dora: User, tool: Tool
) -> None:
    rule(tool, alice, quorum=2)
    call = ask(bob, tool)
    before = page(alice, call)
    assert "0 of 2 approved" in before
    assert "Change the arguments" not in before
    who = f"/approvals/{approval_of(call).pk}/who"
    assert of(alice).get(who, {"seen": "may.0.."}, headers=HTMX).status_code == 204
    first = answer(dora, call, headers=HTMX).content.decode()
    assert "Withdraw your approval" in first
    assert "data-approve" not in first
    assert of(dora).get("/waiting").content == b"0"
    anew = of(alice).get(who, {"seen": "may.0.."}, headers=HTMX).content.decode()
    assert "1 of 2 approved, by <bdi>dora</bdi>" in anew
    assert anew.count("hx-swap-oob") == 1
    again = answer(dora, call)
    assert (again.status_code, "You already approved this call: 1 of 2" in again.content.decode()) == (409, True)
    taken = of(dora).post(f"/approvals/{approval_of(call).pk}/take-back", headers=HTMX).content.decode()
    assert "0 of 2 approved" in taken
    assert "data-approve" in taken
    decide.decline(approval_of(call).pk, signed_in(alice))
    settled = of(dora).get(who, {"seen": "may.0.."}, headers=HTMX).content.decode()
    assert "Declined by alice" in settled


def test_in_a_chain_the_card_says_whose_turn_it_is_and_goes_to_them(
    alice: User, bob: User, finance: Group, tool: Tool
) -> None:
    legal = Group.objects.create(name="legal")
    (fay,), (lea,) = members(finance, "fay"), members(legal, "lea")
    rule(tool, alice, group=finance, **oversight.chain(legal, None))
    call = ask(bob, tool)
    assert [of(user).get("/waiting").content for user in (fay, lea)] == [b"1", b"0"]
    assert page(lea, call) == "404"
    assert "0 of 2 approved. Now one of the people of the group “finance” has to approve." in page(fay, call)
    first = answer(fay, call, headers=HTMX).content.decode()
    assert "Withdraw your approval" in first
    # It is not theirs to decline any more.
    assert 'value="decline"' not in first
    assert [of(user).get("/waiting").content for user in (fay, lea)] == [b"0", b"1"]
    shown = page(lea, call)
    assert "by <bdi>fay</bdi>. Now one of the people of the group “legal” has to approve." in shown
    assert "data-approve" in shown
    answer(lea, call)
    assert status(call) == Status.APPROVED
    assert "Now the group “legal” is asked." in of(alice).get(f"/history/{call.pk}").content.decode()


# -- signing in again --------------------------------------------------------------------------------------------------


def long_ago(client: Client) -> Client:
    session = client.session
    session["signed_in_at"] = "2020-01-01T00:00:00+00:00"
    session.save()
    return client


@pytest.mark.guarantee("gate:only-people", "SR-25")
def test_what_is_of_the_highest_risk_is_approved_after_giving_the_password_again(bob: User) -> None:
    call = ask(bob, recording("wipe", risk_level=5), conversation_id=None)
    client, address = long_ago(of(bob)), f"/approvals/{approval_of(call).pk}"
    shown = client.get(address).content.decode()
    assert f'href="/sign-in/again?next={address}"' in shown
    sent = {"verdict": "approve", "digest": approval_of(call).digest}
    refused = client.post(f"{address}/decide", sent)
    assert (refused.status_code, "within the last 15 minutes" in refused.content.decode()) == (409, True)
    wrong = client.post("/sign-in/again", {"password": "something else", "next": address})
    assert (wrong.status_code, "not your password" in wrong.content.decode()) == (422, True)
    assert client.post(f"{address}/decide", sent).status_code == 409
    key = client.session.session_key
    right = client.post("/sign-in/again", {"password": PASSWORD, "next": address})
    assert (right.status_code, right["Location"]) == (302, address)
    assert client.session.session_key != key
    assert "/sign-in/again" not in client.get(address).content.decode()
    assert client.post(f"{address}/decide", sent).status_code == 302
    assert status(call) == Status.APPROVED


def test_after_it_one_stays_on_this_server(client: Client, bob: User) -> None:
    assert client.get("/sign-in/again")["Location"].startswith("/sign-in?")
    for address in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:1", ""):
        assert of(bob).post("/sign-in/again", {"password": PASSWORD, "next": address})["Location"] == "/"


# -- the page of the rules ---------------------------------------------------------------------------------------------


def filled(**changed: Any) -> dict[str, Any]:
    usual = {"decided_by": "requester", "group": "", "quorum": "1", "escalate_to": "", "escalate_after_seconds": ""}
    return usual | {"second": "", "third": "", "seen": ""} | changed


def test_an_administrator_says_who_decides(alice: User, bob: User, finance: Group, tool: Tool) -> None:
    members(finance, "fay", "gus")
    call = ask(bob, tool)
    client, address = of(alice), "/tools/echo/rules"
    before = client.get(address).content.decode()
    assert "The person it is called for decides." in before
    assert "Calls not started yet: 1." in before
    sent = filled(decided_by="group", group=finance.pk, quorum="2", not_the_requester="on")
    after = client.post(address, sent, follow=True).content.decode()
    assert "2 different people of the group “finance” have to approve. Never the person it is called for." in after
    assert "<bdi>fay</bdi>, <bdi>gus</bdi>" in after
    assert "who decides about this tool was changed" in fresh(call).reason
    assert AuditEvent.objects.filter(name="tool.rules_changed").count() == 1
    stale = client.post(address, filled())
    assert (stale.status_code, "someone else changed these rules" in stale.content.decode()) == (409, True)
    assert Oversight.objects.get().quorum == 2


def test_an_administrator_sets_a_chain_and_confirms_when_it_ends(alice: User, finance: Group, tool: Tool) -> None:
    legal, client, address = Group.objects.create(name="legal"), of(alice), "/tools/echo/rules"
    members(finance, "fay"), members(legal, "lea")
    sent = filled(decided_by="group", group=finance.pk, second=legal.pk)
    after = client.post(address, sent, follow=True).content.decode()
    words = (
        "First one of the people of the group “finance” has to approve, then one of the people of the group “legal”."
    )
    assert words in after
    assert "<bdi>fay</bdi>, <bdi>lea</bdi>" in after
    assert (Oversight.objects.get().quorum, Oversight.objects.get().in_order) == (2, True)
    less = sent | {"second": "", "seen": Oversight.objects.get().digest}
    asked = client.post(address, less)
    assert (asked.status_code, "1 instead of 2 different people" in asked.content.decode()) == (422, True)
    client.post(address, less | {"confirm_lowering": "on"})
    assert not Oversight.objects.get().in_order
    # Groups count where a group decides.
    client.post(
        address,
        filled(decided_by="approvers", second=legal.pk, confirm_lowering="on", seen=Oversight.objects.get().digest),
    )
    assert Oversight.objects.get().second is None


def test_what_cannot_hold_is_said_at_its_field(subtests: pytest.Subtests, alice: User, tool: Tool) -> None:
    for changed, field, said in [
        ({"decided_by": "group"}, "group", "Expected the group"),
        ({"quorum": "2"}, "quorum", "Only the person the tool is called for decides"),
        ({"quorum": "11"}, "quorum", "less than or equal to 10"),
        ({"decided_by": "approvers", "quorum": "5"}, "quorum", "only 1 active person could decide"),
        ({"decided_by": "approvers", "escalate_after_seconds": "9"}, "escalate_to", "Expected the group"),
    ]:
        with subtests.test(changed=changed):
            response = of(alice).post("/tools/echo/rules", filled(**changed))
            shown = response.content.decode()
            assert response.status_code == 422
            assert said in shown[shown.index(f'id="id_{field}_error"') :][:200]
            assert not Oversight.objects.exists()


@pytest.mark.guarantee("gate:only-people")
def test_nobody_else_sees_the_page(bob: User, dora: User, tool: Tool, client: Client) -> None:
    for user in (bob, dora):
        assert of(user).get("/tools/echo/rules").status_code == 403
        assert of(user).post("/tools/echo/rules", filled(decided_by="approvers")).status_code == 403
    assert client.get("/tools/echo/rules").status_code == 302
    assert not Oversight.objects.exists()


def test_a_group_that_decides_is_deleted_with_a_warning_and_what_waits_is_withdrawn(
    alice: User, bob: User, finance: Group, tool: Tool
) -> None:
    members(finance, "fay")
    rule(tool, alice, group=finance)
    call = ask(bob, tool)
    client, address = of(alice), f"/people/groups/{finance.pk}"
    assert "decide calls to <code>echo</code>" in client.get(address).content.decode()
    assert "decide calls to <code>echo</code>" in client.get(f"{address}/delete").content.decode()
    client.post(f"{address}/delete", {"seen": "finance"})
    assert Group.objects.filter(pk=finance.pk).exists()
    assert client.post(f"{address}/delete", {"seen": "finance", "confirm_lowering": "on"}).status_code == 302
    assert AuditEvent.objects.get(name="tool.rules_changed", data__contains="deleted").data["weaker"]
    assert status(call) == Status.WITHDRAWN
    later = ask(bob, tool)
    assert "Nobody can decide now" in page(bob, later)
    assert Decision.objects.count() == 0

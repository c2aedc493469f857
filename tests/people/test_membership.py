"""Changing roles, and shutting people out: who may, when not, and what is left of them."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.accounts import roles
from hitlchat.accounts.models import Invitation, Role, Token, TokenKind
from hitlchat.agent.models import Conversation, Run, RunStatus
from hitlchat.base.database import in_db
from hitlchat.base.problems import Conflict
from hitlchat.gate import decide, perform
from hitlchat.gate.actor import CONSOLE, Actor
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.perform import NO_AUTHOR
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare, submit
from hitlchat.people import membership
from tests.conftest import PASSWORD, MakeTool, caller, signed_in

NOTHING = {"invitations_void": 0, "calls_withdrawn": 0}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mira(db: None) -> User:
    """A second administrator."""
    return User.objects.create_superuser("mira", password=PASSWORD)


def events() -> list[tuple[str, dict[str, Any]]]:
    rows = (
        AuditEvent.objects.filter(call=None).exclude(name__startswith="person.sign").exclude(name__startswith="tool.")
    )
    return [(event.name, event.data) for event in rows]


async def called(user: User, name: str = "echo") -> ToolCall:
    return await in_db(admit)(await prepare(CallRequest(name, {"text": "hello"}, caller(user))))


def test_a_role_is_changed_and_the_record_says_by_whom_and_from_what_to_what(alice: User, bob: User) -> None:
    membership.change_role(bob.pk, Role.AUTHOR, signed_in(alice), membership.state(bob))
    assert roles.role_of(bob) == Role.AUTHOR
    ((name, data),) = events()
    assert name == "person.role_changed"
    assert data.pop("states")["person"][str(bob.pk)]["role"] == "author"
    assert data == {
        "person": "bob",
        "person_id": bob.pk,
        "from": "member",
        "to": "author",
        "by": {"id": alice.pk, "name": "alice"},
        **NOTHING,
    }
    event = AuditEvent.objects.get()
    assert (event.actor, event.means) == (alice, "session")


@pytest.mark.parametrize("means", ["token", "system", "elicitation", "console"])
def test_only_an_administrator_who_is_signed_in_changes_people(means: Any, alice: User, bob: User) -> None:
    charlie = User.objects.create_user("charlie")
    for actor in (Actor(alice.pk, means), signed_in(charlie), Actor(None, "system")):
        with pytest.raises(Conflict, match="no longer an administrator"):
            membership.change_role(bob.pk, Role.ADMINISTRATOR, actor)
        with pytest.raises(Conflict, match="no longer an administrator"):
            membership.deactivate(bob.pk, actor)
    assert events() == []


def test_nobody_changes_their_own_role_or_deactivates_themselves(alice: User, mira: User) -> None:
    with pytest.raises(Conflict, match="You cannot change your own role"):
        membership.change_role(alice.pk, Role.MEMBER, signed_in(alice))
    with pytest.raises(Conflict, match="You cannot change your own role"):
        membership.deactivate(alice.pk, signed_in(alice))
    assert membership.state(alice) == "administrator, active"


@pytest.mark.servers("row locks tell two at a time apart")
def test_what_is_no_longer_as_the_page_showed_it_is_not_changed(alice: User, bob: User) -> None:
    seen = membership.state(bob)
    membership.change_role(bob.pk, Role.AUTHOR, signed_in(alice))
    with pytest.raises(Conflict, match="bob is now author, active"):
        membership.change_role(bob.pk, Role.APPROVER, signed_in(alice), seen)
    with pytest.raises(Conflict):
        membership.deactivate(bob.pk, signed_in(alice), seen)
    assert membership.state(bob) == "author, active"


@pytest.mark.servers("row locks tell two at a time apart")
def test_the_last_active_administrator_stays_one_also_at_the_console(alice: User, bob: User, mira: User) -> None:
    membership.deactivate(mira.pk, CONSOLE)
    with pytest.raises(Conflict, match="only active administrator"):
        membership.change_role(alice.pk, Role.AUTHOR, CONSOLE)
    with pytest.raises(Conflict, match="only active administrator"):
        membership.deactivate(alice.pk, CONSOLE)
    membership.change_role(bob.pk, Role.ADMINISTRATOR, CONSOLE)
    membership.deactivate(alice.pk, CONSOLE)
    alice.refresh_from_db()
    assert membership.state(alice) == "administrator, deactivated"


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:only-people", "gate:no-yes-no-run")
async def test_deactivation_ends_sessions_tokens_runs_and_what_waits(
    alice: User, bob: User, make_tool: MakeTool
) -> None:
    await in_db(make_tool)("echo")
    waiting = await called(bob)
    others = await called(alice)
    await in_db(_end_of)(alice, bob, waiting)
    stored = await in_db(ToolCall.objects.get)(pk=waiting.pk)
    assert (stored.status, stored.reason) == (Status.WITHDRAWN, f"Not run: {membership.DEACTIVATED}.")
    assert (await in_db(ToolCall.objects.get)(pk=others.pk)).status == Status.WAITING


def signs_in() -> bool:
    client = Client()
    client.post("/sign-in", {"username": "bob", "password": PASSWORD})
    return "_auth_user_id" in client.session


def _end_of(alice: User, bob: User, waiting: ToolCall) -> None:
    clients = [Client(), Client()]
    for client in clients:
        client.force_login(bob)
    secrets = [Token.make(bob, kind, "mine") for kind in TokenKind]
    run = Run.objects.create(conversation=Conversation.objects.create(owner=bob), parked=True)
    membership.deactivate(bob.pk, signed_in(alice))
    for _ in range(2):
        assert [client.get("/").status_code for client in clients] == [302, 302]
        assert clients[0].get("/api/calls").status_code == 401
        assert [Token.find(secret) for secret in secrets] == [None] * 3
        assert not signs_in() or User.objects.get(pk=bob.pk).is_active
        if not User.objects.get(pk=bob.pk).is_active:
            membership.reactivate(bob.pk, signed_in(alice))
    assert signs_in()
    assert Run.objects.get(pk=run.pk).status == RunStatus.STOPPED
    with pytest.raises(decide.AlreadySettled):
        decide.approve(waiting.approval.pk, signed_in(bob))
    (_, ended), (_, back) = events()
    told = {"sessions": 2, "calls_withdrawn": 1, "tokens": ["api mine", "approver mine", "mcp mine"]}
    assert told.items() <= ended.items()
    assert (back["from"], back["to"]) == ("deactivated", "active")


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_call_that_came_in_unseen_while_its_person_was_deactivated_is_never_run(
    alice: User, bob: User, make_tool: MakeTool
) -> None:
    await in_db(make_tool)("echo", hitl_mode="DISABLED")
    await in_db(membership.deactivate)(bob.pk, signed_in(alice))
    late = await called(bob)
    assert await perform.start(late.pk) is None
    stored = await in_db(ToolCall.objects.get)(pk=late.pk)
    assert (stored.status, stored.reason) == (Status.WITHDRAWN, f"Not run: {membership.DEACTIVATED}.")


def draft_tested_by(mira: User, make_tool: MakeTool) -> ToolCall:
    """Waits for the author's own yes, to a tool that is not published."""
    make_tool("draft", published=False)
    return async_to_sync(submit)(CallRequest("draft", {"text": "hello"}, caller(mira, "studio")))


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_who_is_no_author_any_more_runs_no_draft_that_waits_for_them(
    alice: User, bob: User, mira: User, make_tool: MakeTool
) -> None:
    test = draft_tested_by(mira, make_tool)
    make_tool("echo")
    chat = async_to_sync(submit)(CallRequest("echo", {"text": "hello"}, caller(mira)))
    membership.change_role(mira.pk, Role.AUTHOR, signed_in(alice))
    assert ToolCall.objects.get(pk=test.pk).status == Status.WAITING
    membership.change_role(mira.pk, Role.MEMBER, signed_in(alice))
    stored = ToolCall.objects.get(pk=test.pk)
    assert (stored.status, stored.reason) == (Status.WITHDRAWN, f"Not run: {NO_AUTHOR}.")
    assert events()[-1][1]["calls_withdrawn"] == 1
    with pytest.raises(decide.AlreadySettled):
        decide.approve(test.approval.pk, signed_in(mira))
    assert ToolCall.objects.get(pk=chat.pk).status == Status.WAITING


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_draft_that_was_approved_does_not_run_for_who_may_not_author_by_then(mira: User, make_tool: MakeTool) -> None:
    test = draft_tested_by(mira, make_tool)
    decide.approve(test.approval.pk, signed_in(mira))
    # By whatever way: here not the page.
    roles.give(mira, Role.APPROVER)
    assert async_to_sync(perform.start)(test.pk) is None
    stored = ToolCall.objects.get(pk=test.pk)
    assert (stored.status, stored.reason) == (Status.WITHDRAWN, f"Not run: {NO_AUTHOR}.")


@pytest.mark.parametrize("way", ["demoted", "deactivated"])
def test_invitations_of_someone_who_is_no_administrator_any_more_open_nothing(
    way: str, alice: User, mira: User
) -> None:
    _, secret = membership.invite(Role.ADMINISTRATOR, "a friend", signed_in(mira))
    if way == "demoted":
        membership.change_role(mira.pk, Role.MEMBER, signed_in(alice))
    else:
        membership.deactivate(mira.pk, signed_in(alice))
    assert membership.find_invitation(secret) is None
    assert not Invitation.objects.exists()
    assert events()[-1][1]["invitations_void"] == 1

"""The page of everything that waits for a person, whoever asked for it."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitlchat.agent.models import Conversation
from hitlchat.approvals import waiting
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import MakeTool, caller, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}


@pytest.fixture
def page(bob: User, client: Client) -> Client:
    client.force_login(bob)
    return client


@pytest.fixture
def tool(make_tool: MakeTool) -> None:
    make_tool("echo", prompt_template="Say {args.text}")


def asked(user: User, text: str, kind: str = "chat", **more: Any) -> Approval:
    call = async_to_sync(submit)(CallRequest("echo", {"text": text}, caller(user, kind), **more))
    return call.approval


def marks(page: Client) -> list[str]:
    return waiting.of(int(page.session["_auth_user_id"])).marks


@pytest.mark.usefixtures("tool")
def test_calls_of_every_kind_of_caller_are_listed_and_nobody_elses(page: Client, bob: User, charlie: User) -> None:
    for kind in ("chat", "mcp", "api", "studio"):
        asked(bob, f"from {kind}", kind)
    asked(charlie, "private")
    shown = page.get("/approvals/").content.decode()
    for words in ("the assistant", "an MCP client", "an API client", "a test in the Tool Studio"):
        assert f"asked by {words}" in shown
    assert shown.count("“from ") == 4
    assert "private" not in shown
    assert "<span data-number>4</span>" in shown


@pytest.mark.usefixtures("tool")
def test_the_oldest_deadline_comes_first_and_leads_to_its_page(page: Client, bob: User) -> None:
    later, sooner = asked(bob, "later"), asked(bob, "sooner")
    ToolCall.objects.filter(pk=sooner.call_id).update(deadline=timezone.now() + timedelta(seconds=20))
    assert [mark.partition("@")[0] for mark in marks(page)] == [str(sooner.pk), str(later.pk)]
    assert f'href="/approvals/{sooner.pk}"' in page.get("/approvals/").content.decode()


@pytest.mark.usefixtures("tool")
def test_the_chat_that_asks_is_named(page: Client, bob: User) -> None:
    chat = Conversation.objects.create(owner=bob, title="Refunds of May")
    asked(bob, "hi", conversation_id=chat.pk)
    shown = page.get("/approvals/").content.decode()
    assert "Refunds of May" in shown
    assert f"/chat/{chat.pk}" in shown


def test_where_nothing_waits_the_page_says_what_would(page: Client) -> None:
    shown = page.get("/approvals/").content.decode()
    assert "Nothing waits for you" in shown
    assert "data-approvals-count" in shown
    assert page.get("/waiting").content == b"0"


@pytest.mark.usefixtures("tool")
def test_nothing_comes_anew_while_nothing_has_changed(page: Client, bob: User) -> None:
    asked(bob, "one")
    asked(bob, "two")
    same = page.get("/approvals/waiting", {"was": marks(page), "more": "0"}, headers=HTMX)
    assert (same.status_code, same["HX-Trigger"]) == (204, '{"approvals-count": 2}')


@pytest.mark.usefixtures("tool")
def test_what_was_settled_elsewhere_goes_and_it_is_said_what_became_of_it(page: Client, bob: User) -> None:
    one, two = asked(bob, "one"), asked(bob, "two")
    was = marks(page)
    decide.decline(one.pk, signed_in(bob))
    answer = page.get("/approvals/waiting", {"was": was, "more": "0"}, headers=HTMX)
    (listed, told) = answer.content.decode().split("hx-swap-oob")
    assert str(two.pk) in listed
    assert str(one.pk) not in listed
    assert "Say one" in told
    assert "no longer waits" in told
    assert 'data-status="declined"' in told
    assert answer["HX-Trigger"] == '{"approvals-count": 1}'


@pytest.mark.guarantee("gate:only-people")
@pytest.mark.usefixtures("tool")
def test_marks_of_others_tell_nothing(page: Client, charlie: User) -> None:
    theirs = asked(charlie, "private")
    decide.decline(theirs.pk, signed_in(charlie))
    answer = page.get("/approvals/waiting", {"was": [str(theirs.pk), "nonsense"]}, headers=HTMX)
    assert answer.status_code == 200
    assert "private" not in answer.content.decode()


@pytest.mark.usefixtures("tool")
def test_a_long_list_is_cut_and_says_how_many_more_there_are(
    page: Client, bob: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(waiting.MOST + 2):
        asked(bob, f"number {number}")
    found = waiting.of(bob.pk)
    assert (len(found.lines), found.more, found.count) == (waiting.MOST, 2, waiting.MOST + 2)
    with django_assert_max_num_queries(8):
        assert "And 2 more" in page.get("/approvals/").content.decode()


@pytest.mark.usefixtures("tool")
def test_the_number_is_that_of_what_one_may_decide(page: Client, bob: User, charlie: User) -> None:
    mine = asked(bob, "mine")
    asked(charlie, "private")
    assert page.get("/waiting").content == b"1"
    decide.decline(mine.pk, signed_in(bob))
    assert page.get("/waiting").content == b"0"
    assert ToolCall.objects.filter(status=Status.WAITING).count() == 1


def test_whoever_is_not_signed_in_gets_no_number_and_no_list(client: Client) -> None:
    assert client.get("/waiting").status_code == 204
    assert client.get("/approvals/").status_code == 302


def test_without_its_last_slash_the_address_leads_there_too(page: Client) -> None:
    assert page.get("/approvals", follow=True).status_code == 200

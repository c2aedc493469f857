"""Five more minutes from every entry point that has people: pages, REST and the console."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import Approval, AuditEvent, ToolCall
from hitlchat.gate.submit import CallRequest, submit
from tests.api.conftest import ProgramOf, problem, program_of
from tests.conftest import MakeTool, caller

__all__ = ["program_of"]
pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
MORE = timedelta(minutes=5)


@pytest.fixture
def approval(make_tool: MakeTool, bob: User) -> Approval:
    """Of a question in its last minute."""
    make_tool("echo")
    call = async_to_sync(submit)(CallRequest("echo", {"text": "hi"}, caller(bob)))
    ToolCall.objects.filter(pk=call.pk).update(deadline=timezone.now() + timedelta(seconds=30))
    return Approval.objects.select_related("call").get(call=call)


def deadline(approval: Approval) -> Any:
    return ToolCall.objects.get(pk=approval.call_id).deadline


def shown_on(approval: Approval) -> Any:
    """The deadline, as a page that was made with this row has it."""
    return approval.call.deadline


def press(page: Client, approval: Approval, **fields: str) -> Any:
    typed = {"deadline": shown_on(approval).isoformat(), "place": "card"} | fields
    return page.post(f"/approvals/{approval.pk}/extend", typed, headers=HTMX)


def mark(page: Client) -> str:
    """Of the list of the inbox, as it is shown."""
    return page.get("/approvals/").content.decode().partition('id="list-was" value="')[2].partition('"')[0]


def test_pressing_it_shows_the_new_time_and_pressing_it_twice_adds_no_more(page: Client, approval: Approval) -> None:
    until = shown_on(approval) + MORE
    for _ in range(2):
        piece = press(page, approval).content.decode()
        assert until.isoformat() in piece
        assert "role" not in piece.partition("<form")[0]
    assert deadline(approval) == until
    assert AuditEvent.objects.get(name="call.extended").means == "session"


def test_other_pages_look_and_are_told_only_what_they_do_not_show(page: Client, approval: Approval) -> None:
    path = f"/approvals/{approval.pk}/time-left"
    was = shown_on(approval).isoformat()
    for each in (f"/approvals/{approval.pk}", "/approvals/"):
        shown = page.get(each).content.decode()
        assert f'action="/approvals/{approval.pk}/extend"' in shown
        assert was in shown
    listed = mark(page)
    assert page.get(path, {"was": was}).status_code == 204
    press(page, approval)
    shown = page.get(path, {"was": was, "place": "line"}).content.decode()
    assert deadline(approval).isoformat() in shown
    assert f'id="left-line-{approval.pk}"' in shown
    # The inbox too: the question is the same, and yet not as it was shown.
    assert listed != mark(page)
    assert deadline(approval).isoformat() in page.get("/approvals/").content.decode()


def test_the_piece_says_why_nothing_was_added(page: Client, approval: Approval) -> None:
    for moment in ("", "soon", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z"):
        assert "no valid deadline" in press(page, approval, deadline=moment).content.decode()
        assert deadline(approval) == shown_on(approval)
    ToolCall.objects.update(deadline=shown_on(approval) + MORE)
    approval.refresh_from_db()
    piece = press(page, Approval.objects.select_related("call").get()).content.decode()
    assert "Five minutes can be added only in the last minute" in piece


@pytest.mark.guarantee("SR-27")
def test_to_others_and_programs_there_is_nothing_and_a_look_changes_nothing(
    page: Client, approval: Approval, bob: User, charlie: User, program_of: ProgramOf
) -> None:
    path = f"/approvals/{approval.pk}/extend"
    problem(program_of(charlie).post(path), 404)
    problem(program_of(bob, TokenKind.API).post(path), 403)
    assert page.get(f"/approvals/{approval.pk}/extend").status_code == 405
    other = Client()
    other.force_login(charlie)
    assert press(other, approval).status_code == 404
    assert other.get(f"/approvals/{approval.pk}/time-left").status_code == 404
    assert deadline(approval) == shown_on(approval)


def test_over_rest_it_answers_with_the_approval(bob: User, approval: Approval, program_of: ProgramOf) -> None:
    bobs, path = program_of(bob), f"/approvals/{approval.pk}/extend"
    seen = bobs.get(f"/approvals/{approval.pk}").json()["deadline"]
    for _ in range(2):
        shown = bobs.post(path, {"deadline": seen}).json()
        assert shown["deadline"] == deadline(approval).isoformat()[:23] + "Z"
        assert shown["consentDigest"] == approval.digest
    assert deadline(approval) == shown_on(approval) + MORE
    assert "in the last minute" in problem(bobs.post(path), 409)["detail"]
    assert problem(bobs.post(path, {"deadline": "soon"}), 422)["errors"].keys() == {"deadline"}


def test_at_the_console_it_says_until_when(bob: User, charlie: User, approval: Approval) -> None:
    with pytest.raises(CommandError, match="no approval with this id for you"):
        call_command("approvals", "extend", str(approval.pk), user=charlie.username)
    with pytest.raises(CommandError, match="no active user named 'eve'"):
        call_command("approvals", "extend", str(approval.pk), user="eve")
    told = StringIO()
    call_command("approvals", "extend", str(approval.pk), user=bob.username, stdout=told)
    assert told.getvalue().startswith(f"The new deadline is {deadline(approval):%Y-%m-%d %H:%M:%S}")
    with pytest.raises(CommandError, match="in the last minute"):
        call_command("approvals", "extend", str(approval.pk), user=bob.username)

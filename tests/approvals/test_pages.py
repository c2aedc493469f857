"""One approval on a page of its own, and the answer by plain HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitlchat.gate.models import Approval, Decision, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.templatetags.marks import until
from tests.conftest import MakeTool, caller

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approval(make_tool: MakeTool, bob: User) -> Approval:
    make_tool("echo")
    call = async_to_sync(submit)(CallRequest("echo", {"text": "hi"}, caller(bob)))
    return call.approval


def answer(page: Client, approval: Approval, **fields: Any) -> Any:
    return page.post(f"/approvals/{approval.pk}/decide", {"digest": approval.digest} | fields)


@pytest.mark.guarantee("SR-22")
def test_looking_changes_nothing(page: Client, approval: Approval) -> None:
    for path in ("", "/outcome"):
        assert page.get(f"/approvals/{approval.pk}{path}").status_code == 200
    assert page.get(f"/approvals/{approval.pk}/decide").status_code == 405
    assert ToolCall.objects.get().status == Status.WAITING


def test_approving_leads_back_to_the_page_of_the_call(page: Client, approval: Approval) -> None:
    assert answer(page, approval, verdict="approve").status_code == 302
    assert Decision.objects.get().means == "session"
    assert b"has been answered" in page.get(f"/approvals/{approval.pk}").content


def test_declining_keeps_the_reason(page: Client, approval: Approval) -> None:
    answer(page, approval, verdict="decline", reason="not today")
    assert Decision.objects.get().reason == "not today"


WORDS: dict[str, Any] = {
    "both": {"verdict": ["decline", "approve"]},
    "approve twice": {"verdict": ["approve", "approve"]},
    "another case": {"verdict": "Approve"},
    "a space": {"verdict": "approve "},
    "true": {"verdict": "true"},
    "nothing": {},
    "two digests": {"verdict": "approve", "digest": ["x", "y"]},
    "no digest": {"verdict": "approve", "digest": ""},
    "another digest": {"verdict": "approve", "digest": "0" * 64},
}


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-13")
def test_what_is_not_one_clear_answer_decides_nothing(
    subtests: pytest.Subtests, page: Client, approval: Approval
) -> None:
    for case, fields in WORDS.items():
        with subtests.test(case=case):
            response = answer(page, approval, **fields)
            assert response.status_code == 409
            assert ToolCall.objects.get().status == Status.WAITING
            assert not Decision.objects.exists()


@pytest.mark.guarantee("gate:only-people", "SR-21")
def test_someone_else_finds_nothing_there(approval: Approval, charlie: User, client: Client) -> None:
    client.force_login(charlie)
    assert client.get(f"/approvals/{approval.pk}").status_code == 404
    assert answer(client, approval, verdict="approve").status_code == 404
    assert ToolCall.objects.get().status == Status.WAITING


def test_whoever_is_not_signed_in_is_sent_to_sign_in(approval: Approval, client: Client) -> None:
    assert answer(client, approval, verdict="approve").status_code == 302
    assert ToolCall.objects.get().status == Status.WAITING


def test_the_second_answer_is_told_that_it_did_not_count(page: Client, approval: Approval) -> None:
    answer(page, approval, verdict="decline")
    late = answer(page, approval, verdict="approve")
    assert late.status_code == 409
    assert b"did not count" in late.content
    assert Decision.objects.count() == 1


@pytest.mark.guarantee("SR-24")
def test_an_answer_without_a_csrf_token_is_refused(approval: Approval, bob: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)
    assert answer(strict, approval, verdict="approve").status_code == 403


@pytest.mark.guarantee("SR-24")
def test_the_page_cannot_be_framed(page: Client, approval: Approval) -> None:
    headers = page.get(f"/approvals/{approval.pk}").headers
    assert headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "status,words",
    [
        (Status.WAITING, "A call needs your answer"),
        (Status.APPROVED, "This call has been answered"),
        (Status.EXPIRED, "Nobody answered this call in time"),
        (Status.WITHDRAWN, "This call was withdrawn"),
    ],
)
def test_the_heading_says_how_it_stands_and_changes_with_it(
    status: Status, words: str, page: Client, approval: Approval
) -> None:
    ToolCall.objects.filter(pk=approval.call_id).update(status=status)
    path = f"/approvals/{approval.pk}"
    assert f'<h1 id="heading">{words}</h1>' in page.get(path).content.decode()
    changed = f'<h1 id="heading" hx-swap-oob="true">{words}</h1>'
    for shown_on, has_it in ((path, True), ("/studio/tools/echo", False), ("", False)):
        fragment = page.get(f"{path}/outcome", headers={"HX-Request": "true", "HX-Current-URL": f"http://x{shown_on}"})
        assert (changed in fragment.content.decode()) == has_it


@pytest.mark.parametrize("zone, shown", [("UTC", "19:32:05 UTC"), ("Europe/Berlin", "20:32:05 CET")])
def test_the_time_is_one_of_the_servers_clock_and_zone_where_no_script_counts_down(
    zone: str, shown: str, page: Client, approval: Approval
) -> None:
    ToolCall.objects.update(deadline=datetime(2126, 11, 22, 19, 32, 5, tzinfo=UTC))
    with timezone.override(zone):
        for path in (f"/approvals/{approval.pk}", "/approvals/"):
            html = page.get(path).content.decode()
            assert f">until 22 Nov 2126, {shown}</b>" in html, path
            assert "</b> left" not in html
    soon = timezone.now() + timedelta(seconds=1)
    assert until(soon) == f"until {soon:%H:%M:%S} UTC" or soon.date() != timezone.now().date()

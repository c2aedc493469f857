"""One approval on a page of its own, and the answer by plain HTTP."""

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.chat import fragments
from hitlchat.gate import decide
from hitlchat.gate.batch import Outcome
from hitlchat.gate.models import Approval, AuditEvent, Decision, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import MakeTool, caller, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

PREFETCH: Final = {"Sec-Purpose": "prefetch;prerender", "Purpose": "prefetch", "X-Moz": "prefetch"}


@pytest.fixture
def approval(make_tool: MakeTool, bob: User) -> Approval:
    make_tool("echo")
    call = async_to_sync(submit)(CallRequest("echo", {"text": "private words"}, caller(bob)))
    return call.approval


def fragment(page: Client, approval: Approval, shown_on: str) -> str:
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://x{shown_on}"}
    return page.get(f"/approvals/{approval.pk}/outcome", headers=headers).content.decode()


def answer(page: Client, approval: Approval, **fields: Any) -> Any:
    return page.post(f"/approvals/{approval.pk}/decide", {"digest": approval.digest} | fields)


@pytest.mark.guarantee("gate:only-people", "SR-22")
def test_links_with_a_yes_in_them_decide_nothing_whoever_follows_them(
    approval: Approval, bob: User, client: Client
) -> None:
    """As scanners of mails and previews in chats do, and browsers that look ahead with their person's session."""
    said = f"verdict=approve&digest={approval.digest}"
    parts = ("", "/decide", "/outcome", "/who", "/edit", "/extend", "/take-back", "/grant", "/time-left")
    paths = [f"/approvals/{approval.pk}{part}?{said}" for part in parts]
    paths += ["/approvals/", f"/approvals/?call={approval.pk}", "/approvals/waiting", "/approvals/decided", "/notices/"]
    paths += [f"/approvals/together?verdict=approve&items={approval.pk}:{approval.digest}"]
    before = AuditEvent.objects.count()
    for path in paths:
        answer = client.get(path)
        assert answer.status_code in (302, 405), path
        assert b"private words" not in answer.content
    client.force_login(bob)
    for path in paths:
        for answer in (client.get(path, headers=PREFETCH), client.head(path, headers=PREFETCH)):
            assert answer.status_code in (200, 204, 404, 405), path
    assert ToolCall.objects.get().status == Status.WAITING
    assert (Decision.objects.count(), AuditEvent.objects.count()) == (0, before)


def test_a_page_that_looks_whether_its_call_is_settled_hears_nothing_before(page: Client, approval: Approval) -> None:
    look = f"/approvals/{approval.pk}/outcome?settled"
    assert f'hx-get="{look}"' in page.get(f"/approvals/{approval.pk}").content.decode()
    assert page.get(look).status_code == 204
    answer(page, approval, verdict="decline")
    assert b"Declined by bob" in page.get(look).content


@pytest.mark.guarantee("gate:truth")
def test_an_answer_in_the_tools_place_is_shown_as_a_persons_and_as_text(
    page: Client, approval: Approval, subtests: pytest.Subtests
) -> None:
    assert b"did not run" not in answer(page, approval, verdict="answer", answer=" ").content
    assert answer(page, approval, verdict="answer", answer="<b>12</b>").status_code == 302
    assert ToolCall.objects.get().status == Status.ANSWERED
    for path in (f"/approvals/{approval.pk}", f"/history/{approval.call_id}"):
        with subtests.test(path):
            shown = page.get(path).content.decode()
            assert "answer. The tool did not run." in shown
            assert "&lt;b&gt;12&lt;/b&gt;" in shown
            assert "Declined" not in re.sub(r"<option.*?</option>", "", shown)


def test_what_to_do_instead_needs_words(page: Client, approval: Approval) -> None:
    assert answer(page, approval, verdict="suggest", reason=" ").status_code == 409
    assert not Decision.objects.exists()
    assert answer(page, approval, verdict="suggest", reason="Use customer 12").status_code == 302
    assert "To do instead: <q>Use customer 12</q>" in page.get(f"/history/{approval.call_id}").content.decode()


def test_an_answer_leads_back_to_the_page_and_a_second_one_is_told_that_it_did_not_count(
    page: Client, approval: Approval
) -> None:
    assert answer(page, approval, verdict="decline", reason="not today").status_code == 302
    assert b"has been answered" in page.get(f"/approvals/{approval.pk}").content
    late = answer(page, approval, verdict="approve")
    assert (late.status_code, b"was not recorded" in late.content) == (409, True)
    decision = Decision.objects.get()
    assert (decision.means, decision.reason) == ("session", "not today")


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


@pytest.mark.guarantee("gate:only-people", "SR-21", "SR-24")
def test_no_answer_counts_of_others_of_nobody_and_without_a_csrf_token(
    approval: Approval, bob: User, charlie: User, client: Client
) -> None:
    assert answer(client, approval, verdict="approve").status_code == 302
    client.force_login(charlie)
    assert client.get(f"/approvals/{approval.pk}").status_code == 404
    assert answer(client, approval, verdict="approve").status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)
    assert answer(strict, approval, verdict="approve").status_code == 403
    assert ToolCall.objects.get().status == Status.WAITING


@pytest.mark.guarantee("SR-24")
def test_the_page_cannot_be_framed(page: Client, approval: Approval) -> None:
    headers = page.get(f"/approvals/{approval.pk}").headers
    assert headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_the_heading_says_how_it_stands_and_changes_with_it(page: Client, approval: Approval) -> None:
    path = f"/approvals/{approval.pk}"
    for status, words in (
        (Status.WAITING, "A call needs your answer"),
        (Status.APPROVED, "This call has been answered"),
        (Status.EXPIRED, "Nobody answered this call in time"),
        (Status.WITHDRAWN, "This call was withdrawn"),
    ):
        ToolCall.objects.filter(pk=approval.call_id).update(status=status)
        assert f'<h1 id="heading">{words}</h1>' in page.get(path).content.decode()
        changed = f'<h1 id="heading" hx-swap-oob="true">{words}</h1>'
        for shown_on, has_it in ((path, True), ("/studio/tools/echo", False), ("", False)):
            assert (changed in fragment(page, approval, shown_on)) == has_it


def test_the_deadline_is_a_time_with_its_zone_where_no_script_counts_down(page: Client, approval: Approval) -> None:
    ToolCall.objects.update(deadline=datetime(2126, 11, 22, 19, 32, 5, tzinfo=UTC))
    for path in (f"/approvals/{approval.pk}", "/approvals/"):
        html = page.get(path).content.decode()
        assert re.search(">until <time [^>]+>22 Nov 2126, 19:32:05 UTC</time></b>", html), path
        assert "</b> left" not in html


def test_a_settled_call_is_shown_as_it_was_asked_and_as_it_was_changed(
    page: Client, approval: Approval, bob: User
) -> None:
    decide.approve(approval.pk, signed_in(bob), digest=approval.digest, edited={"text": "other words"})
    shown = unescape(page.get(f"/approvals/{approval.pk}").content.decode())
    for words in (
        '"text": "private words"',
        '"text": "other words"',
        "Arguments as changed and approved",
        "This tool always needs approval.",
        approval.digest,
        str(approval.call.created_at.year),
        'href="/approvals/"',
    ):
        assert words in shown
    assert approval.digest not in fragment(page, approval, "/studio/tools/echo")


def test_after_the_answer_it_is_said_how_an_mcp_client_learns_of_it(
    page: Client, approval: Approval, bob: User
) -> None:
    over_mcp = async_to_sync(submit)(CallRequest("echo", {"text": "hi"}, caller(bob, "mcp"))).approval
    for each, is_told in ((approval, False), (over_mcp, True)):
        decide.decline(each.pk, signed_in(bob))
        shown = page.get(f"/approvals/{each.pk}").content.decode()
        assert ("The client is notified." in shown) == is_told


def test_the_outcomes_of_several_answers_are_a_warning_only_if_one_did_not_count() -> None:
    for counted in (True, False):
        outcomes = [Outcome(new_id(), "one", "Approved.", True), Outcome(new_id(), "two", "Said.", counted)]
        assert ("all-counted" in fragments.outcomes(outcomes)) == counted

"""The pages of the history: the list with its filters, and everything that is on record about one call."""

import html
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.agent.unknown import RUN_AGAIN
from hitlchat.approvals.history import listing
from hitlchat.approvals.history.views import WORDS
from hitlchat.base.moments import span
from hitlchat.gate import decide, disclosure, submit
from hitlchat.gate.attention import SHOWN
from hitlchat.gate.counting import COUNTED, TAKEN_BACK
from hitlchat.gate.models import Approval, AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.sources import Shown
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import REQUESTED
from hitlchat.record.exporting import EXPORTED
from hitlchat.upstreams.elicitation.questions import EVENTS
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, approved, ask, fresh, recording
from tests.gate.granting import conditional, granted

pytestmark = pytest.mark.django_db(transaction=True)


def text(page: Client, path: str = "/history/", status: int = 200, **query: str) -> str:
    response = page.get(path, query)
    assert response.status_code == status
    return html.unescape(response.content.decode())


def of(page: Client, call: ToolCall) -> str:
    return text(page, f"/history/{call.pk}")


def test_asked_or_not_every_call_is_a_line_with_who_and_what_and_filters_are_taken_off_one_by_one(
    page: Client, bob: User
) -> None:
    assert "No calls yet" in text(page)
    call = ask(bob, recording(prompt_template="Refund {args.text}"), {"text": "A-1"}, kind="mcp")
    decide.decline(approval_of(call).pk, signed_in(bob))
    Decision.objects.update(decided_at=approval_of(call).created_at + timedelta(seconds=75), hurried=True)
    ask(bob, recording("free", mode="DISABLED"), {"text": "x" * 500})
    assert "No call matches" in text(page, tool="other")
    filtered = text(page, tool="refund", outcome="declined", caller="mcp")
    for words in ("Outcome: <bdi>Declined</bdi>", "Asked by: <bdi>an MCP client</bdi>", "Clear all", "Refund A-1"):
        assert words in filtered
    assert 'href="/history/?outcome=declined&caller=mcp"' in filtered
    shown = text(page)
    assert '<a href="/history/" aria-current="page">' in shown
    for words in ("Refund A-1", "asked by an MCP client", "declined by <bdi>bob</bdi>", "after 1 min 15 s"):
        assert words in shown
    assert "faster than it can be read" in shown
    assert "not asked" in shown
    assert f"Free: text “{'x' * 60}…”" in shown


def test_a_call_reads_the_same_whether_it_asked_or_not(subtests: pytest.Subtests, bob: User) -> None:
    with_title = {"title": "Draw a chart", "origin": "mail (MCP server)"}
    for number, words in enumerate([with_title, {"prompt_template": "Draw {args.text}"}]):
        tool = recording(f"draw{number}", **words)
        asked = ask(bob, tool, {"text": "two words"})
        Tool.objects.filter(pk=tool.pk).update(hitl_mode="DISABLED")
        unasked = ask(bob, tool, {"text": "two words"})
        with subtests.test(words=words):
            assert [hasattr(call, "approval") for call in (asked, unasked)] == [True, False]
            assert disclosure.sentence(unasked) == disclosure.sentence(asked)


def test_a_filter_that_is_not_understood_finds_nothing_and_says_what_is_expected(
    subtests: pytest.Subtests, page: Client, bob: User
) -> None:
    ask(bob, recording())
    for field, value, expected in [
        ("outcome", "lost", "Expected one of rejected, allowed"),
        ("caller", "pigeon", "Expected one of chat, studio, api, mcp."),
        ("risk", "9", "Expected one of 0, 1, 2, 3, 4, 5."),
        ("since", "yesterday", "Expected a day such as 2026-11-22"),
        ("since", "9999-99-99", "Expected a day such as 2026-11-22"),
        ("until", "9999-12-31", "Expected a day such as 2026-11-22"),
        ("since", "9999-12-31", "Expected a day such as 2026-11-22"),
        ("since", "0001-01-01", "Expected a day such as 2026-11-22"),
        ("until", "0001-01-01T00:00:00+14:00", "Expected a day such as 2026-11-22"),
        ("since", "9999-12-31T23:59:59-12:00", "Expected a day such as 2026-11-22"),
        ("tool", "x" * 65, "at most 64 characters"),
        ("person", "a\x00b", "Null characters are not allowed"),
    ]:
        with subtests.test(field=field):
            shown = text(page, status=422, **{field: value})
            assert expected in shown
            assert f'id="id_{field}_error"' in shown
            assert "history-list" not in shown


def test_the_day_to_which_one_looks_is_in_it(page: Client, bob: User) -> None:
    ask(bob, recording())
    today = timezone.localdate()
    assert "history-list" in text(page, since=str(today), until=str(today))
    assert "No call matches" in text(page, until=str(today - timedelta(days=1)))
    text(page, status=422, since=str(today), until=str(today - timedelta(days=1)))


def test_older_calls_are_a_page_further_with_the_same_filters(page: Client, bob: User) -> None:
    call = ask(bob, recording())
    columns = ToolCall.objects.filter(pk=call.pk).values().get()
    ToolCall.objects.bulk_create(
        ToolCall(**{k: v for k, v in columns.items() if k != "id"}) for _ in range(listing.PAGE)
    )
    shown = text(page, tool="refund")
    assert shown.count("history-head") == listing.PAGE
    older = shown.partition('rel="next" href="')[2].partition('"')[0]
    assert older.startswith("/history/?tool=refund&before=")
    rest = text(page, older)
    assert rest.count("history-head") == 1
    assert "Newest" in rest
    assert page.get("/history/?before=nonsense").status_code == 404


def test_fifty_lines_take_as_many_queries_as_three(page: Client, bob: User) -> None:
    tool = recording()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            text(page)
        return len(captured)

    for _ in range(3):
        approved(bob, tool)
    few = queries()
    for _ in range(12):
        approved(bob, tool)
    assert queries() == few


def test_how_long_an_answer_took_is_one_figure(page: Client, bob: User, make_tool: MakeTool) -> None:
    call = ask(bob, make_tool("echo"), {"text": "hello"})
    asked = approval_of(call)
    decide.decline(asked.pk, signed_in(bob))
    since, at = asked.created_at + timedelta(seconds=1), asked.created_at + timedelta(seconds=219)
    Decision.objects.update(first_shown_at=since, decided_at=at, opened=True, hurried=False)
    shown = of(page, call)
    assert "3 min 39 s after the question." in shown
    assert "Answered in" not in shown
    assert 'facts-of-answer">\n    <li>' in shown
    assert "<li></li>" not in shown


@pytest.mark.guarantee("audit:complete")
def test_a_call_is_shown_with_its_card_who_decided_how_fast_and_what_was_changed(
    page: Client, bob: User, make_tool: MakeTool
) -> None:
    call = ask(bob, make_tool("echo", prompt_template="Say {args.text}"), {"text": "hello there"})
    asked = approval_of(call)
    decide.approve(asked.pk, signed_in(bob), digest=asked.digest, edited={"text": "hello you"})
    Decision.objects.update(
        first_shown_at=asked.created_at + timedelta(seconds=3),
        decided_at=asked.created_at + timedelta(seconds=5),
        opened=False,
        hurried=True,
    )
    async_to_sync(settled)(call.pk, 10)
    shown = of(page, call)
    for words in (
        asked.digest,
        "This tool always needs approval.",
        "Approved by <bdi>bob</bdi></b>, signed in",
        "5.0 s after the question.",
        "Answered in 2 s (about ",
        "Not all folded text was opened.",
        "<mark>there</mark>",
        "<mark>you</mark>",
        Decision.objects.get().digest,
        "Approved with changed arguments.",
        "Succeeded.",
        f'href="/approvals/{asked.pk}"',
    ):
        assert words in shown
    assert f'href="/history/{call.pk}"' in text(page, f"/approvals/{asked.pk}")


@pytest.mark.guarantee("audit:complete")
def test_of_a_call_that_ran_unasked_it_says_on_which_rule_or_grant(page: Client, bob: User) -> None:
    unasked = ask(bob, recording("free", mode="DISABLED"))
    shown = of(page, unasked)
    assert "Why nobody was asked" in shown
    assert "Not asked because this tool is set to never ask." in shown
    assert f'href="/history/?rule={unasked.rule}"' in shown
    assert "Let run without asking" in shown
    grant = granted(bob, tool := conditional(), calls=2)
    assert grant.approval is not None
    covered = ask(bob, tool, conversation_id=grant.conversation_id or grant.approval.call.conversation_id)
    assert f'href="/grants/#grant-{grant.pk}"' in of(page, covered)


def test_each_time_that_it_was_asked_is_shown_as_it_was(page: Client, bob: User) -> None:
    call = ask(bob, recording("pay"))
    first = approval_of(call)
    Approval.objects.filter(pk=first.pk).update(disclosure=first.disclosure | {"preview": shown_as("pays 1 EUR")})
    call = ToolCall.objects.select_related("tool", "approval").get(pk=call.pk)
    ToolCall.objects.filter(pk=call.pk).update(status="approved")
    call.status = "approved"
    submit.ask_again(call, submit.Look(call.round, shown_as("pays 9 EUR")))
    shown = of(page, call)
    assert "First shown" in shown
    assert "pays 1 EUR" in shown
    assert "pays <mark>9</mark> EUR" in shown
    assert "Asked about again: The effect changed after you approved." in shown


def shown_as(words: str) -> Shown:
    return {"text": words, "table": None, "error": None, "cut": []}


def test_an_event_without_words_is_told_by_its_name_and_a_record_that_was_altered_says_so(
    page: Client, bob: User
) -> None:
    asked = approval_of(ask(bob, recording()))
    AuditEvent.objects.create(name="approval.first_shown", call=fresh(asked.call), actor=bob, means="session")
    before = of(page, asked.call)
    assert "Approval: first shown." in before
    assert "is not the one that was shown" not in before
    Approval.objects.filter(pk=asked.pk).update(disclosure=asked.disclosure | {"reason": "Harmless."})
    assert "is not the one that was shown" in of(page, asked.call)


@pytest.mark.guarantee("gate:only-people")
def test_someone_elses_call_looks_like_none(bob: User, charlie: User, alice: User, client: Client) -> None:
    call = ask(bob, recording(prompt_template="Refund {args.text}"), {"text": "order A-4711"})
    client.force_login(charlie)
    for path in (f"/history/{call.pk}", f"/history/?before={call.pk}"):
        assert client.get(path).status_code == 404
    assert "order A-4711" not in text(client)
    client.force_login(alice)
    shown = of(client, call)
    assert "order A-4711" in shown
    assert f"/approvals/{call.approval.pk}" not in shown
    assert f"/chat/{call.conversation_id}" not in shown
    assert "order A-4711" in text(client)
    assert Client().get(f"/history/{call.pk}").status_code == 302


def test_every_event_of_a_call_that_this_program_records_has_words() -> None:
    moves = {f"call.{status}" for status in Status} - {"call.submitted"}
    others = {SHOWN, COUNTED, TAKEN_BACK, REQUESTED, RUN_AGAIN, EXPORTED, *EVENTS.values()}
    assert {*moves, *others} - WORDS.keys() == set()


def test_spans_are_said_in_their_two_largest_units() -> None:
    said = {
        0.0042: "4 ms",
        7.25: "7.2 s",
        59.6: "1 min",
        75: "1 min 15 s",
        3600: "1 h",
        90_061: "1 day 1 h",
        2e6: "23 days 3 h",
    }
    assert {seconds: span(seconds) for seconds in said} == said

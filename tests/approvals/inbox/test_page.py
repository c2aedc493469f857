"""The inbox: everything that waits for a person, whoever asked for it, in the order in which it runs out."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from hitlchat.agent import runs
from hitlchat.agent.models import Conversation
from hitlchat.approvals.inbox import lines
from hitlchat.gate import decide, queue
from hitlchat.gate.disclosure import Suggested
from hitlchat.gate.models import Approval, Tool, ToolCall, new_id
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.gate.transition import withdraw
from tests.approvals.inbox.conftest import Asked
from tests.conftest import signed_in
from tests.gate.sources_for_tests import SOURCES, previews
from tests.tables import each_row

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
HOUR = timedelta(hours=1)


def shown(page: Client, query: str = "") -> str:
    answer = page.get(f"/approvals/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def listed(html: str) -> list[str]:
    """The ids of the lines, in their order."""
    return re.findall(r'data-call="([^"]+)"', html)


def mark(html: str) -> str:
    found = re.search(r'name="was" id="list-was" value="(\w+)"', html)
    assert found
    return found[1]


def put(approval: Approval, **columns: Any) -> Approval:
    ToolCall.objects.filter(pk=approval.call_id).update(**columns)
    return approval


def apart(*approvals: Approval) -> list[Approval]:
    """As if a minute had passed between them: no burst."""
    for minutes, approval in enumerate(approvals):
        Approval.objects.filter(pk=approval.pk).update(created_at=timezone.now() - timedelta(minutes=minutes))
    return [*approvals]


def test_calls_of_every_kind_of_caller_are_listed_and_nobody_elses(
    page: Client, bob: User, charlie: User, asked: Asked
) -> None:
    chat = Conversation.objects.create(owner=bob, title="Refunds of May")
    asked(bob, "from chat", conversation_id=chat.pk)
    for kind in ("mcp", "api", "studio"):
        asked(bob, f"from {kind}", kind)
    asked(charlie, "private")
    html = shown(page)
    for words in ("the assistant", "an MCP client", "an API client", "a test in the Tool Studio"):
        assert f"</code> · {words}" in html
    assert len(listed(html)) == 4
    assert "Refunds of May" in html
    assert f"/chat/{chat.pk}" in html
    assert "private" not in html
    assert "<span data-number>4</span>" in html
    assert "4 waiting for you" in html


@pytest.mark.guarantee("SR-3")
def test_a_line_says_so_if_what_it_shows_could_deceive(page: Client, bob: User, asked: Asked) -> None:
    asked(bob, "honest")
    assert "Look closely" not in shown(page)
    asked(bob, "\u0410\u0421\u041c\u0415")
    assert shown(page).count("Look closely") == 1


@pytest.mark.servers("the SQL differs between the databases")
def test_what_runs_out_within_a_minute_stands_apart_and_the_soonest_comes_first(
    page: Client, bob: User, asked: Asked
) -> None:
    later, soon, sooner = apart(*(asked(bob, word) for word in ("later", "soon", "sooner")))
    put(later, deadline=timezone.now() + HOUR)
    put(soon, deadline=timezone.now() + timedelta(seconds=50))
    put(sooner, deadline=timezone.now() + timedelta(seconds=20))
    html = shown(page)
    assert listed(html) == [str(each.pk) for each in (sooner, soon, later)]
    urgent, rest = html.split("Less than a minute left")[1].split("Soonest first")
    assert (len(listed(urgent)), len(listed(rest))) == (2, 1)


@pytest.mark.servers("the SQL differs between the databases")
def test_calls_of_one_tool_and_caller_asked_at_once_are_one_group_with_its_number(
    page: Client, bob: User, asked: Asked
) -> None:
    for word in ("one", "two", "three"):
        asked(bob, word, "mcp")
    asked(bob, "by another", "api")
    before = asked(bob, "long before", "mcp")
    Approval.objects.filter(pk=before.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    html = shown(page)
    assert len(listed(html)) == 5
    (group,) = re.findall(r"<details class=\"burst\".*?</details>", html, re.DOTALL)
    assert "<b>3</b> calls to <code>echo</code> asked at once" in group
    assert len(listed(group)) == 3


@pytest.mark.servers("the SQL differs between the databases")
def test_the_card_is_that_of_the_most_urgent_call_or_of_the_one_that_is_picked(
    page: Client, bob: User, charlie: User, asked: Asked
) -> None:
    first, second = put(asked(bob, "one"), deadline=timezone.now() + HOUR), asked(bob, "two")
    assert f'id="ask-{second.pk}"' in shown(page)
    html = shown(page, f"?call={first.pk}")
    assert f'id="ask-{first.pk}"' in html
    assert "data-picked" in html
    for nothing in ("nonsense", str(asked(charlie, "private").pk)):
        html = shown(page, f"?call={nothing}")
        assert f'id="ask-{second.pk}"' in html
        assert "private" not in html


def test_where_nothing_waits_the_page_says_what_would(page: Client) -> None:
    assert page.get("/approvals", follow=True).status_code == 200
    html = shown(page)
    assert "Nothing is waiting for you" in html
    assert "appears here, with its outcome" in html
    assert page.get("/waiting").content == b"0"


# -- filters -----------------------------------------------------------------------------------------------------------


@pytest.mark.servers("the SQL differs between the databases")
def test_filters_show_what_fits_and_say_how_much_they_hide(page: Client, bob: User, asked: Asked) -> None:
    old, by_mcp, risky, other_source = (
        asked(bob, w, k) for w, k in zip("abcd", ("chat", "mcp", "api", "api"), strict=True)
    )
    put(old, created_at=timezone.now() - HOUR)
    put(risky, risk_level=4)
    put(other_source, source="upstream", tool_name="search")
    for query, found in (
        ("kind=mcp", by_mcp),
        ("risk=4", risky),
        ("source=upstream", other_source),
        ("tool=search", other_source),
        ("age=15", old),
        ("kind=api&caller=bob&risk=4", risky),
    ):
        html = shown(page, f"?{query}")
        assert listed(html) == [str(found.pk)], query
        assert "4 waiting for you, the filter hides 3" in html
    html = shown(page, "?kind=studio")
    assert "No call matches" in html
    assert "the filter hides all of them" in html
    # A filter that is none is named, and hides nothing.
    html = shown(page, "?risk=9&age=-1&tool=%00&kind=mcp")
    assert html.count('class="problem small"') == 3
    assert "the filter hides 3" in html


# -- refreshes ---------------------------------------------------------------------------------------------------------


def test_nothing_comes_anew_while_nothing_has_changed(page: Client, bob: User, asked: Asked) -> None:
    asked(bob, "one")
    was = mark(shown(page))
    assert page.get("/approvals/waiting", {"was": was}, headers=HTMX).status_code == 204
    later = put(asked(bob, "two"), deadline=timezone.now() + HOUR)
    fresh = page.get("/approvals/waiting", {"was": was}, headers=HTMX).content.decode()
    assert listed(fresh)[-1] == str(later.pk)
    was = mark(fresh)
    # Put off by somebody, it is the same question, and yet not as it is shown.
    put(later, deadline=timezone.now() + 2 * HOUR)
    assert page.get("/approvals/waiting", {"was": was}, headers=HTMX).status_code == 200


def test_what_was_settled_goes_and_it_is_said_how_it_ended_by_whom_and_after_how_long(
    page: Client, bob: User, charlie: User, asked: Asked
) -> None:
    one, two, gone = asked(bob, "one"), asked(bob, "two"), asked(charlie, "private")
    Approval.objects.filter(pk=one.pk).update(created_at=timezone.now() - timedelta(seconds=75))
    was = mark(shown(page))
    assert page.get("/waiting").content == b"2"
    decide.decline(one.pk, signed_in(bob))
    assert page.get("/waiting").content == b"1"
    decide.decline(gone.pk, signed_in(charlie))
    answer = page.get("/approvals/waiting", {"was": was}, headers=HTMX).content.decode()
    assert listed(answer) == [str(two.pk)]
    row = answer.split('id="lately"')[1]
    for words in ("Say one", 'data-status="declined"', "<bdi>bob</bdi>"):
        assert words in row.replace("“one”", "one")
    # And the seconds that the test itself takes.
    assert re.search(r"1 min (1[5-9]|[2-5]\d) s", row)
    assert "private" not in answer


def test_of_a_withdrawn_call_it_is_said_what_withdrew_it(page: Client, bob: User, asked: Asked) -> None:
    withdraw(asked(bob, "one").call, runs.BY_THE_PERSON)
    row = page.get("/approvals/decided").content.decode()
    assert "Not run: the run was stopped." in row
    assert "nobody" not in row


def test_an_approved_call_is_followed_until_it_is_over(page: Client, bob: User, asked: Asked) -> None:
    one = asked(bob, "one")
    decide.approve(one.pk, signed_in(bob), digest=one.digest)
    assert 'hx-trigger="load delay:1s"' in page.get("/approvals/decided").content.decode()
    put(one, status=Status.SUCCEEDED, settled_at=timezone.now())
    ended = page.get("/approvals/decided").content.decode()
    assert 'data-status="succeeded"' in ended
    assert "hx-trigger" not in ended


# -- together ----------------------------------------------------------------------------------------------------------


def test_calls_are_answered_together_only_as_they_were_listed_each_by_itself(
    page: Client, bob: User, asked: Asked
) -> None:
    one, two = asked(bob, "one"), asked(bob, "two")
    html = page.get("/approvals/together", {"call": [str(one.pk), str(two.pk)]}, headers=HTMX).content.decode()
    items = sorted(set(re.findall(r'name="items" value="([^"]+)"', html)))
    assert items == sorted(f"{each.pk}:{each.digest}" for each in (one, two))
    assert html.count('class="args"') == 2
    late = decide.decline(two.pk, signed_in(bob))
    answer = page.post("/approvals/together", {"verdict": "approve", "items": items}, headers=HTMX).content.decode()
    assert "Not all answers were recorded" in answer
    assert late.call.status == Status.DECLINED
    assert [each.verdict for each in one.decisions.all()] == ["approve"]


@each_row("preview, says_so", [(["1 order"], True), ([None], False)])
def test_after_a_yes_to_several_it_is_said_that_one_may_ask_again_if_what_they_would_do_was_shown(
    preview: list[str | None], says_so: bool, page: Client, bob: User, asked: Asked, settings: Settings
) -> None:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **SOURCES}
    Tool.objects.update(source="previewing")
    previews[:] = [Preview(text=text) if text else None for text in preview]
    items = [f"{each.pk}:{each.digest}" for each in (asked(bob, "one"), asked(bob, "two"))]
    noes = asked(bob, "three"), asked(bob, "four")
    words = "that one is not run: it asks you again"
    for verdict, told in (("decline", False), ("approve", says_so)):
        some = items if verdict == "approve" else [f"{each.pk}:{each.digest}" for each in noes]
        answer = page.post("/approvals/together", {"verdict": verdict, "items": some}, headers=HTMX).content.decode()
        assert ("All answers were recorded" in answer, words in answer) == (True, told)


def test_a_further_attempt_says_so_in_the_list_and_is_answered_by_itself(page: Client, bob: User, asked: Asked) -> None:
    asked(bob, "one")
    again = asked(bob, "two", suggested=[Suggested({"text": "three"}, "Shorter"), Suggested({"text": "four"}, "More")])
    html = shown(page)
    assert re.findall(r'<span class="strong">Attempt (\d)</span>', html) == ["3"]
    box = html.split(f'id="pick-{again.pk}"')[1].partition(">")[0]
    assert "disabled" in box
    assert "A further attempt is answered individually." in box


def test_a_call_that_asks_again_says_so_before_what_may_be_cut(page: Client, bob: User, asked: Asked) -> None:
    asked(bob, "one")
    put(asked(bob, "two"), round=2)
    line = next(each for each in shown(page).split("<li") if "Asked again" in each)
    assert line.index("Asked again") < line.index('class="whose"')
    assert "Say two" in line


def test_of_calls_side_by_side_the_odd_one_is_first_in_the_table_and_in_the_list(
    page: Client, bob: User, asked: Asked
) -> None:
    calls = [asked(bob, text) for text in ("same", "other", "same")]
    html = page.get("/approvals/together", {"call": [str(each.pk) for each in calls]}, headers=HTMX).content.decode()
    table, listed = html.split("<ol>")
    rows = re.findall(r'<th scope="row">(\d)(.*?)</th><td>(.*?)</td>', table, re.DOTALL)
    assert [(number, "differs" in mark, "other" in cell, "<mark>" in cell) for number, mark, cell in rows] == [
        ("1", True, True, True),
        ("2", False, False, False),
        ("3", False, False, False),
    ]
    assert "other" in listed.split("</li>")[0]


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_cannot_be_together_is_not_listed_and_no_answer_to_it_counts(
    page: Client, bob: User, charlie: User, asked: Asked
) -> None:
    one, risky, theirs = asked(bob, "one"), put(asked(bob, "two"), risk_level=4), asked(charlie, "private")
    html = shown(page)
    box = html.split(f'id="pick-{risky.pk}"')[1].partition(">")[0]
    assert "disabled" in box
    assert "From L4 up, each call is answered individually." in box
    for some in ([one], [one, theirs], []):
        listing = page.get(
            "/approvals/together", {"call": [str(each.pk) for each in some] or "nonsense"}, headers=HTMX
        ).content.decode()
        assert 'name="items"' not in listing
        assert "private" not in listing
    digests = [f"{each.pk}:{each.digest}" for each in (one, risky, theirs)]
    for fields in (
        {"verdict": "approve", "items": digests[:2]},
        {"verdict": "approve", "items": [digests[0], digests[2]]},
        {"verdict": ["approve", "decline"], "items": digests[:1]},
        {"verdict": "yes", "items": digests},
        {"verdict": "approve", "items": [str(one.pk)]},
    ):
        page.post("/approvals/together", fields, headers=HTMX)
    assert ToolCall.objects.filter(status=Status.WAITING).count() == 3


# -- much of it --------------------------------------------------------------------------------------------------------


def repeat(like: Approval, times: int) -> None:
    """Have as many more of the same wait."""
    columns = ToolCall.objects.values().get(pk=like.call_id)
    calls = ToolCall.objects.bulk_create([ToolCall(**columns | {"id": new_id()}) for _ in range(times)])
    Approval.objects.bulk_create(
        [Approval(call=call, prompt="p", disclosure=like.disclosure, digest=like.digest) for call in calls]
    )


@pytest.mark.servers("the SQL differs between the databases")
def test_a_long_list_is_cut_and_says_how_many_more_there_are(
    page: Client, bob: User, asked: Asked, django_assert_max_num_queries: Any
) -> None:
    asked(bob, "number 0")
    shown(page)
    with django_assert_max_num_queries(19) as few:
        shown(page)
    repeat(asked(bob, "number 1"), lines.MOST)
    with django_assert_max_num_queries(len(few)):
        html = shown(page)
    assert "2 more appear" in html
    assert len(listed(html)) == lines.MOST


@pytest.mark.servers("the SQL differs between the databases")
def test_beyond_a_thousand_it_is_said_that_there_are_more(page: Client, bob: User, asked: Asked) -> None:
    repeat(asked(bob, "one"), lines.MOST_COUNTED)
    assert page.get("/waiting").content == b"1,000+"
    html = shown(page)
    assert "<span data-number>1,000+</span>" in html
    assert "950+ more appear" in html
    html = shown(page, "?kind=mcp")
    assert "the filter hides 1,000+" in html


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_flood_is_counted_at_once_by_a_database_that_plans_for_an_empty_queue(bob: User, asked: Asked) -> None:
    first = asked(bob, "one")
    repeat(first, 3 * lines.MOST_COUNTED)
    Approval.objects.exclude(pk=first.pk)._raw_delete("default")
    ToolCall.objects.exclude(pk=first.call_id)._raw_delete("default")
    with connection.cursor() as cursor:
        # As autovacuum does at any time. Its finding holds until the next time: many pages, and hardly a row.
        cursor.execute("ANALYZE")
    repeat(first, lines.MOST_COUNTED)
    with transaction.atomic(), connection.cursor() as cursor:
        # Milliseconds are enough, and a plan that counts all anew for each needs minutes.
        cursor.execute("SET LOCAL statement_timeout = '30s'")
        assert lines.count_waiting(bob.pk).over
        assert len(queue.first(bob.pk, lines.MOST)) == lines.MOST


def test_whoever_is_not_signed_in_gets_no_number_and_no_list(client: Client) -> None:
    assert client.get("/waiting").status_code == 204
    for path in ("", "waiting", "decided", "together"):
        assert client.get(f"/approvals/{path}").status_code == 302

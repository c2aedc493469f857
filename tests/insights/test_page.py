"""The page of insights: whose figures it shows, and that everyone finds the marks on their own decisions."""

import html
import re
from collections import Counter
from datetime import date

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.insights import drawing
from hitlchat.insights.figures import Answers, Figures, OfTool, Period, Tally
from tests.insights.rows import answered, asked, ran
from tests.tables import each_row

pytestmark = pytest.mark.django_db


def text_of(user: User, query: str = "") -> str:
    client = Client()
    client.force_login(user)
    response = client.get(f"/insights/{query}")
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def test_administrators_see_everybody_s_and_others_their_own_only(alice: User, bob: User, charlie: User) -> None:
    answered(bob, "refund")
    ran(charlie, "secret_tool", reason="A reason of charlie's.")
    answered(charlie, "salaries", hurried=True, took=0.5)
    everyone, own = text_of(alice), text_of(bob)
    for name in ("refund", "secret_tool", "salaries", "charlie", "A reason of charlie's."):
        assert name in everyone
        assert (name in own) == (name == "refund")
    assert "Answers, by person" in everyone
    assert "Answers, by person" not in own


@pytest.mark.guarantee("SR-42")
def test_everyone_reads_the_mark_on_their_own_decision(bob: User) -> None:
    decision = answered(bob, "refund", hurried=True, took=0.8)
    shown = text_of(bob)
    assert "Your decisions" in shown
    assert "Answered in 0.8 s (about" in shown
    assert f'href="/approvals/{decision.approval_id}"' in shown


def test_an_answer_without_a_display_is_told_of_and_called_nothing_worse(bob: User) -> None:
    answered(bob, "refund", took=None)
    shown = text_of(bob)
    assert "1 answer, 0 with a known time to decide." in shown
    assert "\u2013<small>median</small>" in shown
    assert "No answers with a known time to decide." in shown
    assert "Not shown by hitlchat before the answer." in shown


def test_before_anything_happened_it_says_what_will_stand_here(bob: User) -> None:
    shown = text_of(bob)
    assert "No calls in the last 4 weeks" in shown
    assert "You made no decisions in the last 4 weeks" in shown
    assert '<svg class="plot' not in shown


@pytest.mark.parametrize("query,days", [("", "4 weeks"), ("?period=7d", "7 days"), ("?period=%00'", "4 weeks")])
def test_the_period_is_in_the_address(bob: User, query: str, days: str) -> None:
    assert f'aria-current="page" href="/insights/?period={ {"4 weeks": "4w", "7 days": "7d"}[days] }"' in text_of(
        bob, query
    )


def test_every_picture_says_what_it_shows_and_has_its_numbers(alice: User, bob: User) -> None:
    answered(bob, "refund", edited_arguments={})
    answered(bob, "refund", no=True)
    asked(bob, "send", "expired")
    ran(bob, "look")
    shown = text_of(alice)
    assert shown.count('<svg class="plot') == shown.count("<desc id=") == shown.count("<caption") == 5
    assert "3 asked in 4 weeks: 1 approved, 1 declined, 1 expired." in shown
    since = Period.of("").days[0]
    refund = f'<th scope="row"><a href="/history/?tool=refund&since={since}">refund</a></th>'
    assert f'{refund}<td class="num">2</td><td class="num">1</td>' in shown
    assert '<td class="num">50 %</td><td class="num">100 %</td>' in shown
    assert shown.count("Nothing to change.") == 1
    # A yes and a no are answers of a person, too.
    assert "Waiting, withdrawn or answered in the tool's place" in shown


def test_the_picture_of_times_names_where_its_columns_begin_and_fits_on_a_phone_whole(bob: User) -> None:
    answered(bob, "refund")
    shown = text_of(bob)
    (times,) = re.findall(
        r'<svg class="(plot[^"]*)"[^>]*aria-labelledby="times-title.*?</desc>(.*?)</svg>', shown, re.DOTALL
    )
    assert times[0] == "plot", "not as wide as a desk has room for"
    bounds = re.findall(r'class="of-times"[^>]*>(.*?)<', times[1])
    assert bounds == ["2 s", "5 s", "15 s", "30 s", "1 min", "2 min", "5 min"]


def test_each_figure_leads_to_the_calls_behind_it(alice: User, bob: User) -> None:
    refund = answered(bob, "refund", hurried=True).approval.call
    look = ran(bob, "look")
    since = Period.of("").days[0]
    for user, everyone in ((alice, True), (bob, False)):
        shown = text_of(user)
        own, said = ("", "") if everyone else ("person=bob&", "decider=bob&")
        leads = {
            f"/history/?{said}hurried=1&since={since}": {refund.pk},
            f"/history/?{own}outcome=unasked&since={since}": {look.pk},
            f"/history/?{own}tool=refund&since={since}": {refund.pk},
            f"/history/?{own}tool=look&outcome=unasked&since={since}": {look.pk},
        }
        leads |= {f"/history/?decider=bob&since={since}": {refund.pk}} if everyone else {}
        client = Client()
        client.force_login(user)
        for address, calls in leads.items():
            assert f'href="{address}"' in shown
            page = client.get(address).content.decode()
            assert {pk for pk in (refund.pk, look.pk) if f"/history/{pk}" in page} == calls, address


def test_names_and_reasons_of_others_are_text_and_hide_nothing(alice: User) -> None:
    eve = User.objects.create_user("<b>eve\u202e</b>" + "x" * 60)
    answered(eve, "refund")
    ran(eve, "look", reason="<script>\u200b")
    client = Client()
    client.force_login(alice)
    shown = client.get("/insights/").content.decode()
    assert "<b>eve" not in shown
    assert "<script>\u200b" not in shown
    assert "\u202e" not in shown
    assert "U+202E" in shown
    assert "U+200B" in shown


@each_row("most, highest", [(0, "1"), (2, "2"), (9, "10"), (11, "15"), (51, "60")])
def test_an_axis_ends_with_the_numbers_or_just_above_them(most: int, highest: str) -> None:
    days = {date(2026, 10, 28): Tally(most), date(2026, 10, 29): Tally()}
    figures = Figures(Period("7d", date(2026, 10, 29)), days, [], [], Answers(Counter()), [])
    assert [each.text for each in drawing.days(figures).marks if each.text.isdigit()][-1] == highest


def test_the_parts_of_a_tool_s_bar_are_as_long_as_its_number() -> None:
    tools = [OfTool("refund", Tally(asked=8, approved=3, declined=1, expired=2)), OfTool("mail", Tally(asked=4))]
    bars = [mark.attributes for mark in drawing.by_tool(tools, str).marks if mark.tag == "rect"]
    lengths = [(bar["class"], round(float(bar["width"]) + drawing.GAP)) for bar in bars]
    of_one = drawing.NARROW / 8
    assert lengths == [
        *(("approved", 3 * of_one), ("declined", of_one), ("expired", 2 * of_one), ("others", 2 * of_one)),
        ("others", 4 * of_one),
    ]

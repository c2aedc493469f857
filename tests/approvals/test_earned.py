"""Earned rules on their page: proposed with evidence, kept as a draft, published, ended."""

import html
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.approvals.earned import in_words
from hitlchat.gate import decide
from hitlchat.gate.models import Grant, PolicyDraft, Tool
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate import sources_for_tests
from tests.gate.asking import approval_of
from tests.gate.earning import answered, history, refund, small

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def tool(bob: User, settings: Any) -> Tool:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **sources_for_tests.SOURCES}
    made = refund()
    history(bob, made)
    return made


def text(response: Any, status: int = 200) -> str:
    found: str = response.content.decode()
    assert response.status_code == status, found
    return html.unescape(found)


def hidden(shown: str, name: str) -> str:
    (found,) = re.findall(rf'name="{name}" value="(.*?)"(?: id|>)', shown)
    return str(found)


def test_without_evidence_the_page_says_what_it_takes(page: Client, db: None) -> None:
    shown = text(page.get("/policies/earned"))
    assert "No proposals" in shown
    assert "at least 20 calls alike" in shown
    assert "No earned rule is in force" in shown


def test_a_proposal_is_kept_looked_at_published_and_ended_with_how_on_the_page(
    tool: Tool, alice: User, bob: User, page: Client
) -> None:
    shown = text(page.get("/policies/earned"))
    assert "30 of 30 calls like this were approved unchanged" in shown
    assert shown.index("<li>amount is from 10 to 39</li>") < shown.index("10 <= args['amount'] <= 39")
    assert "3 other calls of the tool were declined, edited or regretted; none is like these" in shown
    assert shown.count('<li><a href="/history/') == 3
    sent = {"draft": hidden(shown, "draft"), "name": hidden(shown, "name")}
    assert [*json.loads(sent["draft"])["tools"]] == ["refund"]
    kept = text(page.post("/policies/lab/drafts", sent, follow=True))
    assert "What the record says of <code>refund</code>" in kept
    assert "<li>amount is from 10 to 39</li>" in kept
    sentence = "Calls run without asking if the arguments are amount, order and no others; amount is from 10 to 39"
    assert kept.index(sentence) < kept.index("sorted(args) == ") < kept.index("10 <= args['amount'] <= 39")
    where = f"/policies/lab/{PolicyDraft.objects.get().pk}"
    asked = text(page.post(f"{where}/publish", {"why": "All approved."}), 422)
    assert "Calls run without asking while sorted(args)" in asked
    assert not Grant.objects.exists()
    done = page.post(f"{where}/publish", {"why": "All approved.", "confirm_lowering": "on"}, follow=True)
    assert "Published by alice" in text(done)
    call = small(bob, tool)
    rule = Grant.objects.get()
    assert (call.status, call.grant) == (Status.ALLOWED, rule)
    assert f'href="/policies/earned#grant-{rule.pk}"' in text(page.get(f"/history/{call.pk}"))
    shown = text(page.get("/policies/earned"))
    assert "Decays if unused until" in shown
    assert "At most 3 a day, 3 for one person" in shown
    assert "<li>amount is from 10 to 39</li>" in shown
    assert str(rule.pk) not in text(page.get("/grants/")), "nobody gave it with a yes"
    ended = page.post(f"/grants/{rule.pk}/revoke", follow=True)
    assert ended.redirect_chain == [("/policies/earned", 302)]
    assert "alice revoked it" in text(ended)


def test_how_one_ended_stands_on_its_page(tool: Tool, alice: User, bob: User, page: Client) -> None:
    shown = text(page.get("/policies/earned"))
    page.post("/policies/lab/drafts", {"draft": hidden(shown, "draft"), "name": "<b>Earned</b>"})
    where = f"/policies/lab/{PolicyDraft.objects.get().pk}"
    page.post(f"{where}/publish", {"why": "All approved.", "confirm_lowering": "on"})
    decide.decline(approval_of(small(bob, tool, heard=None)).pk, signed_in(bob))
    shown = text(page.get("/policies/earned"))
    assert "Ended: these tools ask again" in shown
    assert "Ended by a no" in shown
    assert "a person said no to a call like those it covers" in shown


def test_a_draft_that_the_record_speaks_against_says_so_and_is_not_published(
    tool: Tool, bob: User, page: Client
) -> None:
    shown = text(page.get("/policies/earned"))
    page.post("/policies/lab/drafts", {"draft": hidden(shown, "draft"), "name": "Earned"})
    answered(bob, tool, {"order": "A-1", "amount": 20}, no=True)
    where = f"/policies/lab/{PolicyDraft.objects.get().pk}"
    shown = text(page.get(where))
    assert "30 of 31 calls like this were approved unchanged" in shown
    assert "1 call like this was declined, edited or regretted" in shown
    assert "the rule cannot be published" in shown
    answer = page.post(f"{where}/publish", {"why": "All approved.", "confirm_lowering": "on"})
    assert "people said no to calls like this" in text(answer, 422)


def test_only_administrators_see_the_page(bob: User) -> None:
    client = Client()
    client.force_login(bob)
    assert client.get("/policies/earned").status_code == 403


def test_a_proposed_condition_is_in_words_above_its_code_and_one_of_another_kind_is_not() -> None:
    condition = (
        "sorted(args) == ['amount', 'order', 'to'] and 10 <= args['amount'] <= 39.5 and len(args['order']) <= 4 and "
        "args['order'].isascii() and args['order'].replace('-', '').replace('_', '').isalnum() and "
        "args['to'] in ['a and b', 'c'] and not args_from_outside"
    )
    assert in_words(condition) == [
        "the arguments are amount, order, to and no others",
        "amount is from 10 to 39.5",
        "order is at most 4 characters long: letters, digits, - and _",
        'to is one of "a and b", "c"',
        "no value comes from outside",
    ]
    assert in_words("0 <= args['n'] <= 5 and not isinstance(args['n'], bool)") == [
        "n is from 0 to 5",
        "n is neither true nor false",
    ]
    assert in_words("repr(args['a']) in ['1', 'True', '[2]'] and repr(args['b']) == 'None'") == [
        "a is one of 1, true, [2]",
        "b is null",
    ]
    assert in_words("repr(args['a']) == 'print()'") == []
    assert in_words("args['to'] == 'a' or True") == []
    assert in_words("args['to'] == 'a' or not args_from_outside") == []
    assert in_words("args['to'] == 'a' and len(args['order']) <= 4") == [], "an identifier by one test of three"
    assert in_words("args['to'] == args['from']") == []
    assert in_words("not (") == []

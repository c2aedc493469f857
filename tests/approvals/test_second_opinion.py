"""Second opinion, where people see and answer it: cards, lists, console, history, insights, and who turns it on."""

import json
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from hitlchat.agent import second as agents
from hitlchat.agent.models import SecondReader
from hitlchat.gate import second
from hitlchat.gate.models import Decision, Tool, ToolCall
from hitlchat.gate.second import Caution
from hitlchat.gate.status import Status
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, fresh, status

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
SENTENCE = "The text is <b>another</b> one than in the request."


@pytest.fixture
def tool(make_tool: MakeTool) -> Tool:
    return make_tool("echo")


@pytest.fixture
def call(bob: User, tool: Tool) -> ToolCall:
    return ask(bob, tool, conversation_id=None)


def cautioned(call: ToolCall, *, takes_tick: bool = True) -> ToolCall:
    asked = second.begin(call.pk, "gpt-<i>", takes_tick=takes_tick)
    assert asked is not None
    assert second.keep(asked, Caution(SENTENCE))
    return fresh(call)


def of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def shown(client: Client, path: str, **more: Any) -> str:
    return client.get(path, **more).content.decode()


def answer(user: User, call: ToolCall, **more: str) -> Any:
    sent = {"verdict": "approve", "digest": approval_of(call).digest} | more
    return of(user).post(f"/approvals/{approval_of(call).pk}/decide", sent, headers=HTMX)


def test_the_caution_stands_below_the_facts_labelled_as_text_and_above_the_answers(bob: User, call: ToolCall) -> None:
    page = f"/approvals/{approval_of(call).pk}"
    assert "second-opinion" not in shown(of(bob), page)
    cautioned(call)
    html = shown(of(bob), page)
    assert "&lt;b&gt;another&lt;/b&gt;" in html
    assert "<b>another</b>" not in html
    assert "It may be wrong." in html
    places = [html.index(each) for each in ('class="args"', "second-opinion", "another&lt;/b&gt;", 'class="ask-foot"')]
    assert places == sorted(places)
    assert 'name="caution_read" value="yes" form="ask-' in html


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_yes_of_a_page_from_before_the_caution_decides_nothing_and_brings_it(bob: User, call: ToolCall) -> None:
    cautioned(call)
    html = answer(bob, call).content.decode()
    assert "Your answer was not recorded." in html
    assert "second-opinion" in html
    assert (status(call), Decision.objects.count()) == (Status.WAITING, 0)
    answer(bob, call, caution_read="yes")
    assert status(call) == Status.APPROVED


def test_without_the_tick_for_it_the_card_takes_none(bob: User, call: ToolCall) -> None:
    cautioned(call, takes_tick=False)
    html = shown(of(bob), f"/approvals/{approval_of(call).pk}")
    assert "second-opinion" in html
    assert "data-reviewed" not in html


def test_a_page_that_has_the_card_without_it_gets_it_and_one_that_has_it_nothing(bob: User, call: ToolCall) -> None:
    page = f"/approvals/{approval_of(call).pk}/outcome?settled"
    assert of(bob).get(page, headers=HTMX).status_code == 204
    before = shown(of(bob), "/approvals/")
    cautioned(call)
    assert "second-opinion" in shown(of(bob), page, headers=HTMX)
    assert of(bob).get(f"{page}&cautioned", headers=HTMX).status_code == 204
    mark = f'data-asked="{approval_of(call).pk}-cautioned*1"'
    assert (mark in before, mark in shown(of(bob), "/approvals/")) == (False, True)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_the_console_shows_it_and_wants_it_read(bob: User, call: ToolCall, capsys: pytest.CaptureFixture[str]) -> None:
    cautioned(call)
    found = approval_of(call)
    call_command("approvals", "show", str(found.pk), "--plain")
    assert SENTENCE in capsys.readouterr().out
    yes = ("approvals", "approve", str(found.pk), "--as", "bob", "--digest", found.digest)
    with pytest.raises(CommandError, match="second model cautions"):
        call_command(*yes)
    assert status(call) == Status.WAITING
    call_command(*yes, "--caution-read")
    assert status(call) == Status.APPROVED


def test_the_history_has_it_with_its_model_also_once_the_call_is_over(bob: User, call: ToolCall) -> None:
    cautioned(call)
    answer(bob, call, caution_read="yes")
    html = shown(of(bob), f"/history/{call.pk}")
    assert "A second model cautioned" in html
    assert html.count("another&lt;/b&gt;") == 2
    assert "gpt-&lt;i&gt;" in html


def test_insights_and_the_report_say_what_people_answered(alice: User, bob: User, call: ToolCall) -> None:
    assert 'id="second-opinions"' not in shown(of(alice), "/insights/")
    cautioned(call)
    answer(bob, call, caution_read="yes")
    for page in ("/insights/", "/insights/report"):
        assert 'id="second-opinions"' in shown(of(alice), page), page
    found = json.loads(shown(of(alice), "/insights/report?format=json"))["secondOpinions"]
    nothing = {"against": 0, "approved": 0}
    assert found == [{"tool": "echo", "cautioned": {"against": 0, "approved": 1}, "withoutCaution": nothing}]


def test_an_administrator_turns_it_on_where_models_are_and_sees_how_often_it_failed(alice: User, bob: User) -> None:
    page = of(alice)
    assert "Asked about" not in shown(page, "/models/")
    sent = {"mode": "tick", "route": f"environment/{SecondReader().model or 'demo'}"}
    assert page.post("/models/second-opinion", sent | {"route": "nowhere/none"}).status_code == 422
    route = shown(page, "/models/").partition('name="route"')[2].partition('value="')[2].partition('"')[0]
    page.post("/models/second-opinion", {"mode": "tick", "route": unescape(route)})
    assert agents.chosen().mode == "tick"
    SecondReader.objects.update(asked=3, failed=2, failure=agents.SLOW, failed_at="2026-11-30T00:00Z")
    html = shown(page, "/models/")
    assert "Asked about 3 calls" in html
    assert agents.SLOW in html
    assert of(bob).post("/models/second-opinion", {"mode": "off", "route": route}).status_code == 403
    assert agents.chosen().mode == "tick"
    agents.choose(agents.Draft(), signed_in(alice))

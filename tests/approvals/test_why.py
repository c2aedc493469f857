"""Asking why, on the pages: the part of a card that asks and shows what the model claims, and where it stays."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.agent.models import Conversation
from hitlchat.gate import asking_why, decide, why
from hitlchat.gate.models import Tool, ToolCall
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, ask_over_mcp
from tests.gate.deciding_people import approver, rule

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
LABEL = "What the model says. It may be wrong, and nothing checked it."
CLAIM = "<b>You</b> asked\u202e me to."


@pytest.fixture
def tool(make_tool: MakeTool) -> Tool:
    return make_tool("echo", prompt_template="Say {args.text}")


@pytest.fixture
def call(bob: User, tool: Tool) -> ToolCall:
    return ask(bob, tool, conversation_id=Conversation.objects.create(owner=bob).pk)


def of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page(user: User, call: ToolCall) -> str:
    return of(user).get(f"/approvals/{approval_of(call).pk}").content.decode()


def post(user: User, call: ToolCall, **sent: Any) -> str:
    return of(user).post(f"/approvals/{approval_of(call).pk}/why", sent, headers=HTMX).content.decode()


def claimed(call: ToolCall, text: str = CLAIM, **more: Any) -> None:
    asking_why.answered(approval_of(call).pk, approval_of(call).whys, text, **more)


@pytest.mark.guarantee("SR-1", "SR-2")
def test_the_answer_stands_marked_below_the_facts_and_above_the_buttons_as_text(bob: User, call: ToolCall) -> None:
    assert "3 questions left" in page(bob, call)
    assert "The model is being asked." in post(bob, call, question="Why <i>now</i>?")
    claimed(call)
    shown = page(bob, call)
    assert "<q>Why &lt;i&gt;now&lt;/i&gt;?</q>" in shown
    assert re.search(r'&lt;b&gt;You&lt;/b&gt; asked<span class="esc">[^<]*202E[^<]*</span> me to\.', shown)
    order = [shown.index(part) for part in ('class="args"', LABEL, "&lt;b&gt;You", 'class="ask-foot"', "data-approve")]
    assert order == sorted(order)
    log = shown[shown.index('raw whys"') : shown.index("</details>", shown.index(LABEL))]
    # Nothing of it is a part that has to be in view before a yes, nor could it be taken for one.
    assert not re.search(r'<h3|suspect-note|"ask-why"|"effect|data-part|data-approve|name="verdict"', log)


def test_the_page_looks_until_the_answer_is_there(bob: User, call: ToolCall) -> None:
    path = f"/approvals/{approval_of(call).pk}/why"
    asked_now = post(bob, call)
    (look,) = re.findall(rf'hx-get="({path}\?seen=[^"]+)" hx-trigger="every 2s"', asked_now)
    assert of(bob).get(look, headers=HTMX).status_code == 204
    claimed(call)
    found = of(bob).get(look, headers=HTMX).content.decode()
    assert LABEL in found
    assert "hx-get" not in found
    decide.decline(approval_of(call).pk, signed_in(bob))
    assert of(bob).get(look, headers=HTMX).status_code == 204
    assert of(bob).get(path).status_code == 302


def test_what_failed_says_why_and_can_be_asked_again(bob: User, call: ToolCall) -> None:
    post(bob, call, question="Why now?")
    assert "The model is being asked already. Wait for its answer." in post(bob, call)
    claimed(call, trouble="The model server took too long.")
    shown = page(bob, call)
    assert "The model server took too long." in shown
    assert "Ask again" in shown
    assert 'name="again" value="Why now?"' in shown
    assert shown_again(post(bob, call, question=" ", again="Why now?")) == ["Why now?", "Why now?"]
    claimed(call)
    post(bob, call)
    claimed(call)
    assert "cannot be asked about this call any more" in page(bob, call)
    assert "as often as it can be" in post(bob, call)


def shown_again(html: str) -> list[str]:
    return re.findall("<q>(.*?)</q>", html)


def test_without_scripts_the_form_leads_back_to_the_page(bob: User, call: ToolCall) -> None:
    path = f"/approvals/{approval_of(call).pk}"
    assert of(bob).post(f"{path}/why")["Location"] == path
    assert of(bob).post(f"{path}/why").status_code == 409


@pytest.mark.guarantee("gate:only-people")
def test_whoever_else_decides_reads_it_and_has_no_form(alice: User, bob: User, tool: Tool) -> None:
    dora = approver("dora")
    rule(tool, alice, not_the_requester=True)
    call = ask(bob, tool, conversation_id=Conversation.objects.create(owner=bob).pk)
    post(bob, call)
    claimed(call)
    for person, may_ask in ((bob, True), (alice, False), (dora, False)):
        shown = page(person, call)
        assert LABEL in shown
        assert ('/why" hx-post' in shown) is may_ask
    post(dora, call)
    assert approval_of(call).whys == 1


def test_a_call_without_a_conversation_has_no_such_part(bob: User, tool: Tool) -> None:
    call = ask_over_mcp(bob, tool)
    assert "whys" not in page(bob, call)
    assert "no model to ask" in page_after_post(bob, call)


def page_after_post(user: User, call: ToolCall) -> str:
    return of(user).post(f"/approvals/{approval_of(call).pk}/why").content.decode()


def test_what_was_asked_stays_on_the_page_and_in_the_history(bob: User, call: ToolCall) -> None:
    post(bob, call, question="Why now?")
    claimed(call)
    decide.decline(approval_of(call).pk, signed_in(bob))
    for shown in (page(bob, call), of(bob).get(f"/history/{call.pk}").content.decode()):
        assert "<q>Why now?</q>" in shown
        assert LABEL in shown
    assert "The model was asked why." in of(bob).get(f"/history/{call.pk}").content.decode()


def test_a_cut_answer_says_so(bob: User, call: ToolCall) -> None:
    post(bob, call)
    claimed(call, "a" * (why.LONGEST_ANSWER + 1))
    assert "The answer was longer, and is cut here." in page(bob, call)

"""Two hundred answers to one question at the same moment, of every kind, from wherever people answer."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.agent.models import Conversation
from hitlchat.chat import commands
from hitlchat.gate import decide
from hitlchat.gate.decide import AlreadySettled
from hitlchat.gate.models import Approval, Decision, Tool, ToolCall, Verdict
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, events, fresh, run, status
from tests.gate.racing import MEETING, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("row locks tell two at a time apart")]

# Of each kind of answer: those that come over HTTP or a socket take far longer than plain ones.
PLAIN, WEB = 48, 8
# 200 at once take their time on a machine that has other things to do.
SECONDS = 200.0
OUTCOMES = dict.fromkeys(Verdict.values, Status.DECLINED) | {
    Verdict.APPROVE: Status.APPROVED,
    Verdict.ANSWER: Status.ANSWERED,
}
WORDS = {"reason": "Ask Ann.", "answer": "42"}
# What came of it: nothing if it counted, else what was said instead.
Answer = Callable[[], str]


@pytest.fixture
def patience(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred share the few connections of PostgreSQL's pool, however slow the machine is."""
    pool = getattr(connection, "pool", None) if connection.vendor == "postgresql" else None
    if pool is not None:
        monkeypatch.setattr(pool, "timeout", 120.0)


@pytest.fixture
def asked(bob: User, tool: Tool) -> ToolCall:
    """A call in a conversation of bob's that waits for bob."""
    return ask(bob, tool, conversation_id=Conversation.objects.create(owner=bob).pk)


def edit(number: int) -> dict[str, Any]:
    return {"text": f"changed {number}", "amount": number}


def by_function(user: User, approval: Approval) -> Sequence[Answer]:
    def told(answer: Callable[..., Any], **more: Any) -> str:
        try:
            answer(approval.pk, signed_in(user), **more)
        except AlreadySettled as late:
            return str(late)
        return ""

    edits = [partial(told, decide.approve, edited=edit(number)) for number in range(PLAIN)]
    return [partial(told, decide.approve), partial(told, decide.decline)] * PLAIN + edits


def by_rest(user: User, approval: Approval) -> Sequence[Answer]:
    token = {"Authorization": f"Bearer {Token.make(user, TokenKind.APPROVER)}"}

    def told(word: str, body: dict[str, Any]) -> str:
        path = f"/api/approvals/{approval.pk}/{word}"
        response: Any = Client().post(path, json.dumps(body), content_type="application/json", headers=token)
        assert response.status_code in (200, 409), response.content
        return "" if response.status_code == 200 else str(response.json()["detail"])

    edits = [partial(told, "approve", {"modifiedArguments": edit(100 + number)}) for number in range(WEB)]
    return [partial(told, "approve", {}), partial(told, "reject", {"reason": "no"})] * WEB + edits


def by_form(client: Client, approval: Approval) -> Sequence[Answer]:
    def told(verdict: str) -> str:
        alike = Client()
        alike.cookies = client.cookies
        sent = {"verdict": verdict, "digest": approval.digest, **WORDS}
        response = alike.post(f"/approvals/{approval.pk}/decide", sent)
        assert response.status_code in (302, 409), response.content
        return "" if response.status_code == 302 else response.content.decode()

    return [partial(told, verdict) for verdict in Verdict.values] * (WEB // 2)


def by_open_page(client: Client, approval: Approval) -> Sequence[Answer]:
    """The frames of an open page, as its socket has them carried out."""
    session = SimpleNamespace(session_key=client.cookies["sessionid"].value)
    conversation = approval.call.conversation_id
    assert conversation is not None

    def told(verdict: str) -> str:
        frame = {"type": "decide", "approval": str(approval.pk), "verdict": verdict, "digest": approval.digest}
        frame |= WORDS
        return commands.act(session, conversation, commands.parse(json.dumps(frame)))

    return [partial(told, verdict) for verdict in Verdict.values] * (WEB // 2)


@pytest.mark.slow("two hundred threads")
@pytest.mark.timeout(600)
@pytest.mark.guarantee("gate:one-outcome", "gate:at-most-once", "SR-12")
def test_of_two_hundred_mixed_answers_from_everywhere_one_counts_and_runs_at_most_once(
    bob: User, asked: ToolCall, patience: None, client: Client, entered: list[ToolCall]
) -> None:
    client.force_login(bob)
    approval = approval_of(asked)
    answers = [*by_function(bob, approval), *by_rest(bob, approval)]
    answers += [*by_form(client, approval), *by_open_page(client, approval)]
    assert len(answers) == 200
    ends = together(*answers, seconds=SECONDS)
    assert [end for end in ends if not isinstance(end, str)] == []
    decision, outcome = Decision.objects.get(), status(asked)
    assert outcome == OUTCOMES[decision.verdict]
    assert [end for end in ends if end and outcome.label.lower() not in end.lower()] == []
    assert len([end for end in ends if not end]) == 1
    assert events(asked) == ["call.waiting", f"call.{outcome.value}"]
    started = together(*[partial(run, asked)] * MEETING)
    assert sorted(started) == [False] * (MEETING - 1) + [outcome == Status.APPROVED]
    ran = decision.edited_arguments or asked.arguments
    assert [call.arguments for call in entered] == [ran] * (outcome == Status.APPROVED)
    assert fresh(asked).arguments == ran
    assert Decision.objects.count() == 1

"""The risk of a question is the same wherever it is said, also once its tool has become riskier."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from hitlchat.gate import card
from hitlchat.gate.models import Approval, Tool, ToolCall
from hitlchat.gate.sources import Preview
from hitlchat.mcp_server import elicitation
from hitlchat.notices.wording import facts
from tests.gate.asking import approval_of, approved, fresh, recording, run

pytestmark = pytest.mark.django_db


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    call_command("approvals", *words, "--json")
    return json.loads(capsys.readouterr().out.splitlines()[0])


def said(approval: Approval, client: Client, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """By every place that says it."""
    over_rest = client.get(f"/api/approvals/{approval.pk}").json()
    (listed,) = client.get("/api/approvals").json()
    (of_call,) = client.get("/api/calls").json()
    pages = {path: client.get(path).content.decode() for path in ("/approvals/", f"/approvals/{approval.pk}")}
    line = pages["/approvals/"].split("data-line", 1)[1].split('data-level="', 1)[1]
    of_page = pages[f"/approvals/{approval.pk}"].split("data-ask", 1)[1].split('data-level="', 1)[1]
    message = elicitation.message(approval)
    return {
        "the card": card.card(approval).risk,
        "its page": int(of_page[0]),
        "the inbox": int(line[0]),
        "an approval over REST": over_rest["riskLevel"],
        "approvals over REST": listed["riskLevel"],
        "calls over REST": of_call["riskLevel"],
        "the console's list": printed(capsys, "list")["riskLevel"],
        "the console's card": printed(capsys, "show", str(approval.pk))["riskLevel"],
        "a notice": facts(approval, arguments=False)["risk"],
        "MCP": int(message.removeprefix("[Risk L")[0]),
    }


def test_every_place_says_the_same_also_after_it_was_asked_again(
    bob: User, previews: list[Any], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    previews[:] = [Preview(text="Refunds 1 EUR"), Preview(text="Refunds all"), Preview(text="Refunds all")]
    call = approved(bob, recording(source="previewing", risk_level=2))
    Tool.objects.update(risk_level=4)
    client.force_login(bob)
    assert not run(call)
    assert set(said(approval_of(call), client, capsys).values()) == {4}
    # What its tool is by now is said where it is asked anew, and not before.
    Tool.objects.update(risk_level=1)
    assert set(said(approval_of(call), client, capsys).values()) == {4}


def test_a_line_read_without_its_disclosure_says_what_the_card_says(bob: User, previews: list[Any]) -> None:
    previews[:] = [Preview(text="a"), Preview(text="b")]
    call = approved(bob, recording(source="previewing", risk_level=1))
    Tool.objects.update(risk_level=5)
    run(call)
    assert fresh(call).risk_level == approval_of(call).disclosure["risk"] == 5
    assert ToolCall.objects.get().round == 2

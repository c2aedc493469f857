"""A question that an MCP client was given to show counts as shown from then on, by that client's word."""

import pytest
from django.contrib.auth.models import User

from hitlchat.gate.models import Decision, Showing, Tool, ToolCall
from tests.mcp_server.clients import connected, yes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("era", ["2025", "2026"])
@pytest.mark.guarantee("SR-42")
async def test_an_elicitation_is_shown_when_it_is_delivered_and_its_answer_is_timed_from_there(
    era: str, url: str, token: str, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    async with connected(url, token, era, yes()) as client:
        assert not (await client.call_tool("refund", {"text": "hello"})).is_error
    showing = await Showing.objects.aget()
    decision = await Decision.objects.aget()
    assert (showing.person_id, showing.means) == (bob.pk, "elicitation")
    assert decision.first_shown_at == showing.at < decision.decided_at
    # A program that says yes for its user at once leaves that on the record.
    assert decision.hurried

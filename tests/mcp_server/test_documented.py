"""docs/mcp.md says what the code does: its numbers, its words, and what a client is told."""

import json
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command

from hitlchat import settings as defaults
from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.mcp_server import elicitation, listing, outcomes, server, submissions, tokens
from hitlchat.mcp_server import inspector as session
from hitlchat.mcp_server.inspector.views import LASTS
from tests.conftest import MakeTool

DOCUMENT = Path(settings.BASE_DIR) / "docs" / "mcp.md"


@pytest.fixture(scope="module")
def text() -> str:
    return " ".join(DOCUMENT.read_text().split())


def test_the_limits_are_the_ones_in_force(text: str) -> None:
    for said in (
        f"{server.LARGEST_BODY // 2**20} MiB",
        f"calls of one token that wait for an answer | {outcomes.MOST_WAITING};",
        f"{defaults.MCP_TOKEN_SESSIONS} for a token, {defaults.MCP_PERSON_SESSIONS} for a person",
        f"{server.MOST_SESSIONS} sessions for one server process",
        f"closed after {server.IDLE_SECONDS:g} seconds",
        f"`tools/list` | {listing.PAGE} |",
        f"({elicitation.LONGEST} characters)",
        f"the latest {session.MOST_MESSAGES} messages",
        f"`MCP_ELICITATION_SECONDS` ({settings.MCP_ELICITATION_SECONDS})",
        f"`MCP_INBOX_SECONDS` ({settings.MCP_INBOX_SECONDS})",
        f"`STALL_SECONDS` ({settings.STALL_SECONDS})",
        f"`HITL_ELICITATION_MAX_RISK` ({defaults.HITL_ELICITATION_MAX_RISK})",
    ):
        assert said in text
    assert submissions.STANDS == LASTS == timedelta(hours=1)


def test_every_status_that_a_client_may_be_told_is_there(text: str) -> None:
    told = set(Status) - {Status.ALLOWED, Status.APPROVED}
    assert set(re.findall(r"\| `([a-z]+)` \| ", text)) >= {status.value for status in told}


def test_the_answers_of_the_three_settings_are_quoted_as_they_are() -> None:
    refused, waiting = (
        json.loads(re.sub(r"\n *", " ", each))
        for each in re.findall(r"```json\n(.*?)\n```", DOCUMENT.read_text(), re.DOTALL)
    )
    assert (refused["message"], refused["reason"]) == (
        outcomes.NOT_HERE[outcomes.NOBODY_TO_ASK],
        outcomes.NOBODY_TO_ASK,
    )
    assert (waiting["status"], waiting["message"]) == (Status.WAITING, outcomes.WAITS)


def test_the_keys_of_meta_are_there(text: str, db: None, make_tool: MakeTool) -> None:
    meta = listing.described(make_tool("echo")).meta or {}
    for key in (*meta, outcomes.CALL, outcomes.STATUS, outcomes.APPROVAL):
        assert f"`{key}`" in text


@pytest.mark.django_db
def test_the_command_makes_the_token_that_it_says(
    bob: User, make_tool: MakeTool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"manage.py create_token (bob .*?)\nmanage", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    words = found[1].replace("\\\n", " ").replace('"', "").split()
    names = [name for flag, name in pairwise(words) if flag == "--tool"]
    for name in names:
        make_tool(name)
    call_command("create_token", *words)
    access = tokens.find(capsys.readouterr().out.strip())
    assert access is not None
    assert (access.tools, access.ceiling, access.without_elicitation) == (frozenset(names), 3, "inbox")
    assert Tool.objects.filter(name__in=names).count() == 2

"""The log: one line for each thing that happens, with a name and ids, and never with what calls are about (SR-44)."""

import json
import logging
import logging.config
from typing import Any

import httpx2
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User

from hitlchat.gate import decide, perform
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, approved, ask, recording, run
from tests.gate.conftest import entered, tool
from tests.processes import Servers, installation, migrated, servers
from tests.waiting import until

__all__ = ["entered", "installation", "migrated", "servers", "tool"]
pytestmark = pytest.mark.django_db(transaction=True)

SECRETS = {
    "bearer": "Bearer eyJhbGciOi.SECRETONE.sig",
    "connection": "postgresql://admin:SECRETTWO@db.internal/shop",
    "heredoc": "cat <<EOF\npassword=SECRETTHREE\nEOF",
    "nested": {"outer": [{"api_key": "SECRETFOUR"}]},
}
WORDS = ("SECRETONE", "SECRETTWO", "SECRETTHREE", "SECRETFOUR", "SECRETFIVE", "SECRETSIX", "SECRETSEVEN")


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """As LOG_FORMAT=json has them."""
    configured: Any = settings.LOGGING["formatters"]
    formatter = logging.config.DictConfigurator({}).configure_formatter(dict(configured["json"]))
    return [json.loads(formatter.format(record)) for record in caplog.records if record.name == "hitlchat.gate"]


def test_each_thing_that_happens_to_a_call_is_one_line_with_its_ids(
    bob: User, tool: Tool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    call = approved(bob, tool)
    run(call)
    found = lines(caplog)
    names = ["hitl.requested", "hitl.approved", "tool.exec.start", "tool.exec.done"]
    assert [line["event"] for line in found] == names
    # In the other format the same names are what the lines say.
    assert [record.getMessage() for record in caplog.records if record.name == "hitlchat.gate"] == [
        f"{name} {call.pk}" for name in names
    ]
    approval = approval_of(call)
    for line in found:
        assert line.items() >= {
            "call": str(call.pk), "approval": str(approval.pk), "conversation": str(call.conversation_id),
            "tool": "refund", "source": "recording", "risk": 2, "caller": "chat", "level": "INFO",
        }.items()  # fmt: skip
    assert [line["means"] for line in found] == ["system", "session", "system", "system"]
    assert found[-1]["durationMs"] >= 0
    assert found[-1]["status"] == "succeeded"


@pytest.mark.guarantee("SR-44")
def test_every_other_end_has_a_name_too(bob: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    decide.decline(approval_of(ask(bob, recording("declined"))).pk, signed_in(bob), reason="SECRETFIVE")
    run(approved(bob, recording("failing", source="failing")))
    run(approved(bob, recording("raising", source="raising")))
    lost = approved(bob, recording("lost"))
    claimed = async_to_sync(perform.start)(lost.pk)
    assert claimed is not None
    async_to_sync(perform.give_up)(lost.pk, "SECRETSIX")
    late = ask(bob, recording("late"))
    ToolCall.objects.filter(pk=late.pk).update(deadline=late.created_at)
    decide.expire_overdue()
    ends = {line["tool"]: line["event"] for line in lines(caplog)}
    assert ends == {
        "declined": "hitl.declined", "failing": "tool.exec.done", "raising": "tool.exec.crash",
        "lost": "tool.exec.crash", "late": "hitl.expired",
    }  # fmt: skip
    assert not [word for word in WORDS if word in caplog.text]


def test_what_runs_unasked_is_logged_without_an_approval(bob: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    call = ask(bob, recording(mode="DISABLED"))
    assert run(call)
    assert [line["event"] for line in lines(caplog)] == ["call.allowed", "tool.exec.start", "tool.exec.done"]
    assert [line for line in lines(caplog) if "approval" in line] == []


@pytest.mark.guarantee("SR-44")
def test_a_name_that_a_model_made_up_is_not_logged(bob: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async_to_sync(submit)(CallRequest("SECRETSEVEN\nhitl.approved", {}, caller(bob)))
    assert [line["event"] for line in lines(caplog)] == ["call.rejected"]
    assert "SECRETSEVEN" not in caplog.text


def test_no_debug_of_a_library_that_logs_what_it_sends_is_ever_on() -> None:
    for name in ("openai", "mcp", "httpx2", "django.db"):
        assert logging.getLogger(f"{name}.anything").getEffectiveLevel() >= logging.INFO
    assert settings.LOG_FORMAT == "line"


ECHO = 'def run(text: str = "", more: dict = {}) -> str:\n    """Say it back."""\n    print(text)\n    return text\n'


@pytest.mark.servers("what a killed process leaves is what was committed")
@pytest.mark.slow("starts processes")
@pytest.mark.processes
@pytest.mark.guarantee("SR-44")
def test_a_server_logs_json_without_secrets_and_performs_and_counts_what_the_console_approves(servers: Servers) -> None:
    servers.home.add_tool("echo", ECHO, hitl_mode="REQUIRED")
    server = servers.start(LOG_FORMAT="json", LOG_LEVEL="DEBUG", HITL_METRICS_TOKEN="numbers please")
    bob = server.sign_in("bob")
    whole = {"text": " ".join(map(str, list(SECRETS.values())[:3])), "more": SECRETS["nested"]}
    bob.begin(f"Call echo with {json.dumps(whole)}")
    (first,) = until(lambda: bob.get("/api/approvals").json(), "the question")
    assert first["arguments"] == whole
    manage = servers.home.manage
    assert first["id"] in manage("approvals", "list", "--plain")
    assert "SECRETTHREE" in manage("approvals", "show", first["id"], "--plain")
    told = manage("approvals", "approve", first["id"], "--as", "bob", "--digest", first["consentDigest"][:12])
    assert "A server performs it" in told
    call = f"/api/calls/{first['callId']}"
    until(lambda: bob.get(call).json()["status"] == "succeeded", "the call")
    headers = {"Authorization": "Bearer numbers please"}
    numbers = httpx2.get(f"{server.url}/metrics", headers=headers, timeout=10, trust_env=False, verify=False).text
    assert 'mcp_hitl_decision_total{outcome="approved",side="chat"} 1.0' in numbers
    found = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    events = [line["event"] for line in found if line.get("call") == first["callId"]]
    # The yes itself is in the log of the process in which it was given.
    assert events == ["hitl.requested", "tool.exec.start", "tool.exec.done"]
    assert not [word for word in WORDS if word in server.log]

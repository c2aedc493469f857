"""Making and revoking a token is on record, whoever does it and wherever; its text never is."""

import ast
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

import hitlchat
from hitlchat.accounts.models import Token, TokenKind
from hitlchat.base import canonical
from hitlchat.gate.models import AuditEvent

pytestmark = [pytest.mark.django_db, pytest.mark.guarantee("audit:complete")]


def recorded() -> list[tuple[str, str, int | None]]:
    return [(event.name, event.means, event.actor_id) for event in AuditEvent.objects.all()]


def test_a_token_made_and_revoked_by_command_is_on_record_with_its_limits(bob: User, capsys: Any) -> None:
    call_command("create_token", "bob", "--kind", "mcp", "--name", "CI", "--expires", "3", "--ceiling", "2")
    secret = capsys.readouterr().out.strip()
    token = Token.objects.get()
    assert token.expires_at is not None
    call_command("create_token", "bob", "--revoke", str(token.pk))
    assert recorded() == [("token.made", "console", bob.pk), ("token.revoked", "console", bob.pk)]
    for event in AuditEvent.objects.all():
        assert event.data | {"states": None} == {
            "states": None,
            "token": token.pk,
            "user": "bob",
            "kind": "mcp",
            "name": "CI",
            "expires_at": token.expires_at.isoformat(),
            "attended": False,
            "tools": None,
            "ceiling": 2,
            "without_elicitation": "deny",
            "by": {"id": bob.pk, "name": "bob"},
        }
        text = canonical.dumps(event.data)
        assert (secret in text, token.digest in text) == (False, False)


def test_a_token_of_any_kind_made_and_revoked_on_a_page_is_on_record_for_auditors(
    client: Client, alice: User, bob: User
) -> None:
    client.force_login(bob)
    form = {"name": "mine", "expires": "30", "which": "all", "ceiling": "5", "without_elicitation": "deny"}
    for kind in TokenKind.values:
        assert client.post("/mcp-access/tokens", form | {"kind": kind}).status_code == 200
        client.post(f"/mcp-access/tokens/{Token.objects.get().pk}/revoke")
    assert client.post("/mcp-access/connect").status_code == 200
    both = [("token.made", "session", bob.pk), ("token.revoked", "session", bob.pk)]
    assert recorded() == [*both * len(TokenKind.values), both[0]]
    kinds = [event.data["kind"] for event in AuditEvent.objects.filter(name="token.revoked").order_by("pk")]
    assert kinds == TokenKind.values
    client.force_login(alice)
    latest, *_ = client.get("/api/audit", {"name": "token.made"}).json()
    assert (latest["data"]["kind"], latest["callId"]) == ("mcp", None)


def test_no_other_place_makes_tokens() -> None:
    """`tokens.make` keeps the record: whoever went around it would leave none."""
    root = Path(hitlchat.__file__).parent
    makers = {str(path.relative_to(root)) for path in root.rglob("*.py") if makes_tokens(path)}
    assert makers == {"mcp_server/tokens.py"}


def makes_tokens(path: Path) -> bool:
    text = path.read_text("utf-8")
    if "Token" not in text and "make_mcp" not in text:
        return False
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = {ast.unparse(function) for function in calls}
    return bool(named & {"Token.make", "make_mcp", "tokens.make_mcp", "Token.objects.create"})

"""Who is let in to /mcp."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.mcp_server import tokens
from tests.mcp_server.clients import MODERN
from tests.mcp_server.conftest import TokenOf

pytestmark = pytest.mark.django_db(transaction=True)


def post(url: str, token: str = "", *, body: bytes | None = None, path: str = "/mcp", **headers: str) -> Any:
    """server/discover of 2026-07-28, by default."""
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in ENVELOPE.items()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    usual = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "server/discover",
        "content-type": "application/json",
        **({"authorization": f"Bearer {token}"} if token else {}),
    }
    content = {"json": message} if body is None else {"content": body}
    with httpx2.Client(trust_env=False, verify=False, timeout=40) as web:
        return web.post(url + path, headers=usual | headers, **content)


ENVELOPE = {"protocolVersion": MODERN, "clientCapabilities": {}}


def test_a_token_for_mcp_opens_it(url: str, token: str) -> None:
    for path in ("/mcp", "/mcp/"):
        response = post(url, token, path=path)
        assert response.status_code == 200, response.text
        assert response.json()["result"]["supportedVersions"] == [MODERN]


@pytest.mark.guarantee("gate:only-people")
def test_anything_else_is_a_401_with_a_challenge(url: str, token: str, bob: User) -> None:
    for header in ("", "Bearer", "Basic Ym9iOmJvYg==", "Token {}", "{}", "Bearer x{}"):
        response = post(url, authorization=header.format(token))
        assert response.status_code == 401, header
        assert response.headers["www-authenticate"].startswith("Bearer"), header
    for kind in (TokenKind.API, TokenKind.APPROVER):
        assert post(url, Token.make(bob, kind)).status_code == 401, kind
    # Two credentials in one request are none.
    with httpx2.Client(trust_env=False, verify=False) as web:
        headers = [("authorization", f"Bearer {token}"), ("authorization", f"Bearer {token}")]
        assert web.post(f"{url}/mcp", headers=headers).status_code == 401


def test_a_revoked_or_expired_token_and_one_of_someone_deactivated_are_refused_at_once(
    url: str, token: str, token_of: TokenOf, bob: User, charlie: User
) -> None:
    expired = token_of(bob, expires_at=timezone.now() + timedelta(minutes=1))
    revoked, charlies = token_of(bob), token_of(charlie)
    assert {post(url, each).status_code for each in (expired, revoked, charlies)} == {200}
    Token.objects.filter(expires_at__isnull=False).update(expires_at=timezone.now())
    Token.objects.get(digest=hashed(revoked)).delete()
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    assert {post(url, each).status_code for each in (expired, revoked, charlies)} == {401}


def test_a_token_made_by_the_command_has_the_defaults_and_its_last_use_is_known(url: str, bob: User) -> None:
    secret = Token.make(bob, TokenKind.MCP)
    assert post(url, secret).status_code == 200
    access = tokens.find(secret)
    assert access is not None
    assert (access.tools, access.ceiling, access.without_elicitation) == (None, 5, "deny")
    used = Token.objects.get().last_used_at
    assert used is not None
    assert post(url, secret).status_code == 200
    assert Token.objects.get().last_used_at == used


def test_a_limit_that_is_none_makes_no_token(bob: User) -> None:
    for limits in ({"ceiling": 6}, {"without_elicitation": "allow"}, {"name": "x" * 81}):
        with pytest.raises(ValidationError):
            tokens.make_mcp(bob, **limits)
    assert not Token.objects.exists()


def test_a_page_of_another_origin_or_host_name_is_kept_out_and_trusted_ones_are_let_in(
    url: str, token: str, settings: Settings
) -> None:
    for origin in ("http://evil.example", "null", "http://localhost:1", "https://127.0.0.1", "x"):
        assert post(url, token, origin=origin).status_code == 403, origin
    for host in ("evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example"):
        assert post(url, token, host=host).status_code == 421, host
    settings.CSRF_TRUSTED_ORIGINS = ["https://inspector.example"]
    assert post(url, token, origin=url).status_code == 200
    assert post(url, token, origin="https://inspector.example").status_code == 200


def test_a_body_that_is_too_large_or_no_message_is_refused_and_the_next_one_served(url: str, token: str) -> None:
    assert post(url, token, body=b" " * (2 * 2**20 + 1)).status_code == 413
    assert post(url, token).status_code == 200
    for body in (b"", b"{", b"[]", b"\xff", b'{"jsonrpc": "2.0"}', b"[" * 100_000):
        assert post(url, token, body=body).status_code in (400, 202), body[:20]
        assert post(url, token).status_code == 200, body[:20]

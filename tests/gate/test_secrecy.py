"""What looks like a secret is not given out of the record."""

import time
from typing import Any

import pytest

from hitlchat.gate.secrecy import masked, masked_text

SECRET = "hunter2-Zq9"
HEREDOC = f"""cat > .env <<'EOF'
DATABASE_PASSWORD={SECRET}
export API_KEY="{SECRET}"
client_secret: '{SECRET}'
EOF"""

HIDING: dict[str, Any] = {
    "a bearer token": {"text": f"curl -H 'Authorization: Bearer {SECRET}' https://shop.example"},
    "a bearer token alone": f"Bearer {SECRET}",
    "basic credentials": {"headers": [{"value": f"Basic {SECRET}=="}]},
    "a header": {"headers": {"Authorization": SECRET, "X-Api-Key": SECRET, "Cookie": f"session={SECRET}"}},
    "a header in a text": f"GET /\nX-Shop-Key: {SECRET}\nAccept: */*",
    "the address of a database": f"postgresql://bob:{SECRET}@db.example:5432/shop?sslmode=require",
    "a connection string": f"Server=db;Database=shop;User Id=sa;Password={SECRET};Encrypt=yes",
    "a key of storage": f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={SECRET}==;EndpointSuffix=y",
    "a heredoc": {"script": HEREDOC},
    "nested keys": {"a": [{"db": {"password": SECRET, "replicas": [{"clientSecret": SECRET}]}}]},
    "all below a key": {"credentials": {"user": "bob", "parts": [SECRET, {"x": SECRET}]}},
    "JSON in a text": f'{{"user": "bob", "password": "{SECRET}"}}',
    "JSON in JSON": f'{{\\"refresh_token\\": \\"{SECRET}\\"}}',
    "a query": f"https://shop.example/?access_token={SECRET}&page=2",
    "a private key": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    "a private key that was cut": f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
    "a pin": {"card": {"pin": SECRET, "cvv": SECRET}},
}


@pytest.mark.parametrize("value", HIDING.values(), ids=HIDING)
def test_what_looks_like_a_secret_is_masked_wherever_it_stands(value: Any) -> None:
    shown = str(masked(value))
    assert SECRET not in shown
    assert "•••" in shown


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrst1234",
        "hitl_approver_abcdefghijklmnopqrstuvwxyz",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.c2lnbmF0dXJl",
    ],
)
def test_tokens_are_known_by_their_beginning(text: str) -> None:
    assert masked({"note": f"use {text} for it"}) == {"note": "use ••• for it"}


def test_around_a_secret_everything_stays() -> None:
    assert masked_text(f"postgresql://bob:{SECRET}@db/shop") == "postgresql://bob:•••@db/shop"
    assert masked_text(f"Server=db;Password={SECRET};Encrypt=yes") == "Server=db;Password=•••;Encrypt=yes"
    assert masked({"password": SECRET, "user": "bob", "n": 1}) == {"password": "•••", "user": "bob", "n": 1}


INNOCENT: Any = {
    "order": "A-1042", "max_tokens": 100, "promptTokens": 7, "tokens_used": 3, "spinning": "no", "monkey": "chimp",
    "note": "A token of our thanks, and basic questions answered.", "url": "https://shop.example/a:b?page=2",
    "password": None, "secret": False, "why": "password reset was asked for", "text": "", "list": [1.5, True, None],
}  # fmt: skip


def test_what_is_no_secret_stays() -> None:
    assert masked(INNOCENT) == INNOCENT


@pytest.mark.parametrize("unit", ["password", "a.", "http://a:", "bearer ", "token =", "-----BEGIN PRIVATE KEY-----"])
def test_a_text_that_was_made_to_take_long_does_not(unit: str) -> None:
    began = time.process_time()
    masked_text(unit * (131_072 // len(unit)))
    assert time.process_time() - began < 3

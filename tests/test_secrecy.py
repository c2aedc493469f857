"""What looks like a secret is known wherever it stands, and what only sounds like one is not taken for it."""

import time
from typing import Any

import pytest

from hitlchat.notices import wording as noticed
from hitlchat.secrets.detection import Cover, hidden, named
from tests.tables import each_row

SECRET = "hunter2-Zq9"
LONG = "Zq9XkPw72LmN4v" * 3
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
    "a header with several": f"Cookie: a=b; session={SECRET}; c=d",
    "the address of a database": f"postgresql://bob:{SECRET}@db.example:5432/shop?sslmode=require",
    "an address with a password that has strokes": f"amqp://bob:{SECRET}/x/{SECRET}@mq.example",
    "a connection string": f"Server=db;Database=shop;User Id=sa;Password={SECRET};Encrypt=yes",
    "a key of storage": f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={SECRET}==;EndpointSuffix=y",
    "a heredoc": {"script": HEREDOC},
    "nested keys": {"a": [{"db": {"password": SECRET, "replicas": [{"clientSecret": SECRET}]}}]},
    "all below a key": {"credentials": {"user": "bob", "parts": [SECRET, {"x": SECRET}]}},
    "JSON in a text": f'{{"user": "bob", "password": "{SECRET} and more: {SECRET}"}}',
    "JSON in JSON": f'{{\\"refresh_token\\": \\"{SECRET}\\"}}',
    "a query": f"https://shop.example/?access_token={SECRET}&page=2",
    "a command": f"mysql --db-password {SECRET} -u bob",
    "a command with quotes": f"mysql --password='{SECRET} {SECRET}' -u bob",
    "an assignment with a scheme": f"token: bearer {SECRET}",
    "an environment": f"export AWS_SECRET_ACCESS_KEY={SECRET}",
    "a private key": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    "a private key of PGP": f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{SECRET}\n-----END PGP PRIVATE KEY BLOCK-----",
    "a private key that was cut": f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
    "a pin": {"card": {"pin": SECRET, "cvv": SECRET}},
}


@each_row("value", HIDING.values(), ids=HIDING)
@pytest.mark.guarantee("SR-44")
def test_what_looks_like_a_secret_is_hidden_wherever_it_stands(value: Any) -> None:
    shown = str(Cover().value(value))
    assert SECRET not in shown
    assert "•••" in shown


@each_row(
    "text",
    [
        "sk-proj-abcdefghijklmnop1234",
        "sk_live_abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrst1234",
        "glpat-abcdefghijklmnop12",
        "xoxb-1234567890-abcdef",
        "whsec_abcdefghijklmnop1234",
        "hitl_approver_abcdefghijklmnopqrstuvwxyz",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.c2lnbmF0dXJl",
    ],
)
def test_tokens_are_known_by_their_beginning(text: str) -> None:
    assert hidden(f"use {text} for it") == "use ••• for it"


@each_row(
    "text, shown",
    [
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer •••"),
        ("postgres://bob:hunter22@db/shop", "postgres://bob:•••@db/shop"),
        ("Server=db;Password=hunter22;Encrypt=yes", "Server=db;Password=•••;Encrypt=yes"),
        ("curl -H 'X-Api-Key: 12345abc' https://x", "curl -H 'X-Api-Key: •••' https://x"),
        ("cat <<END\nDB_PASSWORD=hunter22\nuser=bob\nEND", "cat <<END\nDB_PASSWORD=•••\nuser=bob\nEND"),
        ("mysql --password hunter22 -u bob", "mysql --password ••• -u bob"),
        ('{"client_secret": "abcd"}', '{"client_secret": "•••"}'),
        (
            "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----•••-----END PRIVATE KEY-----",
        ),
    ],
)
def test_around_a_secret_everything_stays(text: str, shown: str) -> None:
    assert hidden(text) == shown
    assert hidden(shown) == shown


ON_EVERY_WAY: list[Any] = [
    *({name: SECRET} for name in ("auth", "connectionString", "dsn", "jwt", "otp", "pin", "cvv", "sessionId")),
    *({name: SECRET} for name in ("signature", "signing_key", "encryptionKey", "accesstoken", "userpassword", "pass")),
    *({name: SECRET} for name in ("database_url", "passcode", "bearer", "sshKey", "passwort", "authtoken")),
    *(f"{begin}{LONG}" for begin in ("hitl_api_", "hitl_approver_", "github_pat_", "whsec_", "sk_live_")),
    *(f"{before}{LONG}" for before in ("--password ", "export DB_PASS=", "AccountKey=", "Token ", "X-Api-Key: ")),
    f'{{\\"apiKey\\": \\"{SECRET}\\"}}',
]


@each_row("value", ON_EVERY_WAY, ids=str)
def test_a_secret_leaves_neither_with_an_export_nor_with_a_notice(value: Any) -> None:
    arguments = value if isinstance(value, dict) else {"text": value}
    for given_away in (Cover(arguments).value(arguments), noticed.masked(arguments)):
        assert SECRET not in str(given_away)
        assert LONG not in str(given_away)


INNOCENT: Any = {
    "order": "A-1042", "max_tokens": 100, "promptTokens": 7, "tokens_used": 3, "tokens": 5, "spinning": "no",
    "note": "A token of our thanks, and basic questions answered.", "url": "https://shop.example/a:b?page=2",
    "password": None, "secret": False, "why": "password reset was asked for", "text": "", "list": [1.5, True, None],
    "texts": ["the tokens 5 are fine", "tokens: 5, max_tokens=100", "author: Bob", "authority=5",
              "https://example.com:8080/a@b", "the password is fine", "task-management-is-a-long-word"],
}  # fmt: skip


def test_what_is_no_secret_stays() -> None:
    assert Cover().value(INNOCENT) == INNOCENT


def test_names_of_secrets_are_told_from_names_like_them() -> None:
    names = ("password", "apiKey", "X-Api-Key", "user_token", "clientSecret", "Cookie", "auth", "db-dsn", "sessionId")
    assert [name for name in names if not named(name)] == []
    likes = ("author", "authorId", "keys", "passage", "tokenizer", "monkey", "key", "session", "pinned", "max_tokens")
    assert [name for name in likes if named(name)] == []


def test_what_a_key_names_as_secret_is_hidden_wherever_else_it_stands() -> None:
    value = {
        "prompt": "Sign in with hunter22!",
        "arguments": {"steps": [{"dbPassword": "hunter22!", "maxTokens": 5, "note": "fine"}], "token": None},
    }
    assert Cover(value).value(value) == {
        "prompt": "Sign in with •••",
        "arguments": {"steps": [{"dbPassword": "•••", "maxTokens": 5, "note": "fine"}], "token": None},
    }


@pytest.mark.slow("bets on the clock of a processor")
@each_row(
    "unit",
    ["password", "password=", "password ", "a.", "http://a:", "a://", "--x-", "a-", "bearer ", "token =", "<<A",
     "<<A\n", "://", "eyJ", "eyJ-", "-eyJa", "a1", "a1 ", "key=", "eyJaaaa.", "x-key",
     "-----BEGIN PRIVATE KEY-----", "-----BEGIN "],
)  # fmt: skip
def test_a_text_that_was_made_to_take_long_does_not(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    began = time.process_time()
    Cover(text).text(text)
    assert time.process_time() - began < 3
    began = time.process_time()
    hidden(text, in_doubt=True)
    assert time.process_time() - began < 3

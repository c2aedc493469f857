"""What looks like a secret does not leave with an export, and what only sounds like one does."""

import time
from typing import Any

import pytest

from hitlchat.gate import secrecy
from hitlchat.notices.wording import arguments as noticed
from hitlchat.record.hiding import Cover, is_name_of_secret

HIDES = {
    "Authorization: Bearer abc.def.ghi": "Authorization: Bearer •••",
    "postgres://bob:hunter22@db/shop": "postgres://bob:•••@db/shop",
    "curl -H 'X-Api-Key: 12345abc' https://x": "curl -H 'X-Api-Key: •••' https://x",
    "cat <<END\nDB_PASSWORD=hunter22\nuser=bob\nEND": "cat <<END\nDB_PASSWORD=•••\nuser=bob\nEND",
    "mysql --password hunter22 -u bob": "mysql --password ••• -u bob",
    '{"client_secret": "abcd"}': '{"client_secret": "•••"}',
    "use ghp_abcdefghijklmnopqrstu": "use •••",
    "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----": (
        "-----BEGIN PRIVATE KEY-----•••-----END PRIVATE KEY-----"
    ),
}
LEAVES = ("the tokens 5 are fine", "author: Bob", "authority=5", "https://example.com:8080/a@b", "the password is fine")


@pytest.mark.parametrize("text", HIDES)
def test_secrets_in_texts_are_hidden_by_how_they_look(text: str) -> None:
    assert Cover().text(text) == HIDES[text]


@pytest.mark.parametrize("text", LEAVES)
def test_what_only_sounds_like_one_stays(text: str) -> None:
    assert Cover().text(text) == text


def test_what_a_key_names_as_secret_is_hidden_at_any_depth_and_wherever_else_it_stands() -> None:
    value: dict[str, Any] = {
        "prompt": "Sign in with hunter22!",
        "arguments": {"steps": [{"dbPassword": "hunter22!", "maxTokens": 5, "note": "fine"}], "token": None},
    }
    assert Cover(value).value(value) == {
        "prompt": "Sign in with •••",
        "arguments": {"steps": [{"dbPassword": "•••", "maxTokens": 5, "note": "fine"}], "token": None},
    }


def test_names_of_secrets_are_told_from_names_like_them() -> None:
    assert all(map(is_name_of_secret, ("password", "apiKey", "X-Api-Key", "user_token", "clientSecret", "Cookie")))
    assert not any(map(is_name_of_secret, ("author", "authorId", "keys", "passage", "tokenizer", "monkey")))


SECRET = "Zq9XkPw72LmN4v"
ALL_WAYS: list[Any] = [
    *({name: SECRET} for name in ("auth", "connectionString", "dsn", "jwt", "otp", "pin", "cvv", "sessionId")),
    *({name: SECRET} for name in ("signature", "signing_key", "encryptionKey", "accesstoken", "userpassword", "pass")),
    *({name: SECRET} for name in ("database_url", "passcode", "bearer", "sshKey", "passwort", "authtoken")),
    *(f"{begin}{SECRET * 3}" for begin in ("hitl_api_", "hitl_approver_", "github_pat_", "whsec_", "sk_live_")),
    *(f"{before}{SECRET}" for before in ("--password ", "export DB_PASS=", "AccountKey=", "Token ", "X-Api-Key: ")),
    f'{{\\"apiKey\\": \\"{SECRET}\\"}}',
]


@pytest.mark.parametrize("value", ALL_WAYS, ids=str)
def test_a_secret_leaves_by_none_of_the_ways_on_which_a_call_is_given_away(value: Any) -> None:
    arguments = value if isinstance(value, dict) else {"text": value}
    for given_away in (secrecy.masked(arguments), Cover(arguments).value(arguments), noticed.masked(arguments)):
        assert SECRET not in str(given_away)


def test_a_token_is_found_within_a_longer_word_too() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
    assert Cover().text(f"-{token} {token}") == "-••• •••"


@pytest.mark.parametrize("part", ["eyJ", "eyJ-", "-eyJa", "-----BEGIN PRIVATE KEY-----"])
def test_a_text_of_nothing_but_beginnings_of_tokens_is_read_in_seconds(part: str) -> None:
    text = part * (100_000 // len(part))
    begun = time.process_time()
    Cover(text).value(text)
    assert time.process_time() - begun < 3


def test_a_text_made_to_take_long_does_not() -> None:
    for text in ("password" * 20_000, "a://" + "b" * 100_000, "--x-" * 50_000, "bearer " * 30_000):
        assert len(Cover().text(text)) > 0

"""Hashes, signatures, passwords, and what should not be in a text."""

import hashlib
import hmac
import re
from typing import Any

import pytest

from tests.tables import each_row
from tests.tools_studio.library.world import SECRETS, World, fault, result, shown
from tools_studio.library.catalogue import TOOLS

TOKEN = next(tool.example["token"] for tool in TOOLS if tool.name == "read_token")
# Put together here, so that nothing that looks real stands in the file.
LEAKS = {
    "AWS access key": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "JSON Web Token": TOKEN,
    "password in an address": "postgres://" + "ann:hunter22@db.example.com/shop",
    "password": 'password = "' + 'hunter22"',
    "random-looking text": "q8Zr3LwX9vBn2MkT7pYd5HsJ4fGc6Ra1EuQi0Wo",
}


@each_row("algorithm", ["sha256", "sha512", "sha1", "md5", "sha3_256", "blake2b"])
@each_row("text", ["", "Grüße"])
def test_a_hash_is_that_of_the_bytes(world: World, algorithm: str, text: str) -> None:
    expected = hashlib.new(algorithm, text.encode()).hexdigest()
    assert result(world.call("hash_text", text=text, algorithm=algorithm))["hash"] == expected


def test_an_unknown_hash_is_no_argument(world: World) -> None:
    with pytest.raises(Exception, match="crc32"):
        world.call("hash_text", text="x", algorithm="crc32")


@pytest.mark.parametrize("key", ["key", "a key that is longer than the block of the hash, which has 64 bytes in all"])
def test_a_signature_is_that_of_the_standard(world: World, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setitem(SECRETS, "SIGNING_KEY", key)
    expected = hmac.new(key.encode(), "order 4711 ✓".encode(), hashlib.sha256).hexdigest()
    assert result(world.call("sign_text", text="order 4711 ✓")) == {"signature": expected}


def test_a_signature_is_checked_and_nothing_else_passes(world: World) -> None:
    good = result(world.call("sign_text", text="paid"))["signature"]
    given = [good, f"sha256={good.upper()}", good[:-1], f"{good}0", f"{'0' if good[0] != '0' else '1'}{good[1:]}", "x"]
    found = [result(world.call("sign_text", text="paid", expected=each))["valid"] for each in given]
    assert found == [True, True, False, False, False, False]
    assert result(world.call("sign_text", text="Paid", expected=good)) == {"valid": False}


def test_a_token_is_shown_with_the_warning_that_nobody_vouches_for_it(world: World) -> None:
    found = result(world.call("read_token", token=f"Bearer {TOKEN}"))
    assert found["claims"]["name"] == "John Doe"
    assert found["times"] == {"iat": "2018-01-18T01:30:22Z"}
    assert found["warnings"] == ["the signature was not checked", "the token never expires"]


def test_a_token_without_a_signature_is_called_that(world: World) -> None:
    unsigned = "eyJhbGciOiJub25lIn0.eyJleHAiOjk5OTk5OTk5OTk5OTk5fQ."
    found = result(world.call("read_token", token=unsigned))
    assert (found["times"], found["warnings"][1]) == ({}, "the token is not signed at all")


@each_row(
    "token, words", [("a.b", "three parts"), ("a.b.c", "header"), ("W10.W10.x", "header"), (f"{TOKEN}.x", "not 4")]
)
def test_what_is_no_token_is_refused(world: World, token: str, words: str) -> None:
    assert words in fault(world.call("read_token", token=token))


@each_row(
    "password, strength",
    [
        ("", "very weak"),
        ("password1", "very weak"),
        ("aaaaaaaaaaaaaaaaaaaa", "very weak"),
        ("P@ssw0rd2024", "weak"),
        ("correct horse battery staple", "very strong"),
        ("x7$Kp!2vQz9#mLdR", "very strong"),
    ],
)
def test_a_password_is_as_strong_as_it_is_hard_to_guess(world: World, password: str, strength: str) -> None:
    found = result(world.call("check_password", password=password))
    assert found["strength"] == strength
    assert not password or password not in str(found)


@each_row(
    "password, words", [("qwert55", "neighbouring"), ("ab1ab1", "repeats"), ("x1999y", "a year"), ("x", "shorter than")]
)
def test_what_makes_a_password_weak_is_said(world: World, password: str, words: str) -> None:
    assert words in " ".join(result(world.call("check_password", password=password))["problems"])


@each_row("length, signs", [(12, True), (20, False), (128, True)])
def test_a_made_password_has_all_kinds_and_no_look_alikes(world: World, length: int, signs: bool) -> None:
    made = [result(world.call("make_password", length=length, signs=signs))["password"] for _ in range(3)]
    assert len(set(made)) == 3
    for each in made:
        assert len(each) == length
        assert re.search("[a-z]", each)
        assert re.search("[A-Z]", each)
        assert re.search("[2-9]", each)
        assert bool(re.search("[^A-Za-z0-9]", each)) == signs
        assert not re.search("[lIO01]", each)


def test_a_short_password_is_not_made(world: World) -> None:
    with pytest.raises(Exception, match="minimum"):
        world.call("make_password", length=11)


def test_identifiers_are_of_the_random_kind_and_all_different(world: World) -> None:
    made = result(world.call("make_uuid", count=100))
    assert len(set(made)) == 100
    assert all(
        re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", each) for each in made
    )
    assert len(result(world.call("make_uuid"))) == 1


@each_row("count", [0, 101])
def test_no_identifiers_and_very_many_are_no_argument(world: World, count: int) -> None:
    with pytest.raises(Exception, match=r"minimum|maximum"):
        world.call("make_uuid", count=count)


@each_row("kind", LEAKS)
def test_a_secret_is_found_and_not_repeated(world: World, kind: str) -> None:
    found = result(world.call("find_secrets", text=f"first line\nset {LEAKS[kind]} here"))
    assert [(each["line"], each["kind"]) for each in found["found"]] == [(2, kind)]
    assert LEAKS[kind] not in str(found)


@each_row(
    "text", ["", "Nothing to see here.", "the password is on the note", "sha256 of it: " + "0" * 64, "token: none"]
)
def test_a_harmless_text_is_clean(world: World, text: str) -> None:
    assert result(world.call("find_secrets", text=text)) == {"clean": True, "count": 0, "found": []}


@each_row(
    "text, masked, kinds",
    [
        ("to ann@example.com, ANN@example.com, ann@example.com", "to [EMAIL_1], [EMAIL_2], [EMAIL_1]", {"EMAIL": 2}),
        ("pay 4111 1111 1111 1111 not 4111 1111 1111 1112", "pay [CARD_1] not 4111 1111 1111 1112", {"CARD": 1}),
        ("DE89 3704 0044 0532 0130 00 or DE89370400440532013001", "[IBAN_1] or DE89370400440532013001", {"IBAN": 1}),
        ("call +44 20 7946 0958 or 0171/1234567", "call [PHONE_1] or [PHONE_2]", {"PHONE": 2}),
        ("from 10.0.0.1, not 10.0.0.999", "from [IP_1], not 10.0.0.999", {"IP": 1}),
        ("order 4711 of 2026-01-31 is 1,000.50 EUR", "order 4711 of 2026-01-31 is 1,000.50 EUR", {}),
    ],
)
def test_personal_data_is_masked(world: World, text: str, masked: str, kinds: dict[str, Any]) -> None:
    expected = {"text": masked, "replaced": kinds}
    assert shown(world.call("mask_personal_data", text=text), expected) == expected

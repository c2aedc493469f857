"""Masking: no form in which a secret usually travels is left, and everything else stays as it is."""

import base64
import html
import itertools
import json
import re
import string
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitlchat.secrets.masking import HIDDEN, Mask
from tests.tables import each_row

SECRET = "sk_live/4€2+\"<x>&'Ü y\\z"
PLAIN = "zq7Kd0Xw9"
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n"

WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper": str.upper,
    "lower": str.lower,
    "url": quote,
    "whole url": lambda secret: quote(secret, safe=""),
    "form": quote_plus,
    "query": lambda secret: urlencode({"key": secret}),
    "small escapes": lambda secret: re.sub("%..", lambda found: found[0].lower(), quote(secret, safe="")),
    "json": json.dumps,
    "json of letters": lambda secret: json.dumps(secret, ensure_ascii=False),
    "json for html": lambda secret: json.dumps(secret).replace("/", "\\/"),
    "repr": repr,
    "html": html.escape,
    "html text": lambda secret: html.escape(secret, quote=False),
    "hex": lambda secret: secret.encode().hex(),
    "capital hex": lambda secret: secret.encode().hex().upper(),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 for urls": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    "base64 without padding": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    "basic": lambda secret: base64.b64encode(f"user:{secret}".encode()).decode(),
}


@each_row("secret", [SECRET, PLAIN, KEY], ids=["odd", "plain", "lines"])
@each_row("way", WAYS)
def test_a_secret_is_hidden_however_it_travels(secret: str, way: str) -> None:
    made = WAYS[way](secret)
    masked = Mask([secret]).text(f"before {made} after")
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert HIDDEN in masked
    assert not any(made[start : start + 9] in masked for start in range(4, len(made) - 12))


@each_row("before", range(4))
@each_row("after", range(4))
def test_base64_is_recognised_wherever_the_secret_begins_in_it(before: int, after: int) -> None:
    packed = base64.b64encode(b"a" * before + PLAIN.encode() + b"b" * after).decode()
    masked = Mask([PLAIN]).text(packed)
    assert HIDDEN in masked
    # Of the characters that it shares with its neighbours not more than two are left, at each end.
    own = packed[-(-before * 4 // 3) + 1 : (before + len(PLAIN)) * 4 // 3 - 1]
    assert own[2:-2] not in masked


def test_every_secret_is_hidden_and_the_longer_one_first() -> None:
    mask = Mask(["password", "password-of-alice", "other-secret"])
    assert mask.text("password-of-alice, password, other-secret.") == "•••, •••, •••."
    assert mask.text("passpassword") == "pass•••"


def test_each_line_of_a_long_secret_is_hidden_by_itself() -> None:
    assert Mask([KEY]).text("it has AQEFAASCBKcwggSjAgEAAoIB in it") == "it has ••• in it"


def test_results_are_masked_in_keys_and_depth_and_stay_json() -> None:
    value = {"a": [PLAIN, {PLAIN: 1, f"{PLAIN}!": None}], "b": {"c": (1.5, True)[0], "d": False}, "e": None}
    masked = Mask([PLAIN]).value(value)
    assert masked == {"a": ["•••", {"•••": 1, "•••!": None}], "b": {"c": 1.5, "d": False}, "e": None}
    assert json.loads(json.dumps(masked)) == masked


def test_keys_that_become_the_same_keep_their_values() -> None:
    masked = Mask([PLAIN]).value({PLAIN: 1, PLAIN.upper(): 2, "•••": 3, "••• (2)": 4})
    assert sorted(masked.values()) == [1, 2, 3, 4]
    assert (masked["•••"], masked["••• (2)"]) == (3, 4)


@each_row("number", [12345678, -12345678, 9123456780, 12345678.5, 0.12345678])
def test_a_number_that_is_a_secret_becomes_a_masked_text(number: float) -> None:
    masked = Mask(["12345678"]).value([number])
    assert HIDDEN in masked[0]
    assert "1234" not in masked[0]


def test_what_is_no_secret_stays_as_it_is() -> None:
    value = {"text": "a zq7Kd0Xw b", "number": 1234567, "yes": True, "no": None, "list": [[], {}, ""]}
    assert Mask([PLAIN]).value(value) == value
    assert Mask([]).value(value) is value
    assert Mask([""]).text("x") == "x"


@each_row("ending", ["\n… 12 more bytes of output cut", "… (12 more)"])
def test_the_beginning_of_a_secret_that_was_cut_is_hidden_too(ending: str) -> None:
    mask = Mask([PLAIN, SECRET])
    assert mask.text(f"say {PLAIN[:5]}{ending}") == f"say •••{ending}"
    assert mask.text(f"say {PLAIN} {PLAIN.encode().hex()[:9]}{ending}") == f"say ••• •••{ending}"
    assert mask.text(f"say {PLAIN}{ending}") == f"say •••{ending}"
    assert mask.text(f"say {PLAIN[:5]}") == f"say {PLAIN[:5]}"


def alike(number: int) -> str:
    """One of many secrets: lines of every length, all of them with the same beginning."""
    return "\n".join("a" * (16 + line % 60) + f"{number}x{line}" for line in range(60))


@pytest.mark.slow("computes for long")
def test_a_text_that_was_made_to_take_long_is_hidden_as_a_whole() -> None:
    mask = Mask([alike(number) for number in range(20)])
    assert mask.text("a" * 1_000_000) == HIDDEN
    assert mask.value({"rows": ["a" * 1000] * 1000})["rows"][-1] == HIDDEN
    assert mask.text("a" * 1_000_000 + "\n… 12 more bytes of output cut") == f"{HIDDEN}\n… 12 more bytes of output cut"


def test_the_beginning_of_a_secret_is_not_looked_for_without_end() -> None:
    assert Mask(["a" * 100_000 + "b"]).text("a" * 99_000 + "c… (12 more)") == f"{HIDDEN}… (12 more)"


def test_a_usual_text_is_not_hidden_as_a_whole() -> None:
    hook = "https://hooks.example.com/services/T0/B0/"
    mask = Mask([f"{hook}{PLAIN}", KEY, SECRET, *(alike(number) for number in range(20))])
    other = f"{hook}other-----BEGIN aaaaa|"
    assert mask.text(other * 20_000) == other * 20_000
    for way in WAYS.values():
        assert len(Mask([SECRET]).text(f"{way(SECRET)}|" * 5_000)) > 5_000


def test_of_a_secret_with_very_many_lines_the_longest_are_hidden_by_themselves() -> None:
    lines = [f"{number:03}" + "k" * (20 + number) for number in range(200)]
    mask = Mask(["\n".join(lines)])
    assert mask.text(lines[-1]) == HIDDEN
    assert mask.text("\n".join(lines)) == HIDDEN


@pytest.mark.slow("masks very many keys")
def test_very_many_keys_that_become_the_same_get_names_of_their_own() -> None:
    forms = {
        way(SECRET) for name, way in WAYS.items() if name not in {"json", "json for html", "repr", "query", "basic"}
    }
    keys = ["-".join(parts) for parts in itertools.product(sorted(forms), repeat=4)]
    assert len(keys) > 10_000
    masked = Mask([SECRET]).value({key: number for number, key in enumerate(keys)})
    assert sorted(masked.values()) == list(range(len(keys)))
    assert any(name.endswith("••• (1000)") for name in masked)


@settings(max_examples=40)
@given(
    st.text(string.ascii_letters + string.digits, min_size=6, max_size=40),
    st.recursive(
        st.text() | st.integers() | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=8,
    ),
    st.text(),
)
def test_no_result_holds_the_secret_any_more(secret: str, value: Any, around: str) -> None:
    masked = Mask([secret]).value({"value": value, f"{around}{secret}": [f"{around}{secret}{around}", {secret: value}]})
    assert secret not in json.dumps(masked, ensure_ascii=False)

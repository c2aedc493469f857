"""One spelling for every JSON value."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from hitlchat.base import canonical
from hitlchat.gate.models import Tool
from tests.gate.asking import ask, fresh
from tests.tables import each_row

ANY_TEXT = st.text(st.characters())  # lone surrogates, NUL and all
ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT
JSON = st.recursive(ATOMS, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=30)
NOT_JSON: dict[str, Any] = {
    "a key twice": '{"a": 1, "a": 2}',
    "a key twice, spelled differently": r'{"a": 1, "\u0061": 2}',
    "a key twice, further in": '[{"a": {"b": 1, "b": 1}}]',
    "NaN": "[NaN]",
    "Infinity": "[-Infinity]",
    "a number that would be read as infinite": "1e999",
    "a number with too many digits": "1" * 5000,
    "nested deeper than the interpreter": "[" * 100_000 + "]" * 100_000,
    "nested deeper than we keep": "[" * 201 + "]" * 201,
    "two values": "{} {}",
    "nothing": "",
    "not UTF-8": b'"\xff"',
    "a comma too many": "[1,]",
    "single quotes": "{'a': 1}",
}


@given(JSON)
def test_what_is_written_reads_back_the_same(value: Any) -> None:
    text = canonical.dumps(value)
    assert canonical.loads(text) == value
    assert canonical.dumps(canonical.loads(text)) == text
    assert text.isascii()


@given(st.dictionaries(ANY_TEXT, st.integers()))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical.dumps(turned) == canonical.dumps(value)
    assert canonical.sha256(turned) == canonical.sha256(value)


def test_text_that_readers_disagree_on_is_refused(subtests: pytest.Subtests) -> None:
    for case, text in NOT_JSON.items():
        with subtests.test(case=case), pytest.raises(canonical.NotJson):
            canonical.loads(text)


def test_a_value_that_is_not_json_is_refused(subtests: pytest.Subtests) -> None:
    for value in [float("nan"), float("inf"), {1, 2}, b"bytes", 10**5000, object()]:
        with subtests.test(value=value), pytest.raises(canonical.NotJson):
            canonical.dumps([value])


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(canonical.NotJson):
        canonical.dumps(endless)


def test_different_values_of_equal_worth_to_python_are_told_apart() -> None:
    assert len({canonical.sha256(value) for value in (1, 1.0, True, "1", [1], {"1": 1})}) == 6


def test_big_and_odd_numbers_keep_every_digit(subtests: pytest.Subtests) -> None:
    for value in [2**63, 2**53 + 1, 10**4000, 0.1, 1e308, -0.0]:
        with subtests.test(value=value):
            assert repr(canonical.loads(canonical.dumps(value))) == repr(value)


@pytest.mark.guarantee("gate:same-call")
@pytest.mark.django_db
@each_row("text", ["\x00", "\U0010ffff", "\u00e9", "e\u0301", "\u2028", "{}", "a" * 100_000])
@pytest.mark.servers("PostgreSQL takes, sorts and compares text in another way")
def test_the_database_gives_back_what_it_was_given(text: str, bob: User, tool: Tool) -> None:
    arguments = {"text": text, "amount": 2**70}
    call = ask(bob, tool, arguments)
    assert fresh(call).arguments == arguments
    assert canonical.dumps(fresh(call).approval.disclosure["arguments"]) == canonical.dumps(arguments)

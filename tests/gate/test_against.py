"""What the person's message says against a call: messages and arguments in, words out."""

from typing import Any

import pytest

from hitlchat.gate.provenance import READ, written
from tests.tables import each_row

ROLE = {"enum": ["member", "admin"]}
WAYS = {"enum": ["store_credit", "bank transfer", "all", 7]}


def words(message: str, name: str, value: Any, part: dict[str, Any] | None = None, place: str = "") -> str:
    found = written({name: value}, message, {"properties": {name: part or {}}}, place)
    return "; ".join(f"{path}: {said}" for path, said in found.items())


CHOICES = {
    "another choice": ("Invite lee as a member", "admin", ROLE, "/it: member"),
    "the same one": ("Invite lee as an Admin.", "admin", ROLE, ""),
    "both": ("Make the member lee an admin", "admin", ROLE, ""),
    "none": ("Invite lee", "admin", ROLE, ""),
    "a part of a word": ("Invite lee to the membership", "admin", ROLE, ""),
    "of two words": ("As store credit, please", "bank transfer", WAYS, "/it: store_credit"),
    "a word of any sentence": ("Refund all of it", "bank transfer", WAYS, ""),
    "a number": ("Refund 7 of them", "bank transfer", WAYS, ""),
    "behind a reference": ("As a member", "admin", {"allOf": [ROLE]}, "/it: member"),
    "a free text": ("Invite a member", "admin", {"type": "string"}, ""),
    "no text": ("As a member", 3, ROLE, "/it: member"),
}
DIRECTIONS = {
    "the other way": ("Move 20 from savings-01 to giro-07", "to_account", "savings-01", "from savings-01"),
    "and back": ("Move 20 from savings-01 to giro-07", "from_account", "giro-07", "to giro-07"),
    "as it is written": ("Move 20 from savings-01 to giro-07", "to_account", "giro-07", ""),
    "an article": ("Move it from the inbox", "target", "inbox", "from the inbox"),
    "in German": ("Buche 20 von Giro-07 auf Tagesgeld", "toAccount", "giro-07", "von Giro-07"),
    "both ways": ("From a1 to b2, then to a1", "to", "a1", ""),
    "a longer word": ("Move it from inboxes", "target", "inbox", ""),
    "another argument": ("Move it from inbox", "folder", "inbox", ""),
    "a flag": ("Change it from True", "to", True, ""),
    "what a pattern means": ("Move it from .*", "to", "abc", ""),
    "a number": ("Renumber from 12 to 13", "to", 12, "from 12"),
}
PLACES = {
    "a test on production": ("Cancel order 77 on the test server", "orders_prod_cancel", ": test"),
    "production on a test": ("Cancel it in Produktion", "cancel orders_staging (MCP server)", ": produktion"),
    "the same": ("Cancel it on staging", "orders_test_cancel", ""),
    "both said": ("Move it from test to production", "orders_prod_cancel", ""),
    "both there": ("A test", "test_of_production", ""),
    "neither": ("A test", "orders_cancel", ""),
    "within a word": ("The latest product", "orders_prod_cancel", ""),
}


@each_row("message, value, part, expected", CHOICES.values(), CHOICES)
def test_another_choice_than_the_message_names_is_told(
    message: str, value: Any, part: dict[str, Any], expected: str
) -> None:
    assert words(message, "it", value, part) == expected


@each_row("message, name, value, expected", DIRECTIONS.values(), DIRECTIONS)
def test_a_value_that_goes_the_other_way_round_is_told(message: str, name: str, value: Any, expected: str) -> None:
    assert words(message, name, value) == (f"/{name}: {expected}" if expected else "")


@each_row("message, place, expected", PLACES.values(), PLACES)
def test_a_test_that_would_be_the_real_thing_is_told_and_the_other_way_round(
    message: str, place: str, expected: str
) -> None:
    assert words(message, "order", "77", place=place) == expected


@pytest.mark.parametrize("schema", [{}, {"properties": {"it": True}}, {"properties": {"other": ROLE}}])
def test_a_schema_without_the_argument_says_nothing(schema: dict[str, Any]) -> None:
    assert written({"it": "admin"}, "As a member", schema) == {}


def test_no_more_of_a_message_is_read_than_the_limit_says() -> None:
    assert words("x" * READ + " member", "it", "admin", ROLE) == ""

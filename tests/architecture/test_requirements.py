"""The tables of what is held by which test: nothing is named that is not there, and nothing is left without a word."""

import re

from tests.proving import functions, missing
from tests.requirements import PENDING, REQUIREMENTS

WANTED = {f"SR-{number}" for number in range(1, 49)}


def test_each_requirement_has_tests_or_a_reason() -> None:
    assert len(WANTED) == 48
    assert REQUIREMENTS.keys() | PENDING.keys() == WANTED
    assert REQUIREMENTS.keys() & PENDING.keys() == set()
    assert [number for number, (words, tests) in REQUIREMENTS.items() if not words.strip() or not tests] == []
    assert [number for number, reason in PENDING.items() if not reason.strip()] == []


def test_each_test_of_a_requirement_exists() -> None:
    assert {number: gone for number, (_, tests) in REQUIREMENTS.items() if (gone := missing(tests))} == {}


def test_what_does_not_exist_is_seen() -> None:
    here = "architecture/test_requirements.py"
    assert missing([f"{here}::test_what_does_not_exist_is_seen"]) == []
    wrong = [f"{here}::test_nothing", "nowhere/test_it.py::test_it", here, f"{here}::WANTED", ""]
    assert missing(wrong) == wrong
    assert all(re.fullmatch(r"test_\w+", name) for name in functions(here))

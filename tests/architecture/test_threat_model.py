"""docs/threat-model.md names each requirement once, in its own words, with files and a test that are there."""

import re
from typing import Final

from tests.architecture.source import ROOT
from tests.architecture.test_guarantees import in_all_files
from tests.guarantees import GUARANTEES

ROW: Final = re.compile(r"^\| (SR-\d+) \| (.+) \| ((?:`[^`]+` ?)+) \| `([^`]+)` \|$", re.MULTILINE)
PAGE: Final = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")


def test_each_requirement_is_there_once_in_the_words_of_its_guarantee() -> None:
    told = [(found[1], found[2]) for found in ROW.finditer(PAGE)]
    assert told == [each for each in GUARANTEES.items() if each[0].startswith("SR-")]


def test_each_named_file_is_there_and_each_named_test_holds_its_requirement() -> None:
    shown = {(each.path, each.test, each.identity) for each in in_all_files()}
    for found in ROW.finditer(PAGE):
        assert all((ROOT / path).is_file() for path in re.findall(r"`([^`]+)`", found[3])), found[1]
        path, _, test = found[4].partition("::")
        assert (path, test, found[1]) in shown

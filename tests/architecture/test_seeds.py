"""What others promise of their gates is held by a test of ours, or is answered with a reason."""

import pytest

from tests.proving import missing
from tests.seeds import SEEDS

# So many sentences that promise something were found in each; the numbers may only grow.
SENTENCES = {"001": 43, "002": 27, "003": 41, "004": 43}
LONGEST = 15


def test_each_description_has_its_sentences() -> None:
    assert {seed: len(rows) for seed, rows in SEEDS.items()} == SENTENCES


@pytest.mark.parametrize("seed", SEEDS)
def test_each_sentence_has_a_test_or_a_reason(seed: str) -> None:
    assert [each.said for each in SEEDS[seed] if not each.tests and not each.instead.strip()] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_each_named_test_exists(seed: str) -> None:
    assert {each.said: gone for each in SEEDS[seed] if (gone := missing(each.tests))} == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_each_sentence_is_there_once_and_in_few_words(seed: str) -> None:
    said = [each.said for each in SEEDS[seed]]
    assert len(set(said)) == len(said)
    assert [words for words in said if not 1 < len(words.split()) <= LONGEST] == []

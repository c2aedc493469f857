"""docs/insights.md names the numbers by which things are marked and advised: they are those of the code."""

from pathlib import Path

import pytest

from hitlchat.gate import attention
from hitlchat.insights import advice

WORDS = " ".join(Path("docs/insights.md").read_text(encoding="utf-8").split())


def test_every_threshold_is_documented_as_it_is(subtests: pytest.Subtests) -> None:
    for said in [
        f"at {attention.WORDS_A_MINUTE} words a minute",
        f"below {attention.FLOOR_SECONDS:.0f} seconds in any case; after {attention.MOST_SECONDS:.0f} seconds never",
        {0.25: "below a quarter of the time"}[attention.FRACTION],
        f"at least {advice.ALWAYS_LEAST} questions about a tool",
        f"at least {advice.DECLINED_LEAST} declined, and {({0.5: 'half'})[advice.DECLINED_SHARE]} of what was answered",
        f"at least {advice.EXPIRED_LEAST} questions expired, and {advice.EXPIRED_SHARE:.0%}".replace("%", " %"),
        f"at least {advice.HURRIED_LEAST} hurried yeses",
        f"L{advice.RISKY} or above that ran unasked",
        f"{advice.LONE_SHARE:.0%} of at least {advice.LONE_LEAST} answers".replace("%", " %"),
        {60: "an hour spent"}[advice.COST_MINUTES] + ", and half of all questions",
        f"no answer counts for more than {attention.IDLE_SECONDS // 60} minutes",
    ]:
        with subtests.test(said=said):
            assert said in WORDS

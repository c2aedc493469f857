from typing import Any

import pytest

from tools_studio.risk import assess


@pytest.mark.parametrize(
    "capabilities, level, label",
    [
        ({}, 0, "Verified"),
        ({"now": True}, 0, "Verified"),
        ({"store": False, "fetch": None}, 0, "Verified"),
        ({"store": True, "now": True}, 2, "Low"),
        ({"fetch": {"mode": "allowlist", "hosts": ["api.example.com"]}, "store": True}, 3, "Moderate"),
        ({"fetch": {"mode": "allowlist", "hosts": ["*.example.com"]}}, 4, "High"),
        ({"fetch": {"mode": "allowlist", "hosts": []}}, 4, "High"),
        ({"fetch": {"mode": "open", "hosts": ["a.example"]}}, 4, "High"),
        ({"fetch": True}, 4, "High"),
        ({"destructive": True, "store": True}, 5, "Critical"),
        ({"root": True}, 5, "Critical"),
    ],
    ids=str,
)
def test_the_strongest_capability_sets_the_level(capabilities: dict[str, Any], level: int, label: str) -> None:
    risk = assess(capabilities)
    assert (risk.level, risk.label) == (level, label)


def test_the_reasons_name_what_raised_it_worst_first() -> None:
    risk = assess({"store": True, "fetch": {"mode": "allowlist", "hosts": ["b.example", "a.example"]}})
    assert risk.reasons == ("may fetch from named hosts: b.example, a.example", "keeps data between calls")

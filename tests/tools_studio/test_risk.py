from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from tests.tools_studio.test_capabilities import EVERYTHING
from tools_studio.risk import assess


@each_row(
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
        ({"fetch": {"mode": "public"}}, 3, "Moderate"),
        ({"random": True, "sleep": True}, 0, "Verified"),
        ({"secrets": True}, 3, "Moderate"),
        ({"files": {"mode": "read", "folder": "notes"}}, 3, "Moderate"),
        ({"files": {"mode": "write", "folder": "notes"}}, 4, "High"),
        ({"files": True}, 4, "High"),
        ({"email": {"to": ["@example.com"]}}, 3, "Moderate"),
        ({"email": {"to": ["*", "a@example.com"]}}, 4, "High"),
        ({"email": True}, 4, "High"),
        ({"webhook": {"targets": ["ALERTS_URL"]}}, 3, "Moderate"),
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
    reasons = [signal.reason for signal in risk.signals]
    assert reasons == ["may fetch from named hosts: b.example, a.example", "keeps data between calls"]


@given(st.sets(st.sampled_from(sorted(EVERYTHING))), st.sampled_from(sorted(EVERYTHING)))
def test_another_power_never_lowers_the_level(held: set[str], added: str) -> None:
    before = assess({name: EVERYTHING[name] for name in held})
    after = assess({name: EVERYTHING[name] for name in held | {added}})
    assert after.level >= before.level
    assert after.level == max([signal.level for signal in after.signals])

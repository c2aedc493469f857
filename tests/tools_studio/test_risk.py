from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from tests.tools_studio.test_capabilities import EVERYTHING
from tools_studio.capabilities import parse


@each_row(
    "capabilities, level",
    [
        ({}, 0),
        ({"now": True}, 0),
        ({"store": False, "fetch": None}, 0),
        ({"store": True, "now": True}, 2),
        ({"fetch": {"mode": "allowlist", "hosts": ["api.example.com"]}, "store": True}, 3),
        ({"fetch": {"mode": "allowlist", "hosts": ["*.example.com"]}}, 4),
        ({"fetch": {"mode": "open", "hosts": ["a.example"]}}, 4),
        ({"fetch": {"mode": "public"}}, 3),
        ({"random": True, "sleep": True}, 0),
        ({"secrets": True}, 3),
        ({"files": {"mode": "read", "folder": "notes"}}, 3),
        ({"files": {"mode": "write", "folder": "notes"}}, 4),
        ({"email": {"to": ["@example.com"]}}, 3),
        ({"email": {"to": ["*", "a@example.com"]}}, 4),
        ({"webhook": {"targets": ["ALERTS_URL"]}}, 3),
        ({"destructive": True, "store": True}, 5),
    ],
    ids=str,
)
def test_the_strongest_capability_sets_the_level(capabilities: dict[str, Any], level: int) -> None:
    assert parse(capabilities).risk_level == level


def test_the_reasons_name_what_raised_it_worst_first() -> None:
    granted = parse({"store": True, "fetch": {"mode": "allowlist", "hosts": ["b.example", "a.example"]}})
    reasons = [signal.reason for signal in granted.signals()]
    assert reasons == ["may fetch from named hosts: a.example, b.example", "keeps data between calls"]


@given(st.sets(st.sampled_from(sorted(EVERYTHING))), st.sampled_from(sorted(EVERYTHING)))
def test_another_power_never_lowers_the_level(held: set[str], added: str) -> None:
    before = parse({name: EVERYTHING[name] for name in held})
    after = parse({name: EVERYTHING[name] for name in held | {added}})
    assert after.risk_level >= before.risk_level
    assert after.risk_level == after.signals()[0].level

"""Which tools can run unasked, for whom, and why; and the rules as sentences."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from hitlchat.gate.models import Tool
from hitlchat.gate.policies import Abstain, Allow, Ask, Refuse, combined, outcome, strictest, together
from hitlchat.gate.simulation import coverage, lines

ALL = {"tools": ["*"]}
ALLOWS = {"policy": "never_ask", **ALL}
ASKS = {"policy": "always_ask", **ALL}
REFUSES = {"policy": "deny_list", **ALL, "reason": "Not here."}
MCP_ASKS = {"policy": "caller_kind", **ALL, "kinds": ["mcp"], "verdict": "ask"}
MCP_ONLY = {"policy": "caller_kind", **ALL, "kinds": ["mcp"], "verdict": "allow"}
ONCE = {"policy": "ask_once", **ALL}
UP_TO = {"policy": "amount_threshold", **ALL, "argument": "amount", "limit": 10, "over": "refuse"}
OWN = {"policy": "tests.gate.own_policies.Asynchronous"}


def tool(mode: str, condition: str = "", risk: int = 2) -> Tool:
    return Tool(name="refund", hitl_mode=mode, condition=condition, risk_level=risk, published=True)


# Mode, condition, risk, rules: what becomes of calls of the assistant and of MCP clients.
CASES: dict[str, tuple[str, str, int, list[Any], tuple[str, str]]] = {
    "asks": ("REQUIRED", "", 2, [ALLOWS], ("asked", "asked")),
    "never asks": ("DISABLED", "", 2, [], ("unasked", "unasked")),
    "never asks, whatever a rule asks": ("DISABLED", "", 2, [ASKS], ("unasked", "unasked")),
    "never asks, but is refused": ("DISABLED", "", 2, [REFUSES], ("refused", "refused")),
    "never asks, and a class may": ("DISABLED", "", 2, [OWN], ("may", "may")),
    "never asks, and a class inside may": (
        "DISABLED",
        "",
        2,
        [{"policy": "any_of", "policies": [OWN]}],
        ("may", "may"),
    ),
    "never asks, and an amount may be none": ("DISABLED", "", 2, [UP_TO], ("may", "may")),
    "an amount that may be none": (
        "CONDITIONAL",
        "",
        2,
        [{"policy": "all_of", "policies": [UP_TO, ALLOWS]}],
        ("may", "may"),
    ),
    "nobody speaks": ("CONDITIONAL", "", 2, [], ("asked", "asked")),
    "a condition": ("CONDITIONAL", "True", 2, [], ("may", "may")),
    "a condition and a rule": ("CONDITIONAL", "True", 2, [MCP_ASKS], ("may", "asked")),
    "let run": ("CONDITIONAL", "", 2, [ALLOWS], ("unasked", "unasked")),
    "by caller": ("CONDITIONAL", "", 2, [MCP_ONLY], ("asked", "unasked")),
    "once": ("CONDITIONAL", "", 2, [ONCE], ("may", "may")),
    "never once at the top level": ("CONDITIONAL", "", 5, [ONCE], ("asked", "asked")),
    "a class may say anything": ("CONDITIONAL", "", 2, [OWN], ("may", "may")),
    "any of": ("CONDITIONAL", "", 2, [{"policy": "any_of", "policies": [ALLOWS, ASKS]}], ("asked", "asked")),
    "all of": ("CONDITIONAL", "", 2, [{"policy": "all_of", "policies": [ALLOWS, MCP_ASKS]}], ("asked", "unasked")),
    "rules that do not load": ("DISABLED", "", 2, [{"policy": "x"}], ("asked", "asked")),
}


def test_the_map_says_what_can_run_unasked(subtests: pytest.Subtests, settings: Settings) -> None:
    for case, (mode, condition, risk, rules, expected) in CASES.items():
        with subtests.test(case=case):
            settings.HITL_POLICIES = rules
            (found,) = coverage([tool(mode, condition, risk)])
            assert (found.states["chat"], found.states["mcp"]) == expected
            assert found.can_run_unasked is bool(found.why)


def test_a_state_that_does_not_depend_on_the_caller_is_told_once(settings: Settings) -> None:
    (found,) = coverage([tool("DISABLED")])
    assert found.whoever_calls == "unasked"
    settings.HITL_POLICIES = [MCP_ONLY]
    (found,) = coverage([tool("CONDITIONAL")])
    assert found.whoever_calls is None


def test_with_the_switch_off_everything_runs(settings: Settings) -> None:
    settings.HITL_ENABLED, settings.HITL_POLICIES = False, [REFUSES]
    (found,) = coverage([tool("REQUIRED")])
    assert set(found.states.values()) == {"unasked"}
    assert [line.where for line in lines([tool("REQUIRED")])] == ["HITL_ENABLED=0"]


def test_tools_alike_are_told_together_the_riskiest_first() -> None:
    names = [("a", "DISABLED", 1), ("b", "DISABLED", 3), ("c", "REQUIRED", 4), ("d", "CONDITIONAL", 5)]
    made = [Tool(name=name, hitl_mode=mode, risk_level=risk) for name, mode, risk in names]
    assert [[each.name for each in found.tools] for found in coverage(made)] == [["d", "c"], ["b", "a"]]


def test_the_strictest_rules_are_told_first(settings: Settings) -> None:
    settings.HITL_POLICIES = [ALLOWS, ASKS, REFUSES, OWN]
    told = lines([tool("CONDITIONAL", "args['amount'] > 5")])
    assert [line.strongest for line in told] == ["refuse", "refuse", "ask", "ask", "allow"]
    assert [line.where.removeprefix("HITL_POLICIES, entry ") for line in told[:3]] == ["3", "4", "2"]
    assert "args['amount'] > 5" in told[3].sentence


SAID = st.sampled_from([Abstain(), Allow("a"), Ask("b"), Refuse("c")])


@given(st.lists(st.frozensets(SAID, min_size=1), min_size=1, max_size=4), st.data())
def test_what_can_be_said_together_is_never_less_than_what_is_said(sets: Any, data: st.DataObject) -> None:
    said = [data.draw(st.sampled_from(sorted(each, key=outcome))) for each in sets]
    possible = [frozenset(map(outcome, each)) for each in sets]
    assert outcome(strictest(said)) in combined(*possible)
    assert outcome(together(said)) in combined(*possible, all_speak=True)

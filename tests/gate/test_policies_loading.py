"""Rules as they are written down: they come back as they were, and what does not parse is refused, never allowed."""

import copy
import os
import subprocess
import sys
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ImproperlyConfigured
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from hitlchat.base import environment
from hitlchat.checks import check_settings
from hitlchat.gate.policies import Ask, Refuse
from hitlchat.gate.policies.loading import Unloadable, load
from hitlchat.gate.policy import judge
from tests.conftest import caller
from tests.gate.asking import recording
from tests.gate.policy_rules import parent_of, places
from tests.processes import OURS, ROOT

OWN = {"policy": "tests.gate.own_policies.OnlyText", "text": "hello"}
# Each of them keeps a call of bob's assistant from running unasked.
STORED: list[dict[str, Any]] = [
    {"policy": "tool_names", "tools": ["refund", "delete_*"], "others": "abstain"},
    {"policy": "always_ask", "tools": ["*"]},
    {"policy": "ask_once", "tools": ["refund"]},
    {"policy": "amount_threshold", "tools": ["refund"], "argument": "amount", "limit": 0.5, "over": "refuse"},
    {"policy": "caller_kind", "tools": ["*"], "kinds": ["chat", "mcp"], "verdict": "refuse"},
    {"policy": "user_group", "tools": ["*"], "people": "others", "groups": ["finance"], "verdict": "ask"},
    {"policy": "deny_list", "tools": ["refund"], "reason": "Never."},
    {"policy": "any_of", "policies": [{"policy": "always_ask", "tools": ["refund"]}, OWN]},
    {"policy": "all_of", "policies": [{"policy": "always_ask", "tools": ["refund"]}]},
    {"policy": "tests.gate.own_policies.OnlyText", "text": "bye"},
]
IDS = [entry["policy"] for entry in STORED]
MORE = [{"policy": "never_ask", "tools": ["re*"]}, OWN]

BAD: dict[str, tuple[Any, str]] = {
    "no list": ({}, "must be a list of policies, not an object"),
    "no object": (["always_ask"], "entry 1 must be an object"),
    "no name": ([{}], "“policy” must be one of tool_names, always_ask"),
    "an unknown name": ([{"policy": "allways_ask", "tools": ["*"]}], "“policy” must be one of"),
    "a name that is a number": ([{"policy": 1}], "“policy” must be one of"),
    "no tools": ([{"policy": "never_ask"}], "entry 1 (never_ask), field “tools”: Field required"),
    "tools as text": ([{"policy": "never_ask", "tools": "*"}], "field “tools”"),
    "an empty list": ([{"policy": "never_ask", "tools": []}], "field “tools”"),
    "a bad pattern": ([{"policy": "never_ask", "tools": ["*", "a b"]}], "field “tools[1]”"),
    "an unknown field": ([{"policy": "always_ask", "tools": ["*"], "tool": 1}], "field “tool”"),
    "the second entry": ([{"policy": "always_ask", "tools": ["*"]}, 5], "entry 2 must be an object"),
    "a limit as text": ([{**STORED[3], "limit": "10"}], "field “limit”"),
    "a limit that is true": ([{**STORED[3], "limit": True}], "field “limit”"),
    "a limit below nothing": ([{**STORED[3], "limit": -1}], "field “limit”"),
    "no number": ([{**STORED[3], "limit": float("nan")}], "not valid JSON"),
    "an unknown verdict": ([{**STORED[4], "verdict": "ALLOW"}], "field “verdict”"),
    "an unknown kind": ([{**STORED[4], "kinds": ["chat", "web"]}], "field “kinds[1]”"),
    "no reason": ([{"policy": "deny_list", "tools": ["*"], "reason": ""}], "field “reason”"),
    "any of nothing": ([{"policy": "any_of", "policies": []}], "must have the field “policies”"),
    "any of text": ([{"policy": "any_of", "policies": "x"}], "must be a list of policies, not text"),
    "bad inside": (
        [{"policy": "any_of", "policies": [{"policy": "never_ask", "tools": ["*"]}, {"policy": "x"}]}],
        "entry 1 (any_of), “policies”, entry 2",
    ),
    "no such module": ([{"policy": "no.such.Thing"}], "could not be made"),
    "no such class": ([{"policy": "tests.gate.own_policies.Missing"}], "could not be made"),
    "no policy": ([{"policy": "tests.gate.own_policies.Mute"}], "has no method evaluate"),
    "cannot be made": ([{"policy": "tests.gate.own_policies.Unmakeable"}], "RuntimeError: not today"),
    "an unknown option": ([{**OWN, "more": 1}], "could not be made with these options"),
    "too many": ([STORED[1]] * 51, "has 51 policies; at most 50"),
}


def test_a_policy_comes_back_as_it_was(subtests: pytest.Subtests) -> None:
    for entry in STORED + MORE:
        with subtests.test(entry=entry):
            (rule,) = load([entry])
            assert load([rule.to_dict()]) == (rule,)
            assert load([rule.to_dict()])[0].to_dict() == rule.to_dict()
            assert rule.sentence.endswith((".", ")"))


def test_what_does_not_parse_is_refused_with_where_and_why(subtests: pytest.Subtests, settings: Settings) -> None:
    for case, (entries, told) in BAD.items():
        with subtests.test(case=case):
            with pytest.raises(Unloadable) as refused:
                load(entries)
            assert told in str(refused.value)
            settings.HITL_POLICIES = entries
            (problem,) = [found for found in check_settings() if found.id == "hitlchat.E003"]
            assert problem.msg == str(refused.value)


def test_what_is_nested_too_deeply_is_refused() -> None:
    entry = STORED[1]
    for _ in range(4):
        entry = {"policy": "any_of", "policies": [entry]}
    with pytest.raises(Unloadable, match="nested too deeply"):
        load([entry])


# No policy means anything by these, wherever they stand.
NONSENSE = st.one_of(
    st.none(),
    st.booleans(),
    st.just({}),
    st.just([]),
    st.integers(max_value=-1),
    st.text(alphabet=" \n\t\x00?!", max_size=3),
    st.dictionaries(st.sampled_from(["policy", "tools", "verdict"]), st.sampled_from([None, "allow", 1]), min_size=1),
    # No tool can have the name, either: a rule for other tools alone would be a whole one.
    st.lists(st.sampled_from([None, 1, True, "", {}, "never ask"]), min_size=1, max_size=2),
)


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A stored policy with one field gone, spelled otherwise, added, or of another kind."""
    entry: Any = copy.deepcopy(draw(st.sampled_from(STORED)))
    path = draw(st.sampled_from(list(places(entry))))
    parent, key = parent_of(entry, path), path[-1]
    match draw(st.sampled_from(["drop", "rename", "add", "replace"])):
        # What is taken off a list leaves another rule, and a whole one.
        case "drop" if isinstance(parent, dict):
            parent.pop(key)
        case "rename" if isinstance(parent, dict):
            parent[draw(st.sampled_from([f"{key}s", key.upper(), f" {key}", key[:-1]]))] = parent.pop(key)
        case "add" if isinstance(parent, dict):
            parent[draw(st.sampled_from(["allow", "enabled", "mode", "Verdict"]))] = draw(NONSENSE)
        case _:
            parent[key] = draw(NONSENSE)
    return dict(entry)


@pytest.mark.guarantee("gate:fail-closed", "SR-15")
@pytest.mark.django_db
def test_no_field_that_is_changed_turns_a_stored_policy_into_leave(bob: User) -> None:
    """Beside a rule that would let the call run, and of a tool that policies decide about."""
    tool = recording(mode="CONDITIONAL")
    Group.objects.create(name="finance")

    @settings(max_examples=150, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(mutated())
    def no_leave(entry: dict[str, Any]) -> None:
        django_settings.HITL_POLICIES = [entry]
        judgement = async_to_sync(judge)(tool, {"text": "hello", "amount": 1}, caller(bob))
        assert isinstance(judgement.verdict, Ask | Refuse), entry

    before = django_settings.HITL_POLICIES
    try:
        no_leave()
    finally:
        django_settings.HITL_POLICIES = before


@pytest.mark.guarantee("SR-15")
def test_what_is_no_list_as_json_is_no_setting(subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, told in [
        ("{", "HITL_POLICIES is not valid JSON"),
        ("{}", "HITL_POLICIES must be a JSON list"),
        ('[{"policy": "never_ask", "policy": "always_ask"}]', "occurs twice"),
    ]:
        monkeypatch.setenv("HITL_POLICIES", value)
        with subtests.test(value=value), pytest.raises(ImproperlyConfigured, match=told):
            environment.entries("HITL_POLICIES")


@pytest.mark.guarantee("SR-15")
def test_the_program_does_not_start_with_rules_that_do_not_parse() -> None:
    kept = {name: text for name, text in os.environ.items() if not OURS.match(name)}
    rules = '[{"policy": "never_ask", "tools": ["*"], "not": 1}]'
    command = [sys.executable, "manage.py", "policy", "list"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**kept, "HITL_POLICIES": rules},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode != 0
    assert "hitlchat.E003" in done.stderr

"""Any value in any field of a rule that ships: it is refused, or it means exactly what is written there."""

import copy
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hitlchat.gate.policies import Allow, Ask
from hitlchat.gate.policies.bundled import SIMPLE
from hitlchat.gate.policies.loading import COMPOSED, Unloadable, load
from hitlchat.gate.policy import judge
from tests.conftest import caller
from tests.gate.asking import recording
from tests.gate.policy_rules import parent_of, places

# Each of these keeps a call of bob's assistant with an amount of 7 from running unasked; every field is spelled out.
AMOUNT: Final = 7
RULES: Final[list[dict[str, Any]]] = [
    {"policy": "tool_names", "tools": ["refund", "delete_*"], "others": "abstain"},
    {"policy": "always_ask", "tools": ["*"]},
    {"policy": "ask_once", "tools": ["refund"]},
    {"policy": "amount_threshold", "tools": ["refund"], "argument": "amount", "limit": 0.5, "over": "refuse"},
    {"policy": "caller_kind", "tools": ["*"], "kinds": ["chat", "mcp"], "verdict": "refuse"},
    {"policy": "user_group", "tools": ["*"], "people": "others", "groups": ["finance"], "verdict": "ask"},
    {"policy": "deny_list", "tools": ["refund"], "reason": "Never."},
    {"policy": "any_of", "policies": [{"policy": "always_ask", "tools": ["refund"]}]},
    {"policy": "all_of", "policies": [{"policy": "always_ask", "tools": ["refund"]}]},
]


def texts(pattern: str, most: int) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:
        return isinstance(value, list) and 0 < len(value) <= most and all(text(pattern)(each) for each in value)

    return fits


def text(pattern: str) -> Callable[[Any], bool]:
    # Python alone counts the separators U+001C to U+001F among the spaces, but for ASCII.
    return lambda value: isinstance(value, str) and re.search(pattern, value, re.ASCII) is not None


# What may stand in each field, written down a second time.
MEANT: Final[dict[str, Callable[[Any], bool]]] = {
    "policy": lambda value: isinstance(value, str) and value in (*SIMPLE, *COMPOSED),
    "tools": texts(r"\A[A-Za-z0-9_*-]{1,64}\Z", 500),
    "others": lambda value: value in ("abstain", "allow"),
    "argument": text(r"\A[^.\s]+(\.[^.\s]+)*\Z"),
    "limit": lambda value: type(value) in (int, float) and 0 <= value <= 10**15,
    "over": lambda value: value in ("ask", "refuse"),
    "kinds": texts(r"\A(chat|studio|api|mcp)\Z", 4),
    "people": lambda value: value in ("members", "others"),
    "groups": texts(r"\A\S(.*\S)?\Z", 50),
    "verdict": lambda value: value in ("allow", "ask", "refuse"),
    "reason": text(r"\A\S(.*\S)?\Z"),
    "policies": lambda value: isinstance(value, list) and value != [] and all(isinstance(each, dict) for each in value),
}
# The only values by which a rule says that the call may run.
LOOSENS: Final[dict[str, Callable[[Any], bool]]] = {
    "policy": lambda value: value == "never_ask",
    "verdict": lambda value: value == "allow",
    "limit": lambda value: value >= AMOUNT,
    "policies": lambda value: any(each.get("policy") in ("never_ask", "amount_threshold") for each in value),
}

VERDICTS: Final = ["allow", "ask", "refuse", "abstain"]
WORDS: Final = [*SIMPLE, *COMPOSED, *VERDICTS, "members", "others", "chat", "api", "*", "refund"]
PLAIN = st.one_of(
    *(st.none(), st.booleans(), st.integers(-5, 50), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    *(st.text(max_size=6), st.sampled_from(WORDS), st.sampled_from(WORDS).map(str.upper)),
)
NESTED = st.dictionaries(st.sampled_from(["policy", "tools", "verdict", "x"]), PLAIN | st.lists(PLAIN, max_size=2))
ANYTHING = PLAIN | st.lists(PLAIN | NESTED, max_size=3) | NESTED
ANYWHERE = st.sampled_from([(rule, path) for rule in RULES for path in places(rule)])


def field_of(path: tuple[Any, ...]) -> str:
    """The name of the innermost field on the way: of an entry of a list, that of the list."""
    return next(str(part) for part in reversed(path) if isinstance(part, str))


@pytest.mark.guarantee("gate:fail-closed", "SR-15")
@pytest.mark.django_db
def test_no_value_in_any_field_makes_a_stored_policy_milder_than_it_says(bob: User) -> None:
    tool = recording(mode="CONDITIONAL")

    @settings(max_examples=300, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(ANYWHERE, ANYTHING)
    @example((RULES[4], ("verdict",)), "allow")
    @example((RULES[4], ("verdict",)), "Allow")
    @example((RULES[3], ("limit",)), "1000")
    @example((RULES[3], ("limit",)), 1000)
    def no_leave(place: tuple[dict[str, Any], tuple[Any, ...]], value: Any) -> None:
        rule, path = place
        entry = copy.deepcopy(rule)
        parent_of(entry, path)[path[-1]] = value
        field = field_of(path)
        held = value if path[-1] == field else parent_of(entry, path)
        django_settings.HITL_POLICIES = [entry]
        said = async_to_sync(judge)(tool, {"text": "a", "amount": AMOUNT}, caller(bob)).verdict
        if not loads(entry):
            assert isinstance(said, Ask), entry
            return
        assert MEANT[field](held), entry
        assert not isinstance(said, Allow) or (field in LOOSENS and LOOSENS[field](held)), entry

    before = django_settings.HITL_POLICIES
    try:
        no_leave()
    finally:
        django_settings.HITL_POLICIES = before


def loads(entry: dict[str, Any]) -> bool:
    try:
        load([entry])
    except Unloadable:
        return False
    return True

"""What each rule that ships costs a call, and a condition, and ten rules together."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import Group

from bench import people, sizes
from bench.figures import Figure
from bench.home import ARGUMENTS
from bench.measure import Stopwatch, median
from hitlchat.base.database import in_db
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.policy import judge

ROUNDS, TIMES = sizes.of((5, 60), (1, 2))
CONDITION_TIMES = sizes.of(6, 1)
ALL: Final[dict[str, Any]] = {"tools": ["*"]}
RULES: Final[dict[str, dict[str, Any]]] = {
    "always_ask": {"policy": "always_ask", **ALL},
    "never_ask": {"policy": "never_ask", **ALL},
    "ask_once": {"policy": "ask_once", **ALL},
    "tool_names": {"policy": "tool_names", "tools": ["gated", "delete_*"]},
    "amount_threshold": {"policy": "amount_threshold", **ALL, "argument": "amount", "limit": 10},
    "caller_kind": {"policy": "caller_kind", **ALL, "kinds": ["chat"], "verdict": "ask"},
    "user_group": {"policy": "user_group", **ALL, "groups": ["finance"], "people": "others", "verdict": "ask"},
    "deny_list": {"policy": "deny_list", "tools": ["other"], "reason": "Not here."},
}
TOGETHER: Final[dict[str, list[Any]]] = {
    "any_of two": [{"policy": "any_of", "policies": [RULES["always_ask"], RULES["amount_threshold"]]}],
    "all_of two": [{"policy": "all_of", "policies": [RULES["always_ask"], RULES["amount_threshold"]]}],
    "ten rules together": [*RULES.values(), RULES["always_ask"], RULES["amount_threshold"]],
}


def measure() -> Iterator[Figure]:
    people.ready()
    Group.objects.get_or_create(name="finance")
    tool = Tool.objects.get(name="gated")
    tool.hitl_mode = HitlMode.CONDITIONAL
    bare = _figure("no rule at all", [], tool, None)
    yield bare
    for name, entries in {**{name: [rule] for name, rule in RULES.items()}, **TOGETHER}.items():
        yield _figure(name, entries, tool, bare.value)
    tool.condition = 'args["amount"] > 10_000'
    yield _figure("a condition, in the sandbox", [], tool, bare.value, CONDITION_TIMES)


def _figure(what: str, entries: list[Any], tool: Tool, floor: float | None, times: int = TIMES) -> Figure:
    before, settings.HITL_POLICIES = settings.HITL_POLICIES, entries
    try:
        found = asyncio.run(_rounds(tool, times))
    finally:
        settings.HITL_POLICIES = before
    wall = median(one.wall for one in found) / times * 1_000_000
    return Figure(f"a verdict by {what}, CPU", _cpu(found, times), "µs", floor, note=f"{wall:,.0f} µs on the wall")


def _cpu(found: list[Stopwatch], times: int) -> float:
    """Microseconds of each verdict."""
    return median(one.cpu for one in found) / times * 1_000_000


async def _rounds(tool: Tool, times: int) -> list[Stopwatch]:
    caller = await in_db(people.caller)()
    found = []
    for _ in range(ROUNDS + 1):
        with Stopwatch() as watch:
            for _ in range(times):
                await judge(tool, ARGUMENTS, caller)
        found.append(watch)
    return found[1:]  # the first one warms up

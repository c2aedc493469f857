"""How many questions earned rules spare: a made quarter of a support desk whose people answer by rules of their own."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import draft, earned, replay
from hitlchat.gate.models import Tool
from tests.gate.earning import answered, refund

pytestmark = pytest.mark.django_db

EARLIER, DAYS, CALLS_A_DAY = 60, 30, 12  # the days in which rules are earned, and those after them
SEED = 7
FEW_NOES = 5
COLLEAGUES: Final = ("carol@example.com", "dan@example.com", "erin@example.com")


@dataclass(frozen=True)
class Work:
    """One kind of calls: how often of a hundred, what the model writes, and what people say yes to."""

    tool: str
    share: int
    make: Callable[[random.Random], dict[str, Any]]
    is_fine: Callable[[dict[str, Any]], bool]
    risk: int = 3


def texts(**names: str) -> dict[str, Any]:
    kinds = {name: {"type": kind} for name, kind in names.items()}
    return {"type": "object", "properties": kinds, "required": [*names], "additionalProperties": False}


def word(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghij", k=8))


WORKS: Final = (
    Work(
        "refund",
        40,
        lambda chance: {
            "order": f"A-{chance.randrange(10_000)}",
            "amount": min(5 + int(chance.expovariate(0.05)), 400),
        },
        lambda given: given["amount"] <= 60,
    ),
    Work(
        "notify",
        25,
        lambda chance: {"recipient": chance.choice([*COLLEAGUES * 6, f"{word(chance)}@elsewhere.example"])},
        lambda given: given["recipient"] in COLLEAGUES,
    ),
    Work(
        "label",
        20,
        lambda chance: {
            "ticket": chance.randrange(10_000),
            "label": chance.choices(["bug", "question", "urgent"], [6, 6, 1])[0],
        },
        lambda given: given["label"] != "urgent",
    ),
    # What is said freely is never like what was said before; and what cannot be made good is always asked about.
    Work("answer", 10, lambda chance: {"text": " ".join(word(chance) for _ in range(12))}, lambda _: True),
    Work("close_account", 5, lambda chance: {"account": f"K-{chance.randrange(10_000)}"}, lambda _: True, risk=5),
)
SCHEMAS: Final = {
    "refund": texts(order="string", amount="number"),
    "notify": texts(recipient="string"),
    "label": texts(ticket="integer", label="string"),
    "answer": texts(text="string"),
    "close_account": texts(account="string"),
}


def month(people: list[User], tools: dict[str, Tool], chance: random.Random, first: int, last: int) -> int:
    """Record what was asked from so many days ago until so many; return how many were declined."""
    noes = 0
    for day in range(last, first + 1):
        for work in chance.choices(WORKS, [each.share for each in WORKS], k=CALLS_A_DAY):
            given = work.make(chance)
            no = not work.is_fine(given)
            answered(chance.choice(people), tools[work.tool], given, no=no, days=day)
            noes += no
    return noes


def test_rules_earned_in_two_months_spare_two_thirds_of_the_questions_of_the_third(bob: User, alice: User) -> None:
    chance = random.Random(SEED)
    tools = {each.tool: refund(each.tool, input_schema=SCHEMAS[each.tool], risk_inherent=each.risk) for each in WORKS}
    people = [bob, alice]
    month(people, tools, chance, EARLIER + DAYS, DAYS + 1)
    together: dict[str, Any] = {"tools": {}}
    for each in earned.proposals():
        together["tools"] |= each.draft["tools"]
    assert [*together["tools"]] == ["label", "notify", "refund"]
    noes = month(people, tools, chance, DAYS, 1)
    found = replay.replay(draft.read(together), DAYS + 1)
    assert noes > FEW_NOES
    assert (found.calls, found.asked_before) == (DAYS * CALLS_A_DAY, DAYS * CALLS_A_DAY)
    assert found.would_have_run_though_declined == []
    assert found.asked <= found.calls / 3

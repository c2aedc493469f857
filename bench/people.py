"""Who and what a bench works with: bob, a tool that asks, one that doesn't, conversations with a past."""

import json
from dataclasses import dataclass
from functools import cache

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from bench.home import ARGUMENTS, SCHEMA
from hitlchat.agent.models import Conversation, Message, Role, Run, RunStatus
from hitlchat.base import canonical
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import HitlMode, Tool
from tests.conftest import PASSWORD


@dataclass(frozen=True)
class Visitor:
    """Somebody and their browser, signed in without the time that a password takes."""

    user: User
    cookies: dict[str, str]

    @classmethod
    def new(cls, name: str) -> "Visitor":
        client, user = Client(), User.objects.create_user(name)
        client.force_login(user)
        return cls(user, {name: each.value for name, each in client.cookies.items()})


@cache
def bob() -> User:
    return User.objects.create_user("bob", password=PASSWORD)


def caller() -> Caller:
    return Caller("chat", bob().pk, bob().get_username())


def actor() -> Actor:
    return Actor(bob().pk, "session", signed_in_at=timezone.now())


@cache
def ready() -> None:
    """Bob, and two published tools that differ in nothing but whether they ask."""
    bob()
    for name, mode in (("gated", HitlMode.REQUIRED), ("free", HitlMode.DISABLED)):
        Tool.objects.create(
            name=name,
            description="Give a customer money back for an order.",
            hitl_mode=mode,
            input_schema=SCHEMA,
            source="bench",
            origin="the bench",
            risk_level=2,
            facts=["It can reach nothing but the bench."],
            published=True,
            definition_hash=canonical.sha256({"name": name, "input": SCHEMA}),
        )


def conversation(turns: int = 0, owner: User | None = None) -> Conversation:
    """A conversation, of bob if of nobody else, in which `turns` gated turns are over: four messages each."""
    made = Conversation.objects.create(owner=owner or bob(), title=f"After {turns} turns", tools=["gated", "free"])
    run = Run.objects.create(conversation=made, finished_at=timezone.now(), status=RunStatus.DONE)
    Conversation.objects.filter(pk=made.pk).update(tip=run)
    Message.objects.bulk_create(
        Message(conversation=made, run=run, seq=4 * turn + offset + 1, role=wire["role"], content=text, wire=wired)
        for turn in range(turns)
        for offset, wire in enumerate(_turn(turn))
        for text, wired in [(wire["content"] if wire["role"] != Role.TOOL else "", canonical.pretty(wire))]
    )
    return made


def _turn(number: int) -> list[dict[str, str]]:
    call = {"id": f"call_{number}", "type": "function"}
    function = {"name": "gated", "arguments": json.dumps(ARGUMENTS)}
    return [
        {"role": "user", "content": "call gated, since the customer of order A-1042 asked for the money again"},
        {"role": "assistant", "content": "", "tool_calls": [{**call, "function": function}]},  # type: ignore[dict-item]
        {"role": "tool", "content": '{"at": 1793000000.123}', "tool_call_id": call["id"]},
        {"role": "assistant", "content": "The money for order A-1042 was sent back; it takes two to three days."},
    ]

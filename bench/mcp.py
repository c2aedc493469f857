"""What /mcp costs its clients: calls that ask nobody, calls that ask, and lists, next to the bare SDK under Daphne.

All lanes of one figure take turns, so that they meet the same machine. CPU is that of the server's process alone.
"""

import asyncio
import logging
from collections.abc import Iterator

from django.contrib.auth.models import User

from bench import people, sizes
from bench.children import child_process, pid, serving
from bench.figures import Figure
from bench.lanes import Lane, Target, raw, sdk, take_turns
from bench.mcp_lists import listed
from hitlchat.accounts.models import TokenKind
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import Tool
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.models import WithoutElicitation
from tests.conftest import PASSWORD
from tests.processes import Person
from tools_studio import authoring
from tools_studio.spec import Draft

TRIVIAL = "def run(order_id: str, amount: float, reason: str = '') -> float:\n    return amount\n"
ERAS = ("2025", "2026")
ALONE, TOGETHER, AT_ONCE, ASKED = sizes.of((60, 112, 16, 15), (2, 2, 2, 1))
LISTS = sizes.of((10, 1000, 5000), (10,))
# Over the bare SDK.
GOAL_CPU_MS = 3.0


def measure() -> Iterator[Figure]:
    people.ready()
    # The client has a line for every request.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    tool = authoring.create(Draft("authored", TRIVIAL, hitl_mode="DISABLED"), SYSTEM)
    Tool.objects.filter(pk=tool.pk).update(published=True)
    # Of a trusted client, whose word counts.
    alice = Actor(User.objects.create_superuser("alice", password=PASSWORD).pk, "session")
    plain = tokens.make(people.bob(), TokenKind.MCP, alice, trusted_by=alice)
    patient = tokens.make_mcp(people.bob(), without_elicitation=WithoutElicitation.INBOX)
    with child_process("bench.bare", "2") as bare, serving() as server:
        targets = {
            "bare": Target(bare.pid, bare.port),
            "ours": Target(pid(server), server.port, plain),
            "inbox": Target(pid(server), server.port, patient),
        }
        yield from asyncio.run(_free(targets))
        yield from asyncio.run(_gated(targets, server.sign_in("bob")))
        # The tools that ship, which the server brings along, are no part of the lists.
        Tool.objects.exclude(name__in=["free", "gated"]).update(published=False)
        for count in LISTS:
            yield from listed(count, server, plain)


# -- Calls that ask nobody --------------------------------------------------------------------------------------------


async def _free(targets: dict[str, Target]) -> list[Figure]:
    bare, ours = targets["bare"], targets["ours"]
    found: list[Figure] = []
    for era in ERAS:
        for at_once, times in ((1, ALONE), (AT_ONCE, TOGETHER)):
            lanes = [sdk(bare, "free", era), sdk(ours, "free", era), sdk(ours, "authored", era)]
            found += _figures(f"client of {era}, {at_once} at once", await take_turns(lanes, at_once, times))
    lanes = [raw(target, name, AT_ONCE) for target, name in ((bare, "free"), (ours, "free"), (ours, "authored"))]
    await take_turns(lanes, AT_ONCE, TOGETHER)
    return [*found, *_figures(f"sockets, 2026, {AT_ONCE} at once", lanes)]


def _figures(where: str, lanes: list[Lane]) -> Iterator[Figure]:
    bare = lanes[0]
    for what, lane in zip(("trivial source", "authored tool"), lanes[1:], strict=True):
        name = f"{where}, {what}"
        goal = bare.cpu_ms + GOAL_CPU_MS if what == "trivial source" else None
        yield Figure(f"{name}: CPU", lane.cpu_ms, "ms", bare.cpu_ms, goal, note=_wall(lane, bare))
        yield Figure(f"{name}: calls a second", lane.per_second, "/s", bare.per_second, better="more")


def _wall(lane: Lane, bare: Lane) -> str:
    return f"p50 {lane.ms(0.5):.1f}, p99 {lane.ms(0.99):.1f} ms; bare {bare.ms(0.5):.1f}, {bare.ms(0.99):.1f}"


# -- Calls that ask ---------------------------------------------------------------------------------------------------


async def _gated(targets: dict[str, Target], bob: Person) -> list[Figure]:
    found = []
    for era in ERAS:
        bare, ours = (sdk(targets[name], "gated", era) for name in ("bare", "ours"))
        await take_turns([bare, ours], 1, ASKED)
        name = f"client of {era}, asks its user, who accepts"
        found.append(Figure(f"{name}: CPU", ours.cpu_ms, "ms", bare.cpu_ms, note=_wall(ours, bare)))
    for era in ERAS:
        inbox = sdk(targets["inbox"], "gated", era, approver=bob)
        await take_turns([inbox], 1, ASKED)
        wall = f"p50 {inbox.ms(0.5):.1f}, p99 {inbox.ms(0.99):.1f} ms, with the approval over REST"
        found.append(Figure(f"client of {era}, waits for the inbox: CPU", inbox.cpu_ms, "ms", note=wall))
    return found

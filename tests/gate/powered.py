"""A process on a database of its own, whose power is cut by test_power_cut.py.

`act` has every kind of call asked, decided and run, and writes to the file EFFECTS what a person was told or a tool
did, at that moment. `again` is the start after the cut: the sweeper passes, and a person and a server try once more.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import django
from django.conf import settings

django.setup()

from django.contrib.auth.models import User  # noqa: E402

from hitlchat.gate import decide  # noqa: E402
from hitlchat.gate.decide import take_back  # noqa: E402
from hitlchat.gate.deciders import NotEntitled  # noqa: E402
from hitlchat.gate.grants import giving  # noqa: E402
from hitlchat.gate.grants.scope import Scope  # noqa: E402
from hitlchat.gate.models import Approval, Grant, Tool, ToolCall  # noqa: E402
from hitlchat.gate.settling import sweep  # noqa: E402
from hitlchat.gate.sources import ToolResult  # noqa: E402
from hitlchat.gate.status import Status  # noqa: E402
from tests.conftest import signed_in  # noqa: E402
from tests.gate.asking import approved, ask, recording, run, say_yes  # noqa: E402
from tests.gate.granting import HERE  # noqa: E402

EFFECTS: Final = Path(os.environ["EFFECTS"])


class MarkingSource:
    """Its effect is a line that says so."""

    async def execute(self, call: ToolCall) -> ToolResult:
        mark(call.pk.hex, "ran")
        return ToolResult(value="done")


def mark(key: str, what: str) -> None:
    with EFFECTS.open("a", encoding="ascii") as file:
        file.write(f"{key} {what}\n")


def act() -> None:
    bob = User.objects.get(username="bob")
    gated = recording(source="marking")
    call = ask(bob, gated)
    say_yes(bob, call)
    mark(call.pk.hex, "approved")
    run(call)
    _answered_otherwise(bob, gated)
    # Never asked about.
    run(ask(bob, recording("free", source="marking", mode="DISABLED")))
    _granted(bob, recording("sometimes", source="marking", mode="CONDITIONAL"))


def _answered_otherwise(bob: User, gated: Tool) -> None:
    call = ask(bob, gated)
    decide.decline(call.approval.pk, signed_in(bob))
    mark(call.pk.hex, "declined")
    call = approved(bob, gated)
    take_back(call.pk, signed_in(bob))
    mark(call.pk.hex, "withdrawn")


def _granted(bob: User, tool: Tool) -> None:
    call = ask(bob, tool, conversation_id=HERE)
    say_yes(bob, call, grant=Scope(calls=5))
    grant = Grant.objects.get(approval__call=call)
    run(ask(bob, tool, conversation_id=HERE))
    giving.revoke(grant.pk, signed_in(bob))
    mark(grant.pk.hex, "revoked")


def again() -> None:
    """All that could make a tool run, were it not known that it did."""
    sweep()
    for approval in Approval.objects.filter(call__status=Status.WAITING):
        with suppress(decide.AlreadySettled, NotEntitled):
            decide.approve(approval.pk, signed_in(approval.call.caller))
    for call in ToolCall.objects.all():
        run(call)


settings.TOOL_SOURCES = {"marking": "tests.gate.powered.MarkingSource"}
if __name__ == "__main__":
    {"act": act, "again": again}[sys.argv[1]]()
    # As it stands: a connection that is closed writes everything to the disk.
    os._exit(0)

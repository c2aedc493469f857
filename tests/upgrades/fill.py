"""Makes a filled installation with the code of one release, and packs it for the tests of upgrades.

    git worktree add /some/folder RELEASE
    cd /some/folder
    PYTHONPATH=. HITLCHAT_DATA=$(mktemp -d) .venv/bin/python THIS_FILE OUT.tar.gz

It runs on the release's own code, and so uses little of it: what changes its signature is adapted here, before the
release is packed. OUT belongs beside this file, named after the release.
"""

import gzip
import io
import os
import sqlite3
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tools_studio.spec import Draft

SECRET_KEY = "a key that only the tests of upgrades use, never a server"
POLICIES = '[{"policy": "amount_threshold", "tools": ["pay"], "argument": "amount", "limit": 10, "over": "refuse"}]'
ECHO = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'
BREAK = 'def run() -> str:\n    """Fail."""\n    raise ValueError("no such thing")\n'
PAY = 'def run(amount: int) -> str:\n    """Pay an amount."""\n    return f"paid {amount}"\n'
KEPT = ("record_key", "record_mark")


def main(out: Path) -> None:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "hitlchat.settings", "SECRET_KEY": SECRET_KEY, "HITL_POLICIES": POLICIES}
    import django  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415

    django.setup()
    call_command("migrate", verbosity=0)
    fill()
    pack(Path(os.environ["HITLCHAT_DATA"]), out)


def fill() -> None:
    from django.contrib.auth.models import Group, User  # noqa: PLC0415

    from hitlchat.accounts.models import Token  # noqa: PLC0415
    from hitlchat.record.sealing import seal_all  # noqa: PLC0415

    alice = User.objects.create_superuser("alice", email="alice@example.com", password=None)
    bob, carol = (User.objects.create_user(name, email=f"{name}@example.com") for name in ("bob", "carol"))
    Group.objects.create(name="finance").user_set.add(bob, carol)
    Token.objects.create(user=bob, kind="mcp", name="desk", digest="d" * 64)
    _make_tools(alice)
    _make_server(alice)
    _make_calls(bob)
    seal_all()
    _make_last_calls(bob)
    seal_all()


def _make_tools(alice: Any) -> None:
    from hitlchat.gate.actor import Actor  # noqa: PLC0415
    from hitlchat.gate.models import Tool  # noqa: PLC0415
    from tools_studio import authoring  # noqa: PLC0415

    drafts = {"echo": ECHO, "break_it": BREAK, "pay": PAY}
    for name, code in drafts.items():
        tool = authoring.create(
            Draft(name=name, code=code, hitl_mode="CONDITIONAL" if name == "echo" else "REQUIRED"),
            Actor(alice.pk, "console"),
        )
        Tool.objects.filter(pk=tool.pk).update(published=True)
    free = authoring.create(Draft(name="free", code=ECHO, hitl_mode="DISABLED"), Actor(alice.pk, "console"))
    Tool.objects.filter(pk=free.pk).update(published=True)


def _make_server(alice: Any) -> None:
    from hitlchat.upstreams.models import ComposedTool, UpstreamServer  # noqa: PLC0415

    server = UpstreamServer.objects.create(
        name="weather", transport="http", url="https://weather.example/mcp", state="down", created_by=alice
    )
    seen = {"name": "forecast", "description": "The weather", "inputSchema": {"type": "object"}}
    ComposedTool.objects.create(server=server, name="forecast", seen=seen, seen_digest="e" * 64, seen_profile="1")


class Turn:
    """One conversation with one run, whose calls are submitted through the gate."""

    def __init__(self, user: Any) -> None:
        from hitlchat.agent.models import Conversation, Message, Run  # noqa: PLC0415

        self.user = user
        self.conversation = Conversation.objects.create(owner=user, title="Say hello")
        self.turn_id = uuid4()
        run = Run.objects.create(conversation=self.conversation, status="done", turn_id=self.turn_id)
        Conversation.objects.filter(pk=self.conversation.pk).update(tip=run)
        for seq, (role, text) in enumerate((("user", "Say hello, please."), ("assistant", "Hello!"))):
            Message.objects.create(conversation=self.conversation, run=run, seq=seq, role=role, content=text)
        self.position = 0

    def submit(self, name: str, arguments: dict[str, Any] | str, **more: Any) -> Any:
        from asgiref.sync import async_to_sync  # noqa: PLC0415

        from hitlchat.gate.actor import Caller  # noqa: PLC0415
        from hitlchat.gate.submit import CallRequest, submit  # noqa: PLC0415

        self.position += 1
        place: dict[str, Any] = {
            "conversation_id": self.conversation.pk,
            "turn_id": self.turn_id,
            "position": self.position,
        }
        caller = Caller("chat", self.user.pk, self.user.get_username())
        return async_to_sync(submit)(CallRequest(name, arguments, caller, **place, **more))

    def end(self, call: Any) -> Any:
        from asgiref.sync import async_to_sync  # noqa: PLC0415

        from hitlchat.gate.settling import settled  # noqa: PLC0415

        return async_to_sync(settled)(call.pk, 30.0)


def _signed_in(user: Any) -> Any:
    from django.utils import timezone  # noqa: PLC0415

    from hitlchat.gate.actor import Actor  # noqa: PLC0415

    return Actor(user.pk, "session", signed_in_at=timezone.now())


def _make_calls(bob: Any) -> None:
    """Everything that came to its end: two of them on a grant, one with changes, one asked of nobody."""
    from hitlchat.gate import decide, stopping  # noqa: PLC0415
    from hitlchat.gate.grants.scope import Scope  # noqa: PLC0415

    turn, person = Turn(bob), _signed_in(bob)
    yes = turn.submit("echo", {"text": "granted"})
    decide.approve(yes.approval.pk, person, grant=Scope(same_arguments=True, calls=3))
    turn.end(yes)
    turn.end(turn.submit("echo", {"text": "granted"}))
    changed = turn.submit("echo", {"text": "one"})
    decide.approve(changed.approval.pk, person, edited={"text": "two"})
    turn.end(changed)
    failed = turn.submit("break_it", {})
    decide.approve(failed.approval.pk, person)
    turn.end(failed)
    decide.decline(turn.submit("pay", {"amount": 7}).approval.pk, person, reason="Not today.")
    turn.submit("pay", {"amount": 70})
    turn.submit("pay", {"amount": "much"})
    turn.end(turn.submit("free", {"text": "nobody asks"}))
    stopping.withdraw_call(turn.submit("echo", {"text": "gone"}).pk, actor=person, why="the person went away")
    turn.submit("echo", {"text": "late"}, patience=1)
    time.sleep(1.5)
    decide.expire_overdue()


def _make_last_calls(bob: Any) -> None:
    """One call in each state that is not the last, and one whose outcome nobody knows."""
    from asgiref.sync import async_to_sync  # noqa: PLC0415

    from hitlchat.gate import decide, perform  # noqa: PLC0415

    turn, person = Turn(bob), _signed_in(bob)
    with _nothing_begins():
        for text in ("lost", "executing"):
            call = turn.submit("pay", {"amount": len(text)})
            decide.approve(call.approval.pk, person)
            perform.claim(call.pk)
            if text == "lost":
                async_to_sync(perform.give_up)(call.pk, "the process that ran it ended")
        turn.submit("pay", {"amount": 1})
        decide.approve(turn.submit("pay", {"amount": 2}).approval.pk, person)
        turn.submit("free", {"text": "allowed"})


@contextmanager
def _nothing_begins() -> Iterator[None]:
    """As if the process had died between the yes and what follows."""
    from hitlchat.gate.transition import call_moved  # noqa: PLC0415

    receivers, call_moved.receivers = call_moved.receivers, []
    try:
        yield
    finally:
        call_moved.receivers = receivers


def pack(data: Path, out: Path) -> None:
    """Write the database as SQL, and the record's key beside it."""
    with closing(sqlite3.connect(data / "hitlchat.sqlite3")) as database:
        sql = "\n".join(database.iterdump()).encode()
    files = {"hitlchat.sql": sql} | {name: (data / name).read_bytes() for name in KEPT if (data / name).exists()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    out.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

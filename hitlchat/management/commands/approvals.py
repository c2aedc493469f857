"""`manage.py approvals`: what waits, its cards and its answers, without a browser."""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any, Final
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import QuerySet

from hitlchat.api import approvals as rest
from hitlchat.approvals.console import prompting, showing
from hitlchat.approvals.console.prompting import Desk, Ended, Overtaken, overtaken
from hitlchat.gate import decide, editing
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval
from hitlchat.gate.oversight import HIGHEST_RISK

MOST: Final = 1000
WATCHING: Final = "Waiting for calls. Press Ctrl+C to stop."
ONLY_SHOWN: Final = "Waiting for calls, to show only. To answer them, say who you are with --as. Press Ctrl+C to stop."
NO_TERMINAL: Final = (
    "Waiting for calls, to show only: answering needs a terminal, and this is not one. Press Ctrl+C to stop."
)
NOT_AT_A_TERMINAL: Final = (
    "Nothing was decided: this is not a terminal, so nobody can be asked. Read the output of `manage.py "
    "approvals show {id} --full`, and approve exactly that call with the --digest at its end."
)
STOPPED: Final = "Stopped. Unanswered calls are still waiting."


class Command(BaseCommand):
    help = "Answer waiting calls at the console. On failure, prints the reason and exits with code 1."
    # The other checks import every page.
    requires_system_checks = ("hitlchat",)

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_subparsers(dest="what", required=True)
        listed = what.add_parser("list", help="list waiting calls, most urgent first")
        _narrowed(listed)
        _printed(listed)
        listed.add_argument("--limit", type=_limit, default=50, help=f"show at most this many (up to {MOST:,})")
        shown = what.add_parser("show", help="show one call's card, or its outcome")
        shown.add_argument("approval", type=UUID)
        shown.add_argument("--full", action="store_true", help="with everything that is folded, and the raw JSON")
        shown.add_argument("--as", dest="person", metavar="USER", help="also show whether this person may answer")
        _printed(shown)
        approve = _answer(what.add_parser("approve", help="approve exactly this call, as a person"))
        approve.add_argument("--digest", help="the digest that `show` printed; without it, the card is shown first")
        approve.add_argument("--plain", action="store_true", help="no colours or boxes, one fact per line")
        decline = _answer(what.add_parser("decline", help="decline a call, as a person"))
        decline.add_argument("--reason", default="", help="why; the model is told")
        watched = what.add_parser("watch", help="wait for calls, show each, and ask for an answer")
        watched.add_argument(
            "--as", dest="person", metavar="USER", help="the person who answers; without it, calls are only shown"
        )
        _narrowed(watched)
        _printed(watched)
        extend = what.add_parser("extend", help="extend a deadline by five minutes, in its last minute")
        extend.add_argument("approval", type=UUID)
        extend.add_argument("--user", required=True, help="the username of the person who extends it")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            words = getattr(self, f"_{options['what']}")(**options)
        except prompting.REFUSALS as error:
            raise CommandError(prompting.refusal(error)) from error
        if words:
            self.stdout.write(words)

    def _list(self, *, limit: int, json: bool, plain: bool, **options: Any) -> str:
        rows = list(_waiting(**options)[: limit + 1])
        if json:
            return "\n".join(showing.dumped(showing.line(row)) for row in rows[:limit])
        return self._style(plain=plain).table(rows, limit)

    def _show(self, *, approval: UUID, full: bool, json: bool, plain: bool, person: str | None, **_: Any) -> str:
        found = showing.approval(approval)
        if json:
            whole = rest.approval(rest.with_all(Approval.objects.all()).get(pk=approval))
            return showing.dumped({**showing.line(found), **whole.model_dump(by_alias=True)})
        viewer = _actor(person) if person else None
        return self._style(plain=plain).text(showing.shown(found, viewer=viewer, full=full))

    def _approve(self, *, approval: UUID, person: str, digest: str | None, plain: bool, **_: Any) -> str:
        actor = _actor(person)
        if digest is not None:
            return prompting.approve(approval, actor, digest)
        found = showing.approval(approval)
        # Who may not, or comes too late, is told so before anything is shown.
        prompting.require(found, actor)
        if not self._is_terminal():
            raise CommandError(NOT_AT_A_TERMINAL.format(id=approval))
        try:
            return self._desk(actor, plain=plain).confirm(found)
        except Overtaken:
            raise CommandError(f"Nothing was decided by you. {overtaken(found)}") from None
        except (Ended, KeyboardInterrupt):
            raise CommandError("Nothing was decided.") from None

    def _decline(self, *, approval: UUID, person: str, reason: str, **_: Any) -> str:
        return prompting.decline(approval, _actor(person), reason)

    def _watch(self, *, json: bool, plain: bool, person: str | None, **options: Any) -> str:
        watch = prompting.Watch(lambda: _waiting(**options))
        try:
            while json:
                for event in watch.events():
                    self.stdout.write(showing.dumped(event))
                self.stdout.flush()
                time.sleep(prompting.LOOK_EVERY_SECONDS)
            self._attend(watch, person, plain=plain)
        except (Ended, KeyboardInterrupt):
            return "" if json else f"\n{STOPPED}"
        return ""

    def _attend(self, watch: prompting.Watch, person: str | None, *, plain: bool) -> None:
        """Ask, where there is somebody to ask; else show only."""
        desk = self._desk(_actor(person), plain=plain) if person and self._is_terminal() else None
        self.stdout.write(WATCHING if desk else NO_TERMINAL if person else ONLY_SHOWN)
        while True:
            found = watch.next()
            if found is None:
                (desk.rest if desk else time.sleep)(prompting.LOOK_EVERY_SECONDS)
            elif desk:
                self.stdout.write(f"{desk.decide(found)}\n")
            else:
                self.stdout.write(f"{self._style(plain=plain).text(showing.shown(found))}\n")
            self.stdout.flush()

    def _extend(self, *, approval: UUID, user: str, **_: Any) -> str:
        try:
            call = editing.extend(approval, _actor(user))
        except (decide.NoSuchApproval, decide.AlreadySettled, editing.NotNow) as error:
            raise CommandError(str(error)) from error
        return f"The new deadline is {call.deadline:%Y-%m-%d %H:%M:%S %Z}."

    def _is_terminal(self) -> bool:
        return sys.stdin.isatty() and self.stdout.isatty()

    def _style(self, *, plain: bool) -> showing.Style:
        return showing.Style(plain=plain, colours=self.stdout.isatty())

    def _desk(self, actor: Actor, *, plain: bool) -> Desk:
        def write(text: str) -> None:
            self.stdout.write(text, ending="")
            self.stdout.flush()

        return Desk(sys.stdin, write, actor, self._style(plain=plain))


def _waiting(*, whose: str | None, tool: str, risk: int, **_: Any) -> QuerySet[Approval]:
    return showing.waiting(showing.person(whose) if whose else None, tool=tool, risk=risk)


def _actor(name: str) -> Actor:
    return Actor(showing.person(name).pk, "console")


def _narrowed(parser: ArgumentParser) -> None:
    parser.add_argument("--for", dest="whose", metavar="USER", help="only calls that this person may answer")
    parser.add_argument("--tool", default="", metavar="NAME", help="only calls of this tool")
    parser.add_argument(
        "--risk", type=_risk, default=0, metavar="LEVEL", help="only calls of this risk or higher, such as L3"
    )


def _printed(parser: ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--plain", action="store_true", help="no colours or boxes, one fact per line")
    how.add_argument("--json", action="store_true", help="one JSON object per line, with the fields of the REST API")


def _answer(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("approval", type=UUID)
    parser.add_argument("--as", dest="person", metavar="USER", required=True, help="the person whose answer it is")
    return parser


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise ArgumentTypeError(f"expected a whole number from 1 to {MOST:,}")
    return int(text)


def _risk(text: str) -> int:
    level = text.upper().removeprefix("L")
    if not level.isascii() or not level.isdigit() or not 0 <= int(level) <= HIGHEST_RISK:
        raise ArgumentTypeError(f"expected a level from L0 to L{HIGHEST_RISK}")
    return int(level)

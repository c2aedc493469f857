"""`manage.py approvals`: what waits, its cards and its answers, without a browser."""

import sys
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitlchat.approvals.console import facts, prompting, showing
from hitlchat.approvals.console.prompting import Desk, Ended, Overtaken, Terminal, overtaken
from hitlchat.gate import decide, editing
from hitlchat.gate.actor import Actor

# Whoever can run commands here is the operator, and nobody in particular.
NOT_AT_A_TERMINAL = (
    "Nothing was decided: nobody can be asked here, since this is no terminal. Read what "
    "`manage.py approvals show {id} --full` says, and approve exactly that with the --digest at its end."
)
STOPPED = "Stopped. What was not answered waits on."


class Command(BaseCommand):
    help = "Questions that wait, at the console. Fails with exit code 1 and the reason."
    # The other checks import every page.
    requires_system_checks = ("hitlchat",)

    def add_arguments(self, parser: CommandParser) -> None:
        facts.add(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            told = getattr(self, f"_{options['what']}")(**options)
        except prompting.REFUSALS as error:
            raise CommandError(prompting.refusal(error)) from error
        if told:
            self.stdout.write(told)

    def _list(self, *, limit: int, json: bool, plain: bool, **options: Any) -> str:
        rows = list(self._waiting(**options)[: limit + 1])
        if json:
            return "\n".join(showing.dumped(showing.line(row)) for row in rows[:limit])
        return showing.told(rows, limit, self._style(plain=plain))

    def _show(self, *, approval: UUID, full: bool, json: bool, plain: bool, **options: Any) -> str:
        found = showing.approval(approval)
        if json:
            return showing.dumped(showing.whole(found))
        viewer = self._actor(options["person"]) if options["person"] else None
        return self._style(plain=plain).text(showing.shown(found, viewer=viewer, full=full))

    def _approve(self, *, approval: UUID, person: str, digest: str | None, plain: bool, **_: Any) -> str:
        actor = self._actor(person)
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
        return prompting.decline(approval, self._actor(person), reason)

    def _watch(self, *, json: bool, plain: bool, **options: Any) -> str:
        watch = prompting.Watch(lambda: self._waiting(**options))
        try:
            if json:
                self._report(watch)
            else:
                self._attend(watch, options["person"], plain=plain)
        except (Ended, KeyboardInterrupt):
            return "" if json else f"\n{STOPPED}"
        return ""

    def _report(self, watch: prompting.Watch) -> None:
        while True:
            for event in watch.events():
                self.stdout.write(showing.dumped(event))
            self.stdout.flush()
            prompting.rest()

    def _attend(self, watch: prompting.Watch, person: str | None, *, plain: bool) -> None:
        """Ask, where there is somebody to ask; else show only."""
        desk = self._desk(self._actor(person), plain=plain) if person and self._is_terminal() else None
        unasked = facts.NO_TERMINAL if person else facts.ONLY_SHOWN
        self.stdout.write(facts.WATCHING if desk else unasked)
        while True:
            found = watch.next()
            if found is None:
                (desk.terminal.rest if desk else prompting.rest)(prompting.LOOK_EVERY_SECONDS)
            elif desk:
                self.stdout.write(f"{desk.decide(found)}\n")
            else:
                self.stdout.write(f"{self._style(plain=plain).text(showing.shown(found))}\n")
            self.stdout.flush()

    def _extend(self, *, approval: UUID, user: str, **_: Any) -> str:
        try:
            call = editing.extend(approval, self._actor(user))
        except (decide.NoSuchApproval, decide.AlreadySettled, editing.NotNow) as error:
            raise CommandError(str(error)) from error
        return f"It can be answered until {call.deadline:%Y-%m-%d %H:%M:%S %Z}."

    def _waiting(self, *, whose: str | None, tool: str, risk: int, **_: Any) -> Any:
        who: User | None = showing.person(whose) if whose else None
        return showing.waiting(who, tool=tool, risk=risk)

    def _actor(self, name: str) -> Actor:
        return Actor(showing.person(name).pk, "console")

    def _is_terminal(self) -> bool:
        return sys.stdin.isatty() and self.stdout.isatty()

    def _style(self, *, plain: bool) -> showing.Style:
        return showing.Style(plain=plain, colours=self.stdout.isatty())

    def _desk(self, actor: Actor, *, plain: bool) -> Desk:
        def write(text: str) -> None:
            self.stdout.write(text, ending="")
            self.stdout.flush()

        return Desk(Terminal(sys.stdin, write), actor, self._style(plain=plain), write)

"""`manage.py approvals`: what waits, its cards and its answers, without a browser.

The person at the terminal is shown each question as it comes, and answers as themselves through the gate.
"""

import json
import select
import sys
import termios
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.db.models import QuerySet

from hitlchat.api import approvals as rest
from hitlchat.approvals import console
from hitlchat.approvals.console import must_unfold, one_line
from hitlchat.base.problems import Problem
from hitlchat.gate import decide, deciders, disclosure, editing, question
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import Looked
from hitlchat.gate.card import Card
from hitlchat.gate.models import Approval
from hitlchat.gate.oversight import HIGHEST_RISK
from hitlchat.gate.status import Status
from hitlchat.management.console import QuickCommand

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
SHORTEST_DIGEST: Final = 12
APPROVED: Final = "Approved. A server performs it within a few seconds."
COUNTED: Final = "Approved. The call runs once the others have approved it too."
DECLINED: Final = "Declined. It does not run."
OTHER_DIGEST: Final = "The digest does not belong to the waiting call. Show the call again and read what it says now."
YES_OR_LEAVE: Final = 'Type "approve" to run the call, anything else to leave it: '
READ_IT: Final = 'A second model cautions, above. Type "read" if you have read it, anything else to leave the call: '
WHAT: Final = 'Type "approve", "change", "decline" or "later": '
CHANGED: Final = "The arguments as they should be, as JSON on one line (Enter to leave them): "
ONLY_ANSWERED: Final = "A question to the person is answered in the chat or the inbox, not at the console."
WHY: Final = "Reason, for the model to read (Enter for none): "
LEFT: Final = "Nothing was decided. The call is still waiting."
NEITHER: Final = "Nothing was decided: type one of the four words."
# What is typed within it was meant for something else (SR-39).
TOO_SOON_SECONDS: Final = 0.4
LOOK_AGAIN_SECONDS: Final = 1.0
LONGEST_LINE: Final = 4096
LOOK_EVERY_SECONDS: Final = 1.5
REFUSALS: Final = (Problem, console.NobodyNamed)

Write = Callable[[str], None]
# An approval, and the round in which it is asked.
Key = tuple[UUID, int]


class Ended(Exception):
    """Nobody is at the terminal any more: it was closed, or ended by Ctrl-D."""


class Overtaken(Exception):
    """The call that the person was asked about has its outcome already."""


class Desk:
    """A person at a terminal. Nothing is read ahead, so that what was typed too soon can be thrown away."""

    def __init__(self, stdin: IO[str], write: Write, actor: Actor, style: console.Style) -> None:
        self._file = stdin.fileno()
        self._read = stdin.buffer.raw.read  # type: ignore[attr-defined]
        self._write, self._actor, self._style = write, actor, style

    def confirm(self, found: Approval, edited: str | None, reason: str) -> str:
        """Show the card, with `edited` arguments if there are any, and have it approved, or left.

        Raises: what `require` raises, BadEdit, Ended, Overtaken.
        """
        card = self._show(found)
        if edited is not None:
            return self._changed(found, card, edited, reason)
        if self._ask(YES_OR_LEAVE, card) != "approve" or not self._has_read(card):
            return LEFT
        return approve(found.pk, self._actor, card.digest, reason=reason, caution_read=card.takes_tick)

    def decide(self, found: Approval) -> str:
        """Show the card and have it approved, declined, or left for later."""
        card = self._show(found)
        try:
            while (typed := self._ask(WHAT, card)) not in ("approve", "change", "decline", "later"):
                self._write(f"{NEITHER}\n")
            if typed == "change":
                return self._change(found, card)
            if typed == "later":
                return LEFT
            if typed == "approve" and not self._has_read(card):
                return LEFT
            if typed == "approve":
                return approve(found.pk, self._actor, card.digest, caution_read=card.takes_tick)
            return decline(found.pk, self._actor, self._reason(card))
        except Overtaken:
            return f"\n{overtaken(found)}"
        except REFUSALS as error:
            return refusal(error)

    def rest(self, seconds: float) -> None:
        """Wait so long; Ended if the terminal ends meanwhile. What is typed counts for nothing."""
        if select.select([self._file], [], [], seconds)[0] and not self._read(LONGEST_LINE):
            raise Ended

    def _show(self, found: Approval) -> Card:
        card = console.card_of(found, self._actor)
        facts = console.presented(found, card, viewer=self._actor, full=must_unfold(card))
        self._write(f"{self._style.text(facts)}\n")
        # What is typed until a moment after the card appeared is forgotten.
        time.sleep(TOO_SOON_SECONDS)
        termios.tcflush(self._file, termios.TCIFLUSH)
        return card

    def _ask(self, question: str, card: Card) -> str:
        """Return the line that is typed in answer.

        Raises: Ended; Overtaken within a second of the question being no longer the one on the card.
        """
        self._write(question)
        while not select.select([self._file], [], [], LOOK_AGAIN_SECONDS)[0]:
            rows = Approval.objects.filter(pk=card.id, digest=card.digest, call__status=Status.WAITING)
            if not rows.filter(call__round=card.round).exists():
                raise Overtaken
        # A terminal gives one line at a time, and nothing at its end.
        typed: bytes = self._read(LONGEST_LINE) or b""
        if not typed.endswith(b"\n"):
            raise Ended
        return typed.decode(errors="replace").strip()

    def _change(self, found: Approval, card: Card) -> str:
        while typed := self._ask(CHANGED, card):
            try:
                return self._changed(found, card, typed)
            except decide.BadEdit as error:
                self._write(f"{one_line(str(error))}\n")
        return LEFT

    def _changed(self, found: Approval, card: Card, edited: str, reason: str = "") -> str:
        """Show what changed arguments mean, and have the call approved with them, or left."""
        shown = editing.review(found, _edited(found, edited))
        self._write(f"{self._style.text(console.changed(shown))}\n")
        if not shown.changes or self._ask(YES_OR_LEAVE, card) != "approve" or not self._has_read(card):
            return LEFT
        yes = {"edited": shown.arguments, "shown": shown.digest, "reason": reason}
        looked = Looked(caution_read=card.takes_tick)
        return _outcome(editing.approve(found.pk, self._actor, digest=card.digest, looked=looked, **yes))

    def _has_read(self, card: Card) -> bool:
        """Return whether the person has read the caution that a yes takes a tick for, if there is one."""
        return not card.takes_tick or self._ask(READ_IT, card) == "read"

    def _reason(self, card: Card) -> str:
        while True:
            try:
                return decide.checked_reason(self._ask(WHY, card))
            except decide.BadReason as error:
                self._write(f"{error}\n")


@dataclass
class Watch:
    """What waits among `rows`, a query, of which nothing is reported twice."""

    rows: Callable[[], QuerySet[Approval]]
    seen: set[Key] = field(default_factory=set)

    def next(self) -> Approval | None:
        """Return the most urgent question that was not reported; None while there is none."""
        key = next((each for each in self._waiting() if each not in self.seen), None)
        if key is None:
            return None
        self.seen.add(key)
        return console.approval(key[0])

    def events(self) -> Iterator[dict[str, object]]:
        """Yield what began and what ended to wait since the last call, as JSON objects."""
        now = set(self._waiting())
        rows = Approval.objects.select_related("call__caller").defer(*console.LARGE)
        found = rows.in_bulk([pk for pk, _ in self.seen ^ now])
        for pk, round_ in sorted(self.seen - now):
            call = found[pk].call
            line = _line(found[pk])
            # Where it still waits, either the round is over, or the call waits for other people.
            still = "again" if call.round > round_ else "others"
            yield {"event": still if call.status == Status.WAITING else line["status"], **line}
        for pk, _ in sorted(now - self.seen):
            yield {"event": "waiting", **_line(found[pk])}
        self.seen = now

    def _waiting(self) -> Iterator[Key]:
        return self.rows().values_list("pk", "call__round").iterator()


class Command(QuickCommand):
    help = "Answer waiting calls at the console. On failure, prints the reason and exits with code 1."

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
        approve.add_argument("--arguments", metavar="JSON", help="approve the call with these arguments instead")
        approve.add_argument("--reason", default="", help="what the model is told beside the result")
        approve.add_argument(
            "--caution-read", action="store_true", help="with --digest: the caution of a second model was read"
        )
        approve.add_argument("--plain", action="store_true", help="no colors or boxes, one fact per line")
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
        except REFUSALS as error:
            raise CommandError(refusal(error)) from error
        if words:
            self.stdout.write(words)

    def _list(self, *, limit: int, json: bool, plain: bool, **options: Any) -> str:
        rows = list(console.waiting(**options)[: limit + 1])
        if json:
            return "\n".join(_dumped(_line(row)) for row in rows[:limit])
        return self._style(plain=plain).table(rows, limit)

    def _show(self, *, approval: UUID, full: bool, json: bool, plain: bool, person: str | None, **_: Any) -> str:
        found = console.approval(approval)
        if json:
            whole = rest.approval(rest.with_all(Approval.objects.all()).get(pk=approval))
            return _dumped({**_line(found), **whole.model_dump(by_alias=True)})
        viewer = _actor(person) if person else None
        return self._style(plain=plain).text(console.shown(found, viewer=viewer, full=full))

    def _approve(
        self,
        *,
        approval: UUID,
        person: str,
        digest: str | None,
        arguments: str | None,
        reason: str,
        caution_read: bool,
        plain: bool,
        **_: Any,
    ) -> str:
        actor, reason = _actor(person), decide.checked_reason(reason)
        if digest is not None:
            return approve(approval, actor, digest, edited=arguments, reason=reason, caution_read=caution_read)
        found = console.approval(approval)
        # Who may not, or comes too late, is told so before anything is shown.
        require(found, actor)
        if not self._is_terminal():
            raise CommandError(NOT_AT_A_TERMINAL.format(id=approval))
        try:
            return self._desk(actor, plain=plain).confirm(found, arguments, reason)
        except Overtaken:
            raise CommandError(f"Nothing was decided by you. {overtaken(found)}") from None
        except (Ended, KeyboardInterrupt):
            raise CommandError("Nothing was decided.") from None

    def _decline(self, *, approval: UUID, person: str, reason: str, **_: Any) -> str:
        return decline(approval, _actor(person), reason)

    def _watch(self, *, json: bool, plain: bool, person: str | None, **options: Any) -> str:
        watch = Watch(lambda: console.waiting(**options))
        try:
            while json:
                for event in watch.events():
                    self.stdout.write(_dumped(event))
                self.stdout.flush()
                time.sleep(LOOK_EVERY_SECONDS)
            self._attend(watch, person, plain=plain)
        except (Ended, KeyboardInterrupt):
            return "" if json else f"\n{STOPPED}"
        return ""

    def _attend(self, watch: Watch, person: str | None, *, plain: bool) -> None:
        """Ask, where there is somebody to ask; else show only."""
        desk = self._desk(_actor(person), plain=plain) if person and self._is_terminal() else None
        self.stdout.write(WATCHING if desk else NO_TERMINAL if person else ONLY_SHOWN)
        while True:
            found = watch.next()
            if found is None:
                (desk.rest if desk else time.sleep)(LOOK_EVERY_SECONDS)
            elif desk:
                self.stdout.write(f"{desk.decide(found)}\n")
            else:
                self.stdout.write(f"{self._style(plain=plain).text(console.shown(found))}\n")
            self.stdout.flush()

    def _extend(self, *, approval: UUID, user: str, **_: Any) -> str:
        try:
            call = editing.extend(approval, _actor(user))
        except (decide.NoSuchApproval, decide.AlreadySettled, editing.NotNow) as error:
            raise CommandError(str(error)) from error
        return f"The new deadline is {call.deadline:%Y-%m-%d %H:%M:%S %Z}."

    def _is_terminal(self) -> bool:
        return sys.stdin.isatty() and self.stdout.isatty()

    def _style(self, *, plain: bool) -> console.Style:
        return console.Style(plain=plain, colours=self.stdout.isatty())

    def _desk(self, actor: Actor, *, plain: bool) -> Desk:
        def write(text: str) -> None:
            self.stdout.write(text, ending="")
            self.stdout.flush()

        return Desk(sys.stdin, write, actor, self._style(plain=plain))


def approve(
    approval_id: UUID,
    actor: Actor,
    digest: str,
    *,
    edited: str | None = None,
    reason: str = "",
    caution_read: bool = False,
) -> str:
    """Say yes to the call with this consent digest, whole or its first 12 characters or more, or to it with `edited`
    arguments; what comes of it, in words. What decide.py raises.
    """
    found = console.approval(approval_id)
    matches = len(digest) >= SHORTEST_DIGEST and found.digest.startswith(digest.lower())
    # Whoever may not see it, or comes too late, is told that and not what is right or wrong about a digest.
    if not matches and deciders.sees(actor, found) and found.call.status == Status.WAITING:
        raise decide.OtherDigest(OTHER_DIGEST)
    if edited is not None:
        require(found, actor)
    arguments = None if edited is None else _edited(found, edited)
    given = found.digest if matches else digest
    looked = Looked(caution_read=caution_read)
    return _outcome(decide.approve(approval_id, actor, digest=given, edited=arguments, reason=reason, looked=looked))


def _edited(found: Approval, text: str) -> dict[str, Any]:
    """Return changed arguments, written as JSON. Raises: BadEdit"""
    if question.is_one(found.call):
        raise decide.BadEdit(ONLY_ANSWERED)
    return editing.read(text)


def _outcome(decided: Approval) -> str:
    return COUNTED if decided.call.status == Status.WAITING else APPROVED


def decline(approval_id: UUID, actor: Actor, reason: str) -> str:
    """Say no; what comes of it, in words. What decide.py raises, BadReason."""
    decide.decline(approval_id, actor, reason=decide.checked_reason(reason))
    return DECLINED


def require(found: Approval, actor: Actor) -> None:
    """Require that a yes of `actor` would count as things are. Raises: what decide.py raises."""
    if not deciders.sees(actor, found):
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    if found.call.status != Status.WAITING:
        raise decide.AlreadySettled(found.call)
    decide.require(actor, found)
    deciders.require(actor, found)


def refusal(error: Exception) -> str:
    """Return why an answer did not count; of one that came too late also who decided, and how."""
    if isinstance(error, decide.AlreadySettled):
        settled = Approval.objects.select_related("call").get(call=error.call)
        return f"{error} Your answer was not recorded. {console.sentence(settled)}"
    return f"{one_line(str(error))} Nothing was decided."


def overtaken(found: Approval) -> str:
    """Return what became of a question that its person was about to answer."""
    now = console.approval(found.pk)
    if now.call.status == Status.WAITING:
        return "The call needs approval again, and will be shown again."
    return f"This call already has its outcome. {console.sentence(now)}"


def _dumped(value: Any) -> str:
    text = json.dumps(value, default=lambda each: each.isoformat() if isinstance(each, datetime) else str(each))
    return console.printable(text.replace("\x7f", "\\u007f"))


def _line(row: Approval) -> dict[str, Any]:
    """Return an approval under the names of the REST API, without what takes long to read."""
    assert row.call.deadline is not None
    return {
        "id": str(row.pk),
        "callId": str(row.call_id),
        "toolName": row.call.tool_name,
        "source": row.call.source,
        "requestedAt": row.created_at.isoformat(),
        "deadline": row.call.deadline.isoformat(),
        "riskLevel": disclosure.shown_risk(row),
        "caller": row.call.caller_kind,
        "requester": row.call.caller.get_username(),
        "status": rest.QUESTION_ENDS.get(row.call.status, "approved"),
        "quorum": row.call.quorum,
        "callStatus": row.call.status,
    }


def _actor(name: str) -> Actor:
    return Actor(console.person(name).pk, "console")


def _narrowed(parser: ArgumentParser) -> None:
    parser.add_argument("--for", dest="whose", metavar="USER", help="only calls that this person may answer")
    parser.add_argument("--tool", default="", metavar="NAME", help="only calls to this tool")
    parser.add_argument(
        "--risk", type=_risk, default=0, metavar="LEVEL", help="only calls of this risk or higher, such as L3"
    )


def _printed(parser: ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--plain", action="store_true", help="no colors or boxes, one fact per line")
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

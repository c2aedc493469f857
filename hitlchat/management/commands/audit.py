"""`manage.py audit verify|seal|export|receipt|check|retain|key|rotate`: the record, and whether it is what it was."""

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from hitlchat.base import moments
from hitlchat.gate.actor import CONSOLE
from hitlchat.management.console import ConsoleCommand
from hitlchat.record import exporting, keys, report, sealing
from hitlchat.record.checking import check, checked_words
from hitlchat.record.proofs import spaced, unspaced
from hitlchat.record.report import plural
from hitlchat.record.sealing import BadMark
from hitlchat.record.verifying import verify

Style = Literal["rich", "plain", "json"]


class Command(ConsoleCommand):
    help = "Verify, export and check the record. Exits with code 1 if the record was changed."
    # Checking a file needs none of what they look at.
    requires_system_checks = ()
    failures = (keys.BadKey, keys.OtherKey, BadMark, exporting.NothingThere)

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="what", required=True)
        walk = actions.add_parser("verify", help="check every event and seal, and name the first that is wrong")
        walk.add_argument("--expect", default="", help="the hash of a seal, noted earlier, that must be in the record")
        walk.add_argument("--key", default="", help="the fingerprint of the record's key, as you noted it")
        actions.add_parser("seal", help="seal new events now; a running server does so automatically")
        whole = actions.add_parser("export", help="write a signed file that “check” verifies without the database")
        whole.add_argument(
            "--from",
            dest="since",
            type=partial(_time, of_day=moments.beginning),
            help="a day or time, such as 2026-01-31",
        )
        whole.add_argument(
            "--to", dest="until", type=partial(_time, of_day=moments.end), help="a day (to its end) or a time"
        )
        whole.add_argument("file", type=Path)
        one = actions.add_parser("receipt", help="write the record of one call to a file")
        one.add_argument("call", type=UUID)
        one.add_argument("file", type=Path)
        look = actions.add_parser("check", help="check an exported file; needs no database")
        look.add_argument("file", type=Path)
        look.add_argument("--key", default="", help="the fingerprint of the key, as you noted it")
        drop = actions.add_parser("retain", help="drop events of batches older than HITL_RECORD_DAYS; the seals stay")
        drop.add_argument("--days", type=int, help="instead of HITL_RECORD_DAYS")
        actions.add_parser("key", help="print the fingerprint of the key; note it where nobody can change it")
        fresh = actions.add_parser("rotate", help="create a new key, signed by the old one")
        fresh.add_argument("--to", type=Path, help="a new file for the key, if HITL_RECORD_KEY is set")
        fresh.add_argument("--lost", action="store_true", help="the old key is lost and cannot sign the new one")
        for each in (walk, look):
            style = each.add_mutually_exclusive_group()
            how: dict[str, Any] = {"dest": "style", "action": "store_const"}
            style.add_argument("--plain", const="plain", default="rich", help="no colors or boxes", **how)
            style.add_argument("--json", const="json", help="one JSON object", **how)

    def concerns_servers(self, **options: Any) -> bool:
        # A file is checked without the database.
        return bool(options["what"] != "check")

    def handle(self, *args: Any, what: str, **options: Any) -> str:
        try:
            return str(getattr(self, f"_{what}")(options))
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error

    def _verify(self, options: dict[str, Any]) -> str:
        found = verify(key=unspaced(options["key"]), seal=unspaced(options["expect"]))
        return self._end(report.words(found), found.as_json, good=found.is_whole, style=options["style"])

    def _check(self, options: dict[str, Any]) -> str:
        noted = unspaced(options["key"])
        with options["file"].open("rb") as lines:
            found = check(lines, noted)
        facts = {"genuine": found.is_genuine, **asdict(found)}
        return self._end(checked_words(found, noted), facts, good=found.is_genuine, style=options["style"])

    def _end(self, lines: Iterable[str], facts: dict[str, Any], *, good: bool, style: Style) -> str:
        text = json.dumps(facts, indent=2) if style == "json" else self._styled(lines, style, good=good)
        if good:
            return text
        if style == "json":
            self.stdout.write(text)
            raise CommandError("The record was changed.", returncode=1)
        raise CommandError(text, returncode=1)

    def _styled(self, lines: Iterable[str], style: Style, *, good: bool) -> str:
        if style == "plain":
            return "\n".join(lines)
        mark = self.style.SUCCESS("✓") if good else self.style.ERROR("✗")
        return f"{mark} " + "\n  ".join(lines)

    def _seal(self, _: dict[str, Any]) -> str:
        return f"Sealed: {plural(sealing.seal_all(), 'new batch', 'new batches')}."

    def _export(self, options: dict[str, Any]) -> str:
        since, until = options["since"], options["until"]
        return _written(exporting.export(options["file"], CONSOLE, since=since, until=until), options["file"])

    def _receipt(self, options: dict[str, Any]) -> str:
        return _written(exporting.receipt(options["file"], options["call"], CONSOLE), options["file"])

    def _retain(self, options: dict[str, Any]) -> str:
        days = settings.HITL_RECORD_DAYS if options["days"] is None else options["days"]
        if days < 1:
            raise CommandError("HITL_RECORD_DAYS is not set, so the record is kept forever. Set it, or pass --days.")
        dropped = sealing.drop(days, CONSOLE)
        return f"Dropped {plural(dropped, 'batch', 'batches')} sealed more than {plural(days, 'day')} ago."

    def _key(self, options: dict[str, Any]) -> str:
        key, own = keys.current(), keys.own_fingerprint()
        if key is None and own is None:
            raise CommandError("Nothing has been sealed yet: the server creates a key when it first starts.")
        if key is not None and own != key.pk:
            mine = f"has {spaced(own)}" if own else "has none"
            raise CommandError(f"The record is sealed with {spaced(key.pk)}\nThis process {mine}")
        return spaced(own or "")

    def _rotate(self, options: dict[str, Any]) -> str:
        # Up to now with the old key.
        if not options["lost"]:
            sealing.seal_all()
        to = options["to"]
        if settings.HITL_RECORD_KEY and to is None:
            raise CommandError("HITL_RECORD_KEY is set: name a new file for the new key with --to.")
        made = keys.rotate(to or keys.file().with_name("record_key.new"), CONSOLE, lost=options["lost"])
        if to is None:
            keys.put_in_place()
            sealing.seal_all()
            return f"From now on the record is sealed with {spaced(made.pk)}\nNote it elsewhere."
        return f"The record is sealed with {spaced(made.pk)}\nSet HITL_RECORD_KEY to {to} for every process."


def _written(counts: dict[str, int], to: Path) -> str:
    found = exporting.first_line(to)["found"]
    warning = f"The record was changed: “audit verify” reports {plural(found, 'problem')}.\n" if found else ""
    return f"{warning}{to}: {plural(counts['events'], 'event')}, {plural(counts['receipts'], 'receipt')}."


def _time(text: str, of_day: Callable[[date], datetime]) -> datetime:
    if (found := moments.read(text, of_day, zoned=False)) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a day nor a time; expected one such as 2026-01-31")
    return found

"""`manage.py policy list`, `policy simulate` and `policy replay`: the rules without a browser."""

import argparse
import json
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser
from pydantic.alias_generators import to_camel

from hitlchat.gate import replay, simulation
from hitlchat.gate.draft import BadDraft
from hitlchat.gate.draft import read as read_draft
from hitlchat.gate.policies.bundled import KINDS
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.simulation import lines
from hitlchat.gate.tools import listed
from hitlchat.management.console import QuickCommand


class Command(QuickCommand):
    help = "Show the rules in force, simulate a call, or replay recorded calls under other rules."
    failures = (BadDraft, BadArguments, replay.TooSlow, simulation.NoSuchTool)

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="list the rules in force, strictest first")
        listing.add_argument("--json", action="store_true", help="one JSON list")
        made_up = actions.add_parser(
            "simulate", help="show how the rules would judge a call; nothing runs and nothing is recorded"
        )
        made_up.add_argument("tool")
        made_up.add_argument("arguments", help="a JSON object", nargs="?", default="{}")
        made_up.add_argument("--user", help="a username; by default the first administrator")
        made_up.add_argument("--caller", choices=[*KINDS], default="chat", help="where the call comes from")
        made_up.add_argument("--args-from-outside", action="store_true", help="as if a value came from outside")
        made_up.add_argument("--json", action="store_true", help="one JSON object")
        again = actions.add_parser(
            "replay", help="show how rules would have judged the recorded calls; nothing runs and nothing is recorded"
        )
        again.add_argument("--draft", type=Path, metavar="FILE", help="JSON; by default, the rules in force")
        again.add_argument("--days", type=_days, default=replay.USUAL_DAYS, help="only calls of the last days")
        again.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        getattr(self, f"_{action}")(**options)

    def _list(self, **options: Any) -> None:
        found = lines(listed().filter(published=True))
        if options["json"]:
            rows = [{"verdict": e.strongest, "rule": e.sentence, "source": e.where, "tools": [*e.tools]} for e in found]
            self.stdout.write(json.dumps(rows, indent=2))
            return
        for line in found:
            self.stdout.write(f"{line.strongest:7} {_plain(line.sentence)} [{line.where}]")
            if line.tools:
                self.stdout.write(f"        {', '.join(line.tools)}")

    def _simulate(self, *, tool: str, arguments: str, user: str | None, caller: str, **options: Any) -> None:
        wanted = {"is_superuser": True, "is_active": True} if user is None else {"username": user}
        person = User.objects.filter(**wanted).order_by("pk").first()
        if person is None:
            nobody = "There is no administrator: name a user with --user."
            raise CommandError(nobody if user is None else f"There is no user named {user!r}.")
        outside, judge = options["args_from_outside"], async_to_sync(simulation.simulate)
        found = judge(tool, arguments, person, caller, args_from_outside=outside)
        if options["json"]:
            rules = [rule.as_json for rule in found.spoke]
            self.stdout.write(json.dumps({"verdict": found.verdict, "reason": found.reason, "rules": rules}, indent=2))
            return
        self.stdout.write(f"{found.verdict}: {_plain(found.reason)}")
        for rule in found.spoke:
            self.stdout.write(f"  {rule.verdict:7} {_plain(rule.reason)} [{rule.policy}, {rule.source}]")

    def _replay(self, *, draft: Path | None, days: int, **options: Any) -> None:
        try:
            given = json.loads(draft.read_text(encoding="utf-8")) if draft else {}
        except (OSError, ValueError) as error:
            raise CommandError(f"{draft} cannot be read as JSON: {error}") from error
        found = replay.replay(read_draft(given, trusted=True), days)
        if options["json"]:
            outcome = {to_camel(name): each for name, each in vars(found).items()}
            self.stdout.write(json.dumps(outcome, indent=2, default=str))
            return
        why = _plain(f", the latest: {found.error}") if found.error else ""
        ids, saved = found.would_have_run_though_declined, found.questions_saved
        self.stdout.write(
            f"{found.calls} calls of {days} days: {found.allowed} run, {found.asked} ask, {found.refused} refused\n"
            f"{found.declined_that_would_have_run} were declined, and would have run{':' if ids else ''}"
        )
        self.stdout.write("".join(f"  {call_id}\n" for call_id in ids), ending="")
        self.stdout.write(
            f"{saved} of {found.asked_before} questions saved ({found.seconds_saved} seconds), "
            f"{found.questions_added} added\n"
            f"{found.errors} calls about which a rule gave no answer{why}\n"
            f"{found.gone} calls of deleted tools were not judged"
        )


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= replay.MOST_DAYS:
        raise argparse.ArgumentTypeError(f"expected a number of days from 1 to {replay.MOST_DAYS}")
    return int(text)


def _plain(text: str) -> str:
    """Return a text on one line, without what a terminal would act on."""
    return "".join(letter if letter.isprintable() else " " for letter in text)

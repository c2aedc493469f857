"""`manage.py doctor`: what weakens this installation, and what is broken."""

import json
import logging
from collections import Counter
from dataclasses import asdict
from textwrap import fill
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from hitlchat import doctor
from hitlchat.base.visible import see
from hitlchat.doctor import Diagnosis

WIDTH = 110
INDENT = " " * 8


class Command(BaseCommand):
    help = "Examine settings, sandbox, database, record and surroundings. Exits with code 1 if something is broken."
    # They are among what is looked at.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one list, with “check”, “state”, “found”, “advice”")

    def handle(self, *args: Any, **options: Any) -> None:
        # What libraries log of failures is in the findings.
        logging.disable(logging.CRITICAL)
        try:
            # Each check connects by itself, and knows soon: a pool tries for ten seconds and hides why.
            for database in connections.settings.values():
                if database["ENGINE"].endswith("postgresql"):
                    database["OPTIONS"] = {"connect_timeout": doctor.NETWORK_SECONDS}
            found = list(doctor.examine())
        finally:
            logging.disable(logging.NOTSET)
        if options["json"]:
            self.stdout.write(json.dumps([asdict(each) for each in found], indent=2))
        else:
            for each in found:
                self._print(each)
            counts = Counter(each.state for each in found)
            self.stdout.write(f"\n{counts['ok']} ok, {counts['weak']} weak, {counts['broken']} broken")
        if any(each.state == "broken" for each in found):
            raise SystemExit(1)

    def _print(self, found: Diagnosis) -> None:
        style = {"ok": self.style.SUCCESS, "weak": self.style.WARNING, "broken": self.style.ERROR}[found.state]
        # Padded before it is coloured, since colours have a width for `format`.
        self.stdout.write(f"{style(f'{found.state:7}')} {found.check}")
        for text, mark in ((found.found, ""), (found.advice, "→ ")):
            if text:
                words = see(" ".join(text.split())).plain
                self.stdout.write(fill(words, WIDTH, initial_indent=INDENT + mark, subsequent_indent=INDENT))

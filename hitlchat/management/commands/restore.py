from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from hitlchat.backup import BackupFault, archive
from hitlchat.backup.archive import Manifest
from hitlchat.backup.encryption import read_passphrase
from hitlchat.backup.restoring import check, restore
from hitlchat.record.keys import BadKey
from hitlchat.record.report import plural
from hitlchat.record.sealing import BadMark


class Command(BaseCommand):
    help = "Restore a backup into an empty database and an empty data folder; whole, or not at all."
    # They look at a database that is not there yet.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a file that backup wrote")
        parser.add_argument("--check", action="store_true", help="read and check the whole file, and restore nothing")
        parser.add_argument(
            "--passphrase-file", type=Path, help="the first line is the passphrase; else it is asked for"
        )
        parser.add_argument(
            "--with-findings", action="store_true", help="restore although the record in the backup is not whole"
        )

    def handle(self, *args: Any, **options: Any) -> str:
        file = options["file"]
        try:
            is_encrypted = archive.is_encrypted(file)
            phrase = read_passphrase(options["passphrase_file"], is_new=False) if is_encrypted else None
            if options["check"]:
                return f"The backup is whole, and this version can restore it: {_about(check(file, phrase))}"
            done = restore(file, phrase, accept_findings=options["with_findings"])
        except (BackupFault, BadKey, BadMark) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{error.filename or file}: {error.strerror or error}. Nothing was restored.") from error
        except DatabaseError as error:
            raise CommandError(f"The database refused the backup, so nothing was restored: {error}") from error
        for finding in done.findings:
            self.stderr.write(f"Finding: {finding.words}")
        for warning in done.warnings:
            self.stderr.write(f"Warning: {warning}")
        ended = (
            (done.withdrawn, "Withdrawn, since they may have run after the backup was made", "call"),
            (done.revoked, "Revoked, since they may have been after the backup was made", "grant"),
        )
        lines = (f"{words}: {plural(count, noun)}." for count, words, noun in ended if count)
        return "\n".join([f"Restored {_about(done.manifest)}", *lines])


def _about(manifest: Manifest) -> str:
    rows, tables = sum(manifest.counts.values()), len(manifest.counts)
    return (
        f"{plural(rows, 'row')} in {plural(tables, 'table')}, "
        f"of hitlchat {manifest.version}, made at {manifest.made_at:%Y-%m-%d %H:%M} UTC."
    )

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from hitlchat.backup import BackupFault, BadPassphrase
from hitlchat.backup.encryption import read_passphrase
from hitlchat.backup.making import make
from hitlchat.management.console import ConsoleCommand
from hitlchat.record.report import plural


class Command(ConsoleCommand):
    help = "Write a backup of the database and the data folder to one file, while the server runs."
    # A backup may be what somebody needs to repair what they complain about.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the backup to write")
        parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
        parser.add_argument("--encrypt", action="store_true", help="encrypt it to a passphrase, which is asked for")
        parser.add_argument("--passphrase-file", type=Path, help="encrypt it to the first line of this file")

    def handle(self, *args: Any, **options: Any) -> str:
        file, phrase_file = options["file"].absolute(), options["passphrase_file"]
        try:
            wanted = options["encrypt"] or phrase_file is not None
            phrase = read_passphrase(phrase_file, is_new=True) if wanted else None
            if wanted and phrase is None:
                raise BadPassphrase("There is no terminal to ask for a passphrase. Pass --passphrase-file.")
            made = make(file, phrase, overwrite=options["overwrite"])
        except BackupFault as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{error.filename or file}: {error.strerror or error}") from error
        if made.missing:
            self.stderr.write(f"{plural(made.missing, 'attachment')} in the database has no file, also not here.")
        if made.left_out:
            self.stderr.write(f"Not in the backup: {plural(made.left_out, 'link')} below the data folder.")
        if made.others:
            self.stderr.write(f"Not in the backup: tables of no installed app ({', '.join(made.others)}).")
        rows, tables = sum(made.manifest.counts.values()), len(made.manifest.counts)
        kind = "not encrypted" if phrase is None else "encrypted"
        return (
            f"{file}: {plural(rows, 'row')} in {plural(tables, 'table')}, {plural(made.files, 'file')}; "
            f"{made.size / 2**20:,.1f} MiB, {kind}."
        )

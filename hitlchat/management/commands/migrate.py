"""Django's `migrate`, which first says what to do with a database that is too old or too new for it."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from hitlchat.health import too_new, unfinished
from hitlchat.management.console import ConsoleCommand


class Command(ConsoleCommand, migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        applied = {*MigrationRecorder(connections[options["database"]]).applied_migrations()}
        if sentence := too_new(applied) or unfinished(applied):
            raise CommandError(sentence)
        super().handle(*args, **options)

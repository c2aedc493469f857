"""Django's `migrate`, which first says what to do with a database that is too old for it."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from hitlchat.health import unfinished


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        applied = MigrationRecorder(connections[options["database"]]).applied_migrations()
        if sentence := unfinished({*applied}):
            raise CommandError(sentence)
        super().handle(*args, **options)

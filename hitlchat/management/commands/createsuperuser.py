"""Django's `createsuperuser`; the new administrator is on record."""

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.models import User
from django.db.models import Max

from hitlchat.people.membership import note_administrator


class Command(createsuperuser.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        # No transaction: nobody else could write while somebody types a password.
        last = User.objects.aggregate(last=Max("pk"))["last"] or 0
        super().handle(*args, **options)
        for user in User.objects.filter(pk__gt=last, is_superuser=True):
            note_administrator(user=user, means="console")

"""`manage.py rotate_secrets`: after this an older SECRET_KEY can go."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from hitlchat import rotation
from hitlchat.base.visible import see
from hitlchat.management.console import ConsoleCommand


class Command(ConsoleCommand):
    help = "Seal with SECRET_KEY whatever a key of SECRET_KEY_FALLBACKS sealed, so that this key can be removed."

    def handle(self, *args: Any, **options: Any) -> str:
        rotated = rotation.rotate()
        counts = ", ".join(f"{count} of {of}" for of, count in rotated.counts.items() if count)
        said = f"Secrets sealed anew with SECRET_KEY: {counts or 'none'}."
        if rotated.unreadable:
            names = "\n".join(f"  {see(each).plain}" for each in rotated.unreadable)
            advice = (
                "Name the key they were sealed with in SECRET_KEY_FALLBACKS and run this again, or enter them again."
            )
            raise CommandError(f"{said}\nNo key can read:\n{names}\n{advice}")
        if not settings.SECRET_KEY_FALLBACKS:
            return f"{said} No older key is named in SECRET_KEY_FALLBACKS."
        return (
            f"{said} Nothing that stays is sealed with an older key: remove SECRET_KEY_FALLBACKS in an hour, and "
            "restart every process. Whoever has opened no page since the key was changed has to sign in again then."
        )

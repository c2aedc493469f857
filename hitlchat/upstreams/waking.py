"""Tells the server process that rows have changed, so that it need not wait for its next look."""

from django.db import transaction
from django.dispatch import Signal

# Sent after the commit; from whichever thread made the change.
servers_changed = Signal()


def wake() -> None:
    transaction.on_commit(_send, robust=True)


def _send() -> None:
    servers_changed.send_robust(sender=None)

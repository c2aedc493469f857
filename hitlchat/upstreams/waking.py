"""Signals of this app: rows have changed, so that the server need not wait for its next look; a call goes on."""

from django.db import transaction
from django.dispatch import Signal

# Sent after the commit; from whichever thread made the change.
servers_changed = Signal()
# Sent with call_id, conversation_id and step while a call goes on, on the loop that executes it; receivers must not
# take long. No more than a few a second: nobody reads faster, and each of them goes to every open page.
progressed = Signal()


def wake() -> None:
    transaction.on_commit(_send, robust=True)


def _send() -> None:
    servers_changed.send_robust(sender=None)

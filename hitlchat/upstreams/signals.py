"""Signals of upstream servers. They need nothing, so that a console command can name their listeners at no cost."""

from django.dispatch import Signal

# Sent after the commit, from whichever thread made the change: somebody added or changed a server.
servers_changed = Signal()

# Sent after the commit with question_id, call_id, conversation_id and turn_id.
question_changed = Signal()

# Sent with call_id, conversation_id and step while a call goes on, on the loop that executes it; receivers must not
# take long. No more than a few a second: nobody reads faster, and each of them goes to every open page.
progressed = Signal()

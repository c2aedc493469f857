"""Listeners to signals, in the order in which they are called.

Listeners are named, and imported with the first change: a console command that changes nothing need not load the
workers of a server. Those of hitlchat's own signals get ids after the commit, and read the rows again; if one fails,
that is logged, and the others are called. Sign-ins are Django's signals: a listener that fails there fails the request.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.dispatch import Signal
from django.utils.module_loading import import_string

from hitlchat.accounts.sign_in import administrator_made
from hitlchat.gate.grants.giving import grant_changed
from hitlchat.gate.stopping import stop_requested
from hitlchat.gate.transition import call_moved
from hitlchat.upstreams.models import progressed, question_changed, servers_changed

LISTENERS: Final[Mapping[Signal, tuple[str, ...]]] = {
    # A call has another status, or something about it was put on record.
    call_moved: (
        "hitlchat.gate.batch.on_move",  # answers its likes that wait, as it was answered
        "hitlchat.gate.settling.on_move",  # wakes who waits here for it to be settled
        "hitlchat.gate.perform.on_move",  # begins to execute what was allowed or approved
        "hitlchat.upstreams.elicitation.questions.on_move",  # ends questions that nobody can answer any more
        "hitlchat.agent.runner.on_move",  # tells the conversation, goes on with a run that waited, asks a second model
        "hitlchat.approvals.inbox.socket.on_move",  # tells open pages what waits, and what no longer does
    ),
    stop_requested: ("hitlchat.agent.runner.on_stop_requested",),
    grant_changed: ("hitlchat.chat.consumers.on_grant",),
    question_changed: ("hitlchat.upstreams.elicitation.questions.on_question", "hitlchat.chat.consumers.on_question"),
    progressed: ("hitlchat.mcp_server.submissions.on_progress", "hitlchat.chat.consumers.on_progress"),
    user_logged_in: ("hitlchat.people.membership.note_sign_in",),
    user_login_failed: ("hitlchat.people.membership.note_failure",),
    administrator_made: ("hitlchat.people.membership.note_administrator",),
    servers_changed: ("hitlchat.upstreams.connections.on_servers_changed",),
}


def subscribe() -> None:
    for signal, paths in LISTENERS.items():
        for path in paths:
            signal.connect(listener(path), weak=False, dispatch_uid=path)


def listener(path: str) -> Callable[..., None]:
    """Return what calls the listener at `path`, under a name with which Django can log that it failed."""

    def listen(**change: Any) -> None:
        import_string(path)(**change)

    listen.__qualname__ = path
    return listen

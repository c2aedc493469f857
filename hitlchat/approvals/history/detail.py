"""Everything that is on record about one call, and its events as sentences in their order."""

from collections.abc import Callable, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_administer
from hitlchat.agent import conversations
from hitlchat.approvals.history import listing
from hitlchat.base.durations import between
from hitlchat.base.sentences import translated
from hitlchat.gate import attention, decide, deciders, disclosure, editing, question, who
from hitlchat.gate.card import as_shown
from hitlchat.gate.grants import scope
from hitlchat.gate.history.row import approval_of, decisions_of, needed
from hitlchat.gate.models import Approval, AuditEvent, CallerKind, Decision, Grant, ToolCall, Verdict

Data = dict[str, Any]
# An event's sentence, or what makes it from the event's data.
Words = str | Callable[[Data], str]

MOST_EVENTS: Final = 200


def _reason(words: str, shown: Callable[[str], str] = translated) -> Callable[[Data], str]:
    def sentence(data: Data) -> str:
        reason = str(data.get("reason") or "")
        return f"{_(words)}: {shown(reason)}" if reason else f"{_(words)}."

    return sentence


def _either(name: str, words: Words, others: Words) -> Callable[[Data], str]:
    """Return what makes the sentence: `words` of an event whose data has something under this name, else `others`."""
    return lambda data: _sentence(words if data.get(name) else others, data)


def _sentence(words: Words, data: Data) -> str:
    return _(words) if isinstance(words, str) else words(data)


WORDS: Final[dict[str, Words]] = {
    "call.waiting": _either(
        "before", _reason(gettext_noop("Asked about again")), _reason(gettext_noop("Put before people"))
    ),
    "call.allowed": _reason(gettext_noop("Let run without asking")),
    "call.refused": _either(
        "nobodyAsked", _reason(gettext_noop("Nobody could be asked")), _reason(gettext_noop("Refused by a policy"))
    ),
    "call.rejected": _reason(gettext_noop("Rejected, and nobody was asked")),
    "call.approved": _either("edited", gettext_noop("Approved with changed arguments."), gettext_noop("Approved.")),
    "call.declined": _reason(gettext_noop("Declined"), decide.shown_reason),
    "call.shown": gettext_noop("First shown."),
    "call.expired": gettext_noop("Expired: nobody answered in time."),
    "call.withdrawn": _reason(gettext_noop("Withdrawn")),
    "call.queued": gettext_noop("All workers were taken: it waits for a free one."),
    "call.executing": gettext_noop("Started."),
    "call.succeeded": _either("marked", gettext_noop("Marked as done."), gettext_noop("Ended: it succeeded.")),
    "call.failed": _either("marked", gettext_noop("Marked as failed."), gettext_noop("Ended: it failed.")),
    "call.unknown": _reason(gettext_noop("Lost sight of, so that it may or may not have happened")),
    "call.counted": lambda data: _("Approved: {given} of {needed} people.").format(
        given=data.get("yes"), needed=data.get("quorum")
    ),
    "call.yes_taken_back": gettext_noop("An approval was taken back."),
    "call.stop_requested": gettext_noop("Told to stop."),
    "call.extended": gettext_noop("Given more time to answer."),
    "call.question_asked": gettext_noop("Its server asked a question."),
    "call.question_answered": gettext_noop("The question of its server was answered."),
    "call.question_declined": _reason(gettext_noop("The question of its server was declined"), decide.shown_reason),
    "call.question_expired": gettext_noop("The question of its server expired: nobody answered in time."),
    "call.question_withdrawn": gettext_noop("The question of its server was withdrawn."),
    "call.run_again": lambda data: _("Run again, as call {call}.").format(call=data.get("as")),
    "record.exported": gettext_noop("A receipt of it was exported."),
    "grant.given": gettext_noop("A grant was given with the approval."),
    "grant.used": gettext_noop("Ran on a grant."),
    "grant.given_back": gettext_noop("Its use of a grant was given back, since it was asked about after all."),
    "grant.used_up": gettext_noop("The grant was used up with it."),
}
# What is said otherwise of a question to a person, to which a yes is an answer.
WORDS_OF_QUESTION: Final[dict[str, Words]] = WORDS | {"call.approved": gettext_noop("Answered.")}


def rows(calls: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    return needed(calls).defer(None).select_related("grant", "grant__person", "tool")


def of(user: User, call: ToolCall) -> dict[str, Any]:
    """The context of `history/call.html`, for this viewer."""
    approval = approval_of(call)
    words = WORDS_OF_QUESTION if question.is_one(call) else WORDS
    events = list(AuditEvent.objects.filter(call=call).select_related("actor")[: MOST_EVENTS + 1])
    (line,) = listing.lines(user, [call])
    # Of somebody else's chat nobody is told more than the call.
    return {
        "call": call,
        "line": line,
        "approval": approval,
        "may_open": approval is not None and deciders.seen_by(user.pk, [approval.pk]).exists(),
        "has_chat": _has_chat(user, call),
        "rounds": _rounds(approval, events) if approval else [],
        "grant": _grant(user, call.grant),
        "given": [(each, scope.sentence(each, translated)) for each in approval.grants.all()] if approval else [],
        "spoke": next((each.data["spoke"] for each in events if each.data.get("spoke")), []),
        "executed": between(call.started_at, call.settled_at),
        "timeline": [_moment(each, words) for each in events[:MOST_EVENTS]],
        "more_events": len(events) > MOST_EVENTS,
    }


def _has_chat(user: User, call: ToolCall) -> bool:
    if call.caller_kind != CallerKind.CHAT or call.conversation_id is None:
        return False
    return conversations.of(user).filter(pk=call.conversation_id).exists()


def _grant(user: User, grant: Grant | None) -> dict[str, Any] | None:
    if grant is None:
        return None
    may_open = grant.person_id == user.pk or may_administer(user)
    return {"id": grant.pk, "sentence": scope.sentence(grant, translated), "may_open": may_open}


def _moment(event: AuditEvent, words: dict[str, Words]) -> Data:
    """Return an event in words; `who` is empty where hitlchat itself did it, `note` is what a person wrote."""
    # Where nothing more is known of an event here, its name stands as a sentence.
    sentence = words.get(event.name, f"{event.name.replace('.', ': ').replace('_', ' ').capitalize()}.")
    return {
        "at": event.at,
        "name": event.name,
        "sentence": _sentence(sentence, event.data),
        "who": _who(event),
        "note": str(event.data.get("remark") or ""),
    }


def _who(event: AuditEvent) -> str:
    if event.actor is None:
        return ""
    name = event.actor.get_username()
    if event.name == "call.shown":
        return _("to {name}").format(name=name)
    return _("for {name}").format(name=name) if event.means == "system" else _("by {name}").format(name=name)


def _rounds(approval: Approval, events: Sequence[AuditEvent]) -> list[Data]:
    """Return each time that it was put before people, the last first.

    The events of asking again have what was shown before.
    """
    times = [each for each in events if each.name == "call.waiting"]
    earlier = [each.data["before"] for each in times if "before" in each.data]
    found = [
        _round(approval, number, shown, times[number - 1].at if 1 < number <= len(times) else approval.created_at)
        for number, shown in enumerate([*earlier, approval.disclosure], 1)
    ]
    return found[::-1]


def _round(approval: Approval, number: int, shown: Data, asked_at: datetime) -> Data:
    """`shown`: the card as it was; `altered`: what is on record is not what the digest was made of."""
    put, digest = copy(approval), disclosure.digest(shown)
    put.disclosure = shown
    put.digest = approval.digest if shown is approval.disclosure else digest
    return {
        "number": number,
        "asked_at": asked_at,
        "approval": put,
        "shown": as_shown(put),
        "answers": [_answer(each, asked_at, shown) for each in decisions_of(approval.call) if each.round == number],
        "altered": digest != put.digest,
    }


def _answer(decision: Decision, asked_at: datetime, shown: Data) -> Data:
    """`took`: from the question; `looked`: what is known of how they read it."""
    edited: Data | None = decision.edited_arguments
    return {
        "decision": decision,
        "approved": decision.verdict == Verdict.APPROVE,
        "how": who.how(decision),
        "took": between(asked_at, decision.decided_at),
        "looked": attention.words(decision, shown),
        "changes": () if edited is None else editing.changes(shown["arguments"], edited, shown["fields"]),
    }

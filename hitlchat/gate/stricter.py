"""Makes a conversation ask more, or less again, on record; a call that has not started is asked about at once."""

from typing import Any, Final
from uuid import UUID, uuid4

from django.db import transaction
from django.utils.translation import gettext_noop

from hitlchat.base.database import durable
from hitlchat.base.problems import Forbidden, Invalid
from hitlchat.gate import perform, stated
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import Asks, Strictness, ToolCall, delegation
from hitlchat.gate.policies.strictness import rank
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note

CHANGED: Final = "conversation.asks_changed"
FORGOTTEN: Final = "conversation.forgotten"
LESS: Final = gettext_noop("Calls that this conversation asked about by itself can run unseen.")


class BadWord(Invalid):
    """No conversation can ask so."""

    field = "asks"

    def __init__(self) -> None:
        super().__init__(f"Expected one of {', '.join(Asks.values)}.")


class OnlyPeople(Forbidden):
    """No program has a conversation ask less: it would be held by that itself (SR-27)."""

    def __init__(self) -> None:
        super().__init__(
            gettext_noop("Only you, signed in or with an approver token, have a conversation ask less again.")
        )


def check(word: str) -> str:
    """Return a word that a conversation can have. Raises: BadWord."""
    if word not in Asks.values:
        raise BadWord
    return word


def strictest(*words: str) -> str:
    """Return the word under which all is asked about that any of these asks about."""
    return max(words, key=rank)


def begin(conversation_id: UUID, word: str, actor: Actor) -> None:
    """Have a conversation that is just being made ask so, within the transaction that makes it. Raises: BadWord."""
    if check(word) != Asks.TOOLS:
        Strictness.objects.create(conversation_id=conversation_id, asks=word)
        _note(conversation_id, Asks.TOOLS, word, actor)


def change(conversation_id: UUID, word: str, actor: Actor) -> None:
    """Have a conversation ask so from now on, with all below it. Raises: BadWord, OnlyPeople.

    When this returns, no call that it asks about starts unasked any more: what was to run so is asked about instead.
    """
    check(word)
    with durable():
        Strictness.objects.get_or_create(pk=conversation_id, defaults={"asks": Asks.TOOLS})
        # Of two changes at a time the second sees the first.
        row = Strictness.objects.select_for_update().get(pk=conversation_id)
        before, row.asks = row.asks, word
        if rank(word) < rank(before) and not actor.is_person:
            raise OnlyPeople
        if word != before:
            row.save(update_fields=["asks"])
            _note(conversation_id, before, word, actor)
    _ask_about_the_rest(conversation_id)


def forget(conversation_id: UUID) -> None:
    """Forget the word of a conversation that is gone, once none of its calls can start any more."""
    with transaction.atomic():
        gone, _ = Strictness.objects.filter(pk=conversation_id).delete()
        if gone:
            note(None, FORGOTTEN, actor=SYSTEM, data=stated.states("conversation", conversation_id))


def _note(conversation_id: UUID, before: str, after: str, actor: Actor) -> None:
    data: dict[str, Any] = {"conversation": str(conversation_id), "before": {"asks": before}, "after": {"asks": after}}
    if rank(after) < rank(before):
        data["weaker"] = [LESS]
    note(None, CHANGED, actor=actor, data=data | stated.states("conversation", conversation_id))


def _ask_about_the_rest(conversation_id: UUID) -> None:
    """Have every start under way that read the word of before end first, or fail; then ask about what is left."""
    rows = ToolCall.objects.filter(conversation_id__in=delegation.family(conversation_id), status=Status.ALLOWED)
    # Each start holds its call until it is committed. One that comes to its call only later, though it read the word
    # before, finds another mark there than it read (strictness.lets_start).
    rows.update(owner=uuid4().hex)
    for call_id in list(rows.values_list("pk", flat=True)):
        perform.begin(call_id)

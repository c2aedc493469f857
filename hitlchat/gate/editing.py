"""Editing: the decider changes the arguments or the deadline of a question before answering.

Changed arguments are shown before the yes to them. Five more minutes can be had in the last one: what moves is the
deadline on the call's row alone; what was shown, and so its digest, says until when the question was open when it was
asked, and stays what it was.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.problems import Conflict
from hitlchat.base.schemas import kind_of
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import Where
from hitlchat.base.visible import Seen, see
from hitlchat.gate import decide, disclosure, queue, schema, transition
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import NOTHING_KNOWN, Looked
from hitlchat.gate.card import Effect, Row, TitlePiece, again, box
from hitlchat.gate.contents import spelled
from hitlchat.gate.decide import BadEdit, checked
from hitlchat.gate.deciders import right_of, still_may_answer
from hitlchat.gate.meant import Meaning, meanings
from hitlchat.gate.models import LONGEST_DEADLINE, Approval, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note

# Up to here a value is shown once, with what differs marked in it; what is longer folds, and is shown whole as well.
SHORT = 160
SHOWN_ELSE = gettext_noop("The changed call is not the one you were shown. Review the changes again.")

MORE = timedelta(minutes=5)
LAST = timedelta(minutes=1)
LONGEST = timedelta(seconds=LONGEST_DEADLINE)
# By the database's clock, as is expiry itself.
IN_LAST_MINUTE = Q(deadline__gt=Now(), deadline__lte=Now() + LAST)

TOO_EARLY = gettext_noop("Five minutes can be added only in the last minute of a question.")
TOO_LONG = gettext_noop("No time can be added: a question stays open for at most 30 days after the call was made.")


@dataclass(frozen=True)
class Change:
    """One argument, before and after; None where there is none. `was` and `now` have what differs marked, `whole` is
    all of a long new value. `note` says what cannot be seen in them, `meanings` what the new value means.
    """

    name: Seen
    type: str
    was: Effect | None
    now: Effect | None
    whole: Row | None
    note: str
    warnings: tuple[str, ...]
    meanings: tuple[Meaning, ...]

    @property
    def alerts(self) -> tuple[str, ...]:
        """Return all that a yes takes a tick for."""
        return (*self.warnings, *(each.words for each in self.meanings if each.caution))


@dataclass(frozen=True)
class Review:
    """The call as it would be approved; `digest` covers all of it, `arguments` is what would run, as JSON text."""

    title: tuple[TitlePiece, ...]
    changes: tuple[Change, ...]
    unchanged: int
    arguments: str
    rule: Seen
    digest: str
    asks_again: bool

    @property
    def alerts(self) -> tuple[str, ...]:
        """Return all warnings about what would run, each sentence once."""
        title = [warning for piece in self.title for warning in piece.text.warnings]
        return tuple(dict.fromkeys([*title, *(alert for change in self.changes for alert in change.alerts)]))

    @property
    def hidden(self) -> int:
        """Characters that are folded away."""
        return sum(change.whole.hidden for change in self.changes if change.whole)


class NotNow(Conflict):
    """The deadline stays as it is; the message says why."""


def review(approval: Approval, edited: dict[str, Any]) -> Review:
    """Return the call as a yes to `edited` would approve it. Raises: BadEdit, where it cannot be approved."""
    call = approval.call
    arguments, rule = checked(edited, call)
    assert call.tool is not None
    before, shown = approval.disclosure, disclosure.with_edit(approval.disclosure, arguments, call.tool)
    old = before["arguments"]
    found = changes(old, arguments, before["fields"])
    return Review(
        title=tuple(TitlePiece(see(text), is_value) for text, is_value in shown["promptPieces"]),
        changes=tuple(found),
        unchanged=len({**old, **arguments}) - len(found),
        # In ASCII: nothing that cannot be seen travels through the page as it is.
        arguments=json.dumps(arguments),
        rule=see(rule),
        digest=disclosure.digest(shown),
        asks_again=bool(before.get("preview")),
    )


def changes(old: dict[str, Any], new: dict[str, Any], fields: Iterable[tuple[str, str]]) -> list[Change]:
    """Return what is different in `new`, by argument; `fields` has their types in words, as a disclosure has them."""
    words = dict(fields)
    # As text: to Python, `1`, `1.0` and `True` would be equal.
    was, now = ({name: canonical.dumps(value) for name, value in values.items()} for values in (old, new))
    return [_change(name, words.get(name, ""), old, new) for name in {**new, **old} if was.get(name) != now.get(name)]


def read(text: str) -> dict[str, Any]:
    """Read edited arguments from JSON text. Raises: BadEdit."""
    try:
        return schema.parse_arguments(text)
    except schema.BadArguments as error:
        raise BadEdit(str(error)) from error


def approve(
    approval_id: UUID,
    actor: Actor,
    *,
    digest: str,
    edited: str,
    shown: str,
    reason: str = "",
    looked: Looked = NOTHING_KNOWN,
) -> Approval:
    """Yes to the call with `edited` (JSON text), whose review had the digest `shown`; `digest` is that of the question.

    NoSuchApproval, NotEntitled, AlreadySettled, BadEdit; OtherDigest: what was shown is not what would be approved.
    """
    arguments = read(edited)
    found = Approval.objects.select_related("call__tool").filter(pk=approval_id).first()
    if found is None:
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    decide.require(actor, found)
    if found.call.status == Status.WAITING and review(found, arguments).digest != shown:
        raise decide.OtherDigest(SHOWN_ELSE)
    return decide.approve(approval_id, actor, digest=digest, edited=arguments, reason=reason, looked=looked)


def extend(approval_id: UUID, actor: Actor, *, seen: datetime | None = None) -> ToolCall:
    """Extend the deadline by five minutes, for identical calls too. Return the call as it is then.

    `seen`: the deadline as the person saw it. If it was put off since then nothing more happens, so that two clicks
    add five minutes once. NotNow, AlreadySettled, NoSuchApproval: also for a client's word, which cannot buy time.
    """
    found = Approval.objects.select_related("call__tool").filter(pk=approval_id).first()
    may, absent = right_of(actor, found.call) if found is not None else (False, None)
    if found is None or not may:
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    call = found.call
    if call.status != Status.WAITING:
        raise decide.AlreadySettled(call)
    assert call.deadline is not None
    # In whatever precision it travelled: no two deadlines of a question are within a second.
    if seen is not None and abs(call.deadline - seen) >= timedelta(seconds=1):
        return call
    until = call.deadline + MORE
    if not _put_off(found, actor, absent, until, IN_LAST_MINUTE):
        return _put_off_by_another(call, actor)
    for twin in queue.twins(found):
        # On the same card, which has one deadline.
        _put_off(twin, actor, absent, until, Q(deadline__gt=Now(), deadline__lt=until))
    return ToolCall.objects.get(pk=call.pk)


def _change(name: str, word: str, old: dict[str, Any], new: dict[str, Any]) -> Change:
    was, now = (spelled(values[name]) if name in values else None for values in (old, new))
    marked = again({"before": _as_preview(was), "why": ""}, _as_preview(now))
    is_short = max(len(was or ""), len(now or "")) <= SHORT
    boxed = replace(box(now, name, word), meanings=meanings(new[name], name)) if now is not None else None
    # A text can read like a number or like `true`.
    kinds = [kind_of(values[name]) for values in (old, new) if name in values]
    has_other_kind = kinds[0] != kinds[-1]
    return Change(
        name=see(name),
        type=word,
        was=marked.before if was is not None else None,
        now=marked.now if now is not None else None,
        whole=None if is_short else boxed,
        note=translatable(f"It was {kinds[0]} and is now {kinds[-1]}.") if has_other_kind else "",
        warnings=boxed.warnings if boxed else (),
        meanings=boxed.meanings if boxed else (),
    )


def _as_preview(text: str | None) -> dict[str, Any]:
    return {"text": text or "", "table": None, "cut": [], "error": None}


def _put_off(approval: Approval, actor: Actor, absent: User | None, until: datetime, when: Q) -> bool:
    call = approval.call
    assert call.deadline is not None
    same = when & Q(status=Status.WAITING, deadline=call.deadline, created_at__gte=until - LONGEST)
    rows = transition.still(call, still_may_answer(actor, call, absent) & Where(rest=same))
    data = {"approval": str(approval.pk), "before": call.deadline.isoformat(), "after": until.isoformat()}
    with transaction.atomic():
        if rows.update(deadline=until) != 1:
            return False
        note(call.pk, "call.extended", actor=actor, data=data)
    return True


def _put_off_by_another(read: ToolCall, actor: Actor) -> ToolCall:
    """Return the call of a question that somebody else has just put off. Raises otherwise."""
    call = ToolCall.objects.get(pk=read.pk)
    if call.status == Status.WAITING and not decide.expire(call):
        call = ToolCall.objects.get(pk=read.pk)
    if call.status != Status.WAITING:
        raise decide.AlreadySettled(call)
    assert call.deadline is not None
    if call.deadline != read.deadline:
        return call
    if not right_of(actor, call)[0]:
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    raise NotNow(TOO_LONG if call.deadline + MORE > call.created_at + LONGEST else TOO_EARLY)

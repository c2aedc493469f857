"""A call with its arguments changed by the person deciding: what they see of it before their yes, and that yes."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hitlchat.base import canonical
from hitlchat.base.visible import Seen, see
from hitlchat.gate import decide, disclosure, schema
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import NOTHING_KNOWN, Looked
from hitlchat.gate.card import TitlePiece
from hitlchat.gate.decide import BadEdit, checked
from hitlchat.gate.effect import Effect, Row, again, box
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status

# Up to here a value is shown once, with what differs marked in it; what is longer folds, and is shown whole as well.
SHORT = 160
SHOWN_ELSE = "The changed call is not the one that you were shown. Look at the changes again."

# The first that fits counts: to Python, `True` is a number.
KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (str, "a text"),
    (bool, "true or false"),
    ((int, float), "a number"),
    (list, "a list"),
    (dict, "an object"),
    (object, "null"),
)


@dataclass(frozen=True)
class Change:
    """One argument, before and after; None where there is none. `was` and `now` have what differs marked, `whole` is
    all of a long new value. `note` says what cannot be seen in them.
    """

    name: Seen
    type: str
    was: Effect | None
    now: Effect | None
    whole: Row | None
    note: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Review:
    """The call as it would be approved. `digest` is that of all of it, `arguments` what would run, as JSON text."""

    title: tuple[TitlePiece, ...]
    changes: tuple[Change, ...]
    unchanged: int
    arguments: str
    rule: Seen
    digest: str
    asks_again: bool

    @property
    def hidden(self) -> int:
        """Characters that are folded away."""
        return sum(change.whole.hidden for change in self.changes if change.whole)


def review(approval: Approval, edited: dict[str, Any]) -> Review:
    """Return what a yes to `edited` would be a yes to. BadEdit: it cannot be approved."""
    call = approval.call
    arguments, said = checked(edited, call)
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
        rule=see(said),
        digest=disclosure.digest(shown),
        asks_again=bool(before.get("preview")),
    )


def changes(old: dict[str, Any], new: dict[str, Any], fields: Iterable[tuple[str, str]]) -> list[Change]:
    """Return what is different in `new`, by argument; `fields` has their types in words, as a disclosure has them."""
    words = dict(fields)
    names = [*new, *(name for name in old if name not in new)]
    return [_change(name, words.get(name, ""), old, new) for name in names if _differs(name, old, new)]


def read(text: str) -> dict[str, Any]:
    """Edited arguments from JSON text. BadEdit."""
    try:
        return schema.parse_arguments(text)
    except schema.BadArguments as error:
        raise BadEdit(str(error)) from error


def approve(
    approval_id: UUID, actor: Actor, *, digest: str, edited: str, shown: str, looked: Looked = NOTHING_KNOWN
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
    return decide.approve(approval_id, actor, digest=digest, edited=arguments, looked=looked)


def _differs(name: str, old: dict[str, Any], new: dict[str, Any]) -> bool:
    # As text: to Python, `1`, `1.0` and `True` would be equal.
    return name not in old or name not in new or canonical.dumps(old[name]) != canonical.dumps(new[name])


def _change(name: str, word: str, old: dict[str, Any], new: dict[str, Any]) -> Change:
    was, now = (_text(values[name]) if name in values else None for values in (old, new))
    marked = again({"before": _as_preview(was), "why": ""}, _as_preview(now))
    is_short = max(len(was or ""), len(now or "")) <= SHORT
    boxed = box(now, name, word) if now is not None else None
    return Change(
        name=see(name),
        type=word,
        was=marked.before if was is not None else None,
        now=marked.now if now is not None else None,
        whole=None if is_short else boxed,
        note=_note(old[name], new[name]) if name in old and name in new else "",
        warnings=boxed.warnings if boxed else (),
    )


def _note(was: Any, now: Any) -> str:
    """Return a note if the kind of a value changed, since a text can read like a number or like `true`."""
    kinds = [_kind(was), _kind(now)]
    return "" if kinds[0] == kinds[1] else f"It was {kinds[0]}, and is {kinds[1]} now."


def _kind(value: Any) -> str:
    return next(words for kinds, words in KINDS if isinstance(value, kinds))


def _as_preview(text: str | None) -> dict[str, Any]:
    """Return a value as `changes` compares it."""
    return {"text": text or "", "table": None, "cut": [], "error": None}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return canonical.pretty(value, indent=2 if isinstance(value, dict | list) else None)

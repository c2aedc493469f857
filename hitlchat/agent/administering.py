"""Administering: who may change what conversations run on, how it is changed, and how that goes on record."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_administer
from hitlchat.agent.models import ModelEndpoint, Preset, ToolSet
from hitlchat.base.canonical import storable
from hitlchat.base.database import unique
from hitlchat.base.problems import Conflict, Forbidden, Invalid, NotFound, required
from hitlchat.gate.actor import Actor
from hitlchat.gate.transition import note

LONGEST_NAME, LONGEST_DESCRIPTION = 64, 300
BEGINS_WITH_IT: Final = gettext_noop("This is the default for new conversations. Choose another default first.")

R = TypeVar("R", ModelEndpoint, Preset, ToolSet)
D = TypeVar("D")


class BadDraft(Invalid):
    """What was drafted cannot be so; `errors` says by field what was expected, and nothing was changed."""


class OnlyPeople(Forbidden):
    """Whoever changes what conversations run on is an administrator, and a person."""


class NameTaken(Invalid):
    """Another one has the name, maybe with other capital letters."""

    status = 409


class InUse(Conflict):
    """Others begin with it, or have it, so that it cannot go."""


@dataclass(frozen=True)
class Subject(Generic[R, D]):
    """One kind of what administrators set up, called `word` on the record, which has `recorded` of each row.

    Each change is checked in this order: who asks for it, and what `columns` raises of the draft, for a row or a new
    one.
    """

    word: str
    rows: Callable[[], QuerySet[R]]
    recorded: Callable[[R], dict[str, Any]]
    columns: Callable[[D, R | None], dict[str, Any]]
    # Sentences for others, for a row that is gone, and for a name that is taken.
    only_people: str
    gone: str
    name_taken: str
    # Columns of which the record says only that they changed.
    unrecorded: Collection[str] = ()

    def create(self, draft: D, actor: Actor, *, begins: bool = False) -> R:
        """Add a row; on record. `begins`: new conversations begin with it.

        Raises: OnlyPeople, NameTaken, and what `columns` raises.
        """
        self._require(actor)
        columns = self.columns(draft, None)
        with transaction.atomic():
            with unique(NameTaken({"name": self.name_taken})):
                row = self.rows().create(**columns)
                self._note("added", row, actor, {}, self.recorded(row))
            if begins:
                self.begin_with(row.pk, actor)
                row.refresh_from_db()
        return row

    def change(self, pk: UUID, draft: D, actor: Actor) -> R:
        """Write what differs; on record. Raises: OnlyPeople, NameTaken, NotFound, and what `columns` raises."""
        self._require(actor)
        with unique(NameTaken({"name": self.name_taken})):
            row = self._locked(pk)
            self._write(row, actor, **self.columns(draft, row))
        return row

    def begin_with(self, pk: UUID | None, actor: Actor) -> None:
        """Have new conversations begin with this row; None: with none.

        Raises: OnlyPeople, NotFound; Invalid, if it is disabled.
        """
        self._require(actor)
        with transaction.atomic():
            for other in self.rows().select_for_update().filter(Q(is_default=True)):
                self._write(other, actor, is_default=other.pk == pk)
            if pk is not None:
                row = self._locked(pk)
                if not getattr(row, "enabled", True):
                    raise Invalid({"is_default": gettext_noop("It is disabled: enable it first.")})
                self._write(row, actor, is_default=True)

    @contextmanager
    def removing(self, pk: UUID, actor: Actor) -> Iterator[R]:
        """Lock a row for what removes it. Raises: OnlyPeople, NotFound, InUse."""
        self._require(actor)
        with transaction.atomic():
            row = self._locked(pk)
            if getattr(row, "is_default", False):
                raise InUse(BEGINS_WITH_IT)
            before = self.recorded(row)
            yield row
            self._note("removed", row, actor, before, {})

    def _require(self, actor: Actor) -> None:
        """Let pass administrators, signed in or with an approver token. Raises: OnlyPeople."""
        user = actor.person
        if user is None or not may_administer(user):
            raise OnlyPeople(self.only_people)

    def _locked(self, pk: UUID) -> R:
        """Return the row for this transaction alone. Raises: NotFound."""
        return required(self.rows().select_for_update(of=("self",)).filter(pk=pk).first(), NotFound(self.gone))

    def _write(self, row: R, actor: Actor, **columns: Any) -> None:
        """Write what differs to a row that is locked, and put that on record."""
        before = self.recorded(row)
        differing: list[str] = [name for name, value in columns.items() if getattr(row, name) != value]
        if not differing:
            return
        for name in differing:
            setattr(row, name, columns[name])
        row.updated_at = timezone.now()
        row.save(update_fields=[*differing, "updated_at"])
        also, after = sorted(set(differing) & set(self.unrecorded)), self.recorded(row)
        if also or after != before:
            self._note("changed", row, actor, before, after, also=also)

    def _note(
        self,
        what: str,
        row: R,
        actor: Actor,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        *,
        also: Collection[str] = (),
    ) -> None:
        """Put on record what differs, before and after; of `also` only that it changed."""
        differing = [field for field in {**before, **after} if before.get(field) != after.get(field)]
        data: dict[str, Any] = {
            self.word: row.name,
            "before": {field: before[field] for field in differing if field in before},
            "after": {field: after[field] for field in differing if field in after},
            "also": list(also),
        }
        note(None, f"{self.word}.{what}", actor=actor, data=data)


def wrong_names(name: str, description: str) -> dict[str, str]:
    """Return what is wrong with the name and the description of a tool set or a preset, by field.

    The name is a part of addresses.
    """
    found: dict[str, str] = {}
    if not is_line(name, LONGEST_NAME) or not name.strip(".") or "/" in name or "\\" in name:
        found["name"] = gettext_noop("Expected up to 64 visible characters, without a slash, and not only dots.")
    if not is_line(description, LONGEST_DESCRIPTION):
        found["description"] = gettext_noop("Expected one line of up to 300 characters that can be stored.")
    return found


def is_line(text: str, longest: int) -> bool:
    """Return whether the text is one line without spaces around it that can be kept and shown."""
    return len(text) <= longest and text == text.strip() and text.isprintable() and storable(text) == text

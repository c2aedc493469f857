"""Administering: who may change what conversations run on, and how each change goes on record."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from hitlchat.accounts.roles import may_administer
from hitlchat.agent.models import ModelEndpoint, Preset, ToolSet
from hitlchat.base.problems import Forbidden, Invalid, NotFound
from hitlchat.gate.actor import Actor
from hitlchat.gate.transition import note

R = TypeVar("R", ModelEndpoint, Preset, ToolSet)


class OnlyPeople(Forbidden):
    """Whoever changes what conversations run on is an administrator, and a person."""


@dataclass(frozen=True)
class Subject(Generic[R]):
    """One kind of what administrators set up, called `word` on the record, which has `recorded` of each row."""

    word: str
    rows: Callable[[], QuerySet[R]]
    recorded: Callable[[R], dict[str, Any]]
    # What is said to others, and to whoever finds a row gone.
    only_people: str
    gone: str
    name_taken: Callable[[], Invalid]
    # Columns of which the record says only that they changed.
    unrecorded: Collection[str] = ()

    def require(self, actor: Actor) -> None:
        """Let pass administrators, signed in or with an approver token. Raises: OnlyPeople."""
        user = actor.person
        if user is None or not may_administer(user):
            raise OnlyPeople(self.only_people)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Give a row its name within one transaction. Raises: NameTaken of its kind."""
        try:
            with transaction.atomic():
                yield
        except IntegrityError as error:
            raise self.name_taken() from error

    def locked(self, pk: UUID) -> R:
        """Return the row for this transaction alone. Raises: NotFound."""
        row = self.rows().select_for_update(of=("self",)).filter(pk=pk).first()
        if row is None:
            raise NotFound(self.gone)
        return row

    def note_added(self, row: R, actor: Actor) -> None:
        self._note("added", row, actor, {}, self.recorded(row))

    def note_removed(self, row: R, actor: Actor) -> None:
        self._note("removed", row, actor, self.recorded(row), {})

    def write(self, row: R, actor: Actor, **columns: Any) -> None:
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

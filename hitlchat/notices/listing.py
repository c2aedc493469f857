"""What the page shows: receivers in groups, and the last deliveries."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.notices import changing
from hitlchat.notices.models import Kind, Notice, Receiver, State

MOST_LOGGED = 30


@dataclass(frozen=True)
class Line:
    """One webhook, and whom it tells."""

    receiver: Receiver
    whom: str

    @property
    def former_key_counts(self) -> bool:
        until = self.receiver.former_until
        return until is not None and until > timezone.now()


def webhooks(person: User) -> tuple[list[Line], list[Line]]:
    """One's own; and, for administrators, those of groups and of the installation."""
    rows = [each for each in changing.manageable(person) if each.kind != Kind.EMAIL]
    lines = [Line(each, changing.for_whom(each)) for each in rows]
    return [each for each in lines if each.receiver.person_id], [each for each in lines if not each.receiver.person_id]


def log(person: User) -> list[Notice]:
    """The last deliveries to the receivers that they manage, the latest first. Bodies are left where they are."""
    rows = Notice.objects.filter(receiver__in=changing.manageable(person).values("pk"))
    return list(rows.select_related("receiver", "receiver__group").defer("body")[:MOST_LOGGED])


def is_moving(rows: list[Notice]) -> bool:
    """Whether something in it will change by itself soon."""
    return any(each.state == State.DUE for each in rows)

"""What holds for every change of people, groups and invitations: by whom, to what was seen, and never the last one."""

from django.contrib.auth.models import User

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.gate.actor import Actor

CONSOLE = Actor(None, "console")


class Refused(Exception):
    """It is not done; why, in words for whoever wanted it."""


class Stale(Refused):
    """What was to be changed is no longer what was seen."""


class NoSuchPerson(Refused):
    """There is nobody with that id or name."""


def lock(actor: Actor) -> set[int]:
    """The active administrators, none of whom can change until the transaction ends. Refused: `actor` is not one.

    Everyone who changes people locks these rows first, and so comes one after the other.
    """
    rows = User.objects.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk")
    administrators = set(rows.values_list("pk", flat=True))
    if actor != CONSOLE and not (actor.means == "session" and actor.user_id in administrators):
        raise Refused("You are not an administrator any more.")
    return administrators


def lock_person(user_id: int) -> User:
    """NoSuchPerson."""
    found = User.objects.select_for_update().filter(pk=user_id).first()
    if found is None:
        raise NoSuchPerson("There is no such person.")
    return found


def state(user: User) -> str:
    """What a page says it has shown, to be compared with what is."""
    return f"{roles.role_of(user).value}, {'active' if user.is_active else 'deactivated'}"


def check_seen(user: User, seen: str | None) -> None:
    """Stale; None: nobody looked at anything before."""
    now = state(user)
    if seen is not None and seen != now:
        raise Stale(f"Nothing was changed: somebody else was faster. {user.get_username()} is now {now}. Look again.")


def check_not_oneself(user: User, actor: Actor) -> None:
    if actor.user_id == user.pk:
        raise Refused("Nobody changes their own role or deactivates themselves. Ask another administrator.")


def check_not_the_last(user: User, administrators: set[int], role: Role | None = None) -> None:
    """`role`: what they are to become; None: deactivated."""
    if role != Role.ADMINISTRATOR and administrators == {user.pk}:
        raise Refused(f"{user.get_username()} is the only active administrator. Make somebody else one first.")

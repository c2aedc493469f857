"""What a person may do here, as questions with one answer each."""

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User


def may_author(user: AbstractBaseUser | AnonymousUser) -> bool:
    """May write, test and publish tools."""
    return isinstance(user, User) and user.is_active and user.has_perm("tools_studio.change_script")

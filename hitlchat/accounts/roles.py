"""Roles, which are Django groups, and rights: questions about what a person may do, with one answer each."""

from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, Permission, User
from django.db import transaction
from django.db.models import Case, CharField, Exists, OuterRef, Q, QuerySet, Value, When
from django.utils.translation import gettext_noop

from hitlchat.accounts.models import Role

AUTHORING: Final = "tools_studio.change_script"
DECIDING: Final = "accounts.decide_for_others"
PERMISSIONS: Final[dict[Role, tuple[str, ...]]] = {
    Role.MEMBER: (),
    Role.APPROVER: (DECIDING,),
    Role.AUTHOR: (AUTHORING,),
    Role.ADMINISTRATOR: (AUTHORING, DECIDING),
}
# What each may do beyond what a member may.
MEANING: Final[dict[Role, str]] = {
    Role.MEMBER: gettext_noop("Chats, uses tools, and decides their own calls."),
    Role.APPROVER: gettext_noop("Does what members do, and decides calls that need an approver."),
    Role.AUTHOR: gettext_noop("Does what members do, and writes, tests and publishes tools."),
    Role.ADMINISTRATOR: gettext_noop("Manages everything, including servers, exposed tools, the record and people."),
}
# Groups with such a name are roles, and no named groups.
PREFIX: Final = "role:"


def may_author(user: AbstractBaseUser | AnonymousUser) -> bool:
    return isinstance(user, User) and user.is_active and user.has_perm(AUTHORING)


def may_administer(user: AbstractBaseUser | AnonymousUser) -> bool:
    return isinstance(user, User) and user.is_active and user.is_superuser


def may_decide_for_others(user: AbstractBaseUser | AnonymousUser) -> bool:
    """May be let decide about calls of other people; which ones is for the gate to say."""
    return isinstance(user, User) and user.is_active and user.has_perm(DECIDING)


def deciding(users: QuerySet[User]) -> QuerySet[User]:
    """Return those of `users` for whom may_decide_for_others holds, as one question to the database."""
    return users.filter(Q(is_superuser=True) | _may(DECIDING), is_active=True)


def with_roles(users: QuerySet[User]) -> QuerySet[Any]:
    """Annotate people with `role`, as their rights say, however they came by them, active or not."""
    role = Case(
        When(is_superuser=True, then=Value(Role.ADMINISTRATOR.value)),
        When(_may(AUTHORING), then=Value(Role.AUTHOR.value)),
        When(_may(DECIDING), then=Value(Role.APPROVER.value)),
        default=Value(Role.MEMBER.value),
        output_field=CharField(),
    )
    return users.annotate(role=role)


def role_of(user: User) -> Role:
    found = with_roles(User.objects.filter(pk=user.pk)).values_list("role", flat=True)
    return Role(found[0])


def give(user: User, role: Role) -> None:
    """Give a person `role` in place of the one they have; other rights stay."""
    roles = set(PERMISSIONS)
    with transaction.atomic():
        granted = _permissions(roles)
        user.user_permissions.remove(*granted)
        user.groups.remove(*Group.objects.filter(Q(name__startswith=PREFIX) | Q(permissions__in=granted)))
        user.groups.add(_group(role))
        User.objects.filter(pk=user.pk).update(is_superuser=role == Role.ADMINISTRATOR)
    user.is_superuser = role == Role.ADMINISTRATOR


def named_groups() -> QuerySet[Group]:
    """The groups that administrators made."""
    return Group.objects.exclude(name__startswith=PREFIX).order_by("name")


def after_migrate(*, app_config: Any, **_: Any) -> None:
    """Create the groups of all roles with their permissions, once the last permission exists."""
    if app_config.label == AUTHORING.partition(".")[0]:
        for role in Role:
            _group(role)


def _group(role: Role) -> Group:
    group, _ = Group.objects.get_or_create(name=PREFIX + role.value)
    group.permissions.set(_permissions({role}))
    return group


def _permissions(roles: set[Role]) -> QuerySet[Permission]:
    wanted = Q(pk__in=[])
    for permission in {each for role in roles for each in PERMISSIONS[role]}:
        wanted |= _named(permission)
    return Permission.objects.filter(wanted)


def _may(permission: str) -> Exists:
    theirs = Q(user=OuterRef("pk")) | Q(group__user=OuterRef("pk"))
    return Exists(Permission.objects.filter(_named(permission), theirs))


def _named(permission: str) -> Q:
    label, _, codename = permission.partition(".")
    return Q(content_type__app_label=label, codename=codename)

"""Roles are groups, and what somebody may do decides which one they have."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role

pytestmark = pytest.mark.django_db


def fresh(user: User) -> User:
    """Without the permissions that were looked up before."""
    return User.objects.get(pk=user.pk)


def rights(user: User) -> tuple[bool, bool, bool]:
    now = fresh(user)
    return roles.may_author(now), roles.may_decide_for_others(now), roles.may_administer(now)


def test_each_role_gives_its_rights_and_no_others(bob: User) -> None:
    for role, expected in (
        (Role.MEMBER, (False, False, False)),
        (Role.APPROVER, (False, True, False)),
        (Role.AUTHOR, (True, False, False)),
        (Role.ADMINISTRATOR, (True, True, True)),
    ):
        for before in Role:
            roles.give(bob, before)
            roles.give(bob, role)
            assert rights(bob) == expected
            assert roles.role_of(bob) == role
            assert list(bob.groups.values_list("name", flat=True)) == [f"role:{role.value}"]


def test_whoever_could_do_something_before_there_were_roles_still_can(alice: User, bob: User, charlie: User) -> None:
    bob.user_permissions.add(Permission.objects.get(codename="change_script"))
    assert [roles.role_of(user) for user in (alice, bob, charlie)] == ["administrator", "author", "member"]
    assert (rights(alice), rights(bob), rights(charlie)) == ((True,) * 3, (True, False, False), (False,) * 3)


def test_a_new_role_takes_what_the_old_one_gave_however_it_was_given(bob: User) -> None:
    permission = Permission.objects.get(codename="change_script")
    bob.user_permissions.add(permission)
    own = Group.objects.create(name="writers")
    own.permissions.add(permission)
    other = Group.objects.create(name="finance")
    bob.groups.add(own, other)
    roles.give(bob, Role.MEMBER)
    assert rights(bob) == (False, False, False)
    assert roles.role_of(bob) == Role.MEMBER
    assert set(bob.groups.values_list("name", flat=True)) == {"role:member", "finance"}


def test_the_role_of_someone_deactivated_is_known_and_gives_nothing(bob: User) -> None:
    roles.give(bob, Role.AUTHOR)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert roles.role_of(bob) == Role.AUTHOR
    assert rights(bob) == (False, False, False)
    assert not roles.may_decide_for_others(AnonymousUser())


def test_every_role_has_its_group_from_the_start() -> None:
    assert set(Group.objects.values_list("name", flat=True)) == {f"role:{role.value}" for role in Role}
    assert not roles.named_groups().exists()

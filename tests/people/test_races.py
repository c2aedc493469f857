"""Two who act at the same moment: there is always an administrator left, and a link makes one account."""

import threading
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.base.problems import Conflict
from hitlchat.people import membership
from tests.conftest import PASSWORD, signed_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("row locks tell two at a time apart")]

SECONDS = 40.0


def at_once(*acts: Callable[[], object]) -> list[str]:
    """What came of each: "done", or why it was refused. All of them begin before any of them ends."""
    barrier = threading.Barrier(len(acts))
    told = [""] * len(acts)

    def run(number: int, act: Callable[[], object]) -> None:
        try:
            barrier.wait(SECONDS)
            act()
            told[number] = "done"
        except Conflict as refused:
            told[number] = str(refused)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert all(told)
    return told


@pytest.mark.parametrize("way", ["demote", "deactivate"])
def test_of_two_administrators_who_turn_on_each_other_one_is_left(way: str, alice: User) -> None:
    mira = User.objects.create_superuser("mira", password=PASSWORD)

    def turn(one: User, other: User) -> Callable[[], object]:
        if way == "demote":
            return lambda: membership.change_role(other.pk, Role.MEMBER, signed_in(one), "administrator, active")
        return lambda: membership.deactivate(other.pk, signed_in(one), "administrator, active")

    told = at_once(turn(alice, mira), turn(mira, alice))
    assert sorted(told) == ["You are no longer an administrator.", "done"]
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1


@pytest.mark.postgres
def test_the_second_of_them_waits_for_the_first_and_then_finds_that_they_may_not(alice: User) -> None:
    mira = User.objects.create_superuser("mira", password=PASSWORD)
    told: list[str] = []

    def second() -> None:
        try:
            membership.change_role(alice.pk, Role.MEMBER, signed_in(mira))
        except Conflict as refused:
            told.append(str(refused))
        finally:
            connections.close_all()

    thread = threading.Thread(target=second)
    with transaction.atomic():
        membership.lock(signed_in(alice))
        thread.start()
        thread.join(1)
        assert thread.is_alive()
        roles.give(mira, Role.MEMBER)
    thread.join(SECONDS)
    assert told == ["You are no longer an administrator."]
    assert connection.vendor == "postgresql"


def test_of_those_who_use_one_link_at_once_one_joins(alice: User) -> None:
    _, secret = membership.invite(Role.AUTHOR, "", signed_in(alice))
    names = ("dora", "emil", "finn")
    told = at_once(*[lambda name=name: membership.redeem(secret, name, PASSWORD) for name in names])
    assert sorted(told) == ["This invitation no longer works."] * 2 + ["done"]
    assert User.objects.filter(username__in=names).count() == 1


def test_of_two_who_choose_the_same_name_one_gets_it_and_the_other_may_choose_again(alice: User) -> None:
    secrets = [membership.invite(Role.MEMBER, "", signed_in(alice))[1] for _ in range(2)]
    told = at_once(*[
        lambda secret=secret, name=name: membership.redeem(secret, name, PASSWORD)
        for secret, name in zip(secrets, ("Dora", "dora"), strict=True)
    ])  # fmt: skip
    assert sorted(told) == ["This name is taken.", "done"]
    assert sum(membership.find_invitation(secret) is not None for secret in secrets) == 1

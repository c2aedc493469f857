"""Guessing at passwords: whoever has a person's password could say yes in their name."""

from datetime import timedelta

import pytest
from django.conf import settings as in_force
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings
from time_machine import travel

from hitlchat.accounts.sign_in import address
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)

HERE, ELSEWHERE = "192.0.2.1", "192.0.2.2"


def attempt(password: str, *, username: str = "bob", address: str = HERE, forwarded: str = "") -> int:
    form = {"username": username, "password": password}
    return Client().post("/sign-in", form, REMOTE_ADDR=address, headers={"X-Forwarded-For": forwarded}).status_code


def guess_too_often(username: str = "bob") -> None:
    for _ in range(in_force.AXES_FAILURE_LIMIT - 1):
        assert attempt("a guess", username=username) == 200
    assert attempt("a guess", username=username) == 429


def test_after_too_many_guesses_not_even_the_right_password_lets_in_from_there_until_the_wait_is_over(
    alice: User, bob: User
) -> None:
    guess_too_often()
    answer = Client().post("/sign-in", {"username": "bob", "password": PASSWORD}, REMOTE_ADDR=HERE)
    assert (answer.status_code, answer["Retry-After"]) == (429, "900")
    assert "Wait 15 minutes" in answer.content.decode()
    # The person can go on from elsewhere, and others from there.
    assert attempt(PASSWORD, address=ELSEWHERE) == 302
    assert attempt(PASSWORD, username="alice") == 302
    with travel(timezone.now() + timedelta(minutes=16), tick=True):
        assert attempt(PASSWORD) == 302


def test_a_right_password_makes_former_guesses_count_no_more(bob: User) -> None:
    for _ in range(2):
        for _ in range(in_force.AXES_FAILURE_LIMIT - 1):
            assert attempt("a guess") == 200
        assert attempt(PASSWORD) == 302


def test_nobody_learns_who_exists(bob: User) -> None:
    guess_too_often("nobody-of-that-name")


def test_who_has_a_session_cannot_guess_at_the_password_that_a_risky_yes_needs(bob: User) -> None:
    client = Client(REMOTE_ADDR=HERE)
    client.force_login(bob)
    for _ in range(in_force.AXES_FAILURE_LIMIT - 1):
        assert client.post("/sign-in/again", {"password": "a guess"}).status_code == 422
    assert client.post("/sign-in/again", {"password": "a guess"}).status_code == 429
    assert client.post("/sign-in/again", {"password": PASSWORD}).status_code == 429


def test_a_client_is_known_by_what_trusted_proxies_say_and_by_nothing_it_says_itself(
    subtests: pytest.Subtests, settings: Settings, rf: RequestFactory
) -> None:
    for proxies, forwarded, known_as in [
        (0, "198.51.100.7", HERE),
        (1, "198.51.100.7", "198.51.100.7"),
        (1, "203.0.113.9, 198.51.100.7", "198.51.100.7"),
        (2, "203.0.113.9, 198.51.100.7", "203.0.113.9"),
        (1, "", HERE),
        (1, "nonsense", HERE),
        (1, "2001:db8::1", "2001:db8::1"),
    ]:
        with subtests.test(proxies=proxies):
            settings.TRUSTED_PROXIES = proxies
            assert address(rf.get("/", REMOTE_ADDR=HERE, headers={"X-Forwarded-For": forwarded})) == known_as


def test_behind_a_proxy_guesses_at_a_name_keep_nobody_out_who_comes_from_elsewhere(
    settings: Settings, bob: User
) -> None:
    settings.TRUSTED_PROXIES = 1
    guessed = 0
    for _ in range(settings.AXES_FAILURE_LIMIT):
        guessed = attempt("a guess", forwarded="203.0.113.9")
    assert guessed == 429
    assert attempt(PASSWORD, forwarded=ELSEWHERE) == 302

"""The first administrator, tokens, and sessions that ended."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Final

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.accounts import sign_in
from hitlchat.accounts.models import SetupLink, Token, TokenKind, hashed
from hitlchat.accounts.sign_in import SessionCheck, ended, signed_in_user, stored
from hitlchat.base.statements import MOST
from tests.conftest import PASSWORD
from tests.tables import each_row

pytestmark = pytest.mark.django_db

PERSON = {"username": "mira", "password": PASSWORD}


def test_a_link_makes_one_administrator_signs_them_in_and_ends_all_others(client: Client) -> None:
    link, other = (f"/welcome/{sign_in.make_link()}" for _ in range(2))
    assert client.get(link).status_code == client.get(link).status_code == 200
    assert b"too short" in client.post(link, PERSON | {"password": "short"}).content
    assert client.post(link, PERSON).status_code == 302
    assert User.objects.get().is_superuser
    assert client.get("/").status_code == 200
    assert not SetupLink.objects.exists()
    for used in (link, other):
        assert Client().post(used, PERSON | {"username": "eve"}).status_code == 410
    assert User.objects.count() == 1
    # Where there is an administrator, no link opens.
    assert not sign_in.needed()
    assert client.get(f"/welcome/{sign_in.make_link()}").status_code == 410


def test_a_link_lapses(client: Client) -> None:
    secret = sign_in.make_link()
    SetupLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.post(f"/welcome/{secret}", PERSON).status_code == 410
    assert not User.objects.exists()


def test_create_token_prints_nothing_but_the_token_which_is_kept_as_a_hash_and_void_once_deactivated(bob: User) -> None:
    out = StringIO()
    call_command("create_token", "bob", "--kind", "api", stdout=out)
    secret = out.getvalue().strip()
    assert " " not in secret
    token = Token.find(secret)
    assert token is not None
    assert (token.user, token.kind, token.digest) == (bob, TokenKind.API, hashed(secret))
    assert secret not in str(Token.objects.values())
    with pytest.raises(CommandError, match="no active user"):
        call_command("create_token", "nobody", "--kind", "api")
    User.objects.update(is_active=False)
    assert Token.find(secret) is None


def test_a_session_ends_with_sign_out_and_with_a_new_password(bob: User, client: Client) -> None:
    client.force_login(bob)
    key = client.session.session_key
    assert signed_in_user(stored(key)) == bob
    bob.set_password("another long pass phrase")
    bob.save()
    assert signed_in_user(stored(key)) is None
    client.force_login(bob)
    key = client.session.session_key
    client.post("/sign-out")
    assert signed_in_user(stored(key)) is None


ENDS: Final[dict[str, Callable[[User, Client], object]]] = {
    "sign-out": lambda _bob, client: client.post("/sign-out"),
    "a new password": lambda bob, _client: User.objects.filter(pk=bob.pk).update(password=make_password("another")),
    "deactivation": lambda bob, _client: User.objects.filter(pk=bob.pk).update(is_active=False),
    "its end": lambda _bob, client: Session.objects.filter(pk=client.session.session_key).update(
        expire_date=timezone.now()
    ),
    "another session in its place": lambda _bob, client: Session.objects.filter(pk=client.session.session_key).update(
        session_data=SessionStore().encode({"_auth_user_id": "0"})
    ),
}


@each_row("end", ENDS.values(), ids=ENDS)
def test_an_open_page_learns_that_its_session_has_ended_and_asks_with_one_statement_while_it_has_not(
    end: Callable[[User, Client], object], bob: User
) -> None:
    client = Client()
    client.force_login(bob)
    check = SessionCheck(client.session.session_key, bob.pk)
    assert check.holds()
    with CaptureQueriesContext(connection) as sent:
        assert check.holds()
    assert len(sent) == 1
    end(bob, client)
    assert not check.holds()


@each_row("end", ENDS.values(), ids=ENDS)
def test_many_open_pages_are_looked_at_together_and_those_whose_session_has_ended_are_found(
    end: Callable[[User, Client], object], bob: User, alice: User
) -> None:
    clients, checks = {user: Client() for user in (bob, alice)}, {}
    for user, client in clients.items():
        client.force_login(user)
        checks[user] = [SessionCheck(client.session.session_key, user.pk) for _ in range(MOST)]
    nobodys = SessionCheck(None, bob.pk)
    foreign = SessionCheck(checks[alice][0].key, bob.pk)
    assert ended([*checks[bob], nobodys, *checks[alice], foreign]) == [nobodys, foreign]
    with CaptureQueriesContext(connection) as sent:
        assert ended([*checks[bob], *checks[alice]]) == []
    assert len(sent) == 4
    end(bob, clients[bob])
    assert ended([*checks[alice], *checks[bob]]) == checks[bob]


def test_a_session_lets_nobody_else_in(bob: User, alice: User, client: Client) -> None:
    client.force_login(bob)
    assert not SessionCheck(client.session.session_key, alice.pk).holds()
    assert not SessionCheck(None, bob.pk).holds()

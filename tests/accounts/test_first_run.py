"""The first administrator, tokens, and sessions that ended."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from hitlchat.accounts import sign_in
from hitlchat.accounts.models import SetupLink, Token, TokenKind, hashed
from hitlchat.accounts.sign_in import signed_in_user
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db

PERSON = {"username": "mira", "password": PASSWORD}


def test_the_link_makes_one_administrator_and_signs_them_in(client: Client) -> None:
    link = f"/welcome/{sign_in.make_link()}"
    assert client.post(link, PERSON).status_code == 302
    assert User.objects.get().is_superuser
    assert client.get("/").status_code == 200
    assert Client().post(link, PERSON | {"username": "eve"}).status_code == 410
    assert User.objects.count() == 1


def test_looking_at_the_link_does_not_use_it_up(client: Client) -> None:
    link = f"/welcome/{sign_in.make_link()}"
    assert client.get(link).status_code == client.get(link).status_code == 200


def test_using_one_link_ends_all_of_them(client: Client) -> None:
    first, second = sign_in.make_link(), sign_in.make_link()
    client.post(f"/welcome/{first}", PERSON)
    assert client.get(f"/welcome/{second}").status_code == 410
    assert not SetupLink.objects.exists()


def test_a_link_lapses(client: Client) -> None:
    secret = sign_in.make_link()
    SetupLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.post(f"/welcome/{secret}", PERSON).status_code == 410
    assert not User.objects.exists()


def test_a_weak_password_is_refused_and_the_link_stays_open(client: Client) -> None:
    link = f"/welcome/{sign_in.make_link()}"
    assert b"too short" in client.post(link, PERSON | {"password": "short"}).content
    assert client.post(link, PERSON).status_code == 302


def test_where_there_is_an_administrator_no_link_opens(alice: User, client: Client) -> None:
    assert not sign_in.needed()
    assert client.get(f"/welcome/{sign_in.make_link()}").status_code == 410


def test_create_token_prints_nothing_but_the_token(bob: User) -> None:
    out = StringIO()
    call_command("create_token", "bob", "--kind", "api", stdout=out)
    secret = out.getvalue().strip()
    assert " " not in secret
    token = Token.find(secret)
    assert token is not None
    assert (token.user, token.kind) == (bob, TokenKind.API)


def test_a_token_is_kept_as_its_hash_only(bob: User) -> None:
    secret = Token.make(bob, TokenKind.APPROVER)
    assert Token.objects.get().digest == hashed(secret)
    assert secret not in str(Token.objects.values())


def test_a_token_of_someone_deactivated_is_void(bob: User) -> None:
    secret = Token.make(bob, TokenKind.API)
    User.objects.update(is_active=False)
    assert Token.find(secret) is None


def test_a_token_for_nobody_is_refused() -> None:
    with pytest.raises(CommandError, match="no active user"):
        call_command("create_token", "nobody", "--kind", "api")


def test_a_session_ends_with_sign_out_and_with_a_new_password(bob: User, client: Client) -> None:
    client.force_login(bob)
    key = client.session.session_key
    assert signed_in_user(key) == bob
    bob.set_password("another long pass phrase")
    bob.save()
    assert signed_in_user(key) is None
    client.force_login(bob)
    key = client.session.session_key
    client.post("/sign-out")
    assert signed_in_user(key) is None

"""Invitations: made by administrators, good once and for a while, and what the record says of them."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from hitlchat.accounts import roles
from hitlchat.accounts.models import Invitation, Role, hashed
from hitlchat.gate.models import AuditEvent
from hitlchat.people import membership
from tests.conftest import PASSWORD, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

NEW = {"username": "dora", "password": PASSWORD}


@pytest.fixture
def link(alice: User) -> str:
    _, secret = membership.invite(Role.AUTHOR, "Dora", signed_in(alice))
    return f"/join/{secret}"


@pytest.mark.servers("row locks tell two at a time apart")
def test_whoever_opens_the_link_joins_with_that_role_and_is_signed_in(client: Client, link: str) -> None:
    for _ in range(2):
        assert "<b>alice</b> invites you" in client.get(link).content.decode()
    secret = link.rpartition("/")[2]
    assert secret not in str(Invitation.objects.values())
    assert client.post(link, NEW).headers["location"] == "/"
    assert client.get("/studio/").status_code == 200
    dora = User.objects.get(username="dora")
    assert roles.role_of(dora) == Role.AUTHOR
    assert not dora.is_superuser
    assert Client().post(link, NEW | {"username": "eve"}).status_code == 410
    assert not User.objects.filter(username="eve").exists()
    # On record is who invited and who came, and never the secret.
    invited, joined = AuditEvent.objects.filter(name__in=["person.invited", "person.joined"]).order_by("id")
    assert (invited.name, str(invited.actor), joined.name) == ("person.invited", "alice", "person.joined")
    assert (joined.data["person"], joined.data["invited_by"]) == ("dora", "alice")
    kept = str([invited.data, joined.data])
    assert secret not in kept
    assert hashed(secret) not in kept


def test_it_lapses_after_seven_days(client: Client, link: str) -> None:
    left = Invitation.objects.get().expires_at - timezone.now()
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)
    Invitation.objects.update(expires_at=timezone.now())
    assert client.get(link).status_code == 410
    assert client.post(link, NEW).status_code == 410


def test_a_revoked_one_opens_nothing(client: Client, alice: User, link: str) -> None:
    client.force_login(alice)
    address = f"/people/invitations/{Invitation.objects.get().pk}/revoke"
    assert "for Dora?" in client.get(address).content.decode()
    assert "no longer works" in client.post(address, follow=True).content.decode()
    assert "no longer works" in client.post(address, follow=True).content.decode()
    assert Client().post(link, NEW).status_code == 410
    assert AuditEvent.objects.filter(name="person.invitation_revoked").count() == 1


def test_the_link_stays_open_after_what_does_not_fit_and_for_whoever_is_signed_in(
    subtests: pytest.Subtests, client: Client, bob: User, link: str
) -> None:
    for changed, said in [
        ({"password": "short"}, "too short"),
        ({"username": "ALICE"}, "This name is taken"),
        ({"username": "a b"}, "Enter a valid username"),
        ({"username": "al\u0456ce"}, "are invisible or look like others"),
    ]:
        with subtests.test(changed=changed):
            answer = client.post(link, NEW | changed)
            assert (answer.status_code, said in answer.content.decode()) == (422, True)
    client.force_login(bob)
    assert client.get(link).status_code == client.post(link, NEW).status_code == 409
    assert not User.objects.filter(username="dora").exists()
    assert Client().post(link, NEW).status_code == 302


@pytest.mark.servers("row locks tell two at a time apart")
def test_only_so_many_are_open_at_a_time(alice: User, monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    monkeypatch.setattr(membership, "MOST_OPEN", 1)
    membership.invite(Role.MEMBER, "", signed_in(alice))
    client.force_login(alice)
    answer = client.post("/people/invite", {"role": "member"})
    assert (answer.status_code, "1 invitations are open" in answer.content.decode()) == (422, True)


def test_an_operator_without_a_browser_invites_lists_and_changes_people(alice: User, bob: User) -> None:
    path = told("invite", "approver", "--note", "for Dora")
    assert Client().post(path, NEW).status_code == 302
    assert "dora is author." in told("role", "dora", "author")
    assert "signed out everywhere" in told("deactivate", "bob")
    listed = told("list").splitlines()
    assert [line.split("\t")[:3] for line in listed] == [
        ["alice", "administrator", "active"],
        ["dora", "author", "active"],
        ["bob", "member", "deactivated"],
    ]
    assert "can sign in again" in told("reactivate", "bob")
    for arguments, said in (
        (("role", "nobody", "member"), "no user named"),
        (("deactivate", "alice"), "only active administrator"),
        (("reactivate", "bob"), "already active"),
        (("role", "bob", "member"), "already has this role"),
    ):
        with pytest.raises(CommandError, match=said):
            told(*arguments)
    assert set(AuditEvent.objects.filter(actor=None).values_list("means", flat=True)) == {"console"}


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("people", *arguments, stdout=out)
    return out.getvalue().strip()

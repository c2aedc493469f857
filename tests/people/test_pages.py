"""The pages about people: for administrators, by second press, and never on what is no longer so."""

import html
import re
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts import roles
from hitlchat.accounts.models import Invitation, Role, Token, TokenKind
from hitlchat.accounts.sign_in import signed_in_user, stored
from hitlchat.gate.models import Absence, AuditEvent
from tests.conftest import PASSWORD
from tests.tables import each_row

pytestmark = pytest.mark.django_db

ANOTHER = "quite another pass phrase"


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def text(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_what_one_signs_in_with_has_one_name_on_all_pages(admin: Client) -> None:
    for path in ("/account", "/people/invite"):
        shown = text(admin.get(path)).lower()
        assert "username" in shown
        assert "user name" not in shown


def test_they_are_for_administrators(client: Client, bob: User, alice: User) -> None:
    roles.give(bob, Role.AUTHOR)
    client.force_login(bob)
    assert client.post(f"/people/{bob.pk}/role", {"role": "administrator", "seen": "author, active"}).status_code == 403
    assert client.post("/people/invite", {"role": "administrator"}).status_code == 403
    assert client.post("/people/groups", {"name": "mine"}).status_code == 403
    assert 'href="/people/"' not in client.get("/").content.decode()
    assert (roles.role_of(bob), Invitation.objects.count()) == (Role.AUTHOR, 0)


def test_the_list_says_role_status_sign_in_and_tokens_and_can_be_narrowed(admin: Client, bob: User) -> None:
    charlie = User.objects.create_user("charlie", email="c@example.com", is_active=False)
    roles.give(charlie, Role.APPROVER)
    Token.make(bob, TokenKind.API)
    page = text(admin.get("/people/"))
    assert re.search(r"alice administrator Active .* bob member Active .* charlie c@example.com approver Deac", page)
    assert "Last sign-in &nbsp; Never" not in page.partition("bob")[0]
    found = {
        "?q=C@EX": ["charlie"], "?role=administrator": ["alice"], "?state=deactivated": ["charlie"],
        "?role=member&state=active": ["bob"], "?q=nobody": [], "?role=king": ["alice", "bob", "charlie"],
    }  # fmt: skip
    for query, names in found.items():
        rows = admin.get(f"/people/{query}").content.decode()
        assert re.findall(r'href="/people/\d+">(\w+)<', rows) == names
    assert "Nobody matches" in text(admin.get("/people/?q=nobody"))
    assert admin.get("/people/?q=%00&page=99").status_code == 200


def test_the_list_takes_as_many_queries_for_many_as_for_few(admin: Client, django_assert_max_num_queries: Any) -> None:
    for number in range(40):
        User.objects.create(username=f"person-{number}")
    with django_assert_max_num_queries(20):
        admin.get("/people/")


def test_a_role_is_changed_by_a_second_press_and_not_by_looking(admin: Client, bob: User) -> None:
    asked = admin.get(f"/people/{bob.pk}/role?role=author")
    assert "Now Member" in text(asked)
    assert "Afterwards Author" in text(asked)
    assert roles.role_of(bob) == Role.MEMBER
    answer = admin.post(f"/people/{bob.pk}/role", {"role": "author", "seen": "member, active"}, follow=True)
    assert "bob is now author." in text(answer)
    assert "are withdrawn" in text(admin.get(f"/people/{bob.pk}/role?role=approver"))
    assert "are withdrawn" not in text(admin.get(f"/people/{bob.pk}/role?role=administrator"))
    assert roles.role_of(bob) == Role.AUTHOR


def test_a_page_that_shows_what_is_no_longer_so_changes_nothing(admin: Client, bob: User) -> None:
    for path in ("role", "deactivate", "reactivate"):
        for seen in ({"seen": "author, active"}, {}):
            answer = admin.post(f"/people/{bob.pk}/{path}", {"role": "approver", **seen})
            assert (answer.status_code, "Review the change again." in text(answer)) == (409, True), path
    assert not AuditEvent.objects.exists()


def test_oneself_one_cannot_change(admin: Client, alice: User) -> None:
    assert "This is you." in text(admin.get(f"/people/{alice.pk}"))
    assert admin.get(f"/people/{alice.pk}/deactivate").status_code == 302
    answer = admin.post(f"/people/{alice.pk}/deactivate", {"seen": "administrator, active"})
    assert "You cannot change your own role" in text(answer)
    alice.refresh_from_db()
    assert alice.is_active


def test_before_someone_is_deactivated_it_is_said_what_follows(admin: Client, bob: User) -> None:
    Token.make(bob, TokenKind.MCP)
    page = text(admin.get(f"/people/{bob.pk}/deactivate"))
    for words in (
        "signed out everywhere",
        "The one token is revoked for good",
        "The assistant stops working for bob.",
    ):
        assert words in page
    answer = admin.post(f"/people/{bob.pk}/deactivate", {"seen": "member, active"}, follow=True)
    assert "bob is deactivated and signed out everywhere." in text(answer)
    answer = admin.post(f"/people/{bob.pk}/reactivate", {"seen": "member, deactivated"}, follow=True)
    assert "bob can sign in again." in text(answer)
    assert not Token.objects.exists()


def test_a_group_is_made_filled_renamed_and_deleted_and_all_of_it_recorded(admin: Client, bob: User) -> None:
    group = admin.post("/people/groups", {"name": "  Finance   team "}).headers["location"]
    admin.post(f"{group}/add", {"person": "bob"})
    admin.post(f"{group}/add", {"person": "bob"})
    assert "bob" in text(admin.get(group)).partition("Members")[2]
    assert "Finance team" in text(admin.get("/people/"))
    admin.post(f"{group}/rename", {"name": "Money", "seen": "Finance team"})
    assert "It is called" not in text(admin.get(group))
    assert admin.post(f"{group}/rename", {"name": "Gold", "seen": "Finance team"}).status_code == 409
    admin.post(f"{group}/remove/{bob.pk}")
    assert "The group has no members." in text(admin.get(f"{group}/delete"))
    assert admin.post(f"{group}/delete", {"seen": "Gold"}).status_code == 409
    assert "The group Money is deleted." in text(admin.post(f"{group}/delete", {"seen": "Money"}, follow=True))
    assert not roles.named_groups().exists()
    names = [event.name.removeprefix("group.") for event in AuditEvent.objects.order_by("id")]
    assert names == ["created", "person_added", "renamed", "person_removed", "deleted"]
    renamed = AuditEvent.objects.get(name="group.renamed").data
    assert (renamed["from"], renamed["to"]) == ("Finance team", "Money")


def test_before_a_group_that_a_policy_names_is_renamed_or_deleted_it_is_said_what_follows(
    admin: Client, settings: Settings
) -> None:
    rule = {"policy": "user_group", "tools": ["*"], "groups": ["finance"], "people": "others", "verdict": "refuse"}
    group, other = (Group.objects.create(name=name) for name in ("finance", "Finance"))
    pages = [f"/people/groups/{group.pk}", f"/people/groups/{group.pk}/delete"]
    for policies, warned in (([], False), ([{"policy": "any_of", "policies": [rule]}], True), (["nonsense"], False)):
        settings.HITL_POLICIES = policies
        assert ["names this group" in text(admin.get(page)) for page in pages] == [warned] * 2
    settings.HITL_POLICIES = [rule]
    assert "names this group" not in text(admin.get(f"/people/groups/{other.pk}"))


def test_a_name_that_does_not_fit_makes_no_group(subtests: pytest.Subtests, admin: Client) -> None:
    Group.objects.create(name="Finance")
    for name, said in [
        ("", "1 to 80"),
        ("x" * 81, "1 to 80"),
        ("Role:author", "reserved for roles"),
        ("role :author", "reserved for roles"),
        (" R o le\u00a0: author", "reserved for roles"),
        ("finance", "already a group with this name"),
        ("fin\u202eance", "cannot be seen"),
        ("fin\u0430nce", "look like others"),
    ]:
        with subtests.test(name=name):
            assert said in text(admin.post("/people/groups", {"name": name}, follow=True))
    assert roles.named_groups().count() == 1


def test_the_groups_of_roles_are_no_named_groups(admin: Client, bob: User) -> None:
    role = Group.objects.get(name="role:administrator")
    assert admin.get(f"/people/groups/{role.pk}").status_code == 404
    for act, data in (("add", {"person": "bob"}), ("rename", {"name": "x", "seen": role.name})):
        assert admin.post(f"/people/groups/{role.pk}/{act}", data).status_code == 404
    assert not role.user_set.exists()


def test_everyone_sees_their_own_role_and_changes_their_password(client: Client, bob: User) -> None:
    elsewhere = Client()
    assert "This account was deactivated" in text(client.get("/deactivated"))
    for each in (client, elsewhere):
        each.force_login(bob)
    assert client.get("/deactivated").status_code == 302
    assert "Member . Chats, uses tools, and decides their own calls." in text(client.get("/account"))
    form = {"old_password": PASSWORD, "new_password1": ANOTHER, "new_password2": ANOTHER}
    for wrong, said in (({"old_password": "x"}, "incorrectly"), ({"new_password2": "x"}, "match")):
        answer = client.post("/account", form | wrong)
        assert (answer.status_code, said in text(answer)) == (422, True)
    assert "Your password is changed." in text(client.post("/account", form, follow=True))
    assert signed_in_user(stored(client.session.session_key)) == bob
    assert elsewhere.get("/account").status_code == 302
    assert AuditEvent.objects.get().name == "person.password_changed"
    assert ANOTHER not in str(AuditEvent.objects.values())


def test_a_browser_keeps_the_theme_that_was_chosen_and_none_that_is_not_there(bob: User, client: Client) -> None:
    client.force_login(bob)
    assert "data-theme" not in client.get("/account").content.decode()
    for theme in ("light", "dark"):
        chosen = client.post("/theme", {"theme": theme})
        assert (chosen.status_code, chosen["Location"]) == (302, "/account")
        for path in ("/account", "/", "/sign-in"):
            assert f'data-theme="{theme}"' in client.get(path, follow=True).content.decode()
    client.post("/theme", {"theme": "system"})
    assert "data-theme" not in client.get("/account").content.decode()
    for theme in ("", "blue", '"><script>'):
        assert client.post("/theme", {"theme": theme}).status_code == 400
        client.cookies["hitlchat_theme"] = theme
        assert "data-theme" not in client.get("/account").content.decode()


# -- away --------------------------------------------------------------------------------------------------------------


AWAY = {"delegate": "alice", "since": "", "until": "2099-01-01T09:00", "time_zone": "Europe/Berlin"}


def test_one_says_on_the_own_page_who_decides_meanwhile_and_ends_it(client: Client, alice: User, bob: User) -> None:
    client.force_login(bob)
    day = timezone.now() + timedelta(days=2)
    wanted = {"since": f"{day:%Y-%m-%d}T09:00", "until": f"{day:%Y-%m-%d}T17:30"}
    answer = client.post("/account/delegation", AWAY | wanted, follow=True)
    assert "alice decides for bob from" in text(answer)
    absence = Absence.objects.get()
    berlin = ZoneInfo("Europe/Berlin")
    assert [f"{at.astimezone(berlin):%H:%M}" for at in (absence.since, absence.until)] == ["09:00", "17:30"]
    assert "alice decides for you from" in text(client.get("/approvals/"))
    client.force_login(alice)
    assert "alice decides for bob from" in text(client.get("/account"))
    client.force_login(bob)
    assert "alice decides" not in text(client.post(f"/delegations/{absence.pk}/end", follow=True))


@each_row(
    "sent, words",
    [
        ({}, "At most 365 days after the beginning."),
        ({"delegate": "bob"}, "Select a valid choice"),
        ({"until": "2020-01-01T09:00"}, "Expected a moment after the beginning"),
        ({"until": "soon"}, "Enter a valid date/time"),
        ({"time_zone": "Nowhere/Here"}, "Select a valid choice"),
        # There was no such time on that clock.
        ({"since": "2027-03-28T02:30", "until": "2027-03-29T02:30"}, "be interpreted in time zone"),
    ],
)
def test_what_is_wrong_with_it_is_said_at_its_field(
    client: Client, alice: User, bob: User, sent: dict[str, str], words: str
) -> None:
    client.force_login(bob)
    answer = client.post("/account/delegation", AWAY | sent)
    assert (answer.status_code, Absence.objects.count()) == (422, 0)
    assert words in html.unescape(text(answer))


def test_an_administrator_names_one_for_somebody_who_is_away_but_not_themselves(admin: Client, bob: User) -> None:
    User.objects.create_user("carol")
    soon = {"until": f"{timezone.now() + timedelta(days=2):%Y-%m-%dT%H:%M}"}
    refused = admin.post(f"/people/{bob.pk}/delegation", AWAY | soon)
    assert (refused.status_code, Absence.objects.count()) == (422, 0)
    admin.post(f"/people/{bob.pk}/delegation", AWAY | soon | {"delegate": "carol"})
    absence = Absence.objects.get()
    assert "carol decides for bob from" in text(admin.get(f"/people/{bob.pk}"))
    answer = admin.post(f"/delegations/{absence.pk}/end")
    assert answer.headers["Location"] == f"/people/{bob.pk}"
    assert [*AuditEvent.objects.filter(name__startswith="delegation.").values_list("actor__username")] == [
        ("alice",),
        ("alice",),
    ]

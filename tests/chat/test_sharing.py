"""A shared conversation: read by whoever is signed in and has the link, until its owner ends that or is gone."""

import re
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLResolver, get_resolver

from hitlchat.agent import branches, conversations, export, runs, transcript
from hitlchat.agent.models import Conversation, Message, Role, Run, RunStatus
from hitlchat.gate.models import AuditEvent
from hitlchat.people import membership
from tests.conftest import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def theirs(bob: User) -> Conversation:
    """bob's, in which a message has another version that is not shown."""
    made = Conversation.objects.create(owner=bob, title="Orders")
    rows = [("Hidden words", False), ("Shown <b>words</b>", True)]
    for seq, (content, shown) in enumerate(rows, 1):
        run = Run.objects.create(conversation=made, status=RunStatus.DONE, shown=shown)
        Message.objects.create(conversation=made, run=run, seq=seq, role=Role.USER, content=content)
    return made


@pytest.fixture
def owner(bob: User) -> Client:
    found = Client()
    found.force_login(bob)
    return found


@pytest.fixture
def colleague(charlie: User) -> Client:
    found = Client()
    found.force_login(charlie)
    return found


def link_of(conversation: Conversation) -> str:
    conversation.refresh_from_db()
    return f"/shared/{conversation.share}"


def test_its_owner_sees_what_colleagues_will_see_and_shares_it(
    owner: Client, colleague: Client, theirs: Conversation
) -> None:
    page = f"/chat/{theirs.pk}/share"
    before = owner.get(page).content.decode()
    assert "Create link" in before
    assert "Shown &lt;b&gt;words&lt;/b&gt;" in before
    assert "Hidden words" not in before
    assert owner.post(page, {"shared": "1"}).status_code == 302
    assert link_of(theirs) in owner.get(page).content.decode()
    read = colleague.get(link_of(theirs)).content.decode()
    assert "Shown &lt;b&gt;words&lt;/b&gt;" in read
    assert "Hidden words" not in read
    assert "ws-send" not in read
    assert [event.name for event in AuditEvent.objects.order_by("pk")] == ["conversation.shared"]


def test_a_summary_can_be_read_there_and_not_undone(colleague: Client, theirs: Conversation, bob: User) -> None:
    run = Run.objects.get(conversation=theirs, shown=True)
    transcript.add_summary(theirs.pk, run.pk, "They like **tea**.", [Message.objects.get(run=run).pk])
    conversations.share(theirs, signed_in(bob))
    read = colleague.get(link_of(theirs)).content.decode()
    assert "<strong>tea</strong>" in read
    assert "ws-send" not in read
    assert "Undo" not in read


def test_nothing_but_the_link_leads_there(colleague: Client, theirs: Conversation, bob: User) -> None:
    conversations.share(theirs, signed_in(bob))
    for path in (f"/chat/{theirs.pk}", f"/chat/{theirs.pk}/share", f"/shared/{theirs.pk}", f"/shared/{uuid4()}"):
        assert colleague.get(path).status_code == 404
    assert colleague.post(f"/chat/{theirs.pk}/share", {"shared": "0"}).status_code == 404
    assert colleague.get(link_of(theirs)).status_code == 200
    assert colleague.post(link_of(theirs)).status_code == 405
    anonymous = Client().get(link_of(theirs))
    assert (anonymous.status_code, anonymous["Location"].endswith(link_of(theirs))) == (302, True)


def test_sharing_ends_at_once_and_begins_with_another_link(
    owner: Client, colleague: Client, theirs: Conversation, bob: User
) -> None:
    conversations.share(theirs, signed_in(bob))
    first = link_of(theirs)
    conversations.share(theirs, signed_in(bob))
    assert link_of(theirs) == first
    owner.post(f"/chat/{theirs.pk}/share", {"shared": "0"})
    owner.post(f"/chat/{theirs.pk}/share", {"shared": "0"})
    assert colleague.get(first).status_code == 404
    assert colleague.get(f"{first}/before/9").status_code == 404
    conversations.share(theirs, signed_in(bob))
    assert link_of(theirs) != first
    names = [event.name for event in AuditEvent.objects.order_by("pk")]
    assert names == ["conversation.shared", "conversation.unshared", "conversation.shared"]


def test_a_link_of_someone_who_was_deactivated_or_of_what_was_deleted_leads_nowhere(
    colleague: Client, theirs: Conversation, bob: User
) -> None:
    conversations.share(theirs, signed_in(bob))
    link = link_of(theirs)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert colleague.get(link).status_code == 404
    User.objects.filter(pk=bob.pk).update(is_active=True)
    assert colleague.get(link).status_code == 200
    Conversation.objects.filter(pk=theirs.pk).update(deleted_at=theirs.created_at)
    assert colleague.get(link).status_code == 404


def test_a_link_that_ended_with_its_conversation_or_its_owner_stays_ended_and_is_on_record(
    colleague: Client, theirs: Conversation, alice: User, bob: User
) -> None:
    conversations.share(theirs, signed_in(bob))
    first = link_of(theirs)
    conversations.delete(theirs, signed_in(bob))
    conversations.restore(bob, theirs.pk)
    assert colleague.get(first).status_code == 404
    conversations.share(theirs, signed_in(bob))
    second = link_of(theirs)
    assert colleague.get(second).status_code == 200
    administrator = signed_in(alice)
    membership.deactivate(bob.pk, administrator)
    membership.reactivate(bob.pk, administrator)
    assert [colleague.get(link).status_code for link in (first, second)] == [404, 404]
    events = AuditEvent.objects.filter(name__startswith="conversation.").order_by("pk")
    assert [(each.name, each.actor_id) for each in events] == [
        ("conversation.shared", bob.pk),
        ("conversation.unshared", bob.pk),
        ("conversation.shared", bob.pk),
        ("conversation.unshared", alice.pk),
    ]


def test_what_was_edited_away_is_no_title(colleague: Client, bob: User) -> None:
    made = Conversation.objects.create(owner=bob)
    _, claim = runs.start(made, "My password is hunter2")
    runs.finish(claim, RunStatus.DONE)
    first = made.runs.get()
    claim = branches.instead(made.pk, first.pk, "Hello there")
    runs.finish(claim, RunStatus.DONE)
    made.refresh_from_db()
    conversations.share(made, signed_in(bob))
    page = colleague.get(link_of(made)).content.decode()
    assert made.title == "Hello there"
    for shown in (page, "".join(export.as_markdown(made))):
        assert "Hello there" in shown
        assert "hunter2" not in shown
    # The other way round too: what is not shown is no title.
    branches.switch(made.pk, first.pk)
    made.refresh_from_db()
    assert made.title == "My password is hunter2"


def test_a_title_of_ones_own_stays_when_the_first_message_is_edited(bob: User) -> None:
    made = Conversation.objects.create(owner=bob)
    _, claim = runs.start(made, "Hi")
    runs.finish(claim, RunStatus.DONE)
    conversations.change(made, title="Orders")
    branches.instead(made.pk, made.runs.get().pk, "Hello there")
    made.refresh_from_db()
    assert made.title == "Orders"


@pytest.mark.slow("asks for each page")
def test_every_page_that_takes_get_takes_head(
    colleague: Client, owner: Client, alice: User, theirs: Conversation, bob: User
) -> None:
    conversations.share(theirs, signed_in(bob))
    administrator = Client()
    administrator.force_login(alice)
    shared, chat = link_of(theirs), f"/chat/{theirs.pk}"
    visits = [(administrator, path) for path in plain_paths(get_resolver()) if not path.startswith(("/api", "/static"))]
    visits += [(colleague, path) for path in (shared, f"{shared}/before/2")]
    visits += [(owner, path) for path in (chat, f"{chat}/before/2", f"{chat}/share", f"{chat}/delete", f"{chat}/uses")]
    heads = [(client, path, client.head(path).status_code) for client, path in visits]
    assert sum(code == 200 for *_, code in heads) > 30
    refused = [(client, path, code) for client, path, code in heads if code >= 400]
    assert [path for client, path, code in refused if client.get(path).status_code != code] == []


def plain_paths(within: URLResolver, before: str = "/") -> list[str]:
    """The paths of all pages whose address has no part that changes."""
    found: list[str] = []
    for each in within.url_patterns:
        path = before + str(each.pattern).removeprefix("^").removesuffix("\\Z").removesuffix("$")
        found += plain_paths(each, path) if isinstance(each, URLResolver) else [path]
    return [path for path in found if not re.search(r"[<(^\\]", path)]


def test_a_long_one_is_read_in_pages(colleague: Client, bob: User) -> None:
    long = Conversation.objects.create(owner=bob)
    rows = [Message(conversation=long, seq=n, role=Role.USER, content=f"message {n}.") for n in range(1, 101)]
    Message.objects.bulk_create(rows)
    conversations.share(long, signed_in(bob))
    end = colleague.get(link_of(long)).content.decode()
    assert "message 20." not in end
    assert f"{link_of(long)}/before/21" in end
    assert "message 20." in colleague.get(f"{link_of(long)}/before/21").content.decode()


def test_the_reasoning_before_an_answer_is_read_folded_and_hides_nothing(
    colleague: Client, theirs: Conversation, bob: User
) -> None:
    run = Run.objects.get(conversation=theirs, shown=True)
    told = {"content": "Done.", "reasoning": "I think <b>so\u202e</b>."}
    Message.objects.create(conversation=theirs, run=run, seq=3, role=Role.ASSISTANT, **told)
    conversations.share(theirs, signed_in(bob))
    read = colleague.get(link_of(theirs)).content.decode()
    folded = re.search(r'<details class="raw thoughts">.*?</details>', read, re.DOTALL)
    assert folded
    assert "Reasoning" in folded[0]
    assert "I think &lt;b&gt;so" in folded[0]
    assert "\u202e" not in read

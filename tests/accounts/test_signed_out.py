"""Parts of pages that are asked for without a session: the page is sent away, and no part becomes a sign-in page."""

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/servers/?q=a%20b"}
PARTS = (
    "/approvals/waiting",
    "/servers/status",
    "/chat/threads",
    "/approvals/00000000-0000-0000-0000-000000000000/outcome",
)


def test_a_part_asked_for_while_signed_out_sends_its_page_to_sign_in_and_back(
    subtests: pytest.Subtests, client: Client
) -> None:
    for path in PARTS:
        with subtests.test(path=path):
            answer = client.get(path, headers=HTMX)
            assert (answer.status_code, answer.content) == (204, b"")
            assert answer["HX-Redirect"] == "/sign-in?next=%2Fservers%2F%3Fq%3Da%2520b"
    # A conversation is left to its socket, which says why; a page is redirected as ever.
    conversation = "http://testserver/chat/00000000-0000-0000-0000-000000000000"
    answer = client.get("/chat/threads", headers={"HX-Request": "true", "HX-Current-URL": conversation})
    assert (answer.status_code, answer.content, "HX-Redirect" in answer) == (204, b"", False)
    answer = client.get("/approvals/")
    assert (answer.status_code, answer["Location"]) == (302, "/sign-in?next=/approvals/")


def test_whatever_page_is_named_one_comes_back_to_this_server_alone(subtests: pytest.Subtests, client: Client) -> None:
    for page in ["http://x//evil.example/", "http://x/\\evil", "", "nonsense"]:
        with subtests.test(page=page):
            answer = client.get(PARTS[0], headers={"HX-Request": "true", "HX-Current-URL": page})
            assert answer["HX-Redirect"] == "/sign-in"


def test_the_page_of_someone_deactivated_goes_to_where_that_is_said(client: Client, bob: User) -> None:
    client.force_login(bob)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert client.get(PARTS[0], headers=HTMX)["HX-Redirect"] == "/deactivated"


async def test_it_is_the_same_for_requests_that_are_served_asynchronously(async_client: AsyncClient) -> None:
    answer = await async_client.get(PARTS[0], headers=HTMX)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, "/sign-in?next=%2Fservers%2F%3Fq%3Da%2520b")


def test_whoever_is_signed_in_and_may_not_is_told_so_as_ever(client: Client, bob: User) -> None:
    client.force_login(bob)
    assert client.get("/servers/status", headers=HTMX).status_code == 403

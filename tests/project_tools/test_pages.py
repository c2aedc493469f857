"""The Studio shows the project's functions, to be read."""

from typing import Annotated

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pydantic import Field

from hitlchat.gate.models import Tool
from hitlchat.project_tools import tool
from tests.conftest import MakeTool
from tests.project_tools.conftest import Offer

pytestmark = pytest.mark.django_db(transaction=True)


def refund(order: str, amount: int = 1) -> str:
    """Pay <b>money</b> back."""
    return order


@pytest.fixture
def author(alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


def test_a_page_says_everything_about_a_function(author: Client, offer: Offer) -> None:
    tool(risk=3, title="Refund", hitl="CONDITIONAL", condition='args["amount"] > 10', prompt="Refund {args.order}?")(
        refund
    )
    offer()
    page = author.get("/studio/project/refund").content.decode()
    assert "published: agents may call it" in page
    assert "tests.project_tools.test_pages.refund" in page
    assert "Asks when the condition below" in page
    assert "&lt;b&gt;money&lt;/b&gt;" in page
    assert 'data-level="3"' in page
    assert "<form" not in page.partition("<main")[2]


def test_a_page_says_what_each_argument_means(author: Client, offer: Offer) -> None:
    def pay(order: Annotated[str, Field(title="Order", description="its <i>number</i>")]) -> str:
        """Pay."""
        return order

    tool(risk=3)(pay)
    offer()
    page = author.get("/studio/project/pay").content.decode()
    assert "its &lt;i&gt;number&lt;/i&gt;" in page


def test_a_function_whose_name_is_taken_is_shown_as_not_offered(
    author: Client, make_tool: MakeTool, offer: Offer
) -> None:
    make_tool("refund")
    tool(risk=3)(refund)
    offer()
    page = author.get("/studio/project/refund").content.decode()
    assert "<b>Not offered.</b> Another tool is called refund: Tool Studio, version 1" in page


def test_a_page_says_when_another_version_is_in_force(author: Client, offer: Offer) -> None:
    tool(risk=3)(refund)
    offer()
    Tool.objects.update(definition_hash="e" * 64)
    assert "Another version is in force" in author.get("/studio/project/refund").content.decode()
    Tool.objects.all().delete()
    assert "is not in the catalog yet" in author.get("/studio/project/refund").content.decode()


def test_the_list_has_all_of_them_and_says_how_to_get_the_first(author: Client, offer: Offer) -> None:
    assert "<code>@tool</code>" in author.get("/studio/project/").content.decode()
    tool(risk=3)(refund)
    offer()
    assert 'href="/studio/project/refund"' in author.get("/studio/project/").content.decode()
    assert author.get("/studio/project/other").status_code == 404
    assert author.post("/studio/project/refund").status_code == 405

"""The list of tools beside the Studio's pages: search, filters and groups."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hitlchat.gate.models import Tool
from tests.conftest import ECHO, MakeTool, tried
from tests.tables import each_row
from tools_studio.models import Script

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def several(make_tool: MakeTool) -> None:
    make_tool("echo", title="Say it again", category="Text", tags=("words",), hitl_mode="DISABLED")
    make_tool("keep", category="Data", tags=("words", "lists"), capabilities={"store": True})
    make_tool("look", category="Web", published=False, code=ECHO.replace("return text", "return text.upper()"))
    make_tool("drop", category="Data", capabilities={"destructive": True})
    Script.objects.filter(tool__name="look").update(revoked="tampered with")
    Script.objects.filter(tool__name="echo").update(shipped="0" * 64)


def found(client: Client, **filters: str) -> list[str]:
    page = client.get("/studio/", filters)
    return [line.tool.name for group in page.context["groups"] for line in group["lines"]]


@pytest.mark.servers("the SQL differs between the databases")
@each_row(
    "filters, names",
    [
        ({}, ["drop", "keep", "echo", "look"]),
        ({"q": "again"}, ["echo"]),
        ({"q": "UPPER"}, ["look"]),
        ({"q": "say back"}, ["drop", "keep", "echo", "look"]),
        ({"q": "say nothing"}, []),
        ({"category": "Data"}, ["drop", "keep"]),
        ({"tag": "words"}, ["keep", "echo"]),
        ({"tag": "words", "category": "Data"}, ["keep"]),
        ({"mode": "DISABLED"}, ["echo"]),
        ({"state": "draft"}, ["look"]),
        ({"state": "published"}, ["drop", "keep", "echo"]),
        ({"state": "shipped"}, ["echo"]),
        ({"state": "revoked"}, ["look"]),
        ({"risk": "5"}, ["drop"]),
        ({"risk": "0", "q": "o"}, ["echo", "look"]),
        ({"category": "Nonsense"}, []),
        ({"risk": "²"}, ["drop", "keep", "echo", "look"]),
        ({"q": "%"}, []),
    ],
)
def test_what_is_set_narrows_the_list_all_at_once(
    several: None, author: Client, filters: dict[str, str], names: list[str]
) -> None:
    assert found(author, **filters) == names


def test_the_counts_say_how_many_of_how_many_and_looking_at_a_tool_keeps_the_list_narrowed(
    several: None, author: Client
) -> None:
    shown = author.get("/studio/?category=Data").content.decode()
    assert "2 of 4" in shown
    assert "Filters: 1 set" in shown
    assert "Clear filters" in shown
    assert "/studio/tools/keep?category=Data" in shown
    page = author.get("/studio/tools/keep?category=Data")
    assert page.context["shown"] == 2
    assert [group["current"] for group in page.context["groups"]] == [True]


@pytest.mark.servers("the SQL differs between the databases")
def test_each_tool_says_where_it_stands_and_those_tested_and_not_published_can_be_found(
    several: None, author: Client, alice: User, make_tool: MakeTool
) -> None:
    tried(make_tool("ready", published=False), alice)
    tried(make_tool("out", published=True), alice)
    page = author.get("/studio/")
    states = {line.tool.name: line.state for group in page.context["groups"] for line in group["lines"]}
    published = dict.fromkeys(("drop", "keep", "echo", "out"), "Published")
    assert states == published | {"look": "Revoked", "ready": "Tested"}
    assert found(author, state="tested") == ["ready"]


def test_categories_are_written_as_they_are_called(author: Client) -> None:
    page = author.get("/studio/").content.decode()
    assert ">Date/Time</option>" in page
    assert ">AI APIs</option>" in page


def test_twenty_tools_take_no_more_queries_than_two(author: Client, make_tool: MakeTool) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert author.get("/studio/").status_code == 200
        return len(captured)

    for number in range(2):
        make_tool(f"tool_{number}", tags=("a",))
    before = queries()
    template = Tool.objects.select_related("script").get(name="tool_0")
    for number in range(2, 20):
        copy_row(template, f"tool_{number}")
    assert len(found(author)) == 20
    assert queries() == before


def copy_row(template: Tool, name: str) -> None:
    columns: dict[str, Any] = {
        field.name: getattr(template, field.name) for field in Tool._meta.fields if field.name not in ("id", "name")
    }
    tool = Tool.objects.create(name=name, **columns)
    Script.objects.create(tool=tool, code=template.script.code, tags=["b"])


def test_tools_of_other_sources_stand_there_to_be_looked_at(author: Client) -> None:
    Tool.objects.create(name="of_project", source="project", origin="a function", definition_hash="0" * 64)
    Tool.objects.create(name="from_afar", source="upstream", origin="a server", definition_hash="0" * 64)
    page = author.get("/studio/")
    lines = {line.tool.name: line for group in page.context["groups"] for line in group["lines"]}
    assert lines["of_project"].url.endswith("/of_project")
    assert lines["from_afar"].url.endswith("/by-alias/from_afar")
    shown = page.content.decode()
    assert "own project" in shown
    assert "from_afar" in shown


def test_an_empty_list_says_what_will_stand_there(author: Client) -> None:
    assert "No tools yet" in author.get("/studio/").content.decode()
    assert "No tool matches" in author.get("/studio/?q=anything").content.decode()

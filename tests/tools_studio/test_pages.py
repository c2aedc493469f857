"""The Studio's pages, over HTTP."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import ECHO, MakeTool

pytestmark = pytest.mark.django_db(transaction=True)

FORM = {"name": "echo", "group": "tools", "code": ECHO, "hitl_mode": "REQUIRED"}


@pytest.fixture
def author(alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


def save(client: Client, **fields: Any) -> Any:
    return client.post("/studio/tools/echo", FORM | fields)


@pytest.mark.parametrize("path", ["/studio/", "/studio/new", "/studio/tools/echo", "/studio/tools/echo/delete"])
def test_only_authors_see_the_studio(make_tool: MakeTool, bob: User, client: Client, path: str) -> None:
    make_tool("echo")
    assert client.get(path).status_code == 302
    client.force_login(bob)
    assert client.get(path).status_code == 403


def test_a_new_tool_is_a_draft(author: Client) -> None:
    assert author.post("/studio/new", FORM).status_code == 302
    assert not Tool.objects.get(name="echo").published


def test_a_wrong_tool_is_not_saved_and_the_line_is_named(author: Client) -> None:
    page = author.post("/studio/new", FORM | {"code": "def run(x):\n    return 1\n"})
    assert page.status_code == 422
    assert "Line 1" in page.content.decode()
    assert not Tool.objects.exists()


def test_lowering_the_mode_asks_for_confirmation_first(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    assert save(author, hitl_mode="DISABLED").status_code == 422
    assert Tool.objects.get().hitl_mode == "REQUIRED"
    assert save(author, hitl_mode="DISABLED", lower_anyway="on").status_code == 302
    assert Tool.objects.get().hitl_mode == "DISABLED"


def test_publishing_and_unpublishing(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", published=False)
    author.post("/studio/tools/echo/publish", {"published": "yes"})
    assert Tool.objects.get().published
    author.post("/studio/tools/echo/publish", {"published": "no"})
    assert not Tool.objects.get().published


def test_what_fails_the_check_is_not_published_and_the_page_says_why(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", published=False, code=ECHO + "class A(Exception):\n    pass\n")
    page = author.post("/studio/tools/echo/publish", {"published": "yes"})
    assert page.status_code == 422
    assert "Not published." in page.content.decode()


def test_a_test_of_an_open_tool_shows_its_result(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="DISABLED", published=False)
    page = author.post("/studio/tools/echo/test", {"arg-text": "<b>hi</b>"})
    assert "&lt;b&gt;hi&lt;/b&gt;" in page.content.decode()


@pytest.mark.guarantee("gate:one-funnel")
def test_a_test_of_a_gated_tool_asks_like_every_other_call(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    page = author.post("/studio/tools/echo/test", {"arg-text": "hi"})
    assert "Approve" in page.content.decode()
    assert ToolCall.objects.get().status == Status.WAITING


@pytest.mark.parametrize("typed", ["", "x", "1.5.2"], ids=["nothing", "a letter", "no number"])
def test_what_does_not_fit_a_field_is_said_at_the_field(author: Client, make_tool: MakeTool, typed: str) -> None:
    make_tool("echo", code='def run(n: int) -> int:\n    """N."""\n    return n\n', hitl_mode="DISABLED")
    page = author.post("/studio/tools/echo/test", {"arg-n": typed})
    assert "n" in page.content.decode()
    assert not ToolCall.objects.exists()


def test_searching_finds_names_and_code(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    make_tool("other", code=ECHO.replace("return text", "return text.upper()"))
    found = author.get("/studio/?q=upper").content.decode()
    assert "/studio/tools/other" in found
    assert "/studio/tools/echo" not in found


def test_deleting_takes_a_confirmation_page(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    author.get("/studio/tools/echo/delete")
    assert Tool.objects.exists()
    author.post("/studio/tools/echo/delete")
    assert not Tool.objects.exists()


@pytest.mark.parametrize("power, mode", [({}, "DISABLED"), ({"store": "on"}, "REQUIRED")], ids=["no power", "a power"])
def test_where_the_author_chooses_no_mode_the_risk_does(author: Client, power: dict[str, str], mode: str) -> None:
    author.post("/studio/new", FORM | {"hitl_mode": ""} | power)
    assert Tool.objects.get().hitl_mode == mode


def test_while_typing_the_page_shows_what_follows(author: Client) -> None:
    code = "def run(count: int) -> str:\n    return missing\n"
    page = author.post("/studio/inspect", {"name": "t", "code": code, "hosts": "api.example.com"}).content.decode()
    assert "count" in page
    assert 'data-line="2"' in page
    assert "L3" in page
    assert not Tool.objects.exists()


def test_what_cannot_be_read_is_said_and_breaks_nothing(author: Client) -> None:
    page = author.post("/studio/inspect", {"code": "def run(", "hosts": "not a host"}).content.decode()
    assert 'class="problem"' in page

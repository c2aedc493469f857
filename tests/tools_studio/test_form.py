"""The Studio's form over HTTP: variables, and what is wrong with a capability at the field it belongs to."""

from typing import Any

import pytest
from django.test import Client

from hitlchat.gate.models import Tool
from tests.conftest import ECHO, MakeTool
from tests.tables import each_row
from tests.tools_studio.conftest import FORM, save
from tools_studio import spec
from tools_studio.models import Script
from tools_studio.variables import resolve

pytestmark = pytest.mark.django_db(transaction=True)


# -- The condition ---------------------------------------------------------------------------------------------------

DECIDES = {"hitl_mode": "CONDITIONAL"}


@pytest.fixture
def conditional(make_tool: MakeTool) -> Tool:
    return make_tool("echo", hitl_mode="CONDITIONAL", condition="True")


@each_row(
    "condition, said",
    [
        ("len(args.text) > 1", 'Write args["text"], not args.text.'),
        ('args["txet"] == "a"', 'There is no args["txet"]; expected one of "text".'),
        ('args["text"] > 3', "It would fail: TypeError"),
    ],
)
def test_a_condition_that_would_fail_is_refused_at_its_field(
    condition: str, said: str, author: Client, conditional: Tool
) -> None:
    refused = save(author, **DECIDES, condition=condition, lower_anyway="on")
    assert refused.status_code == 422
    assert refused.context["form"].errors["condition"][0].startswith(said)
    assert Tool.objects.get().condition == "True"


def test_code_that_takes_an_argument_from_under_the_condition_is_refused(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="CONDITIONAL", condition='args["text"] == "a"')
    refused = save(author, **DECIDES, condition='args["text"] == "a"', code=ECHO.replace("text", "words"))
    assert "There is no args" in refused.context["form"].errors["condition"][0]


def test_a_condition_that_was_saved_before_is_no_hindrance(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="CONDITIONAL")
    Tool.objects.update(condition="args.text")
    assert save(author, **DECIDES, condition="args.text", description="Other.").status_code == 302


def test_another_condition_alone_is_confirmed_in_a_box_that_says_so(author: Client, conditional: Tool) -> None:
    shown = author.get("/studio/tools/echo").content.decode()
    assert 'data-condition="True"' in shown
    assert ("If it is true, the call needs approval" in shown, "Asks unless" in shown) == (True, False)
    page = save(author, **DECIDES, condition="False").content.decode()
    assert "Confirm it below" in page
    box = page[page.index("data-lower") :].partition("</label>")[0]
    assert "hidden" not in box.partition(">")[0]
    assert "data-lower-mode hidden" in box
    assert "<p data-lower-rule>Another condition decides" in box
    assert save(author, **DECIDES, condition="False", lower_anyway="on").status_code == 302


# -- Variables -------------------------------------------------------------------------------------------------------


def rows(*variables: tuple[str, str, str]) -> dict[str, list[str]]:
    numbers = [str(number) for number in range(1, len(variables) + 1)]
    return {
        "variable-row": numbers,
        "variable-name": [name for name, _, _ in variables],
        "variable-value": [value for _, _, value in variables],
        "variable-sealed": [""] * len(variables),
        "variable-secret": [number for number, each in zip(numbers, variables, strict=True) if each[1] == "secret"],
    }


def test_a_secret_is_kept_and_never_shown_again(author: Client, make_tool: MakeTool) -> None:
    tool = make_tool("echo")
    assert save(author, **rows(("SHOP_KEY", "secret", "open sesame"), ("CITY", "plain", "Oslo"))).status_code == 302
    page = author.get("/studio/tools/echo").content.decode()
    assert "open sesame" not in page
    assert "Stored; type a new one to replace it" in page
    assert 'value="Oslo"' in page
    assert save(author, **rows(("SHOP_KEY", "secret", ""), ("CITY", "plain", "Rome"))).status_code == 302
    resolved = resolve(spec.stored_variables(tool.script).values())
    assert (resolved.secret, resolved.plain) == ({"SHOP_KEY": "open sesame"}, {"CITY": "Rome"})


def test_a_row_without_a_name_and_a_value_is_no_variable(author: Client, make_tool: MakeTool) -> None:
    tool = make_tool("echo")
    save(author, **rows(("", "plain", ""), ("CITY", "plain", "Oslo"), ("", "secret", "")))
    assert list(spec.stored_variables(tool.script)) == ["CITY"]
    save(author, **rows(("", "plain", "")))
    assert spec.stored_variables(tool.script) == {}


def test_a_secret_that_was_typed_comes_back_sealed_with_an_error(author: Client, make_tool: MakeTool) -> None:
    tool = make_tool("echo")
    page = save(author, **rows(("SHOP_KEY", "secret", "open sesame"), ("no name", "plain", "x")))
    assert page.status_code == 422
    shown = page.content.decode()
    assert "open sesame" not in shown
    assert "is not a valid variable name" in shown
    assert 'value="no name"' in shown
    again = rows(("SHOP_KEY", "secret", "")) | {"variable-sealed": [page.context["form"].rows[0].sealed]}
    assert save(author, **again).status_code == 302
    assert resolve(spec.stored_variables(tool.script).values()).secret == {"SHOP_KEY": "open sesame"}


def test_a_variable_without_a_value_keeps_the_tool_a_draft_and_is_flagged(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", published=False)
    save(author, **rows(("SHOP_KEY", "secret", "")))
    page = author.get("/studio/tools/echo").content.decode()
    assert "No value yet: the tool stays a draft." in page
    assert "SHOP_KEY has no value yet" in page
    assert author.post("/studio/tools/echo/publish", {"published": "yes"}).status_code == 422


# -- Capabilities' errors stand at their fields -----------------------------------------------------------------------


@each_row(
    "typed, field",
    [
        ({"fetch_mode": "allowlist", "hosts": "", "methods": ["GET"]}, "hosts"),
        ({"fetch_mode": "allowlist", "hosts": "http://", "methods": ["GET"]}, "hosts"),
        ({"fetch_mode": "public", "methods": []}, "methods"),
        ({"fetch_mode": "public", "methods": ["GET"], "max_bytes": "many"}, "max_bytes"),
        ({"fetch_mode": "public", "methods": ["GET"], "timeout_seconds": "nan"}, "timeout_seconds"),
        ({"fetch_mode": "public", "methods": ["GET"], "redirects": "99"}, "redirects"),
        ({"fetch_mode": "sideways", "methods": ["GET"]}, "fetch_mode"),
        ({"files_mode": "write", "files_folder": "../etc"}, "files_folder"),
        ({"email": "on", "email_to": "nobody"}, "email_to"),
        ({"email": "on", "email_to": ""}, "email_to"),
        ({"webhook": "on", "webhook_targets": "lower"}, "webhook_targets"),
        ({"webhook": "on", "webhook_targets": "NOT_THERE"}, "webhook_targets"),
    ],
)
def test_what_is_wrong_with_a_capability_is_said_at_its_field(
    author: Client, typed: dict[str, Any], field: str
) -> None:
    page = author.post("/studio/new", FORM | typed)
    assert page.status_code == 422
    assert list(page.context["form"].errors) == [field]
    assert not Tool.objects.exists()


def test_files_without_a_folder_are_in_one_named_like_the_tool(author: Client) -> None:
    author.post("/studio/new", FORM | {"name": "Diary", "files_mode": "write"})
    assert Script.objects.get().capabilities == {"files": {"mode": "write", "folder": "diary"}}

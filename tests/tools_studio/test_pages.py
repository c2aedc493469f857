"""The Studio's editor, over HTTP."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.secrets.values import Value
from tests.conftest import ECHO, MakeTool, signed_in, tried
from tests.tables import each_row
from tests.tools_studio.conftest import FORM, save
from tools_studio import authoring
from tools_studio.models import Script, ScriptVersion
from tools_studio.spec import draft_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def writer(bob: User) -> Client:
    """bob, who writes tools and is no administrator."""
    bob.user_permissions.add(Permission.objects.get(codename="change_script"))
    client = Client()
    client.force_login(bob)
    return client


@pytest.fixture
def echo(make_tool: MakeTool) -> Tool:
    return make_tool("echo")


def test_administrators_are_led_on_to_who_decides_and_to_the_texts_for_models(
    author: Client, writer: Client, make_tool: MakeTool
) -> None:
    make_tool("echo")
    for path in ("/tools/echo/rules", "/tools/echo/texts"):
        led = [f'href="{path}"' in each.get("/studio/tools/echo").content.decode() for each in (author, writer)]
        assert led == [True, False]
        assert author.get(path).status_code == 200


def test_a_new_tool_is_a_draft(author: Client) -> None:
    assert author.post("/studio/new", FORM | {"tags": "Greetings, Text,"}).status_code == 302
    tool = Tool.objects.get(name="echo")
    assert not tool.published
    assert (tool.script.category, tool.script.tags) == ("Text", ["greetings", "text"])


def test_a_wrong_tool_is_not_saved_and_the_line_is_named(author: Client) -> None:
    page = author.post("/studio/new", FORM | {"code": "def run(x):\n    return 1\n"})
    assert page.status_code == 422
    assert "Line 1" in page.content.decode()
    assert not Tool.objects.exists()


def test_the_form_loses_nothing_that_other_ways_have_set(author: Client, make_tool: MakeTool) -> None:
    fields: dict[str, Any] = {
        "title": "Echo", "description": "Told to the model.", "group": "mine", "category": "Web", "tags": ("a", "b"),
        "capabilities": {
            "fetch": {"mode": "public", "hosts": ["*.example.org"], "methods": ["GET"], "maxBytes": 5, "redirects": 2,
                      "timeoutSeconds": 2.5},
            "files": {"mode": "read", "folder": "notes"}, "store": True, "now": True, "email": {"to": ["@a.example"]},
            "webhook": {"targets": ["ALERTS_URL"]},
        },
        "prompt_template": "Say {args.text}", "condition": "True", "deadline_seconds": 9, "example": {"text": "x"},
        "variables": (Value("ALERTS_URL", "https://a.example/x", secret=False), Value("KEY")),
    }  # fmt: skip
    tool = make_tool("echo", **fields)
    page = author.get("/studio/tools/echo")
    form = page.context["form"]
    posted = {name: value for name, value in form.initial.items() if value not in (None, False, "")}
    rows = [row for row in form.rows if not row.empty]
    posted |= {
        "variable-row": [row.number for row in rows],
        "variable-name": [row.name for row in rows],
        "variable-value": [row.value for row in rows],
        "variable-sealed": [row.sealed for row in rows],
        "variable-secret": [row.number for row in rows if row.secret],
    }
    before = draft_of(tool)
    assert author.post("/studio/tools/echo", posted).status_code == 302
    assert draft_of(Tool.objects.select_related("script").get()) == before
    assert Script.objects.get().version == 1


def test_lowering_the_mode_asks_for_confirmation_first(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    page = save(author, hitl_mode="DISABLED")
    assert page.status_code == 422
    assert "Reduce human oversight?" in page.content.decode()
    assert Tool.objects.get().hitl_mode == "REQUIRED"
    assert save(author, hitl_mode="DISABLED", lower_anyway="on").status_code == 302
    assert Tool.objects.get().hitl_mode == "DISABLED"


def test_only_an_administrator_lets_a_critical_tool_run_unasked_and_the_field_says_so(
    author: Client, writer: Client
) -> None:
    critical = FORM | {"destructive": "on", "hitl_mode": "DISABLED"}
    page = writer.post("/studio/new", critical)
    assert page.status_code == 422
    assert "administrator" in page.context["form"].errors["hitl_mode"][0]
    assert author.post("/studio/new", critical | {"lower_anyway": "on"}).status_code == 302


def test_publishing_takes_a_test_that_passed(author: Client, make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", published=False)
    page = author.post("/studio/tools/echo/publish", {"published": "yes"})
    assert page.status_code == 422
    assert "Run a test first" in page.content.decode()
    tried(tool, alice)
    author.post("/studio/tools/echo/publish", {"published": "yes"})
    assert Tool.objects.get().published
    author.post("/studio/tools/echo/publish", {"published": "no"})
    assert not Tool.objects.get().published


def test_what_fails_the_check_is_not_published_and_the_page_says_why(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", published=False, code=ECHO + "class A(Exception):\n    pass\n")
    page = author.post("/studio/tools/echo/publish", {"published": "yes"})
    assert page.status_code == 422
    assert "Not published." in page.content.decode()


def test_a_revoked_tool_says_why_and_cannot_be_published(author: Client, make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", published=False)
    tried(tool, alice)
    Script.objects.update(revoked="its content is not what was <recorded>")
    shown = author.get("/studio/tools/echo").content.decode()
    assert "This tool was revoked and does not run." in shown
    assert "its content is not what was &lt;recorded&gt;" in shown
    assert ">Publish<" not in shown
    assert author.post("/studio/tools/echo/publish", {"published": "yes"}).status_code == 422


def test_an_argument_may_be_called_like_a_method(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", code='def run(items: list[str], keys: str = "") -> str:\n    """Say."""\n    return keys\n')
    shown = author.get("/studio/tools/echo").content.decode()
    assert "<code>items</code>" in shown
    assert "<code>keys</code>" in shown


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
    power = {"fetch_mode": "allowlist", "hosts": "api.example.com", "methods": "GET"}
    page = author.post("/studio/inspect", {"name": "t", "code": code} | power).content.decode()
    assert "count" in page
    assert 'data-line="2"' in page
    assert "L3 Moderate" in page
    assert "It may read from named hosts: api.example.com." in page
    assert not Tool.objects.exists()


def test_what_cannot_be_read_is_said_and_breaks_nothing(author: Client) -> None:
    typed = {"code": "def run(", "fetch_mode": "allowlist", "hosts": "not a host", "max_bytes": "many"}
    page = author.post("/studio/inspect", typed).content.decode()
    assert 'class="problem"' in page


@each_row(
    "code, power, field",
    [
        ("from hitl import fetch\n", {}, "id_fetch_mode_2"),
        ("from hitl import secret\n", {}, "id_secrets"),
        ("from hitl import files\n", {"files_mode": "read", "files_folder": "a"}, "id_files_mode_2"),
    ],
    ids=["fetch", "secret", "files"],
)
def test_what_is_not_granted_can_be_switched_on_from_its_finding(
    author: Client, code: str, power: dict[str, str], field: str
) -> None:
    code += ECHO.replace("return text", "files.write(text, text)\n    return text" if power else "return text")
    page = author.post("/studio/inspect", {"name": "t", "code": code} | power).content.decode()
    assert f'<label class="link" for="{field}">Turn it on</label>' in page
    assert f'id="{field}"' in author.get("/studio/new").content.decode()


def test_what_is_only_doubtful_is_shown_and_does_not_count_as_wrong(
    author: Client, make_tool: MakeTool, alice: User
) -> None:
    code = 'def run(x: float) -> float:\n    """Round."""\n    return round(x, 2)\n'
    page = author.post("/studio/inspect", {"name": "t", "code": code}).content.decode()
    assert "data-doubt" in page
    assert "data-finding" not in page
    assert "No problems found, but check this" in page
    tried(make_tool("echo", code=code, published=False), alice, x=1.5)
    author.post("/studio/tools/echo/publish", {"published": "yes"})
    assert Tool.objects.get().published


def test_the_answer_of_fetch_taken_for_an_object_is_explained(author: Client) -> None:
    code = 'from hitl import fetch\n\n\ndef run(url: str) -> str:\n    """Get."""\n    return fetch(url).text\n'
    page = author.post("/studio/inspect", {"name": "t", "code": code, "fetch_mode": "public", "methods": "GET"})
    assert "write answer[&quot;text&quot;]" in page.content.decode()


# -- Someone else was faster ------------------------------------------------------------------------------------------


def test_a_newer_version_is_not_overwritten_unseen(author: Client, make_tool: MakeTool, bob: User) -> None:
    tool = make_tool("echo")
    authoring.amend(tool, {"title": "Theirs"}, signed_in(bob), confirmed=True)
    page = save(author, title="Mine", made_from="1", lower_anyway="on")
    assert page.status_code == 409
    shown = page.content.decode()
    assert "bob saved version 2" in shown
    assert "/studio/tools/echo/versions/1..2" in shown
    assert 'value="Mine"' in shown
    assert Tool.objects.get().title == "Theirs"
    assert page.context["form"]["made_from"].value() == "2"
    assert save(author, title="Mine", made_from="2", lower_anyway="on").status_code == 302
    assert Tool.objects.get().title == "Mine"


def test_a_page_that_is_up_to_date_saves(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    assert author.get("/studio/tools/echo").context["form"]["made_from"].value() == 1
    assert save(author, title="Mine", made_from="1", lower_anyway="on").status_code == 302
    assert ScriptVersion.objects.count() == 2


def test_calls_that_saving_would_withdraw_are_counted(author: Client, make_tool: MakeTool, alice: User) -> None:
    make_tool("echo")
    assert "for an answer." not in author.get("/studio/tools/echo").content.decode()
    for _ in range(2):
        author.post("/studio/tools/echo/test", {"arg-text": "hi"})
    for page in (author.get("/studio/tools/echo"), author.post("/studio/inspect?of=echo", FORM)):
        assert "2 calls to this tool wait for an answer." in page.content.decode()
    for call in ToolCall.objects.all():
        assert f"/approvals/{call.approval.pk}" in author.get("/studio/tools/echo").content.decode()
    save(author, code=ECHO + "# other\n")
    assert {call.status for call in ToolCall.objects.all()} == {Status.WITHDRAWN}


def test_only_ones_own_waiting_calls_are_linked(author: Client, writer: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    author.post("/studio/tools/echo/test", {"arg-text": "hi"})
    shown = writer.get("/studio/tools/echo").content.decode()
    assert "1 call to this tool waits for an answer." in shown
    assert f"/approvals/{ToolCall.objects.get().approval.pk}" not in shown


def test_saving_a_published_tool_says_that_it_left_the_catalog_and_what_was_withdrawn(
    author: Client, make_tool: MakeTool
) -> None:
    make_tool("echo")
    assert "takes the tool out of the catalog" in author.get("/studio/tools/echo").content.decode()
    author.post("/studio/tools/echo/test", {"arg-text": "hi"})
    shown = author.post("/studio/tools/echo", FORM | {"code": ECHO + "# other\n"}, follow=True).content.decode()
    assert "Agents can call the tool again once a test has passed and you publish it." in shown
    assert "1 open call was withdrawn." in shown
    shown = author.post("/studio/tools/echo", FORM | {"code": ECHO + "# one more\n"}, follow=True).content.decode()
    assert "Agents can call the tool again once" not in shown


# -- Beginning a tool ------------------------------------------------------------------------------------------------


def test_a_copy_has_everything_but_the_secrets(author: Client, make_tool: MakeTool) -> None:
    make_tool(
        "echo", title="Echo", capabilities={"store": True}, example={"text": "x"},
        variables=(Value("KEY", "open sesame"), Value("CITY", "Oslo", secret=False)),
    )  # fmt: skip
    page = author.get("/studio/new?from=echo")
    form = page.context["form"]
    assert (form["name"].value(), form["title"].value(), form["store"].value()) == ("echo_copy", "Echo (copy)", True)
    assert [(row.name, row.value, row.stored) for row in form.rows[:2]] == [("CITY", "Oslo", False), ("KEY", "", False)]
    assert "open sesame" not in page.content.decode()
    author.post("/studio/new?from=echo", FORM | {"name": "echo_copy", "code": ECHO})
    assert Tool.objects.get(name="echo_copy").example == {"text": "x"}
    assert author.get("/studio/new?from=echo").context["form"]["name"].value() == "echo_copy2"


def test_an_example_that_the_signature_no_longer_takes_does_not_stand_in_the_way(
    author: Client, make_tool: MakeTool
) -> None:
    make_tool("echo", example={"text": "x"})
    assert save(author, code=ECHO.replace("text", "words")).status_code == 302
    assert Tool.objects.get().example is None


@each_row("path", ["/studio/new?template=nonsense", "/studio/new?from=nobody"])
def test_a_beginning_that_does_not_exist_is_not_there(author: Client, path: str) -> None:
    assert author.get(path).status_code == 404


def test_nothing_typed_into_an_address_is_taken_for_html(author: Client) -> None:
    shown = author.get("/studio/?q=<script>alert(1)</script>&category=<b>").content.decode()
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)" in shown

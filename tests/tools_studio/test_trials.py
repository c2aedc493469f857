"""Trying a tool in the Studio, over HTTP: the test run, its console, the example, the preview alone."""

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.gate import decide
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from tests.conftest import ECHO, MakeTool, signed_in
from tools_studio.models import Script

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
PREVIEWED = 'def preview(text: str = "hello") -> str:\n    return f"would say {text}"\n\n\n' + ECHO


def test(client: Client, **typed: str) -> str:
    return str(client.post("/studio/tools/echo/test", typed, headers=HTMX).content.decode())


test.__test__ = False  # type: ignore[attr-defined]


def test_a_test_of_an_open_tool_shows_its_result(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="DISABLED", published=False)
    assert "&lt;b&gt;hi&lt;/b&gt;" in test(author, **{"arg-text": "<b>hi</b>"})


def test_a_test_that_passed_offers_to_publish_and_the_state_follows(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="DISABLED", published=False)
    assert "Run a test first" in author.get("/studio/tools/echo").content.decode()
    shown = test(author, **{"arg-text": "hi"})
    assert "Publish version 1" in shown
    assert 'hx-swap-oob="true"' in shown
    assert author.get("/studio/tools/echo").context["stage"].state == "ready"


@pytest.mark.guarantee("gate:one-funnel", "SR-32")
def test_a_test_of_a_gated_tool_asks_like_every_other_call(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    shown = test(author, **{"arg-text": "hi"})
    assert "Approve" in shown
    assert "Publish version" not in shown
    assert ToolCall.objects.get().status == Status.WAITING


def test_a_test_that_waits_is_there_again_after_a_reload(author: Client, make_tool: MakeTool, bob: User) -> None:
    make_tool("echo")
    test(author, **{"arg-text": "hi there"})
    page = author.get("/studio/tools/echo")
    call = ToolCall.objects.get()
    assert page.context["call"] == call
    assert f"/approvals/{call.approval.pk}/decide" in page.content.decode()
    ToolCall.objects.update(caller=bob)
    assert "call" not in author.get("/studio/tools/echo").context


def test_wherever_a_card_of_the_highest_risk_stands_it_asks_for_another_sign_in_only_if_the_last_is_too_old(
    author: Client, make_tool: MakeTool
) -> None:
    make_tool("echo", capabilities={"destructive": True})
    Tool.objects.update(risk_level=5)
    shown = test(author, **{"arg-text": "hi"})
    places = ("/studio/tools/echo", f"/approvals/{ToolCall.objects.get().approval.pk}", "/approvals/")
    seen = [shown, *(author.get(place).content.decode() for place in places)]
    assert [("data-approve" in each, "/sign-in/again" in each) for each in seen] == [(True, False)] * 4
    session = author.session
    session["signed_in_at"] = "2020-01-01T00:00:00+00:00"
    session.save()
    seen = [author.get(place).content.decode() for place in places]
    assert [("data-approve" in each, "/sign-in/again" in each) for each in seen] == [(True, True)] * 3


def test_the_console_of_a_gated_test_says_nothing_until_it_is_settled(
    author: Client, make_tool: MakeTool, alice: User
) -> None:
    make_tool("echo", published=False)
    test(author, **{"arg-text": "hi there"})
    call = ToolCall.objects.get()
    assert "1 call to this tool waits for an answer." in author.get("/studio/tools/echo").content.decode()
    path = f"/studio/tools/echo/test/{call.pk}"
    assert author.get(path, headers=HTMX).status_code == 204
    decide.approve(call.approval.pk, signed_in(alice), digest=call.approval.digest)
    async_to_sync(settled)(call.pk, 30.0)
    shown = author.get(path, headers=HTMX).content.decode()
    assert "hi there" in shown
    assert "Publish version 1" in shown
    assert '<div id="open-calls" hx-swap-oob="true">' in shown
    assert "for an answer." not in shown


def test_the_note_about_open_calls_is_sent_again_only_when_there_are_others(
    author: Client, make_tool: MakeTool, alice: User
) -> None:
    make_tool("echo")
    test(author)
    path = "/studio/tools/echo/open-calls"
    assert f"{path}?shown=1" in author.get("/studio/tools/echo").content.decode()
    assert author.get(path, {"shown": "1"}).status_code == 204
    approval = ToolCall.objects.get().approval
    decide.decline(approval.pk, signed_in(alice))
    gone = author.get(path, {"shown": "1"})
    assert (gone.status_code, "for an answer." in gone.content.decode()) == (200, False)


def test_the_console_of_another_persons_test_is_not_there(
    author: Client, make_tool: MakeTool, bob: User, client: Client
) -> None:
    make_tool("echo")
    test(author)
    call = ToolCall.objects.get()
    other = User.objects.create_superuser("dora", password="a long enough pass phrase")
    client.force_login(other)
    assert client.get(f"/studio/tools/echo/test/{call.pk}").status_code == 404


def test_an_error_leads_to_its_line_and_what_was_printed_is_there(author: Client, make_tool: MakeTool) -> None:
    code = 'def run(text: str = "") -> str:\n    """Fail."""\n    print("so far")\n    raise ValueError("no")\n'
    make_tool("echo", code=code, hitl_mode="DISABLED", published=False)
    shown = test(author)
    assert 'data-goto="4"' in shown
    assert "so far" in shown
    assert "Publish version" not in shown


@pytest.mark.parametrize("typed", ["", "x", "1.5.2"], ids=["nothing", "a letter", "no number"])
def test_what_does_not_fit_a_field_is_said_at_the_field(author: Client, make_tool: MakeTool, typed: str) -> None:
    make_tool("echo", code='def run(n: int) -> int:\n    """N."""\n    return n\n', hitl_mode="DISABLED")
    shown = test(author, **{"arg-n": typed})
    assert 'data-field="arg-n"' in shown
    assert not ToolCall.objects.exists()


def test_the_values_of_a_test_are_kept_as_the_example_and_make_no_version(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="DISABLED", example={"text": "before"})
    test(author, **{"arg-text": "not kept"})
    assert Tool.objects.get().example == {"text": "before"}
    test(author, **{"arg-text": "kept", "keep": "yes"})
    assert Tool.objects.get().example == {"text": "kept"}
    assert Script.objects.get().version == 1
    assert author.get("/studio/tools/echo").context["arguments"][0].value == "kept"


def test_values_that_do_not_fit_are_no_example(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", code='def run(n: int) -> int:\n    """N."""\n    return n\n', hitl_mode="DISABLED")
    test(author, **{"arg-n": "1.5", "keep": "yes"})
    assert ToolCall.objects.get().status == Status.REJECTED
    assert Tool.objects.get().example is None


def test_a_preview_is_shown_without_asking_or_running_anything(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", code=PREVIEWED)
    assert "Try the preview" in author.get("/studio/tools/echo").content.decode()
    answer = author.post("/studio/tools/echo/preview", {"arg-text": "<hi>"}, headers=HTMX)
    assert "would say &lt;hi&gt;" in answer.content.decode()
    assert not ToolCall.objects.exists()


def test_a_preview_that_fails_says_so(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", code=PREVIEWED.replace('return f"would say {text}"', 'raise ValueError("cannot say")'))
    shown = author.post("/studio/tools/echo/preview", {"arg-text": "hi"}, headers=HTMX).content.decode()
    assert "The preview failed" in shown
    assert "cannot say" in shown


def test_a_tool_without_a_preview_offers_none(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo")
    assert "Try the preview" not in author.get("/studio/tools/echo").content.decode()


@pytest.mark.parametrize("path", ["test", "preview"])
def test_without_scripts_the_answer_is_a_whole_page(author: Client, make_tool: MakeTool, path: str) -> None:
    make_tool("echo", code=PREVIEWED, hitl_mode="DISABLED")
    shown = author.post(f"/studio/tools/echo/{path}", {"arg-text": "hi"}).content.decode()
    assert "<!doctype html>" in shown
    assert "hi" in shown


def test_a_preview_that_fails_leads_to_the_line(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", code=PREVIEWED.replace('return f"would say {text}"', 'raise ValueError("no")'))
    page = author.post("/studio/tools/echo/preview", {"arg-text": "hi"}, headers=HTMX)
    assert 'data-goto="2"' in page.content.decode()

"""Versions of a tool: the list, differences, going back."""

from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.base import diff
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.secrets.values import Value
from tests.conftest import ECHO, MakeTool, caller, signed_in
from tests.tables import each_row
from tests.tools_studio.conftest import text
from tools_studio import authoring, spec, versions
from tools_studio.models import ScriptVersion
from tools_studio.spec import Unreadable

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/studio/tools/echo/versions"


@pytest.fixture
def saved(make_tool: MakeTool, alice: User) -> Tool:
    """Three versions: as it was made, with other code, with a title and a tag."""
    tool = make_tool("echo", hitl_mode="REQUIRED")
    authoring.amend(tool, {"code": ECHO.replace("return text", "return text * 2")}, signed_in(alice))
    authoring.amend(tool, {"title": "Echo", "tags": ("loud",)}, signed_in(alice), confirmed=True)
    Tool.objects.update(published=True)
    return Tool.objects.get()


def version(number: int) -> ScriptVersion:
    return ScriptVersion.objects.get(number=number)


def test_every_save_is_a_version_with_its_author_and_what_changed(saved: Tool, author: Client) -> None:
    listed = list(versions.saves(ScriptVersion.objects.all()))
    assert [(save.version.number, save.words) for save in listed] == [
        (3, "title, tags"), (2, "code"), (1, "the first stored version"),
    ]  # fmt: skip
    page = text(author.get(PAGE))
    assert page.count("by alice") == 3
    assert "now, published" in page


def test_a_secret_is_in_no_version_and_a_save_that_changes_only_it_says_so(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", variables=(Value("KEY", "sk-live-1234567"),))
    authoring.amend(tool, {"variables": (Value("KEY", "sk-live-7654321"),)}, signed_in(alice))
    assert next(versions.saves(ScriptVersion.objects.all())).words == "only its secrets"
    assert "sk-live" not in str(ScriptVersion.objects.values_list("draft", flat=True))


def test_the_difference_of_two_versions_is_shown_line_by_line_and_field_by_field(saved: Tool, author: Client) -> None:
    found = versions.compare(version(1).draft, version(3).draft)
    assert [(line.kind, line.text.strip()) for line in found.code if line.kind in ("gone", "come")] == [
        ("gone", "return text"), ("come", "return text * 2"),
    ]  # fmt: skip
    assert [(change.words, change.before) for change in found.changes] == [("title", ""), ("tags", "[]")]
    page = author.get(f"{PAGE}/1..3")
    assert "return text * 2" in text(page)
    assert author.get(f"{PAGE}/compare?before=3&after=1")["Location"].endswith("/versions/1..3")
    assert author.get(f"{PAGE}/compare?before=x&after=1")["Location"].endswith("/versions")


def test_a_hidden_character_in_a_difference_is_seen(make_tool: MakeTool, alice: User, author: Client) -> None:
    tool = make_tool("echo")
    authoring.amend(tool, {"code": ECHO + "# harm\u202eless\u2028\n"}, signed_in(alice))
    page = text(author.get(f"{PAGE}/1..2"))
    assert '<span class="esc">U+202E</span>' in page
    assert '<span class="esc">U+2028</span>' in page


@pytest.mark.servers("the databases keep JSON each in its own way")
def test_a_restored_version_is_a_new_one_with_the_old_content(saved: Tool, alice: User, author: Client) -> None:
    response = author.post(f"{PAGE}/1/restore", {"confirm_lowering": "on"})
    assert response["Location"] == f"{PAGE}?restored=1&anew=1"
    tool = Tool.objects.select_related("script").get()
    assert (tool.script.code, tool.title, tool.script.version) == (ECHO, "", 4)
    assert version(4).draft == version(1).draft
    assert "its content is version 4 now" in text(author.get(response["Location"]))


def test_restoring_what_stands_makes_no_new_version(saved: Tool, alice: User, author: Client) -> None:
    response = author.post(f"{PAGE}/3/restore")
    assert ScriptVersion.objects.count() == 3
    assert "Nothing differed" in text(author.get(response["Location"]))


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:same-call")
def test_restoring_another_definition_withdraws_what_waits(saved: Tool, alice: User, author: Client) -> None:
    call = async_to_sync(submit)(CallRequest("echo", {}, caller(alice)))
    assert "1 call to this tool waits for an answer" in text(author.get(PAGE))
    author.post(f"{PAGE}/1/restore", {"confirm_lowering": "on"})
    assert ToolCall.objects.get(pk=call.pk).status == Status.WITHDRAWN


def test_restoring_a_version_that_asked_less_often_asks_first(make_tool: MakeTool, alice: User, author: Client) -> None:
    tool = make_tool("echo", hitl_mode="DISABLED")
    authoring.amend(tool, {"hitl_mode": "REQUIRED"}, signed_in(alice))
    with pytest.raises(NotConfirmed):
        authoring.restore(version(1), signed_in(alice))
    page = author.post(f"{PAGE}/1/restore")
    assert page.status_code == 422
    assert "Reduce human oversight?" in text(page)
    assert "asks less often than the tool does now" in text(author.get(f"{PAGE}/1..2"))
    assert Tool.objects.get().hitl_mode == "REQUIRED"
    assert author.post(f"{PAGE}/1/restore", {"confirm_lowering": "on"}).status_code == 302
    assert Tool.objects.get().hitl_mode == "DISABLED"


def test_restoring_keeps_the_secrets_and_the_name_that_it_has_now(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", variables=(Value("KEY", "sk-live-1234567"),))
    draft = spec.draft_of(tool)
    authoring.change(tool, replace(draft, name="louder", title="Louder"), signed_in(alice), confirmed=True)
    before = spec.stored_variables(Tool.objects.select_related("script").get().script)
    restored = authoring.restore(version(1), signed_in(alice), confirmed=True)
    assert (restored.name, restored.title) == ("louder", "")
    assert spec.stored_variables(restored.script) == before


@each_row("kept", [{}, {"name": "echo", "code": ECHO}, {"schema": 7}])
def test_a_version_kept_in_another_form_is_refused_clearly(saved: Tool, alice: User, author: Client, kept: Any) -> None:
    ScriptVersion.objects.filter(number=1).update(draft=kept)
    with pytest.raises(Unreadable):
        authoring.restore(version(1), signed_in(alice))
    assert "does not understand" in text(author.get(f"{PAGE}/1..3"))
    page = author.post(f"{PAGE}/1/restore")
    assert page.status_code == 422
    assert "does not understand" in text(page)
    assert author.get(PAGE).status_code == 200


def test_a_version_that_is_no_longer_sound_is_not_restored_and_the_reason_is_told(saved: Tool, author: Client) -> None:
    ScriptVersion.objects.filter(number=1).update(draft=version(1).draft | {"code": "def run(x):\n    return x\n"})
    page = author.post(f"{PAGE}/1/restore")
    assert page.status_code == 422
    assert "Version 1 was not restored" in text(page)
    assert Tool.objects.get().title == "Echo"


def test_long_lists_come_in_pages(make_tool: MakeTool, author: Client) -> None:
    make_tool("echo")
    first = version(1)
    ScriptVersion.objects.bulk_create(
        ScriptVersion(script=first.script, number=n, draft=first.draft | {"title": f"Echo {n}"}) for n in range(2, 54)
    )
    page = text(author.get(PAGE))
    assert "?before=4" in page
    older = text(author.get(f"{PAGE}?before=4"))
    assert "The first stored version" in older
    assert "Older versions" not in older


def test_a_version_that_is_not_there_is_a_404(saved: Tool, author: Client) -> None:
    assert author.get(f"{PAGE}/1..9").status_code == 404
    assert author.post(f"{PAGE}/9/restore").status_code == 404
    assert author.get("/studio/tools/nope/versions").status_code == 404


# -- Lines -----------------------------------------------------------------------------------------------------------


def test_lines_around_a_change_are_kept_and_the_others_counted() -> None:
    before = "\n".join(map(str, range(20)))
    found = diff.lines(before, before.replace("\n10\n", "\nten\n"))
    assert [(line.kind, line.text) for line in found] == [
        ("skip", "7 unchanged lines"), ("same", "7"), ("same", "8"), ("same", "9"), ("gone", "10"), ("come", "ten"),
        ("same", "11"), ("same", "12"), ("same", "13"), ("skip", "6 unchanged lines"),
    ]  # fmt: skip
    assert [(line.old, line.new) for line in found if line.kind in ("gone", "come")] == [(11, None), (None, 11)]


def test_equal_texts_have_no_lines_and_an_added_end_is_one() -> None:
    assert diff.lines("a\nb", "a\nb") == []
    assert [(line.kind, line.text) for line in diff.lines("a", "a\n")] == [("same", "a"), ("come", "")]


@pytest.mark.timeout(10)
def test_texts_made_to_be_slow_to_compare_are_compared_soon() -> None:
    before, after = "\n".join(["x", "y"] * 3_000), "\n".join(["y", "x", "x"] * 2_000)
    assert len(diff.lines(before, after)) > 10_000
    assert diff.lines("\n".join(["x", "y"] * 740), "\n".join(["y", "x", "x"] * 490))

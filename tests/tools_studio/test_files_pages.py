"""The pages that export and import tools, over HTTP; and the pages for reading."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from hitlchat.gate.models import Tool
from tests.conftest import ECHO, MakeTool
from tests.tables import each_row
from tests.tools_studio.conftest import text

pytestmark = pytest.mark.django_db(transaction=True)

IMPORT, EXPORT = "/studio/import", "/studio/export"
SHOWN = ["new", "echo_2", "left alone"]


def uploaded(content: str | bytes) -> SimpleUploadedFile:
    raw = content.encode() if isinstance(content, str) else content
    return SimpleUploadedFile("tools.json", raw, "application/json")


def hidden(page: Any) -> dict[str, str]:
    """What the plan's first form sends back."""
    plan = page.context["plan"]
    return {"text": page.context["text"], "plan": plan.digest, "on_conflict": page.context["on_conflict"]}


def file(*tools: dict[str, Any]) -> str:
    return json.dumps({"format": "hitlchat.tools", "version": 1, "tools": [{"code": ECHO} | each for each in tools]})


def test_chosen_tools_are_exported_as_a_file(author: Client, make_tool: MakeTool) -> None:
    for name in ("a", "b", "c"):
        make_tool(name)
    page = author.get(EXPORT, {"name": ["a", "c"]})
    assert page["Content-Disposition"].startswith('attachment; filename="hitlchat-tools-')
    assert page["Content-Type"] == "application/json"
    assert [tool["name"] for tool in page.json()["tools"]] == ["a", "c"]
    assert author.get(EXPORT, {"name": "b"})["Content-Disposition"].startswith('attachment; filename="b-tools-')
    assert len(author.get(EXPORT, {"all": "1"}).json()["tools"]) == 3


def test_the_plan_has_what_is_written_first_and_what_is_the_same_folded(author: Client, make_tool: MakeTool) -> None:
    make_tool("same")
    make_tool("other", code=ECHO + "# another\n")
    exported = author.get(EXPORT, {"name": "same"}).json()["tools"]
    content = json.dumps(json.loads(file({"name": "other"}, {"name": "new"})) | {"tools": [
        *exported, {"name": "other", "code": ECHO}, {"name": "new", "code": ECHO},
    ]})  # fmt: skip
    plan = author.post(IMPORT, {"text": content, "on_conflict": "leave"})
    assert [step.name for step in plan.context["plan"].shown] == ["new", "other"]
    assert "1 tool is unchanged" in text(plan)


def test_an_export_of_nothing_or_of_what_is_not_there_is_refused(author: Client, make_tool: MakeTool) -> None:
    make_tool("a")
    assert author.get(EXPORT).status_code == 200
    page = author.get(EXPORT, {"chosen": "1"})
    assert page.status_code == 422
    assert "Choose at least one tool." in text(page)
    assert author.get(EXPORT, {"name": ["a", "nope"]}).status_code == 404


def test_an_import_shows_first_what_it_would_do(author: Client, make_tool: MakeTool) -> None:
    make_tool("old", capabilities={"store": True})
    content = file(
        {"name": "old", "code": ECHO + "# <b>new</b>\n"},
        {"name": "new", "capabilities": {"store": True}, "hitlMode": "DISABLED"},
    )
    page = author.post(IMPORT, {"file": uploaded(content), "on_conflict": "replace"})
    said = text(page)
    assert "1 new, 1 replaced" in said
    assert "Replaces the existing tool" in said
    assert "# &lt;b&gt;new&lt;/b&gt;" in said
    assert "Can read and change its own stored data." in said
    assert "The file says “Never ask”" in said
    assert Tool.objects.count() == 1
    done = author.post(IMPORT, hidden(page))
    assert "1 new, 1 replaced. None are published" in text(done)
    assert {tool.name: (tool.published, tool.hitl_mode) for tool in Tool.objects.all()} == {
        "old": (False, "REQUIRED"), "new": (False, "REQUIRED"),
    }  # fmt: skip


def test_without_a_choice_a_tool_of_the_same_name_is_left_alone(author: Client, make_tool: MakeTool) -> None:
    make_tool("old")
    page = author.post(IMPORT, {"text": file({"name": "old", "code": ECHO + "#\n"}), "on_conflict": "nonsense"})
    assert "1 left alone" in text(page)
    assert "disabled" in text(page)
    author.post(IMPORT, hidden(page))
    assert Tool.objects.get().origin.endswith("version 1")


def test_what_was_shown_is_what_is_done_or_nothing(author: Client, make_tool: MakeTool) -> None:
    page = author.post(IMPORT, {"text": file({"name": "a"})})
    make_tool("a", title="Mine")
    again = author.post(IMPORT, hidden(page) | {"on_conflict": "replace"})
    assert again.status_code == 409
    assert "Something changed in the meantime" in text(again)
    assert Tool.objects.get().title == "Mine"
    forged = author.post(IMPORT, hidden(page) | {"text": file({"name": "b"})})
    assert forged.status_code == 409
    assert Tool.objects.count() == 1


@each_row(
    "content, said",
    [
        (b"", "Choose a file or paste"),
        (b"{", "The file is not JSON"),
        ("{}".encode("utf-16"), "not UTF-8 text"),
        (b" " * (10 * 2**20), "The file is larger than 1.5 MiB, the most that is accepted"),
        (file({"name": "../x", "evil": "<script>"}), "<code>tools[0].evil</code>"),
        (file({"name": "<script>alert(1)</script>"}), "<code>tools[0].name</code>"),
    ],
    ids=["empty", "no JSON", "UTF-16", "ten megabytes", "unknown key", "markup"],
)
def test_a_hostile_file_is_refused_on_the_page(author: Client, content: str | bytes, said: str) -> None:
    page = author.post(IMPORT, {"file": uploaded(content)})
    assert page.status_code == 422
    assert said in text(page)
    assert "<script>alert" not in text(page)
    assert not Tool.objects.exists()


def test_a_file_with_a_byte_order_mark_is_read(author: Client) -> None:
    page = author.post(IMPORT, {"file": uploaded(b"\xef\xbb\xbf" + file({"name": "a", "title": "Grüße\n"}).encode())})
    author.post(IMPORT, hidden(page))
    assert Tool.objects.get().title == "Grüße\n"


@pytest.mark.slow("posts a file of the largest size")
def test_a_file_of_the_largest_size_passes_the_page_that_asks(author: Client) -> None:
    document = json.loads(file(*({"name": f"t{n}", "code": ECHO + "#" * 50_000} for n in range(30))))
    content = json.dumps(document, separators=(",", ":"))
    assert 1.4 * 2**20 < len(content) < 1.5 * 2**20
    page = author.post(IMPORT, {"file": uploaded(content)})
    done = author.post(IMPORT, hidden(page))
    assert (done.status_code, Tool.objects.count()) == (200, 30)

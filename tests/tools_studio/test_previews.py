"""An authored tool's own preview: what it shows, and that it can change nothing."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from pytest_django import Settings

from hitlchat.gate.models import Tool
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.secrets.values import Value
from tests.conftest import MakeTool
from tests.tables import each_row
from tests.tools_studio.calling import call, preview
from tests.tools_studio.fetching.conftest import serving
from tools_studio.inspection import inspect
from tools_studio.language import signature
from tools_studio.models import Script, StoreEntry
from tools_studio.spec import AuthoringError

pytestmark = pytest.mark.django_db(transaction=True)

RUN = 'def run(order: str, amount: float = 1.5) -> str:\n    """Refund."""\n    return order\n'


def with_preview(body: str, *, head: str = "", run: str = RUN) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{head}\n\n{run}\n\ndef preview(order: str, amount: float = 1.5):\n{lines}"


def shown(make_tool: MakeTool, alice: User, body: str, **fields: Any) -> Preview | None:
    head = fields.pop("head", "")
    tool = make_tool("refund", code=with_preview(body, head=head), **fields)
    return preview(tool, alice, order="4711")


@pytest.fixture
def refund(make_tool: MakeTool) -> Tool:
    return make_tool("refund", code=with_preview("return order"))


def table(columns: list[str], *rows: list[str]) -> Preview:
    return Preview(table={"columns": columns, "rows": [*rows]})


@each_row(
    "returned, expected",
    [
        ('f"Refunds {amount:.2f} for {order}"', Preview(text="Refunds 1.50 for 4711")),
        ('""', Preview(text="")),
        ('{"order": order, "amount": amount}', table([], ["order", "4711"], ["amount", "1.5"])),
        ('[{"a": 1, "b": None}, {"a": "x", "b": [1]}]', table(["a", "b"], ["1", ""], ["x", "[1]"])),
        ("[[1, 2], [3]]", Preview(text="[[1, 2], [3]]")),
        ("7", Preview(text="7")),
        ("[]", Preview(text="[]")),
        ("{}", Preview(text="{}")),
    ],
)  # fmt: skip
def test_a_preview_is_a_text_or_a_table(refund: Tool, alice: User, returned: str, expected: Preview) -> None:
    Script.objects.update(code=with_preview(f"return {returned}"))
    assert preview(Tool.objects.select_related("script").get(), alice, order="4711") == expected


def test_a_preview_that_fails_says_why_and_where(make_tool: MakeTool, alice: User) -> None:
    assert shown(make_tool, alice, 'raise ValueError("no such order")') == Preview(
        error="ValueError: no such order (line 9)"
    )


def test_a_preview_that_returns_nothing_says_so(make_tool: MakeTool, alice: User) -> None:
    found = shown(make_tool, alice, "pass")
    assert found is not None
    assert "It returned nothing" in str(found.error)


def test_a_preview_that_computes_for_too_long_is_ended(make_tool: MakeTool, alice: User, settings: Settings) -> None:
    # Far less than the time it may take in all, however busy the machine.
    settings.TOOL_CPU_SECONDS = 0.3
    found = shown(make_tool, alice, "while True:\n    pass")
    assert found is not None
    assert "processor time" in str(found.error)


NO_PREVIEWS = {
    "none": RUN,
    "inner": RUN + "\n\ndef other():\n    def preview(order: str, amount: float = 1.5):\n        return 1\n",
    "in a text": RUN + '\n\nTEXT = """\ndef preview(order: str):\n    return 1\n"""\n',
    "a value": RUN + '\n\npreview = "a word"\n',
    "another name": RUN + "\n\ndef preview_of(order: str):\n    return 1\n",
    "a comment": RUN + "\n\n# def preview(order: str):\n",
}


@each_row("where", NO_PREVIEWS)
def test_only_a_function_of_the_module_is_a_preview(where: str) -> None:
    assert signature.preview_of(NO_PREVIEWS[where]) is None


def test_without_a_preview_nothing_is_shown_and_one_in_a_text_is_refused(make_tool: MakeTool, alice: User) -> None:
    assert preview(make_tool("refund", code=NO_PREVIEWS["a value"]), alice, order="1") is None
    with pytest.raises(AuthoringError, match="expected a top-level `def preview"):
        make_tool("other", code=NO_PREVIEWS["in a text"])


CHANGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "store.set": ("from hitl import store", 'store.set("a", 1)', {"store": True}),
    "store.delete": ("from hitl import store", 'store.delete("a")', {"store": True}),
    "files.write": ("from hitl import files", 'files.write("a", "x")', {"files": {"mode": "write", "folder": "f"}}),
    "files.append": ("from hitl import files", 'files.append("a", "x")', {"files": {"mode": "write", "folder": "f"}}),
    "files.delete": ("from hitl import files", 'files.delete("a")', {"files": {"mode": "write", "folder": "f"}}),
    "send_email": ("from hitl import send_email", 'send_email("a@b.c", "x", "x")', {"email": {"to": ["*"]}}),
    "webhook": ("from hitl import webhook", 'webhook("HOOK", 1)', {"webhook": {"targets": ["HOOK"]}}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_preview_cannot_change_anything(
    make_tool: MakeTool, alice: User, name: str, settings: Any, tmp_path: Path
) -> None:
    settings.TOOL_FILES_DIR = tmp_path / "files"
    head, body, granted = CHANGES[name]
    hook = (Value("HOOK", "https://example.com/in", secret=False),)
    StoreEntry.objects.create(group="tools", key="a", value=0)
    found = shown(make_tool, alice, f"{body}\nreturn 1", head=head, capabilities=granted, variables=hook)
    assert found == Preview(error=f"{name} makes changes, but a preview may only read (line 9)")
    assert [entry.value for entry in StoreEntry.objects.all()] == [0]
    assert not (tmp_path / "files").exists()
    assert mail.outbox == []


def test_a_preview_cannot_change_anything_through_a_function_of_its_tool(make_tool: MakeTool, alice: User) -> None:
    helper = 'from hitl import store\n\n\ndef note():\n    store.set("a", 1)\n'
    found = shown(make_tool, alice, "note()\nreturn 1", head=helper, capabilities={"store": True})
    assert found is not None
    assert "store.set makes changes, but" in str(found.error)
    assert not StoreEntry.objects.exists()


def test_a_preview_may_read_what_its_tool_may(make_tool: MakeTool, alice: User, settings: Any, tmp_path: Path) -> None:
    settings.TOOL_FILES_DIR = tmp_path
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "a").write_text("kept")
    StoreEntry.objects.create(group="tools", key="a", value=[1])
    body = 'return [store.get("a"), files.read("a"), variable("V"), now().year > 2000, datetime.now().year > 2000]'
    head = "from datetime import datetime\nfrom hitl import files, now, store, variable"
    granted = {"store": True, "files": {"mode": "write", "folder": "f"}, "now": True}
    found = shown(make_tool, alice, body, head=head, capabilities=granted, variables=(Value("V", "v", secret=False),))
    assert found == Preview(text='[[1], "kept", "v", true, true]')


def test_a_preview_asks_other_servers_only_to_read(make_tool: MakeTool, alice: User) -> None:
    with serving() as shop:
        place = f"http://127.0.0.1:{shop.server_port}"
        granted = {"fetch": {"mode": "allowlist", "hosts": [place]}}
        body = f'status = fetch("{place}/echo")["status"]\nfetch("{place}/echo", method="POST", json=1)\nreturn status'
        found = shown(make_tool, alice, body, head="from hitl import fetch", capabilities=granted)
        assert [method for method, *_ in shop.asked] == ["GET"]
    assert found is not None
    assert "POST is not granted" in str(found.error)


def test_a_preview_cannot_sleep(make_tool: MakeTool, alice: User) -> None:
    found = shown(make_tool, alice, "time.sleep(1)\nreturn 1", head="import time", capabilities={"sleep": True})
    assert found is not None
    assert "sleep" in str(found.error)


def test_an_async_preview_awaits_what_it_reads(make_tool: MakeTool, alice: User) -> None:
    code = with_preview('return await store.get("a", "none")', head="from hitl import store")
    tool = make_tool("refund", code=code.replace("def preview", "async def preview"), capabilities={"store": True})
    assert preview(tool, alice, order="1") == Preview(text="none")


def test_a_preview_gets_the_records_that_run_gets(make_tool: MakeTool, alice: User) -> None:
    record = "from dataclasses import dataclass\n\n\n@dataclass\nclass Item:\n    name: str\n    count: int = 1\n\n\n"
    run = 'def run(item: Item) -> str:\n    """Order."""\n    return item.name\n\n\n'
    tool = make_tool("order", code=f"{record}{run}def preview(item: Item) -> str:\n    return item.name * item.count\n")
    assert preview(tool, alice, item={"name": "x", "count": 3}) == Preview(text="xxx")


def test_a_tool_that_cannot_run_shows_why_in_its_preview(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("refund", code=with_preview("return 1"), variables=(Value("V"),))
    assert preview(tool, alice, order="1") == Preview(error="V has no value yet.")
    Script.objects.filter(tool=tool).update(revoked="it was altered")
    assert preview(tool, alice, order="1") == Preview(error="this tool was revoked: it was altered")


def test_a_tool_with_a_preview_runs_as_before(make_tool: MakeTool, alice: User) -> None:
    make_tool("refund", code=with_preview("return 1"), hitl_mode="DISABLED")
    done = call(alice, "refund", order="4711")
    assert (done.status, done.result) == (Status.SUCCEEDED, "4711")


OTHERS = ["order: str", "amount: float = 1.5, order: str = ''", "order: int, amount: float = 1.5", ""]


@pytest.mark.parametrize("parameters", [*OTHERS, "order: str, amount: float = 2.5", "order: str, amount: float"])
def test_a_preview_takes_what_run_takes(make_tool: MakeTool, parameters: str) -> None:
    code = with_preview("return 1").replace(
        "def preview(order: str, amount: float = 1.5)", f"def preview({parameters})"
    )
    with pytest.raises(AuthoringError, match="Line 8: expected `preview` with the parameters of `run`"):
        make_tool("refund", code=code)
    assert not Tool.objects.exists()
    assert "the parameters of `run`" in inspect("refund", code, {}).findings[0].message


def test_a_preview_need_not_describe_its_parameters_again(make_tool: MakeTool) -> None:
    run = RUN.replace('"""Refund."""', '"""Refund.\n\n    order: The number.\n    """')
    tool = make_tool("refund", code=with_preview("return 1", run=run))
    assert tool.input_schema["properties"]["order"]["description"] == "The number."


@each_row("name", CHANGES)
def test_the_check_marks_what_a_preview_must_not_do(name: str) -> None:
    head, body, granted = CHANGES[name]
    run = RUN.replace("    return order", f"    {body}\n    return order")
    found = inspect("refund", with_preview(f"{body}\nreturn 1", head=head, run=run), granted).findings
    assert [(each.line, each.message) for each in found] == [(10, f"{name} makes changes, but a preview may only read")]


def test_the_check_finds_type_errors_in_a_preview_once() -> None:
    found = inspect("refund", with_preview("return order + amount") + "\n\nX: int = 'x'\n", {}).findings
    assert [each.line for each in found] == [9, 12]


def test_the_check_leaves_alone_what_follows_a_preview() -> None:
    code = with_preview("return 1", head="from hitl import store") + '\n\ndef other():\n    store.set("a", 1)\n'
    assert inspect("refund", code, {"store": True}).findings == []

"""Authored tools, executed through the gate."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import sources
from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from tests.conftest import MakeTool
from tests.tools_studio.calling import call, said
from tools_studio import spec
from tools_studio.models import ScriptVersion, StoreEntry
from tools_studio.source import StudioSource

KEEPS = 'from hitl import store\n\n\ndef run(key: str, value: int) -> list:\n    """Keep."""\n    store.set(key, value)\n    return store.keys()\n'  # noqa: E501

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_tool_gets_its_arguments_and_gives_its_result(make_tool: MakeTool, alice: User) -> None:
    make_tool("echo", hitl_mode="DISABLED")
    done = call(alice, "echo", text="héllo \x00")
    assert (done.status, done.result) == (Status.SUCCEEDED, "héllo \x00")


UNFIT: dict[str, tuple[Any, str]] = {
    "lists that need more memory than text": ([[]] * 20_000, "must not be larger than 256 KiB"),
    "a number with too many digits": ([10**1500], "an integer may have at most 4096 bits."),
}


@pytest.mark.parametrize("items, words", UNFIT.values(), ids=UNFIT)
def test_nobody_is_asked_about_arguments_that_the_sandbox_cannot_take(
    items: Any, words: str, make_tool: MakeTool, alice: User
) -> None:
    make_tool(
        "counts", hitl_mode="REQUIRED", code='def run(items: list) -> int:\n    """Count."""\n    return len(items)\n'
    )
    refused = call(alice, "counts", items=items)
    assert (refused.status, words in refused.reason) == (Status.REJECTED, True), refused.reason
    assert not hasattr(refused, "approval")


def test_a_tool_saved_before_sections_of_docstrings_were_told_apart_is_as_it_was_saved(
    make_tool: MakeTool, alice: User
) -> None:
    code = (
        'def run(a: str) -> str:\n    """T.\n\n    a: First\n\n    Example:\n        a: last\n    """\n    return a\n'
    )
    tool = make_tool("echo", hitl_mode="DISABLED", code=code)
    assert [*StudioSource().altered()] == []
    before = spec.columns(spec.check(spec.draft_of(tool), sections=False), 1)
    assert before["input_schema"]["properties"]["a"]["description"] == "last"
    Tool.objects.update(**{name: before[name] for name in ("input_schema", "description", "definition_hash")})
    ScriptVersion.objects.update(definition_hash=before["definition_hash"])
    assert [*StudioSource().altered()] == []
    assert call(alice, "echo", a="x").result == "x"
    Tool.objects.update(description="Another.")
    assert len([*StudioSource().altered()]) == 1


def test_a_failing_tool_names_its_line(make_tool: MakeTool, alice: User) -> None:
    make_tool("fails", hitl_mode="DISABLED", code='def run() -> str:\n    """Fail."""\n    raise ValueError("no")\n')
    done = call(alice, "fails")
    assert (done.status, done.error) == (Status.FAILED, {"kind": "error", "message": "ValueError: no", "line": 3})


def test_what_a_tool_prints_is_kept_beside_its_result(make_tool: MakeTool, alice: User) -> None:
    make_tool(
        "prints", hitl_mode="DISABLED", code='def run() -> int:\n    """Print."""\n    print("look")\n    return 1\n'
    )
    done = call(alice, "prints")
    assert (done.result, done.output) == (1, "look\n")


def test_a_store_belongs_to_its_group(make_tool: MakeTool, alice: User) -> None:
    for name, group in (("first", "one"), ("second", "two")):
        make_tool(name, code=KEEPS, group=group, capabilities={"store": True}, hitl_mode="DISABLED")
    assert call(alice, "first", key="a", value=1).result == ["a"]
    assert call(alice, "second", key="b", value=2).result == ["b"]
    assert StoreEntry.objects.filter(group="one").count() == 1


def test_a_store_keeps_no_value_that_is_too_large(make_tool: MakeTool, alice: User) -> None:
    code = KEEPS.replace("store.set(key, value)", 'store.set(key, "x" * 70000)')
    make_tool("keeps", code=code, capabilities={"store": True}, hitl_mode="DISABLED")
    done = call(alice, "keeps", key="a", value=1)
    assert done.status == Status.FAILED
    assert "65,536" in done.error["message"]
    assert not StoreEntry.objects.exists()


def test_a_draft_is_in_nobodys_catalog(make_tool: MakeTool, alice: User) -> None:
    make_tool("echo", published=False, hitl_mode="DISABLED")
    refused = call(alice, "echo", text="x")
    assert (refused.status, "no tool" in refused.reason) == (Status.REJECTED, True)


FILES = """from hitl import files


def run(action: str, path: str, text: str = ""):
    if action == "write":
        files.write(path, text)
    elif action == "append":
        files.append(path, text)
    elif action == "list":
        return files.list(path)
    elif action == "info":
        return files.info(path)
    elif action == "delete":
        return files.delete(path)
    return files.read(path)
"""


@pytest.fixture
def base(settings: Any, tmp_path: Path) -> Path:
    settings.TOOL_FILES_DIR = tmp_path / "files"
    (tmp_path / "key.txt").write_text("not for tools")
    return tmp_path / "files"


def test_files_belong_to_the_folder_that_is_declared(make_tool: MakeTool, alice: User, base: Path) -> None:
    for name, folder in (("notes", "notes"), ("notes_2", "notes"), ("other", "other")):
        make_tool(name, code=FILES, capabilities={"files": {"mode": "write", "folder": folder}}, hitl_mode="DISABLED")
    assert call(alice, "notes", action="write", path="a/b.txt", text="héllo").result == "héllo"
    assert call(alice, "notes_2", action="append", path="a/b.txt", text="!").result == "héllo!"
    assert call(alice, "notes", action="list", path="").result == ["a/"]
    assert call(alice, "notes", action="info", path="a/b.txt").result["size"] == 7
    assert call(alice, "other", action="list", path="").result == []
    assert said(call(alice, "other", action="read", path="a/b.txt")) == "ValueError: files.read: there is no 'a/b.txt'"
    assert (base / "notes" / "a" / "b.txt").read_text() == "héllo!"


def test_no_path_leads_to_another_tools_files(make_tool: MakeTool, alice: User, base: Path) -> None:
    make_tool("mine", code=FILES, capabilities={"files": {"mode": "write", "folder": "mine"}}, hitl_mode="DISABLED")
    (base / "yours").mkdir(parents=True)
    (base / "yours" / "a").write_text("not for others")
    (base / "mine").mkdir()
    (base / "mine" / "link").symlink_to("../yours")
    for path in ("../yours/a", "link/a", str(base / "yours" / "a"), "../../key.txt"):
        for action in ("read", "write"):
            done = call(alice, "mine", action=action, path=path, text="x")
            assert done.status == Status.FAILED, (action, path, done.result)
            assert "not for" not in said(done)
    assert [path.name for path in (base / "yours").iterdir()] == ["a"]
    assert (base / "yours" / "a").read_text() == "not for others"


def test_a_tool_that_may_only_read_files_cannot_write_them(make_tool: MakeTool, alice: User, base: Path) -> None:
    (base / "notes").mkdir(parents=True)
    (base / "notes" / "a").write_text("kept")
    make_tool("notes", code=FILES, capabilities={"files": {"mode": "read", "folder": "notes"}}, hitl_mode="DISABLED")
    assert call(alice, "notes", action="read", path="a").result == "kept"
    done = call(alice, "notes", action="write", path="a", text="x")
    assert done.error["kind"] == "denied"
    assert (base / "notes" / "a").read_text() == "kept"


def test_what_is_not_granted_is_not_there(make_tool: MakeTool, alice: User) -> None:
    for number, name in enumerate(("store", "files", "fetch", "secret", "send_email", "webhook", "now")):
        code = f'from hitl import {name}\n\n\ndef run() -> str:\n    """Use it."""\n    return str({name})\n'
        make_tool(f"tool_{number}", code=code, hitl_mode="DISABLED")
        done = call(alice, f"tool_{number}")
        assert done.error["kind"] == "denied"
        assert f"{name} is not granted to this tool" in said(done)


def test_clock_chance_and_sleep_are_the_interpreters_only_when_granted(make_tool: MakeTool, alice: User) -> None:
    bodies = {
        "now": "from datetime import datetime\n\n\ndef run():\n    return datetime.now().year > 2000\n",
        "random": "import random\n\n\ndef run():\n    return random.random() < 1\n",
        "sleep": "import time\n\n\ndef run():\n    time.sleep(0.001)\n    return True\n",
    }
    for name, code in bodies.items():
        make_tool(name, code=code, capabilities={name: True}, hitl_mode="DISABLED")
        make_tool(f"no_{name}", code=code, hitl_mode="DISABLED")
        assert call(alice, name).result is True
        assert call(alice, f"no_{name}").error["kind"] == "denied"


def test_what_a_tool_gives_that_reads_the_network_or_is_gone_may_be_text_of_strangers(make_tool: MakeTool) -> None:
    reads = make_tool("page", capabilities={"fetch": {"mode": "public"}}).pk
    plain = make_tool("note", capabilities={"store": True}).pk
    tools = {("studio", reads), ("studio", plain), ("studio", None), ("gone", plain)}
    assert sources.outside(tools) == tools - {("studio", plain)}

"""Exporting and importing tools by command."""

import json
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from hitlchat.gate.models import Tool
from tests.conftest import ECHO, MakeTool, signed_in
from tools_studio import authoring

pytestmark = pytest.mark.django_db(transaction=True)


def said(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tools.json"


def write(file: Path, *tools: dict[str, Any]) -> str:
    document = {"format": "hitlchat.tools", "version": 1, "tools": [{"code": ECHO} | each for each in tools]}
    file.write_text(json.dumps(document), encoding="utf-8")
    return str(file)


def test_what_one_command_writes_the_other_reads(make_tool: MakeTool, alice: User, file: Path) -> None:
    tool = make_tool("echo", title="Grüße")
    make_tool("other")
    file.write_text(said("export_tools", "echo"), encoding="utf-8")
    authoring.delete(tool, signed_in(alice))
    assert said("import_tools", str(file), "--user", "alice") == "echo: new, L0, ask every time\n1 new.\n"
    assert Tool.objects.get(name="echo").title == "Grüße"
    assert len(json.loads(said("export_tools"))["tools"]) == 2


def test_a_dry_run_writes_nothing(make_tool: MakeTool, alice: User, file: Path) -> None:
    make_tool("a")
    wanted = {"name": "b", "capabilities": {"store": True}, "hitlMode": "DISABLED", "variables": [{"name": "KEY"}]}
    path = write(file, {"name": "a", "title": "New"}, wanted)
    out = said("import_tools", path, "--user", "alice", "--on-conflict", "rename", "--dry-run")
    assert out.splitlines() == [
        "a: new, as a_2, L0, never ask",
        "b: new, L2, ask every time (stricter than in the file)",
        "  KEY has no value yet.",
        "2 new. Nothing was written.",
    ]
    assert Tool.objects.count() == 1


def test_a_tool_of_the_same_name_is_replaced_only_on_demand(make_tool: MakeTool, alice: User, file: Path) -> None:
    make_tool("a")
    path = write(file, {"name": "a", "title": "New"})
    assert said("import_tools", path, "--user", "alice") == "a: left alone\n1 left alone.\n"
    replace = ("import_tools", path, "--user", "alice", "--on-conflict", "replace")
    with pytest.raises(CommandError, match="add --confirm-lowering"):
        said(*replace)
    said(*replace, "--confirm-lowering")
    assert Tool.objects.get().title == "New"


def test_the_standard_input_is_a_file_too(alice: User, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = Path(write(file, {"name": "a"})).read_bytes()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content)))
    assert "1 new." in said("import_tools", "-", "--user", "alice")


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["import_tools", "{file}", "--user", "bob"], "no user named 'bob' who may write tools"),
        (["import_tools", "{file}", "--user", "nobody"], "no user named 'nobody'"),
        (["import_tools", "/nowhere/tools.json", "--user", "alice"], "cannot be read: No such file"),
        (["import_tools", "/", "--user", "alice"], "cannot be read: Is a directory"),
        (["import_tools", "{file}", "--user", "alice"], r"tools\[0\]\.name: Use 1 to 64 letters"),
        (["export_tools", "nope"], "no authored tool named 'nope'"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], reason: str, alice: User, bob: User, file: Path) -> None:
    path = write(file, {"name": "../evil"})
    with pytest.raises(CommandError, match=reason):
        said(*(each.replace("{file}", path) for each in arguments))
    assert not Tool.objects.exists()


def test_a_file_that_never_ends_is_not_read_to_its_end(alice: User) -> None:
    with pytest.raises(CommandError, match=r"larger than 1\.5 MiB"):
        said("import_tools", "/dev/zero", "--user", "alice")

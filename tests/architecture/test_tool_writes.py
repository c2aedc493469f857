"""Rows of tools are written in one place, so that no change of one can go without its audit event."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import program_files, read, tree
from tests.tables import each_row

OWNER = "hitlchat/gate/tools.py"
WRITERS = {
    *("create", "update", "get_or_create", "update_or_create", "bulk_create", "bulk_update", "delete", "save"),
    *("acreate", "aupdate", "aget_or_create", "aupdate_or_create", "abulk_create", "abulk_update", "adelete", "asave"),
}


def tool_writes(module: ast.Module) -> Iterator[str]:
    """Find calls that write rows of Tool: from the class, or from a variable that was given rows of it."""
    nodes = list(ast.walk(module))
    given = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_of_tools(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    annotated = {
        node.arg
        for node in nodes
        if isinstance(node, ast.arg) and node.annotation and "Tool" in _words(node.annotation)
    }
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITERS:
            if _is_of_tools(node.func.value, given | annotated):
                yield f"{node.lineno}: {ast.unparse(node).splitlines()[0]}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "gate_tool " in node.value.lower():
            yield f"{node.lineno}: SQL"


def _is_of_tools(node: ast.expr, names: set[str]) -> bool:
    """Is `Tool.objects…`, or one of `names`, or the `tool` of another row, at the root?"""
    while True:
        match node:
            case ast.Attribute(value=ast.Name(id="Tool"), attr="objects" | "_base_manager" | "_default_manager"):
                return True
            case ast.Attribute(attr="tool"):
                return True
            case ast.Attribute(value=value) | ast.Call(func=value) | ast.Subscript(value=value):
                node = value
            case ast.Name(id=name):
                return name in names
            case _:
                return False


def _words(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def test_only_one_file_writes_rows_of_tools() -> None:
    paths = [path for path in program_files() if re.search(r"(?i)\btool\b|gate_tool", read(path))]
    assert OWNER in paths
    found = [f"{path}:{said}" for path in paths if path != OWNER for said in tool_writes(tree(path))]
    assert found == []


@each_row(
    "code",
    [
        "Tool.objects.filter(pk=1).update(published=True)",
        "Tool.objects.create(name='x')",
        "rows = Tool.objects.filter(published=False)\nrows.update(hitl_mode='DISABLED')",
        "def change(tool: Tool) -> None:\n    tool.save()",
        "def change(tools: QuerySet[Tool]) -> None:\n    tools.filter(name='x').delete()",
        "script.tool.save(update_fields=['condition'])",
        "cursor.execute('UPDATE gate_tool SET published = 1')",
    ],
)
def test_every_way_to_write_a_tool_is_found(code: str) -> None:
    assert list(tool_writes(ast.parse(code)))


def test_reading_tools_is_no_write() -> None:
    assert not list(tool_writes(ast.parse("Tool.objects.filter(published=True).count()")))
